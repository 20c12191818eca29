"""Checks of options shared by the statistics: each raises one line that names the option, the value and the fix."""

from __future__ import annotations

from equivox.core.errors import RequestError


def min_count(value: int) -> None:
    """Raise RequestError if `min_count` is below 1."""
    if value < 1:
        raise RequestError(f"`min_count` is {value}: use 1 to keep every value")


def resamples(n_resamples: int) -> None:
    """Raise RequestError if `n_resamples` is below 1."""
    if n_resamples < 1:
        raise RequestError(f"`n_resamples` is {n_resamples}: use at least 1, better 10000")


def share(value: float, argument: str) -> None:
    """Raise RequestError if a confidence, level or power is not between 0 and 1."""
    if not 0.0 < value < 1.0:
        raise RequestError(f"`{argument}` is {value}: use a share between 0 and 1")
