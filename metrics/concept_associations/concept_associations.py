"""BADF's concept associations as a module of `evaluate`; the computation is in `equivox.metrics.badf.columns`."""

import evaluate  # noqa: F401  (names what must be installed)

import equivox.metrics.badf.columns
import equivox.metrics.evaluate_module


class ConceptAssociations(equivox.metrics.evaluate_module.ColumnModule):
    """BADF's concept associations of plain columns."""

    METRIC = equivox.metrics.badf.columns.METRIC
