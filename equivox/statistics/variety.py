"""Variety of answers: how often two answers in one group differ, and how that changes between two conditions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from equivox.core.encoded import EncodedValues
from equivox.core.errors import RequestError
from equivox.statistics import inputs
from equivox.statistics.design_noise import in_all_groups
from equivox.statistics.inputs import Bools, Floats, Ints, LabelColumn
from equivox.statistics.intervals import of_ratio, student_half, student_p
from equivox.statistics.noise import TINY
from equivox.statistics.permutation import all_swaps, p_value, swaps
from equivox.statistics.totals import with_width
from equivox.statistics.unit_means import interval_at


@dataclass(frozen=True, kw_only=True)
class VarietyDifference:
    """first − second of the pairs of answers that differ, in percent, with its two-sided p and its interval.

    The numbers are NaN when `undefined` says why.
    """

    first: float = math.nan
    second: float = math.nan
    difference: float = math.nan
    p: float = math.nan
    p_least: float = math.nan
    ci_low: float = math.nan
    ci_high: float = math.nan
    n: int = 0
    n_clusters: int = 0
    undefined: str | None = None


def variety_difference(
    first: Sequence[EncodedValues],
    second: Sequence[EncodedValues],
    groups: LabelColumn,
    *,
    clusters: LabelColumn,
    n_resamples: int = 10_000,
    rng: np.random.Generator,
) -> VarietyDifference:
    """Return how much more varied the answers of one condition are than those of another, to the same requests.

    Parameters
    ----------
    first, second
        The values of each attribute under the two conditions; row i is the same request in both.
    groups, clusters
        The group and the cluster of each row.
    n_resamples, rng
        As in `equivox.statistics`. What is drawn are exchanges of the conditions in clusters.

    Returns
    -------
    VarietyDifference
        The share of pairs of answers that differ, in percent, of the requests with a value in both conditions: pairs of
        one group, because a difference between groups is no variety of what one of them is told, and of two clusters,
        because those of one are alike for other reasons. The mean over groups and then over attributes. Answers with
        several values differ by 1 less the cosine of their counts: 0 if they name the same ones equally often, 1 if
        they have none in common. 0 %: everybody in a group is given the same answer. 100 %: no two have a value in
        common. NaN with a reason when no request has a value in both, or no group has two clusters with one. Without an
        interval, and with p = 1, when a group has two.

    Raises
    ------
    RequestError
        Columns of unequal lengths, a missing label, or unequal numbers of attributes.

    Notes
    -----
    The share has no bias, however many values there are and however rare they are (Simpson 1949,
    doi:10.1038/163688a0); the entropy of a sample misses rare values, so that two conditions of equal entropy differ.
    p: the conditions are exchanged within whole clusters, which would also tell apart other words of the same variety;
    so p is never below that of the interval. Interval: Student's t with the jackknife over clusters (Arvesen 1969,
    doi:10.1214/aoms/1177697287) and the degrees of freedom of `intervals.of_ratio`; where all answers of a group are
    alike, one more cluster is supposed that answers otherwise. It is NaN where no cluster moves it.

    Examples
    --------
    Of two values, each given by two of four people, four pairs of six differ:

    >>> values = [EncodedValues.of([["a"], ["b"], ["a"], ["b"]])], [EncodedValues.of([["a"]] * 4)]
    >>> found = variety_difference(*values, ["f"] * 4, clusters=["1", "2", "3", "4"], rng=np.random.default_rng(1))
    >>> round(found.first, 6), found.second, round(found.difference, 6)
    (66.666667, 0.0, 66.666667)
    """
    inputs.check_resamples(n_resamples)
    if len(first) != len(second):
        raise RequestError(f"`first` has {len(first)} attributes and `second` {len(second)}; give both the same")
    group = inputs.labels(groups, "groups")
    cluster = inputs.cluster_codes(clusters, "groups", len(group.codes))
    for values in (*first, *second):
        inputs.same_length("groups", len(group.codes), {"values": len(values)})
    both = [one.has_value & other.has_value for one, other in zip(first, second, strict=True)]
    used = np.any(both, axis=0) if both else np.zeros(len(group.codes), dtype=bool)
    if not used.any():
        return VarietyDifference(undefined="no request has a value in both conditions")
    numbers = np.zeros(len(used), dtype=np.int64)
    kept, numbers[used] = np.unique(cluster[used], return_inverse=True)
    shape = len(kept), len(group.names)
    tables = [_Table.of(*part, numbers, group.codes, shape) for part in zip(first, second, both, strict=True)]
    tables = [table for table in tables if table.pairs.any()]
    sizes = np.zeros(shape)
    np.add.at(sizes, (numbers[used], group.codes[used]), 1)
    n = int(used.sum())
    if not tables:
        reason = "no group has values of two clusters in both conditions"
        return VarietyDifference(n=n, n_clusters=len(kept), undefined=reason)
    return replace(_tested(tables, sizes, n_resamples, rng), n=n, n_clusters=len(kept))


@dataclass(frozen=True)
class _Table:
    """One attribute in K clusters and G groups, as what is needed to count the pairs of answers that are alike.

    Each answer is a vector of length 1 over the values, so that the product of two is 1 if they are alike and 0 if they
    have nothing in common.

    Attributes
    ----------
    sums
        The sum of each cluster's answers in either condition, sparse, K × columns; a column is a value in a group.
    of_group
        1 for the group of each column, columns × G.
    sizes
        The number of answers of each cluster in each group, K × G.
    """

    sums: tuple[Any, Any]
    of_group: Floats
    sizes: Floats

    @classmethod
    def of(
        cls, one: EncodedValues, other: EncodedValues, both: Bools, cluster: Ints, group: Ints, shape: tuple[int, int]
    ) -> _Table:
        """Return the table of the rows with a value in both conditions."""
        from scipy import sparse

        names = {name: place for place, name in enumerate(dict.fromkeys([*one.names, *other.names]))}
        width, entries = max(1, len(names)), []
        for values in (one, other):
            kept, code = both[values.rows], np.array([names[name] for name in values.names], dtype=np.int64)
            cells, times = np.unique(values.rows[kept] * width + code[values.codes[kept]], return_counts=True)
            row, value = np.divmod(cells, width)
            length = np.sqrt(np.bincount(row, weights=times**2, minlength=len(both)))
            entries.append((cluster[row], group[row] * width + value, times / length[row]))
        columns, place = np.unique(np.concatenate([column for _, column, _ in entries]), return_inverse=True)
        first, second = (
            sparse.csr_array((weight, (row, own)), shape=(shape[0], len(columns)))
            for (row, _, weight), own in zip(entries, np.split(place, [len(entries[0][1])]), strict=True)
        )
        sizes = np.zeros(shape)
        np.add.at(sizes, (cluster[both], group[both]), 1)
        return cls((first, second), np.equal.outer(columns // width, np.arange(shape[1])).astype(np.float64), sizes)

    @property
    def pairs(self) -> Floats:
        """The pairs of answers of two clusters in each group, in both orders (G)."""
        return np.asarray(self.sizes.sum(axis=0) ** 2 - (self.sizes**2).sum(axis=0))

    def own(self, side: int) -> Floats:
        """Return the pairs within each cluster that are alike, K × G."""
        return np.asarray(self.sums[side].power(2) @ self.of_group)

    def alike(self, side: int, pattern: Floats | None = None) -> Floats:
        """Return the pairs of two clusters that are alike, B × G, after the exchanges of each pattern, B × K."""
        here, there = self.sums[side], self.sums[1 - side]
        total, own = np.asarray(here.sum(axis=0))[None], self.own(side)
        within = own.sum(axis=0)[None]
        if pattern is not None:
            total = total + pattern @ (there - here)
            within = within + pattern @ (self.own(1 - side) - own)
        return np.asarray(total**2 @ self.of_group - within)

    def without_each(self, side: int) -> Floats:
        """Return the percentage of pairs that differ without each cluster in turn (K)."""
        with_others = self.sums[side].multiply(self.sums[side].sum(axis=0)) @ self.of_group - self.own(side)
        pairs = self.pairs - 2 * self.sizes * (self.sizes.sum(axis=0) - self.sizes)
        return _percent(self.alike(side) - 2 * with_others, pairs)

    def unseen(self, side: int) -> float:
        """Return the squared error of clusters that were not seen, in groups whose answers are all alike.

        One more is supposed in each that answers otherwise, as in `noise.noise_over_clusters`: of its n + 1 clusters'
        pairs, 2 in n + 1 differ.
        """
        constant = (self.pairs > 0) & (self.pairs - self.alike(side)[0] <= TINY * self.pairs)
        more = 200 / ((self.sizes > 0).sum(axis=0)[constant] + 1)
        return float((more**2).sum()) / int((self.pairs > 0).sum()) ** 2


def _percent(alike: Floats, pairs: Floats) -> Floats:
    """Return the percentage of pairs that differ, the mean over the groups with pairs: B from B × G."""
    has = np.broadcast_to(pairs > 0, alike.shape)
    differ = np.maximum(1 - alike / np.where(has, pairs, 1), 0)
    return np.asarray(100 * (differ * has).sum(axis=1) / np.maximum(has.sum(axis=1), 1))


def _tested(tables: Sequence[_Table], sizes: Floats, n_resamples: int, rng: np.random.Generator) -> VarietyDifference:
    """Return the numbers of the difference, but for how many entered."""
    n_clusters = len(sizes)
    shares = [[_percent(table.alike(side), table.pairs)[0] for side in (0, 1)] for table in tables]
    first, second = np.mean(shares, axis=0).tolist()
    difference, null = first - second, []
    width = max(table.of_group.shape[0] for table in tables) + n_clusters
    for pattern in swaps(n_clusters, n_resamples, width, rng):
        sides = [[_percent(table.alike(side, pattern), table.pairs) for side in (0, 1)] for table in tables]
        null.append(np.abs(np.subtract(*np.mean(sides, axis=0))))
    every, exact = np.concatenate(null), all_swaps(n_clusters, n_resamples)
    p, low, high = 1.0, math.nan, math.nan
    # Without one of two clusters a group has no pair: nothing is known of the noise.
    if all(((table.sizes > 0).sum(axis=0)[table.pairs > 0] > 2).all() for table in tables):
        p = p_value(every, abs(difference), exact=exact)
        left_out = np.subtract(*np.mean([[table.without_each(side) for side in (0, 1)] for table in tables], axis=0))
        square = (n_clusters - 1) / n_clusters * float(((left_out - left_out.mean()) ** 2).sum())
        square += sum(table.unseen(side) for table in tables for side in (0, 1)) / len(tables) ** 2
        error = [square], [of_ratio(in_all_groups(sizes))[1]]
        if square > TINY:
            p = max(p, student_p(*error, difference))
        low, high = with_width(*interval_at(difference, student_half(*error, 0.95), p, 0.95))
    return VarietyDifference(
        first=first,
        second=second,
        difference=difference,
        p=p,
        p_least=2 / len(every) if exact else 1 / (1 + len(every)),
        ci_low=low,
        ci_high=high,
    )
