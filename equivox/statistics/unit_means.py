"""Means of clusters, with the same mix of what is held equal in every group, their permutations and their noise."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from equivox.core.columns import cross_count
from equivox.statistics.encode import Design
from equivox.statistics.inputs import Bools, Floats, Ints
from equivox.statistics.intervals import freedom_of
from equivox.statistics.permutation import (
    BLOCK_CELLS,
    Labels,
    count_labellings,
    labellings,
    row_blocks,
    sizes_and_order,
)

NO_SUPPORT = "no stratum, block or unit holds values of all groups: nothing can be compared"

NO_NOISE = 1e-24
"""Up to this share of the squared numbers, the squared error of a difference is that of rounding alone."""


@dataclass(frozen=True, kw_only=True)
class Units:
    """The clusters that are compared, in stratum order and then by their means.

    `means`, K x C, has a cluster's mean in each of C columns of numbers. `deals`, K x G, is the weight of a cluster's
    mean if it is of group g: the weights of a group add up to 1 and have the same mix of strata for all. `values`,
    N x C, and `cluster_of_value` are the numbers behind the means; `rows` are the rows that they stand in.
    """

    means: Floats
    group: Ints
    stratum: Ints
    deals: Floats
    values: Floats
    cluster_of_value: Ints
    rows: Ints

    @property
    def paired(self) -> bool:
        """Whether every stratum holds one cluster of each group, and there are several: strata are compared then."""
        n_strata = len(np.unique(self.stratum))
        return bool(n_strata > 1 and (np.bincount(self.group, minlength=self.deals.shape[1]) == n_strata).all())

    @property
    def permutations_hold(self) -> bool:
        """Whether permutations have the right size although the clusters of one group vary more than those of another.

        They have where two groups have as many clusters as each other in every stratum: the permuted groups then differ
        by as much noise as the groups themselves (Romano 1990, doi:10.1080/01621459.1990.10474928). Units in every of
        several groups are taken to; p of their means is never below that of their noise.
        """
        n_groups = self.deals.shape[1]
        one, *others = cross_count(self.stratum, self.group, (int(self.stratum.max()) + 1, n_groups)).T
        return self.paired or (n_groups == 2 and bool((one == others[0]).all()))

    def of_groups(self) -> Floats:
        """Return the groups' means, G x C."""
        each = [(self.group == code, self.deals[:, code]) for code in range(self.deals.shape[1])]
        # Equal weights are 1 here, so that the mean of whole numbers is not off by what rounding leaves.
        parts = [(self.means[mine], weight[mine] / weight[mine].max()) for mine, weight in each]
        return np.array([[float((column * own).sum() / own.sum()) for column in means.T] for means, own in parts])

    def permuted(self, n_resamples: int, rng: np.random.Generator) -> tuple[Iterator[Labels], bool]:
        """Return permutations of the clusters' groups within strata, in blocks B x K, and whether they are all."""
        sizes, label_group = sizes_and_order(self.group, self.stratum, self.deals.shape[1])
        exact = count_labellings(sizes) <= n_resamples
        step = 1024 if exact else max(1, BLOCK_CELLS // len(self.means))
        return (label_group[labels] for labels in labellings(sizes, n_resamples, step, rng)), exact

    def permuted_gaps(self, labels: Labels, column: int = 0) -> Floats:
        """Return the difference of the groups' means under each permutation, B."""
        # The mean of all is the same for all groups; without it sums are of small numbers.
        centred = self.means[:, column] - self.means[:, column].mean()
        n_groups = self.deals.shape[1]
        if n_groups == 2:
            of_first, of_second = centred[:, None].T * self.deals.T
            return np.asarray((labels == 0).astype(np.float64) @ (of_first + of_second) - of_second.sum())
        means = [(labels == code).astype(np.float64) @ (centred * self.deals[:, code]) for code in range(n_groups)]
        return gap(np.stack(means, axis=1))

    def error(self, one: int, other: int, column: int = 0) -> tuple[list[float], list[float]]:
        """Return the squared standard errors that make up that of mean(one) - mean(other), with degrees of freedom.

        It is one of pairs where each stratum holds one cluster of each, and else one for each group. Without a degree
        of freedom the error is NaN.
        """
        a, b = self.group == one, self.group == other
        n_strata = len(np.unique(self.stratum))
        if a.sum() == b.sum() == n_strata > 1:
            # One cluster of each group in every stratum: pairs are compared, and the order of strata pairs them.
            gaps = self.means[a, column] - self.means[b, column]
            return [float(gaps.var(ddof=1)) / n_strata], [n_strata - 1]
        both = [self._square(mine, code, column) for mine, code in ((a, one), (b, other))]
        return [square for square, _ in both], [degrees for _, degrees in both]

    def _square(self, mine: Bools, code: int, column: int) -> tuple[float, int]:
        """Return the squared standard error of a group's mean, and its degrees of freedom."""
        left = self.apart(mine, column)
        degrees = len(left) - len(np.unique(self.stratum[mine]))
        if degrees < 1:
            return math.nan, 0
        return float((left**2).sum() / degrees * (self.deals[mine, code] ** 2).sum()), degrees

    def _of_each_group(self) -> tuple[tuple[float, ...], tuple[int, ...]]:
        """Return the squared error of each group's mean in the first column, and its degrees of freedom."""
        groups = range(self.deals.shape[1])
        squares, degrees = zip(*(self._square(self.group == code, code, 0) for code in groups), strict=True)
        return squares, degrees

    def size(self, column: int = 0) -> float:
        """Return the size of the numbers in a column, see `size_of`."""
        return size_of(self.values[:, column], self.values)

    def noise(self, size: int, rng: np.random.Generator) -> list[Floats] | None:
        """Draw weights of the clusters whose sums are the groups' own noise, B x K for each group; None if not known.

        The sum of any numbers of the clusters, such as their means, has the squared error of `_square` on average. All
        groups' noise has one factor √(df/χ²), with the degrees of freedom of the sum of their squared errors (Welch
        and Satterthwaite). It is not known where a group has no degree of freedom, or where no cluster differs.
        """
        groups = range(self.deals.shape[1])
        squares, degrees = self._of_each_group()
        if not sum(squares) > 0:
            return None
        _, cell = np.unique(self.stratum * len(groups) + self.group, return_inverse=True)
        within = (cell[:, None] == np.arange(cell.max() + 1)).astype(np.float64)
        drawn = rng.standard_normal((size, len(cell)))
        drawn -= (drawn @ within / within.sum(axis=0)) @ within.T
        freedom = freedom_of(squares, degrees)
        drawn *= np.sqrt(freedom / rng.chisquare(freedom, size))[:, None]
        mine = [self.group == code for code in groups]
        given = [(self.deals[own, code] ** 2).sum() for code, own in enumerate(mine)]
        return [drawn * own * math.sqrt(by / n) for own, by, n in zip(mine, given, degrees, strict=True)]

    def noise_of_gap(self, n_draws: int, rng: np.random.Generator) -> Floats | None:
        """Draw the difference that the groups' own noise alone makes, B; None where the noise is not known."""
        found: list[Floats] = []
        for size in row_blocks(n_draws, len(self.means)):
            moved = self._noise_of_pairs(size, rng) if self.paired else self._noise_of_groups(size, rng)
            if moved is None:
                return None
            found.append(gap(moved))
        return np.concatenate(found)

    def _noise_of_groups(self, size: int, rng: np.random.Generator) -> Floats | None:
        """Draw the noise of the groups' means from the clusters of each, B x G; None where it is not known."""
        weights = self.noise(size, rng)
        centred = self.means[:, 0] - self.means[:, 0].mean()
        return None if weights is None else np.stack([own @ centred for own in weights], axis=1)

    def _noise_of_pairs(self, size: int, rng: np.random.Generator) -> Floats | None:
        """Draw the noise of the means of groups that are in every stratum once, B x G; None where there is none.

        It is normal, with the variance of each group that strata and groups together leave. What is left of one group
        has a share of the variance of the others, which is taken off (Grubbs 1948, doi:10.1080/01621459.1948.10483261).
        """
        order = np.lexsort([self.group, self.stratum])
        own = self.means[order, 0].reshape(-1, self.deals.shape[1])
        n_strata, n_groups = own.shape
        left = own - own.mean(axis=0) - own.mean(axis=1, keepdims=True) + own.mean()
        squares = (left**2).sum(axis=0) / (n_strata - 1)
        mean = squares.sum() / (n_groups - 1)
        each = np.maximum(squares - mean / n_groups, 0.0)
        if not each.any():
            return None
        errors = each / each.mean() * mean / n_strata
        freedom = freedom_of(errors.tolist(), [(n_strata - 1) * (n_groups - 1) / n_groups] * n_groups)
        scale = np.sqrt(freedom / rng.chisquare(freedom, size))
        return np.asarray(scale[:, None] * np.sqrt(errors) * rng.standard_normal((size, n_groups)), dtype=np.float64)

    def apart(self, mine: Bools, column: int = 0) -> Floats:
        """Return how far a group's clusters lie from the mean of these in their stratum: clusters vary within it.

        Where all are alike, one more is supposed that is like those of the other groups (`like_the_others`), and one of
        those seen stands for it: the sum of squares over its degrees of freedom is the variance that is supposed.
        """
        strata, own = self.stratum[mine], self.means[mine, column]
        centre = np.bincount(strata, weights=own) / np.maximum(np.bincount(strata), 1)
        left = np.asarray(own - centre[strata], dtype=np.float64)
        degrees = len(own) - len(np.unique(strata))
        if degrees > 0 and (left**2).sum() <= NO_NOISE * float(np.abs(own).max()) ** 2:
            left[column % len(own)] = math.sqrt(
                degrees * like_the_others(self.means[~mine, column] - centre[self.stratum[~mine]], len(own))
            )
        return left


def units_of(columns: Floats, design: Design) -> tuple[Units | None, tuple[str, ...]]:
    """Return the clusters of the strata in which every group has a value, and what was left out; None if none is.

    `columns`, N x C, hold numbers; a row with NaN in any of them is left out.
    """
    n_groups = len(design.groups)
    known: Bools = np.asarray(~np.isnan(columns).any(axis=1))
    cluster_of_row, group_of_cluster = design.cluster_of_row, design.group_of_cluster
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
    sums = [np.bincount(cluster_of_row[known], weights=own[known], minlength=len(held)) for own in columns.T]
    means = np.stack(sums, axis=1) / np.maximum(answers, 1)[:, None]
    order = np.flatnonzero(kept)[np.lexsort([answers[kept], *means[kept].T[::-1], stratum[kept]])]
    share = np.where(common, members.sum(axis=1), 0.0) / members[common].sum()
    deals = share[:, None] / np.maximum(members, 1)
    place = np.empty(len(held), dtype=np.int64)
    place[order] = np.arange(len(order))
    mine = known & kept[cluster_of_row]
    return Units(
        means=means[order],
        group=group_of_cluster[order],
        stratum=stratum[order],
        deals=deals[stratum[order]],
        values=columns[mine],
        cluster_of_value=place[cluster_of_row[mine]],
        rows=np.flatnonzero(mine),
    ), notes


def like_the_others(away: Floats, n_alike: int) -> float:
    """Return the variance of clusters that are alike if one more is like those of other groups, which lie `away`.

    What was not seen among a few clusters is not impossible: about 3/n may differ at 95 % (rule of three,
    doi:10.1001/jama.1983.03330370053031). The mean then moves by a share of 1/(n + 1) of the way.
    """
    return n_alike / (n_alike + 1) ** 2 * float((away**2).mean())


def size_of(values: Floats, source: Floats) -> float:
    """Return the range of numbers, but no less than a millionth of the largest of the numbers they are computed from.

    What rounding leaves is far below 1e-9 of this, whatever the unit.
    """
    return max(float(np.ptp(values)), 1e-6 * float(np.abs(source).max()))


def gap(means: Floats) -> Floats:
    """Return the difference of two means, first minus second, or the largest minus the smallest: B from B x G."""
    if means.shape[1] == 2:
        return np.asarray(means[:, 0] - means[:, 1], dtype=np.float64)
    return np.asarray(np.ptp(means, axis=1), dtype=np.float64)


def interval_at(value: float, half: float, p: float, confidence: float) -> tuple[float, float]:
    """Return the interval of a value with half of its width, extended to 0 where p is above 1 - confidence.

    The p may be that of permutations, which part from Student's where a few clusters are far from all others.
    """
    low, high = value - half, value + half
    return (min(low, 0.0), max(high, 0.0)) if p > 1 - confidence else (low, high)


def pairs_of(n_groups: int) -> list[tuple[int, int]]:
    """Return all pairs of groups, the first before the second."""
    return list(itertools.combinations(range(n_groups), 2))
