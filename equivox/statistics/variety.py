"""Variety of answers: the entropy of the values that one group is given, and its change between two conditions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from equivox.core.encoded import EncodedValues
from equivox.core.errors import RequestError
from equivox.statistics import inputs
from equivox.statistics.design_noise import in_all_groups, of_ratio
from equivox.statistics.inputs import Bools, Floats, Ints, LabelColumn
from equivox.statistics.intervals import student_half, student_p
from equivox.statistics.noise import TINY
from equivox.statistics.permutation import all_swaps, p_value, row_blocks, swaps
from equivox.statistics.totals import with_width
from equivox.statistics.unit_means import interval_at


@dataclass(frozen=True, kw_only=True)
class VarietyDifference:
    """first − second of the mean entropy in bits, with its two-sided p and interval; NaN when `undefined` says why."""

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
    n_resamples
        Exchanges drawn; all of them are counted when there are no more than this.
    rng
        The only source of randomness.

    Returns
    -------
    VarietyDifference
        The mean, over attributes and groups, of Shannon's entropy of the values within the group, in bits, on the
        requests with a value in both conditions. Within groups, because a difference between groups is no variety of
        what one of them is told. Of answers with several values, the entropy within each answer is taken off (what is
        left is the Jensen–Shannon divergence of the answers). 0 bits: everybody in a group is given the same answer.
        NaN with a reason when no request has a value in both.

    Raises
    ------
    RequestError
        Columns of unequal lengths, a missing label, or unequal numbers of attributes.

    Notes
    -----
    p: the conditions are exchanged within whole clusters, which would also tell apart other words of the same variety;
    so p is never below that of the interval. Interval: Student's t with the jackknife over clusters (Efron 1981,
    doi:10.1093/biomet/68.3.589) and the degrees of freedom of `design_noise.of_ratio`; where all answers of a group are
    alike, one more cluster is supposed that answers otherwise. It is NaN where no cluster moves it. The entropy of
    a sample is too small by about (values − 1) / (2 × answers × ln 2) bits (Miller 1955); both conditions have as many
    answers, so that most of this cancels.

    Examples
    --------
    Two values, each given half of the time, against one:

    >>> values = [EncodedValues.of([["a"], ["b"], ["a"], ["b"]])], [EncodedValues.of([["a"]] * 4)]
    >>> found = variety_difference(*values, ["f", "f", "m", "m"], clusters=["1", "2", "3", "4"],
    ...                            rng=np.random.default_rng(1))
    >>> found.first, found.second, found.difference
    (1.0, 0.0, 1.0)
    """
    inputs.check_resamples(n_resamples)
    if len(first) != len(second):
        raise RequestError(f"`first` has {len(first)} attributes and `second` {len(second)}; give both the same")
    group = inputs.labels(groups, "groups")
    cluster = inputs.cluster_codes(clusters, "groups", len(group.codes))
    for values in (*first, *second):
        inputs.same_length("groups", len(group.codes), {"values": len(values)})
    used = np.zeros(len(group.codes), dtype=bool)
    parts = []
    for one, other in zip(first, second, strict=True):
        both = one.has_value & other.has_value
        if both.any():
            used |= both
            parts.append((one, other, both))
    if not parts:
        return VarietyDifference(undefined="no request has a value in both conditions")
    kept, cluster = np.unique(cluster[used], return_inverse=True)
    numbers = np.full(len(used), -1)
    numbers[used] = cluster
    tables = [_tables(*part, group.codes, numbers, len(kept)) for part in parts]
    present = np.unique(group.codes[used], return_inverse=True)[1]
    sizes = np.zeros((len(kept), int(present.max()) + 1))
    np.add.at(sizes, (cluster, present), 1)
    return _tested(tables, sizes, n_resamples, rng)


Groups = Sequence[tuple[Ints, int]]
"""For each group the columns of its values, and the column of the entropy within its answers."""
Tables = tuple[Any, Any, Groups]
"""Counts of clusters × (group and value) in both conditions, as sparse matrices, and the columns of each group."""


def _tables(one: EncodedValues, other: EncodedValues, both: Bools, group: Ints, cluster: Ints, n: int) -> Tables:
    """Return the counts of one attribute on the rows with a value in both conditions.

    Behind the counts of a group's values stands what its answers hold within themselves, in bits times values.
    """
    from scipy import sparse

    names = {name: place for place, name in enumerate(dict.fromkeys([*one.names, *other.names]))}
    width = len(names) + 1
    entries = []
    for values in (one, other):
        code = np.array([names[name] for name in values.names], dtype=np.int64)
        kept = both[values.rows]
        row = np.concatenate([values.rows[kept], np.flatnonzero(both)])
        column = group[row] * width + len(names)
        column[: kept.sum()] += code[values.codes[kept]] - len(names)
        within = _within(values.rows[kept], code[values.codes[kept]], len(both), width)[both]
        entries.append((cluster[row], column, np.concatenate([np.ones(kept.sum()), within])))
    columns, place = np.unique(np.concatenate([column for _, column, _ in entries]), return_inverse=True)
    places = np.split(place, [len(entries[0][1])])
    counted = [
        sparse.csr_array((weight, (row, own)), shape=(n, len(columns)))
        for (row, _, weight), own in zip(entries, places, strict=True)
    ]
    is_value, of_group = columns % width < len(names), columns // width
    groups = [
        (np.flatnonzero(is_value & (of_group == code)), int(np.flatnonzero(~is_value & (of_group == code))[0]))
        for code in np.unique(of_group)
    ]
    return counted[0], counted[1], groups


def _within(rows: Ints, codes: Ints, n: int, width: int) -> Floats:
    """Return the entropy in bits of the values within each of `n` answers, times their number."""
    pairs, times = np.unique(rows * width + codes, return_counts=True)
    sizes = np.bincount(rows, minlength=n)
    own = np.bincount(pairs // width, weights=times * np.log2(times), minlength=n)
    return np.asarray(sizes * np.log2(np.maximum(sizes, 1)) - own)


def _tested(tables: Sequence[Tables], sizes: Floats, n_resamples: int, rng: np.random.Generator) -> VarietyDifference:
    n_clusters = tables[0][0].shape[0]
    totals = [(np.asarray(a.sum(axis=0)), np.asarray(b.sum(axis=0)), groups) for a, b, groups in tables]
    first = float(np.mean([_entropy(whole[np.newaxis], groups)[0] for whole, _, groups in totals]))
    second = float(np.mean([_entropy(whole[np.newaxis], groups)[0] for _, whole, groups in totals]))
    difference = first - second
    null, width = [], max(a.shape[1] for a, _, _ in tables)
    for pattern in swaps(n_clusters, n_resamples, width + n_clusters, rng):
        found = np.zeros(len(pattern))
        for (a, b, groups), (whole_a, whole_b, _) in zip(tables, totals, strict=True):
            moved = np.asarray(pattern @ (b - a))
            found += _entropy(whole_a + moved, groups) - _entropy(whole_b - moved, groups)
        null.append(np.abs(found) / len(tables))
    exact = all_swaps(n_clusters, n_resamples)
    every = np.concatenate(null)
    p, low, high = p_value(every, abs(difference), exact=exact), math.nan, math.nan
    if n_clusters > 1:
        left_out = _without_each(tables, totals, n_clusters)
        square = (n_clusters - 1) / n_clusters * float(((left_out - left_out.mean()) ** 2).sum()) + _unseen(tables)
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
        n=int(sizes.sum()),
        n_clusters=n_clusters,
    )


def _unseen(tables: Sequence[Tables]) -> float:
    """Return the squared error of clusters that were not seen, in groups whose answers of a condition are all alike.

    One more cluster is supposed in each that answers otherwise, as in `noise.noise_over_clusters`.
    """
    square = 0.0
    for *conditions, groups in tables:
        for counts in conditions:
            whole = np.asarray(counts.sum(axis=0))[np.newaxis]
            for columns, within in groups:
                n = int((counts[:, columns].sum(axis=1) > 0).sum())
                if _entropy(whole, [(columns, within)])[0] <= TINY:
                    more = (math.log2(n + 1) - n / (n + 1) * math.log2(n)) / len(groups)
                    square += (more / len(tables)) ** 2
    return square


def _without_each(tables: Sequence[Tables], totals: Sequence[Any], n_clusters: int) -> Floats:
    """Return the difference without each cluster in turn."""
    found = np.zeros(n_clusters)
    for (a, b, groups), (whole_a, whole_b, _) in zip(tables, totals, strict=True):
        start = 0
        for size in row_blocks(n_clusters, a.shape[1]):
            rows = slice(start, start + size)
            found[rows] += _entropy(whole_a - a[rows].toarray(), groups) - _entropy(whole_b - b[rows].toarray(), groups)
            start += size
    return found / len(tables)


def _entropy(counts: Floats, groups: Groups) -> Floats:
    """Return the entropy of each row of counts, in bits: the mean over the groups that have answers."""
    total, known = np.zeros(len(counts)), np.zeros(len(counts))
    for columns, within in groups:
        own = counts[:, columns]
        whole = own.sum(axis=1)
        sizes = np.maximum(whole, 1)
        logs = (own * np.log2(np.maximum(own, 1))).sum(axis=1)
        bits = np.log2(sizes) - (logs + counts[:, within]) / sizes
        total += np.where(whole > 0.5, np.maximum(bits, 0.0), 0.0)
        known += whole > 0.5
    return np.asarray(total / np.maximum(known, 1))
