"""Means and distributions of a number, compared between groups with the cluster as the unit."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from equivox.statistics import checks, inputs
from equivox.statistics.arrays import Bools, Floats, Ints
from equivox.statistics.encode import Design, encode_design
from equivox.statistics.inputs import LabelColumn, NumberColumn
from equivox.statistics.permutation import (
    Labels,
    all_labellings,
    count_labellings,
    p_value,
    random_labellings,
    row_blocks,
    sizes_and_order,
)

SAME = "all values are the same: no difference and no fairness can be shown"
NO_SUPPORT = "no stratum, block or unit holds values of all groups: nothing can be compared"

DISTANCE_CELLS = 2**26
"""Cells of the distribution functions that are computed for the null of the distance, at most, unless it is exact."""

FEWEST_DISTANCES = 999
"""Permutations for the distance in any case, however many different values there are."""


@dataclass(frozen=True, kw_only=True)
class GroupMeans:
    """How a number differs between groups, in its unit; every number is NaN if `undefined` gives a reason.

    Attributes
    ----------
    groups, means
        The groups in alphabetic order, and their means with an equal mix of what is held equal.
    difference
        Two groups: mean of the first minus that of the second. More: the largest mean minus the smallest. 0 means that
        all means are equal.
    ci_low, ci_high
        Interval of the population's `difference`. With more than two groups it holds for all pairs together.
    p
        Two-sided p of the difference, from permutations of the clusters.
    null_mean
        The mean size of the difference under the permutations; with more than two groups noise alone keeps it above 0.
    distance, distance_p, distance_null_mean
        The Wasserstein distance between the groups' distributions (the largest over pairs of groups), its p and the
        mean of its null. 0 means that the distributions are equal.
    n, n_missing, n_clusters
        Values that are compared, rows without a value, and units with values that are compared.
    exact
        Whether every permutation was counted.
    """

    groups: tuple[str, ...] = ()
    means: Floats = field(default_factory=lambda: np.empty(0))
    difference: float = math.nan
    ci_low: float = math.nan
    ci_high: float = math.nan
    p: float = math.nan
    null_mean: float = math.nan
    distance: float = math.nan
    distance_p: float = math.nan
    distance_null_mean: float = math.nan
    n: int = 0
    n_missing: int = 0
    n_clusters: int = 0
    exact: bool = False
    notes: tuple[str, ...] = ()
    undefined: str | None = None


@dataclass(frozen=True, kw_only=True)
class _Units:
    """The clusters that are compared, in stratum order and then by their means.

    `deals`, K x G, is the weight of a cluster's mean if it is of group g: the weights of a group add up to 1 and have
    the same mix of strata for all. `rows` and `cluster_of_row` are the values behind the means.
    """

    means: Floats
    group: Ints
    stratum: Ints
    deals: Floats
    values: Floats
    cluster_of_value: Ints


def group_means(
    values: NumberColumn,
    groups: LabelColumn,
    *,
    clusters: LabelColumn,
    strata: LabelColumn | None = None,
    blocks: LabelColumn | None = None,
    n_resamples: int = 10_000,
    confidence: float = 0.95,
    rng: np.random.Generator,
) -> GroupMeans:
    """Return how a number differs between groups: means, their difference, and the distance of distributions.

    Parameters
    ----------
    values
        One number per row. A missing one (None, NaN) is left out and counted; it is never 0.
    groups, clusters, strata, blocks
        The design, as in `equivox.statistics.distribution_shift`: a cluster that carries one group is permuted whole,
        within strata and blocks; one that is in every group is compared, and its groups swapped, within itself.
    n_resamples
        Permutations drawn. All of them are counted when there are no more than this.
    confidence
        Coverage of the interval.
    rng
        The only source of randomness.

    Returns
    -------
    GroupMeans
        Means are means of cluster means, so that every cluster counts once. A stratum in which some group has no value
        is left out and told in the notes. NaN with a reason when a group has no value, when no stratum holds all groups
        and when all values are the same. Only the interval is NaN when a group shows no noise.

    Raises
    ------
    RequestError
        Columns of unequal lengths, a missing label, a mixture of nested and crossed clusters.

    Notes
    -----
    The interval is Student's over units that are in every group, and Welch's otherwise, with the spread of a group's
    clusters pooled over strata; with more than two groups each pair has a level of (1 - confidence) / pairs
    (Bonferroni), and the interval goes from the largest lower end to the largest upper end. p is that of the difference
    under permutations (for more than two groups of the largest minus the smallest mean). The distance is that of
    `scipy.stats.wasserstein_distance` with every cluster weighing the same.

    Examples
    --------
    >>> found = group_means([3, 1, 4, 2, 6, 3], ["m", "f"] * 3, clusters=["a", "a", "b", "b", "c", "c"],
    ...                     rng=np.random.default_rng(1))
    >>> found.groups, round(found.difference, 4), found.p, round(found.distance, 4)
    (('f', 'm'), -2.3333, 0.25, 2.3333)
    """
    checks.resamples(n_resamples)
    checks.share(confidence, "confidence")
    column = inputs.numbers(values, "values")
    design = encode_design(groups, clusters, strata, blocks)
    inputs.same_length("values", len(column), {"groups": len(design.group_of_row)})
    known = ~np.isnan(column)
    told: dict[str, Any] = {"groups": design.groups, "n_missing": int((~known).sum())}
    if len(design.groups) < 2:
        return GroupMeans(**told, undefined=f"one group, {design.groups[0]}: nothing to compare")
    heard = np.bincount(design.group_of_row[known], minlength=len(design.groups))
    if (heard == 0).any():
        return GroupMeans(**told, undefined=f"no known value in group {design.groups[int(heard.argmin())]!r}")
    units, notes = _units(column, known, design)
    if units is None:
        return GroupMeans(**told, notes=notes, undefined=NO_SUPPORT)
    if np.ptp(units.values) == 0:
        return GroupMeans(**told, notes=notes, undefined=SAME)
    found = np.array([_weighted(units, code) for code in range(len(design.groups))])
    low, high = _interval(units, found, confidence)
    null, distances, exact = _null(units, len(design.groups), n_resamples, rng)
    difference, distance = _gap(found[None])[0], _distances(units, units.group[None], len(design.groups))[0]
    return GroupMeans(
        **told,
        means=found,
        difference=float(difference),
        ci_low=low,
        ci_high=high,
        p=p_value(np.abs(null), abs(float(difference)), exact=exact),
        null_mean=float(np.abs(null).mean()),
        distance=float(distance),
        distance_p=p_value(distances, float(distance), exact=exact),
        distance_null_mean=float(distances.mean()),
        n=len(units.values),
        n_clusters=len(np.unique(units.stratum)) if design.crossed else len(units.means),
        exact=exact,
        notes=notes,
    )


def _units(column: Floats, known: Bools, design: Design) -> tuple[_Units | None, tuple[str, ...]]:
    """Return the clusters of the strata in which every group has a value, and what was left out; None if none is."""
    n_groups = len(design.groups)
    cluster_of_row, group_of_cluster = np.asarray(design.cluster_of_row), np.asarray(design.group_of_cluster)
    held = np.zeros(len(group_of_cluster), dtype=np.int64) if design.held is None else design.held
    answers = np.bincount(cluster_of_row[known], minlength=len(group_of_cluster))
    heard = answers > 0
    stratum = np.unique(held, return_inverse=True)[1]
    members = np.zeros((int(stratum.max()) + 1, n_groups))
    np.add.at(members, (stratum[heard], group_of_cluster[heard]), 1)
    common = members.min(axis=1) > 0
    kept = heard & common[stratum]
    outside = int((members.sum(axis=1) > 0).sum() - common.sum())
    what = "units lack a value in some group" if design.crossed else "strata or blocks lack a value of some group"
    notes = (*design.notes, *([f"{outside} of {len(members)} {what}: they are left out"] if outside else []))
    if not kept.any():
        return None, notes
    sums = np.bincount(cluster_of_row[known], weights=column[known], minlength=len(held))
    means = sums / np.maximum(answers, 1)
    order = np.flatnonzero(kept)[np.lexsort([answers[kept], means[kept], stratum[kept]])]
    share = np.where(common, members.sum(axis=1), 0.0) / members[common].sum()
    deals = share[:, None] / np.maximum(members, 1)
    place = np.full(len(held), -1, dtype=np.int64)
    place[order] = np.arange(len(order))
    mine = known & kept[cluster_of_row]
    return _Units(
        means=means[order],
        group=group_of_cluster[order],
        stratum=stratum[order],
        deals=deals[stratum[order]],
        values=column[mine],
        cluster_of_value=place[cluster_of_row[mine]],
    ), notes


def _weighted(units: _Units, code: int) -> float:
    mine = units.group == code
    return float((units.means[mine] * units.deals[mine, code]).sum())


def _gap(means: Floats) -> Floats:
    """Return the difference of two means, first minus second, or the largest minus the smallest: B from B x G."""
    if means.shape[1] == 2:
        return np.asarray(means[:, 0] - means[:, 1], dtype=np.float64)
    return np.asarray(np.ptp(means, axis=1), dtype=np.float64)


def _null(units: _Units, n_groups: int, n_resamples: int, rng: np.random.Generator) -> tuple[Floats, Floats, bool]:
    """Return the differences and the distances under permutations of the clusters within strata, and if all were."""
    sizes, label_group = sizes_and_order(units.group, units.stratum, n_groups)
    exact = count_labellings(sizes) <= n_resamples
    n_values = len(np.unique(units.values))
    # Every permutation costs a distribution function with as many steps as there are values.
    limit = n_resamples if exact else max(FEWEST_DISTANCES, DISTANCE_CELLS // (n_groups * n_values))

    def labellings() -> Iterator[Labels]:
        if exact:
            every = all_labellings(sizes)
            for start in range(0, len(every), 1024):
                yield every[start : start + 1024]
        else:
            for size in row_blocks(n_resamples, len(units.means)):
                yield random_labellings(sizes, size, rng)

    # The mean of the stratum is the same for all groups; without it sums are of small numbers.
    centred = units.means - units.means.mean()
    gaps, distances, done = [], [], 0
    for drawn in labellings():
        labels = label_group[drawn]
        means = [(labels == code).astype(np.float64) @ (centred * units.deals[:, code]) for code in range(n_groups)]
        gaps.append(_gap(np.stack(means, axis=1)))
        if done < limit:
            distances.append(_distances(units, labels[: limit - done], n_groups))
            done += len(distances[-1])
    return np.concatenate(gaps), np.concatenate(distances), exact


def _distances(units: _Units, labels: Ints, n_groups: int) -> Floats:
    """Return the Wasserstein distance under each labelling (B x K), the largest over pairs of groups.

    It is the area between two distribution functions, Σ_j |F_g(x_j) - F_h(x_j)| (x_{j+1} - x_j).
    """
    from scipy import sparse

    steps, place = np.unique(units.values, return_inverse=True)
    widths = np.diff(steps)
    answers = np.bincount(units.cluster_of_value, minlength=len(units.means))
    entries = 1 / answers[units.cluster_of_value]
    shares = sparse.csr_array((entries, (place, units.cluster_of_value)), shape=(len(steps), len(units.means)))
    found, start = np.empty(len(labels)), 0
    for size in row_blocks(len(labels), max(len(steps), len(units.means))):
        chunk = labels[start : start + size].T
        below = [
            np.cumsum(shares @ ((chunk == code) * units.deals[:, code, None]), axis=0)[:-1] for code in range(n_groups)
        ]
        found[start : start + size] = np.max(
            [widths @ np.abs(one - other) for one, other in itertools.combinations(below, 2)], axis=0
        )
        start += size
    return found


def _interval(units: _Units, means: Floats, confidence: float) -> tuple[float, float]:
    """Return the interval of the difference; NaN if some pair of groups shows no noise."""
    pairs = list(itertools.combinations(range(len(means)), 2))
    level = 1 - (1 - confidence) / len(pairs)
    halves = np.array([_half(units, one, other, level) for one, other in pairs])
    if np.isnan(halves).any():
        return math.nan, math.nan
    gaps = np.array([means[one] - means[other] for one, other in pairs])
    if len(pairs) == 1:
        return float(gaps[0] - halves[0]), float(gaps[0] + halves[0])
    return max(0.0, float((np.abs(gaps) - halves).max())), float((np.abs(gaps) + halves).max())


def _half(units: _Units, one: int, other: int, level: float) -> float:
    """Return half the width of the interval of mean(one) - mean(other); NaN without noise to be seen."""
    from scipy.stats import t

    a, b = units.group == one, units.group == other
    n_strata = len(np.unique(units.stratum))
    if a.sum() == b.sum() == n_strata > 1:
        # One cluster of each group in every stratum: what is compared are pairs, and the order of strata pairs them.
        gaps = units.means[a] - units.means[b]
        spread, freedom = float(gaps.var(ddof=1)) / n_strata, n_strata - 1.0
    else:
        squares, degrees = zip(_square(units, a, one), _square(units, b, other), strict=True)
        if min(degrees) < 1:
            return math.nan
        spread = sum(squares)
        # Shares are used because the squares may be too small to be squared again.
        freedom = 1 / sum((own / spread) ** 2 / n for own, n in zip(squares, degrees, strict=True)) if spread else 1.0
    scale = float(np.abs(units.means).max())
    return float(t.ppf(0.5 + level / 2, freedom) * math.sqrt(spread)) if spread > 1e-24 * scale**2 else math.nan


def _square(units: _Units, mine: Bools, code: int) -> tuple[float, int]:
    """Return the squared standard error of a group's mean, and its degrees of freedom; clusters vary within strata."""
    _, stratum = np.unique(units.stratum[mine], return_inverse=True)
    own = units.means[mine]
    sizes = np.bincount(stratum)
    left = own - (np.bincount(stratum, weights=own) / sizes)[stratum]
    degrees = len(own) - len(sizes)
    if degrees < 1:
        return math.nan, 0
    return float((left**2).sum() / degrees * (units.deals[mine, code] ** 2).sum()), degrees
