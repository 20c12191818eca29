"""Numbers as a module of `evaluate`; the computation is in `equivox.metrics.numbers.columns`."""

import evaluate  # noqa: F401  (names what must be installed)

import equivox.metrics.evaluate_module
from equivox.metrics.numbers.columns import METRIC


class Numbers(equivox.metrics.evaluate_module.ColumnModule):
    """Difference of means and distance of distributions of plain columns."""

    METRIC = METRIC
