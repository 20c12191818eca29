"""GENRES as a module of `evaluate`; the computation is in `equivox.metrics.genres.columns`."""

import evaluate  # noqa: F401  (names what must be installed)

import equivox.metrics.evaluate_module
import equivox.metrics.genres.columns


class GENRES(equivox.metrics.evaluate_module.ColumnModule):
    """GENRES of plain columns."""

    METRIC = equivox.metrics.genres.columns.METRIC
