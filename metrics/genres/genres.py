"""GENRES as a module of `evaluate`; the computation is in `equivox.metrics.genres.columns`."""

import evaluate  # noqa: F401  (names what must be installed)

import equivox.metrics.evaluate_module
from equivox.metrics.genres.columns import METRIC

MODULE = equivox.metrics.evaluate_module.module_of(METRIC)
