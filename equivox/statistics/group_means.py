"""Means and distributions of a number, compared between groups with the cluster as the unit."""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from equivox.statistics import inputs
from equivox.statistics.encode import encode_design
from equivox.statistics.inputs import Floats, LabelColumn, NumberColumn
from equivox.statistics.intervals import student_half, student_p
from equivox.statistics.noise import N_NOISE
from equivox.statistics.permutation import Labels, p_value, row_blocks
from equivox.statistics.unit_means import (
    NO_NOISE,
    NO_SUPPORT,
    Units,
    gap,
    interval_at,
    units_of,
)
from equivox.statistics.within_items import p_of_means_within_items

SAME = "all values are the same: no difference and no fairness can be shown"

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
        Two-sided p of the difference, from permutations of the clusters, and never below that of the groups' own noise.
        It is at most 1 - confidence where, and only where, the interval leaves out 0.
    p_items
        The p of differences within single items, or strata without items, and within blocks, by 999 permutations at
        most: it finds those whose sides cancel. NaN without several of which each group has two values or more, on
        average, and where units are in every group and each item is of one unit.
    null_mean
        The mean size of the difference under the permutations; with more than two groups noise alone keeps it above 0.
    distance, distance_p, distance_null_mean
        The Wasserstein distance between the groups' distributions (the largest over pairs of groups), its p and the
        mean of its null. 0 means that the distributions are equal.
    sd
        The standard deviation of single values within a group.
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
    p_items: float = math.nan
    null_mean: float = math.nan
    distance: float = math.nan
    distance_p: float = math.nan
    distance_null_mean: float = math.nan
    sd: float = math.nan
    n: int = 0
    n_missing: int = 0
    n_clusters: int = 0
    exact: bool = False
    notes: tuple[str, ...] = ()
    undefined: str | None = None


def group_means(
    values: NumberColumn,
    groups: LabelColumn,
    *,
    clusters: LabelColumn,
    strata: LabelColumn | None = None,
    blocks: LabelColumn | None = None,
    items: LabelColumn | None = None,
    n_resamples: int = 10_000,
    confidence: float = 0.95,
    distances: bool = True,
    rng: np.random.Generator,
) -> GroupMeans:
    """Return how a number differs between groups: means, their difference, and the distance of distributions.

    Parameters
    ----------
    values
        One number per row. A missing one (None, NaN) is left out and counted; it is never 0.
    groups, clusters, strata, blocks, items
        The design, as in `equivox.statistics.distribution_shift`: a cluster that carries one group is permuted whole,
        within strata and blocks; one that is in every group is compared, and its groups swapped, within itself.
    n_resamples, confidence, rng
        As in `equivox.statistics`.
    distances
        Whether the distance of the distributions and `p_items` are wanted too, which take longest; without, they are
        NaN.

    Returns
    -------
    GroupMeans
        Means are means of cluster means, so that every cluster counts once. A stratum in which some group has no value
        is left out and told in the notes. NaN with a reason when a group has no value, when no stratum holds all groups
        and when all values are the same. Only the interval is NaN when a group has one cluster, when all units that are
        in every group differ alike, and when all clusters have one mean.

    Raises
    ------
    UsageError
        Columns of unequal lengths, a missing label, a mixture of nested and crossed clusters.

    Notes
    -----
    The interval is Student's over units that are in every group, and Welch's otherwise, with the spread of a group's
    clusters pooled over strata; with more than two groups its width is that of draws of the groups' own noise
    (`Units.noise`): what the largest minus the smallest of them is at most, with the probability `confidence`. Where
    all clusters of a group have one mean, one more is supposed that is like those of the other groups. p is the larger
    one of that of permutations and that of the same noise: permutations of unequal numbers of clusters reject too often
    where the fewer clusters vary more, and the interval would contain 0 beside a small p where single numbers are far
    from all others. Where permutations give the larger p, the interval is extended to 0. The distance is that of
    `scipy.stats.wasserstein_distance` with every cluster weighing the same; `distance_p` is the larger of both only
    where permutations need clusters that vary alike.

    Examples
    --------
    >>> found = group_means([3, 1, 4, 2, 6, 3], ["m", "f"] * 3, clusters=["a", "a", "b", "b", "c", "c"],
    ...                     rng=np.random.default_rng(1))
    >>> found.groups, round(found.difference, 4), found.p, round(found.distance, 4)
    (('f', 'm'), -2.3333, 0.25, 2.3333)
    """
    inputs.check_resamples(n_resamples)
    inputs.check_share(confidence, "confidence")
    column = inputs.numbers(values, "values")
    design = encode_design(groups, clusters, strata, blocks, items)
    inputs.same_length("values", len(column), {"groups": len(design.group_of_row)})
    known = ~np.isnan(column)
    told: dict[str, Any] = {"groups": design.groups, "n_missing": int((~known).sum())}
    if len(design.groups) < 2:
        return GroupMeans(**told, undefined=f"one group, {design.groups[0]}: nothing to compare")
    heard = np.bincount(design.group_of_row[known], minlength=len(design.groups))
    if (heard == 0).any():
        return GroupMeans(**told, undefined=f"no known value in group {design.groups[int(heard.argmin())]!r}")
    units, notes = units_of(column[:, None], design)
    if units is None:
        return GroupMeans(**told, notes=notes, undefined=NO_SUPPORT)
    if np.ptp(units.values) == 0:
        return GroupMeans(**told, notes=notes, undefined=SAME)
    found = units.of_groups()[:, 0]
    null, far, exact = _null(units, n_resamples, rng, distances=distances)
    null = np.abs(null)
    difference = float(gap(found[None])[0])
    n_clusters = len(np.unique(units.stratum)) if design.crossed else len(units.means)
    sd = _sd(units)
    size = units.size()
    p = p_value(null, abs(difference), exact=exact, size=size)
    p_noise, half = _noise_of_difference(units, difference, n_resamples, confidence, rng)
    p = max(p, p_noise)
    low, high = _interval(units, difference, half, p, confidence)
    if far is not None:
        distance = float(_distances(units, units.group[None], len(found))[0])
        distance_p = p_value(far, distance, exact=exact, size=size)
        if not units.permutations_hold:
            distance_p = max(distance_p, _distance_p_of_noise(units, distance, n_resamples, rng))
        told |= {"distance": distance, "distance_p": distance_p, "distance_null_mean": float(far.mean())}
    return GroupMeans(
        **told,
        means=found,
        difference=difference,
        ci_low=low,
        ci_high=high,
        p=p,
        p_items=p_of_means_within_items(units, design, n_resamples, rng) if distances else math.nan,
        null_mean=float(null.mean()),
        sd=sd,
        n=len(units.values),
        n_clusters=n_clusters,
        exact=exact,
        notes=notes,
    )


def _null(
    units: Units, n_resamples: int, rng: np.random.Generator, *, distances: bool
) -> tuple[Floats, Floats | None, bool]:
    """Return the differences and the distances under permutations of the clusters within strata, and if all were."""
    labellings, exact = units.permuted(n_resamples, rng)
    n_groups = units.deals.shape[1]
    gaps, far, left = [], [], _most_distances(units) if distances and not exact else sys.maxsize
    for labels in labellings:
        gaps.append(units.permuted_gaps(labels))
        if distances and left > 0:
            far.append(_distances(units, labels[:left], n_groups))
            left -= len(far[-1])
    return np.concatenate(gaps), np.concatenate(far) if far else None, exact


def _most_distances(units: Units) -> int:
    """Return for how many permutations the distance is computed, at most, unless they are all.

    Each costs a distribution function with as many steps as there are values.
    """
    cells = units.deals.shape[1] * len(np.unique(units.values))
    return int(max(FEWEST_DISTANCES, DISTANCE_CELLS // cells))


def _distance_p_of_noise(units: Units, distance: float, n_resamples: int, rng: np.random.Generator) -> float:
    """Return the parametric p-value of the distance; 0 if the noise is unknown."""
    drawn: list[Floats] = []
    for size in row_blocks(min(n_resamples, _most_distances(units)), len(units.means)):
        if (weights := units.noise(size, rng)) is None:
            return 0.0
        drawn.append(_furthest(units, weights))
    return p_value(np.concatenate(drawn), distance, exact=False, size=units.size())


def _distances(units: Units, labels: Labels, n_groups: int) -> Floats:
    """Return the Wasserstein distance under each labelling (B x K), the largest over pairs of groups."""
    return _furthest(units, [(labels == code) * units.deals[:, code] for code in range(n_groups)])


def _furthest(units: Units, weights: Sequence[Floats]) -> Floats:
    """Return the largest area between two groups' sums of distribution functions, with weights B x K for each group.

    It is Σ_j |F_g(x_j) - F_h(x_j)| (x_{j+1} - x_j).
    """
    from scipy import sparse

    steps, place = np.unique(units.values[:, 0], return_inverse=True)
    widths = np.diff(steps)
    answers = np.bincount(units.cluster_of_value, minlength=len(units.means))
    entries = 1 / answers[units.cluster_of_value]
    shares = sparse.csr_array((entries, (place, units.cluster_of_value)), shape=(len(steps), len(units.means)))
    found, start = np.empty(len(weights[0])), 0
    for size in row_blocks(len(found), max(len(steps), len(units.means))):
        below = [np.cumsum(np.asarray(shares @ own[start : start + size].T), axis=0)[:-1] for own in weights]
        found[start : start + size] = np.max(
            [widths @ np.abs(one - other) for one, other in itertools.combinations(below, 2)], axis=0
        )
        start += size
    return found


def _noise_of_difference(
    units: Units,
    difference: float,
    n_resamples: int,
    confidence: float,
    rng: np.random.Generator,
) -> tuple[float, float]:
    """Return the p of the difference by the groups' own noise, and half the width of its interval.

    Without noise to be seen p is 0 and half the width NaN: permutations alone decide. An interval without 0 has p up to
    1 - confidence, and the reverse.
    """
    least = NO_NOISE * float(np.abs(units.means).max()) ** 2
    if units.deals.shape[1] == 2:
        squares, degrees = units.error(0, 1)
        if not sum(squares) > least:
            return student_p(squares, degrees, difference), math.nan
        return student_p(squares, degrees, difference), student_half(squares, degrees, confidence)
    drawn = units.noise_of_gap(max(n_resamples, N_NOISE), rng)
    if drawn is None or not float((drawn**2).max()) > least:
        return 0.0, math.nan
    # Where so few draws tell nothing of the level, the furthest of them is the least that the half can be.
    further = max(1, int((1 - confidence) * (1 + len(drawn))))
    return p_value(drawn, difference, exact=False, size=units.size()), float(np.sort(drawn)[-further])


def _interval(units: Units, difference: float, half: float, p: float, confidence: float) -> tuple[float, float]:
    """Return the interval of the difference; it has 0 where p, which permutations may have raised, is not small."""
    low, high = interval_at(difference, half, p, confidence)
    return (low if units.deals.shape[1] == 2 else max(low, 0.0)), high


def _sd(units: Units) -> float:
    """Return the standard deviation of single values within groups, pooled; NaN with one value each."""
    group = units.group[units.cluster_of_value]
    sizes = np.bincount(group)
    means = np.bincount(group, weights=units.values[:, 0]) / sizes
    freedom = len(group) - len(sizes)
    return math.sqrt(float(((units.values[:, 0] - means[group]) ** 2).sum()) / freedom) if freedom else math.nan
