"""BADF's concept associations as a module of `evaluate`; the computation is in `equivox.metrics.badf.columns`."""

import evaluate  # noqa: F401  (names what must be installed)

import equivox.metrics.evaluate_module
from equivox.metrics.badf.columns import METRIC

MODULE = equivox.metrics.evaluate_module.module_of(METRIC)
