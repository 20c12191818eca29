"""Total variation distance between groups, and the largest value that it can take."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from equivox.core.errors import RequestError
from equivox.statistics import inputs
from equivox.statistics.arrays import Floats


def ntvd(by_group: ArrayLike) -> float:
    """Return the normalised total variation distance of the groups' distributions from their mean, in percent.

    Parameters
    ----------
    by_group
        A G x V table with one row per group: counts or shares. Each row is scaled to sum to one.

    Returns
    -------
    float
        100 · TVD / (1 - 1/G) with TVD = mean over g of ½ Σ_v |P_g(v) - P̄(v)|. Zero means that all groups have the same
        distribution, 100 that no two groups share a value. It is never NaN.

    Raises
    ------
    RequestError
        Fewer than two groups, rows of unequal lengths, a negative or missing entry, or a row that sums to zero.

    Notes
    -----
    arXiv 2604.17248, equations 2-5. The nTVD of a sample is larger than that of the population, because sample
    frequencies are noisy: compare it with its null mean (`distribution_shift`).

    Examples
    --------
    Half of one group's answers have moved from one value to the other:

    >>> round(ntvd([[10, 10], [20, 0]]), 9)
    50.0
    """
    counts = inputs.matrix(by_group, "by_group")
    if counts.shape[0] < 2:
        raise RequestError(f"`by_group` has shape {counts.shape}: give one row per group, two or more")
    if not np.isfinite(counts).all() or (counts < 0).any() or (counts.sum(axis=1) <= 0).any():
        raise RequestError("`by_group` has a negative entry, a gap or an empty row: give counts or shares")
    return float(ntvd_of_counts(counts[None])[0])


def attainable_shift(n_values: int, n_groups: int) -> float:
    """Return the attainable maximum: the largest nTVD of `n_groups` groups on `n_values` values, in percent.

    It is 100 when there are at least as many values as groups, and 0 for a single value. The distance is convex in the
    distributions, so it is largest when each group gives one value only. With c_v groups on value v it is then 1 - Σ_v
    (c_v/G)² before scaling, which is largest when the groups are spread over the values as evenly as possible.

    Raises
    ------
    RequestError
        Fewer than two groups, or no value.

    Examples
    --------
    >>> round(attainable_shift(3, 6), 9), attainable_shift(60, 2), attainable_shift(1, 2)
    (80.0, 100.0, 0.0)
    """
    if n_groups < 2:
        raise RequestError(f"`n_groups` is {n_groups}: a distance needs two or more")
    if n_values < 1:
        raise RequestError(f"`n_values` is {n_values}: a distribution needs one or more")
    share, rest = divmod(n_groups, n_values)
    same = rest * (share + 1) ** 2 + (n_values - rest) * share**2
    return 100.0 * (n_groups**2 - same) / (n_groups**2 - n_groups)


def ntvd_of_counts(counts: Floats) -> Floats:
    """NTVD of a batch of count tables, B x G x V; NaN for a table in which a group has no counts."""
    totals = counts.sum(axis=2)
    with np.errstate(invalid="ignore", divide="ignore"):
        return ntvd_of_shares(counts / totals[:, :, None])


def ntvd_of_shares(shares: Floats) -> Floats:
    """NTVD of a batch of distributions or of deviations from any common one, B x G x V."""
    n_groups = shares.shape[1]
    if n_groups == 2:
        return np.asarray(50.0 * np.abs(shares[:, 0] - shares[:, 1]).sum(axis=1), dtype=np.float64)
    deviations = shares - shares.mean(axis=1, keepdims=True)
    np.abs(deviations, out=deviations)
    return np.asarray(deviations.sum(axis=(1, 2)) * (50.0 / (n_groups - 1)), dtype=np.float64)


def mean_ntvd(shares: Floats, slices: Iterable[slice]) -> Floats:
    """Return the mean nTVD over attributes, B from B x G x V."""
    return np.asarray(np.mean([ntvd_of_shares(shares[:, :, part]) for part in slices], axis=0), dtype=np.float64)


def ntvd_per_attribute(counts: Floats, slices: Iterable[slice]) -> Floats:
    """NTVD of each attribute's columns: B x A from B x G x V counts."""
    return np.stack([ntvd_of_counts(counts[:, :, columns]) for columns in slices], axis=1)


def euclidean_of_shares(shares: Floats) -> Floats:
    """Return the Euclidean length of the deviations from the mean over groups, B from B x G x V; 0 for equal rows.

    100 · √Σ (P_g(v) - P̄(v))² / √(G - 1), which is 100 when each group has one value of its own. A shift on one value
    counts more than one of equal nTVD that is spread over many.
    """
    deviations = shares - shares.mean(axis=1, keepdims=True)
    return np.asarray(
        np.sqrt(np.einsum("bgv,bgv->b", deviations, deviations)) * (100.0 / np.sqrt(shares.shape[1] - 1)),
        dtype=np.float64,
    )


def both_per_attribute(counts: Floats, slices: Iterable[slice]) -> Floats:
    """Return nTVD and Euclidean distance of each attribute: B x 2A, the nTVDs first."""
    each = [counts[:, :, columns] for columns in slices]
    with np.errstate(invalid="ignore", divide="ignore"):
        return both_of_shares([own / own.sum(axis=2)[:, :, None] for own in each])


def both_of_shares(each: Sequence[Floats]) -> Floats:
    """Return nTVD and Euclidean distance of the shares, or deviations, of each attribute: B x 2A, the nTVDs first."""
    return np.stack([*map(ntvd_of_shares, each), *map(euclidean_of_shares, each)], axis=1)
