"""Krippendorff's alpha: how far annotators agree beyond chance, with answers missing."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import SupportsFloat, cast

import numpy as np

from equivox.errors import RequestError
from equivox.statistics.arrays import Floats


@dataclass(frozen=True, kw_only=True)
class Agreement:
    """Krippendorff's alpha and what it rests on; NaN when `undefined` says why."""

    alpha: float
    level: str
    n_units: int
    n_pairable_units: int
    n_pairable_values: int
    undefined: str | None


def krippendorff_alpha(ratings: Sequence[Sequence[Hashable]], *, level: str = "nominal") -> Agreement:
    """Krippendorff's alpha over units that any number of annotators rated.

    Parameters
    ----------
    ratings
        One sequence per unit (item), one entry per annotator; None (or NaN) where an annotator gave none. Units
        with fewer than two ratings say nothing about agreement and are left out.
    level
        "nominal" (values are names) or "interval" (values are numbers; disagreement is their squared distance).

    Returns
    -------
    Agreement
        1 is perfect agreement, zero is what chance gives, below zero is systematic disagreement. NaN with a reason
        when no unit has two ratings or all ratings are one value (agreement by constancy is not agreement).

    Raises
    ------
    RequestError
        No units, another level, or a value that is no number at the interval level.

    Notes
    -----
    Krippendorff 2011, "Computing Krippendorff's Alpha-Reliability": alpha = 1 − D_o / D_e from the coincidence matrix.

    Examples
    --------
    >>> found = krippendorff_alpha([["a", "a"], ["b", "b"], ["a", "b"], ["b", None]])
    >>> round(found.alpha, 4), found.n_pairable_units
    (0.4444, 3)
    """
    if level not in ("nominal", "interval"):
        raise RequestError(f"`level` is {level!r}: use 'nominal' or 'interval'")
    if len(ratings) == 0:
        raise RequestError("`ratings` is empty: give the ratings of at least one unit")
    units = [[rating for rating in unit if not _missing(rating)] for unit in ratings]
    paired = [unit for unit in units if len(unit) >= 2]
    names = list(dict.fromkeys(rating for unit in paired for rating in unit))
    position = {name: code for code, name in enumerate(names)}
    coincidence = np.zeros((len(names), len(names)))
    for unit in paired:
        counts = np.bincount([position[rating] for rating in unit], minlength=len(names)).astype(np.float64)
        coincidence += (np.outer(counts, counts) - np.diag(counts)) / (len(unit) - 1)
    totals = coincidence.sum(axis=1)
    n = float(totals.sum())
    reason = None
    if not paired:
        reason = "no unit has two ratings"
    elif len(names) == 1:
        reason = f"all ratings are {names[0]!r}: chance agreement is complete"
    alpha = float("nan")
    if reason is None:
        distance = _distances(names, level)
        expected = np.outer(totals, totals) - np.diag(totals)
        alpha = 1.0 - float((coincidence * distance).sum()) * (n - 1) / float((expected * distance).sum())
    return Agreement(
        alpha=alpha,
        level=level,
        n_units=len(ratings),
        n_pairable_units=len(paired),
        n_pairable_values=sum(map(len, paired)),
        undefined=reason,
    )


def _missing(rating: Hashable) -> bool:
    return rating is None or (isinstance(rating, float) and bool(np.isnan(rating)))


def _distances(names: Sequence[Hashable], level: str) -> Floats:
    if level == "nominal":
        return 1.0 - np.eye(len(names))
    try:
        numbers = np.array([float(cast(SupportsFloat, name)) for name in names])
    except (TypeError, ValueError):
        raise RequestError("`ratings` holds a text: the interval level needs numbers; use level='nominal'") from None
    return np.asarray((numbers[:, None] - numbers[None, :]) ** 2, dtype=np.float64)
