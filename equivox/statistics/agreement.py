"""Agreement: of annotators beyond chance (Krippendorff's alpha; gaps are fine), and of clusters with labels."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from equivox.core.errors import UsageError
from equivox.statistics import inputs
from equivox.statistics.inputs import Ints, ValueColumn


@dataclass(frozen=True, kw_only=True)
class Agreement:
    """Krippendorff's alpha with the counts behind it; NaN when `undefined` says why.

    Attributes
    ----------
    alpha
        1 is perfect agreement, 0 agreement by chance.
    n_pairable_units
        The units with two ratings or more.
    undefined
        The reason why alpha is NaN; None when it is defined.
    """

    alpha: float
    n_pairable_units: int
    undefined: str | None


def krippendorff_alpha(ratings: ValueColumn) -> Agreement:
    """Return Krippendorff's alpha: the agreement beyond chance of annotators who rated the same units.

    Parameters
    ----------
    ratings
        One row per unit (a response, say), one entry per annotator: lists, a two-dimensional array or a pandas table.
        None or NaN if an annotator gave no rating. Units with fewer than two ratings are left out, because they say
        nothing about agreement.

    Returns
    -------
    Agreement
        1 is perfect agreement, 0 is agreement by chance, and a number below 0 is systematic disagreement. NaN with a
        reason when no unit has two ratings, or when all ratings are the same: then chance agreement is complete.

    Raises
    ------
    UsageError
        No units.

    Notes
    -----
    alpha = 1 − D_o / D_e from the coincidence matrix: Krippendorff 2011, "Computing Krippendorff's Alpha-Reliability".

    Examples
    --------
    >>> found = krippendorff_alpha([["a", "a"], ["b", "b"], ["a", "b"], ["b", None]])
    >>> round(found.alpha, 4), found.n_pairable_units
    (0.4444, 3)
    """
    given = inputs.values(inputs.rows_of_table(ratings), "ratings")
    if given.n_rows == 0:
        raise UsageError("`ratings` is empty: give the ratings of at least one unit")
    pairable = np.bincount(given.rows, minlength=given.n_rows) >= 2
    kept = pairable[given.rows]
    names = [given.names[code] for code in np.unique(given.codes[kept])]
    reason = None
    if not names:
        reason = "no unit has two ratings"
    elif len(names) == 1:
        reason = f"all ratings are {names[0]!r}: chance agreement is complete"
    return Agreement(
        alpha=float("nan") if reason is not None else _alpha(given.rows[kept], given.codes[kept]),
        n_pairable_units=int(pairable.sum()),
        undefined=reason,
    )


def _alpha(rows: Ints, codes: Ints) -> float:
    from scipy import sparse

    unit, column = np.unique(rows, return_inverse=True)[1], np.unique(codes, return_inverse=True)[1]
    weight = 1.0 / (np.bincount(unit) - 1.0)[unit]
    counts = sparse.csr_array((np.ones(len(unit)), (unit, column)))
    weighted = sparse.csr_array((weight, (unit, column)))
    coincidence = (counts.T @ weighted).toarray() - np.diag(np.bincount(column, weights=weight))
    totals = coincidence.sum(axis=1)
    expected = np.outer(totals, totals) - np.diag(totals)
    distance = 1.0 - np.eye(len(totals))
    return 1.0 - float((coincidence * distance).sum() * (totals.sum() - 1) / (expected * distance).sum())


def clustering(gold: Sequence[Hashable], found: Sequence[Hashable]) -> tuple[float, float, float]:
    """Return homogeneity, completeness and V-measure of clusters against labels, 0 to 1.

    Homogeneity is 1 if no cluster mixes labels, completeness is 1 if no label is spread over clusters; V is their
    harmonic mean. With a single label homogeneity is 1, with a single cluster completeness is 1. Rosenberg and
    Hirschberg 2007, ACL D07-1043. Both sequences have the same length, which is not 0.

    >>> clustering("aabb", "1122")
    (1.0, 1.0, 1.0)
    >>> clustering("aabb", "1111")
    (0.0, 1.0, 0.0)
    """
    of_gold, of_found = _entropy(gold), _entropy(found)
    together = _entropy(list(zip(gold, found, strict=True)))
    homogeneity = 1.0 if of_gold == 0 else 1 - (together - of_found) / of_gold
    completeness = 1.0 if of_found == 0 else 1 - (together - of_gold) / of_found
    total = homogeneity + completeness
    return homogeneity, completeness, 2 * homogeneity * completeness / total if total > 0 else 0.0


def _entropy(labels: Sequence[Hashable]) -> float:
    n = len(labels)
    return -math.fsum(k / n * math.log(k / n) for k in Counter(labels).values())
