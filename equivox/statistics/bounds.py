"""Worst-case bounds: the smallest and largest value of a score over all possible missing answers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from equivox.core.errors import RequestError
from equivox.statistics import inputs
from equivox.statistics.distance import ntvd, ntvd_of_shares
from equivox.statistics.inputs import Floats, NumberColumn


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """A score with its smallest and its largest possible value, in percent; NaN if nothing is known."""

    observed: float
    low: float
    high: float
    n_missing: int


def share_bounds(hits: int, decided: int, missing: int) -> Bounds:
    """Return a share with its bounds if each of `missing` answers could have been a hit or not.

    Parameters
    ----------
    hits, decided, missing
        Counts: the hits, the answers whose outcome is known (hits included), and the answers whose outcome is not.

    Returns
    -------
    Bounds
        In percent. `observed` is hits / decided. It is NaN when nothing was decided, and the bounds are then 0 and 100.

    Raises
    ------
    RequestError
        Negative counts, more hits than decided answers, or no answers at all.

    Notes
    -----
    Manski 1989, doi:10.2307/145818: nothing is assumed about why answers are missing.

    Examples
    --------
    >>> share_bounds(30, 50, 50)
    Bounds(observed=60.0, low=30.0, high=80.0, n_missing=50)
    """
    if min(hits, decided, missing) < 0 or hits > decided:
        raise RequestError(
            f"`hits` is {hits}, `decided` {decided}, `missing` {missing}: give counts from 0, hits up to decided"
        )
    total = decided + missing
    if total == 0:
        raise RequestError("`decided` and `missing` are both 0: there is nothing to bound")
    return Bounds(
        observed=100 * hits / decided if decided else float("nan"),
        low=100 * hits / total,
        high=100 * (hits + missing) / total,
        n_missing=missing,
    )


def ntvd_bounds(counts: ArrayLike, missing: NumberColumn) -> Bounds:
    """Return the nTVD of the known answers, with its bounds when some answers of each group are missing.

    Parameters
    ----------
    counts
        A G x V table: the count of each value in each group.
    missing
        The number of missing values of each group (responses × values per response).

    Returns
    -------
    Bounds
        In percent. `high` supposes that the missing answers of each group were one new value that no other group gave.
        `low` supposes that they were the values that bring the groups closest together; fractions of an answer are
        allowed, so `low` is never too high. A `low` of zero means that the missing answers could explain the whole
        shift. `observed` is NaN when a group has no known answer.

    Raises
    ------
    RequestError
        As `ntvd`; also another number of entries in `missing` than groups, a negative or missing entry, or a group with
        neither known nor missing answers.

    Notes
    -----
    High: the distance obeys the triangle inequality, and one new value per group attains it. Low: a linear program.
    Both bounds concern this sample; sampling error is not included.

    Examples
    --------
    Ten of group b's twenty answers are missing; if all were the second value, there would be no shift:

    >>> found = ntvd_bounds([[10, 10], [10, 0]], [0, 10])
    >>> round(found.observed, 6), round(found.low, 6), round(found.high, 6)
    (50.0, 0.0, 50.0)
    """
    table = inputs.matrix(counts, "counts")
    if table.shape[0] < 2:
        raise RequestError(f"`counts` has shape {table.shape}: give one row per group, two or more")
    absent = inputs.numbers(missing, "missing")
    if len(absent) != len(table):
        raise RequestError(f"`missing` has {len(absent)} entries, `counts` has {len(table)} rows: give one per group")
    if not (absent >= 0).all() or not np.isfinite(table).all() or (table < 0).any():
        raise RequestError("`counts` or `missing` holds something that is no count: give numbers from 0")
    totals = table.sum(axis=1) + absent
    if (totals == 0).any():
        raise RequestError("`counts` has a group without known or missing answers: leave that group out")
    known = table / totals[:, None]
    gap = absent / totals
    alone = np.concatenate([known, np.diag(gap)], axis=1)
    return Bounds(
        observed=ntvd(table) if (table.sum(axis=1) > 0).all() else float("nan"),
        low=_closest(known, gap),
        high=float(ntvd_of_shares(alone[None])[0]),
        n_missing=int(absent.sum()),
    )


def _closest(known: Floats, gap: Floats) -> float:
    """Return the smallest nTVD over all ways to fill each group's gap, by linear programming.

    Variables: the filling q (G × V, rows summing to the gap) and d ≥ |P_g − P̄|; the sum of d is least.
    """
    from scipy import optimize, sparse

    n_groups, n_values = known.shape
    if not gap.any():
        return float(ntvd_of_shares(known[None])[0])
    size = n_groups * n_values
    # Sparse arrays go in, because scipy 1.18 warns when `kron` has to choose between an array and a matrix.
    centring = sparse.kron(
        sparse.csr_array(np.eye(n_groups) - 1.0 / n_groups), sparse.eye_array(n_values), format="csr"
    )
    unit = sparse.eye_array(size, format="csr")
    above = sparse.hstack([centring, -unit], format="csr")
    below = sparse.hstack([-centring, -unit], format="csr")
    fill = sparse.kron(sparse.eye_array(n_groups), sparse.csr_array(np.ones((1, n_values))), format="csr")
    filled = sparse.hstack([fill, sparse.csr_array((n_groups, size))], format="csr")
    offset = (known - known.mean(axis=0)).ravel()
    found = optimize.milp(
        np.concatenate([np.zeros(size), np.ones(size)]),
        constraints=[
            optimize.LinearConstraint(above, -np.inf, -offset),
            optimize.LinearConstraint(below, -np.inf, offset),
            optimize.LinearConstraint(filled, gap, gap),
        ],
    )
    least = float(np.asarray(found.fun, dtype=np.float64))
    return max(0.0, float(least * 50.0 / (n_groups - 1)))
