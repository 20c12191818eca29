"""BADF's concept associations as a module of `evaluate`; the functions are those of `equivox.metrics.badf`."""
