"""Difference of means between two groups, with the cluster as the unit."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from functools import partial

import numpy as np

from equivox.core.errors import RequestError
from equivox.statistics import inputs
from equivox.statistics.inputs import Bools, Floats, Ints, LabelColumn, NumberColumn
from equivox.statistics.permutation import all_labellings, count_labellings, p_value, row_blocks
from equivox.statistics.sign_flip import sign_flip_test
from equivox.statistics.unit_means import NO_NOISE, student_half


@dataclass(frozen=True, kw_only=True)
class MeanDifference:
    """mean_first − mean_second with its two-sided p and interval, in the unit of the values; NaN when `undefined`."""

    difference: float = math.nan
    mean_first: float = math.nan
    mean_second: float = math.nan
    p: float = math.nan
    ci_low: float = math.nan
    ci_high: float = math.nan
    n: int = 0
    n_missing: int
    n_clusters: int = 0
    n_unpaired: int = 0
    paired: bool
    exact: bool = False
    undefined: str | None = None


def mean_difference(
    values: NumberColumn,
    groups: LabelColumn,
    *,
    first: Hashable,
    second: Hashable,
    clusters: LabelColumn,
    paired: bool,
    n_resamples: int = 10_000,
    confidence: float = 0.95,
    rng: np.random.Generator,
) -> MeanDifference:
    """Return the difference between the means of two groups, with a test whose unit is the cluster.

    Parameters
    ----------
    values
        One number per response. A missing one is left out and counted.
    groups
        The group of each response. Responses of other groups than `first` and `second` are ignored.
    first, second
        The names of the groups: the difference is mean(first) − mean(second).
    clusters
        The unit, one label per response. Paired: a cluster holds both groups (a NEP with two characters); clusters with
        known values of one group only are left out and counted in `n_unpaired`. Unpaired: a cluster carries one group
        (a speaker).
    paired
        True to flip signs of whole clusters, False to permute the groups over clusters.
    n_resamples
        Sign patterns or permutations drawn. All of them are enumerated when there are no more than this.
    confidence
        Coverage of the interval: Student's t over clusters (paired) or Welch's (unpaired).
    rng
        The only source of randomness.

    Returns
    -------
    MeanDifference
        Means are means of cluster means, so every cluster counts once. Zero means no difference. NaN with a reason when
        a group has no known value, when no pair is complete, or when all values are the same. Only the interval is NaN
        when a group has one cluster or its clusters do not vary.

    Raises
    ------
    RequestError
        Columns of unequal lengths, a missing label, a group that does not occur, or (unpaired) a cluster with both
        groups.

    Notes
    -----
    GENRES M1–M6. The interval relies on the central limit theorem over clusters, the p-value only on exchangeability:
    with few clusters, trust the p-value.

    Examples
    --------
    >>> found = mean_difference([3, 1, 4, 2, 6, 3], ["m", "f"] * 3, first="m", second="f", paired=True,
    ...                         clusters=["a", "a", "b", "b", "c", "c"], rng=np.random.default_rng(1))
    >>> round(found.difference, 4), found.p
    (2.3333, 0.25)
    """
    inputs.check_resamples(n_resamples)
    inputs.check_share(confidence, "confidence")
    column = inputs.numbers(values, "values")
    group = inputs.labels(groups, "groups")
    inputs.same_length("values", len(column), {"groups": len(group.codes)})
    one, other = inputs.text(first), inputs.text(second)
    if one == other:
        raise RequestError(f"`first` and `second` are both {one!r}: name two groups")
    for argument, name in (("first", one), ("second", other)):
        if name not in group.names:
            raise RequestError(f"`{argument}` is {name!r}, which is no group: use one of {list(group.names)}")
    of_first, of_second = (group.codes == group.names.index(name) for name in (one, other))
    compared = of_first | of_second
    known = compared & ~np.isnan(column)
    cluster = inputs.cluster_codes(clusters, "values", len(column))[known]
    is_first = of_first[known]
    numbers = column[known]
    n_missing = int((compared & np.isnan(column)).sum())
    undefined = partial(MeanDifference, n_missing=n_missing, paired=paired)
    if not is_first.any() or is_first.all():
        return undefined(undefined=f"no known value in group {other if is_first.any() else one!r}")
    if np.ptp(numbers) == 0:
        return undefined(undefined="all values are the same: no difference and no fairness can be shown")
    a, b = _cluster_means(numbers, cluster, is_first), _cluster_means(numbers, cluster, ~is_first)
    if not paired:
        return _unpaired(a, b, n_resamples, confidence, n_missing, len(numbers), rng)
    return _paired(a, b, n_resamples, confidence, n_missing, len(numbers), rng)


def _cluster_means(values: Floats, cluster: Ints, mine: Bools) -> Floats:
    """Return the mean of each cluster over `mine`; NaN for a cluster without values."""
    n = int(cluster.max()) + 1
    sums = np.bincount(cluster[mine], weights=values[mine], minlength=n)
    sizes = np.bincount(cluster[mine], minlength=n)
    return np.asarray(np.where(sizes > 0, sums / np.maximum(sizes, 1), np.nan), dtype=np.float64)


def _paired(
    a: Floats, b: Floats, n_resamples: int, confidence: float, n_missing: int, n: int, rng: np.random.Generator
) -> MeanDifference:
    both = ~(np.isnan(a) | np.isnan(b))
    n_unpaired = int((np.isnan(a) != np.isnan(b)).sum())
    if not both.any():
        return MeanDifference(n_missing=n_missing, paired=True, undefined="no cluster is known in both groups")
    gaps = a[both] - b[both]
    tested = sign_flip_test(gaps, clusters=None, n_resamples=n_resamples, rng=rng)
    low, high = interval_of_means(float(gaps.mean()), [gaps], confidence)
    return MeanDifference(
        difference=float(gaps.mean()),
        mean_first=float(a[both].mean()),
        mean_second=float(b[both].mean()),
        p=tested.p if tested.undefined is None else 1.0,
        ci_low=low,
        ci_high=high,
        n=n,
        n_missing=n_missing,
        n_clusters=int(both.sum()),
        n_unpaired=n_unpaired,
        paired=True,
        exact=tested.exact,
    )


def _unpaired(
    a: Floats, b: Floats, n_resamples: int, confidence: float, n_missing: int, n: int, rng: np.random.Generator
) -> MeanDifference:
    if (~np.isnan(a) & ~np.isnan(b)).any():
        raise RequestError("`clusters` has one that holds both groups: use `paired=True`, or name clusters by group")
    a, b = np.sort(a[~np.isnan(a)]), np.sort(b[~np.isnan(b)])
    pooled = np.sort(np.concatenate([a, b]))
    sizes = np.array([[len(a), len(b)]])
    exact = count_labellings(sizes) <= n_resamples
    if exact:
        of_first = all_labellings(sizes) == 0
        null = _gap(of_first, pooled)
    else:
        base = np.arange(len(pooled)) < len(a)
        steps = row_blocks(n_resamples, len(pooled))
        null = np.concatenate([_gap(rng.permuted(np.tile(base, (size, 1)), axis=1), pooled) for size in steps])
    difference = float(a.mean() - b.mean())
    low, high = interval_of_means(difference, [a, b], confidence)
    return MeanDifference(
        difference=difference,
        mean_first=float(a.mean()),
        mean_second=float(b.mean()),
        p=p_value(np.abs(null), abs(difference), exact=exact),
        ci_low=low,
        ci_high=high,
        n=n,
        n_missing=n_missing,
        n_clusters=len(pooled),
        paired=False,
        exact=exact,
    )


def _gap(of_first: Bools, pooled: Floats) -> Floats:
    n_first = of_first.sum(axis=1)
    sums = of_first.astype(np.float64) @ pooled
    return np.asarray(sums / n_first - (pooled.sum() - sums) / (len(pooled) - n_first), dtype=np.float64)


def interval_of_means(difference: float, samples: list[Floats], confidence: float) -> tuple[float, float]:
    """Return Student's interval for one sample, Welch's for two; NaN if a sample has one cluster or none varies.

    `difference` is the mean, or the difference of the two means, around which it lies.
    """
    if min(map(len, samples)) < 2:
        return float("nan"), float("nan")
    squares = [float(sample.var(ddof=1)) / len(sample) for sample in samples]
    if not sum(squares) > NO_NOISE * difference**2:
        return float("nan"), float("nan")
    half = student_half(squares, [len(sample) - 1 for sample in samples], confidence)
    return difference - half, difference + half
