"""Checks of input shared by the statistics: each raises one line that names the argument, the value and the fix."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from equivox.errors import RequestError
from equivox.statistics.arrays import Floats, Ints
from equivox.statistics.encode import codes_of


def numbers(column: Sequence[float], argument: str) -> Floats:
    """Return a one-dimensional array of finite numbers or NaN; NaN means missing."""
    try:
        array = np.asarray(column, dtype=np.float64)
    except (TypeError, ValueError):
        raise RequestError(f"`{argument}` holds something that is no number: use NaN where it is missing") from None
    if array.ndim != 1 or array.size == 0:
        raise RequestError(f"`{argument}` has shape {array.shape}: give one number per entry, at least one entry")
    if np.isinf(array).any():
        raise RequestError(f"`{argument}` holds an infinite number: use NaN where it is missing")
    return array


def same_length(expected: int, **columns: Sequence[object]) -> None:
    """Raise when a column has another length than `expected`."""
    for argument, column in columns.items():
        if len(column) != expected:
            raise RequestError(f"`{argument}` has {len(column)} entries where {expected} were expected: one per entry")


def cluster_codes(clusters: Sequence[str] | None, n: int) -> Ints:
    """Return the cluster of each entry as a code; every entry is its own cluster when none are given."""
    if clusters is None:
        return np.arange(n)
    same_length(n, clusters=clusters)
    return codes_of(clusters)[1]


def resamples(n_resamples: int) -> None:
    """Raise when fewer than one resample is asked for."""
    if n_resamples < 1:
        raise RequestError(f"`n_resamples` is {n_resamples}: use at least 1, better 10000")


def share(value: float, argument: str) -> None:
    """Raise when a confidence, level or power is not between 0 and 1."""
    if not 0.0 < value < 1.0:
        raise RequestError(f"`{argument}` is {value}: use a share between 0 and 1")
