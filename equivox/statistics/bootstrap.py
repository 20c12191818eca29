"""Bootstrap interval of a mean."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

RESAMPLES = 9999
"""Number of resamples of an interval."""


def mean_interval(values: Sequence[float], *, rng: np.random.Generator) -> tuple[float, float]:
    """Return the 95 % BCa interval of the mean of independent values, in their unit; NaN if nothing varies.

    Efron 1987, https://doi.org/10.1080/01621459.1987.10478410, as scipy computes it.
    """
    from scipy import stats

    if len(set(values)) < 2:
        return math.nan, math.nan
    found = stats.bootstrap((np.asarray(values),), np.mean, n_resamples=RESAMPLES, rng=rng).confidence_interval
    return float(found.low), float(found.high)
