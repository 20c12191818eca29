"""Differences within items (a sentence, a job) and blocks: those whose sides cancel over all show there alone."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from equivox.core.encoded import EncodedValues, cross_count
from equivox.statistics.encode import Design, Occurrences
from equivox.statistics.inputs import Floats, Ints
from equivox.statistics.permutation import Labels, p_value
from equivox.statistics.unit_means import Units

LEAST_OF_ITEM = 2
"""The fewest answers to an item that a group must have on average for answers to be compared within items."""
MOST_CELLS = 2 * 10**7
"""The most counts, clusters × what is counted of each item, for a test within items; so many take 160 MB."""
N_PERMUTED = 999
"""Permutations for a test within items at most."""


def values_within(of_row: Ints, values: EncodedValues, design: Design) -> Occurrences | None:
    """Return (row, value) pairs in which a value of one item is another than that of another item.

    `of_row` is one of `items_of`. None where nothing is to be compared within items, see `_items`.
    """
    item = _items(of_row, design, values.rows, int(values.has_value.sum()))
    if item is None:
        return None
    pairs, codes = np.unique(item * len(values.names) + values.codes, return_inverse=True)
    if len(pairs) * len(design.clusters) > MOST_CELLS:
        return None
    names = tuple(map(str, pairs.tolist()))
    return Occurrences(values=names, rows=values.rows, codes=codes, removed={}, n_total=len(codes))


def p_of_means_within_items(units: Units, design: Design, n_resamples: int, rng: np.random.Generator) -> float:
    """Return the p of differences between the groups' means within items, by permuting the groups of clusters.

    The numbers of an item are taken in its standard deviations, so that each item counts alike, less what a cluster has
    in all of several items; the statistic is the sum of squares between groups within items. NaN where nothing is to be
    compared within items, see `_items`.
    """
    return of_several(_p_of_means(of_row, units, design, n_resamples, rng) for of_row in items_of(design))


def _p_of_means(of_row: Ints, units: Units, design: Design, n_resamples: int, rng: np.random.Generator) -> float:
    item = _items(of_row, design, units.rows, len(units.rows))
    if item is None:
        return math.nan
    n_items, n_groups = int(item.max()) + 1, units.deals.shape[1]
    if n_items * len(units.group) > MOST_CELLS:
        return math.nan
    sizes = np.bincount(item)
    left = units.values[:, 0] - (np.bincount(item, units.values[:, 0]) / sizes)[item]
    spread = np.sqrt(np.bincount(item, left**2) / sizes)
    left = left / np.where(spread > units.size() * 1e-12, spread, np.inf)[item]
    shape, cluster = (len(units.group), n_items), units.cluster_of_value
    counts = cross_count(cluster, item, shape).astype(np.float64)
    # A cluster that is high in all of several items says nothing of differences whose sides cancel.
    level = np.bincount(cluster, left) / np.bincount(cluster) * ((counts > 0).sum(axis=1) > 1)
    sums = np.bincount(cluster * n_items + item, left - level[cluster], shape[0] * shape[1]).reshape(shape)

    def between(labels: Labels) -> Floats:
        of_groups = [(labels == code).astype(np.float64) for code in range(n_groups)]
        squares = [((mine @ sums) ** 2 / np.maximum(mine @ counts, 1)).sum(axis=1) for mine in of_groups]
        return np.asarray(np.sum(squares, axis=0), dtype=np.float64)

    labellings, exact = units.permuted(min(n_resamples, N_PERMUTED), rng)
    null = np.concatenate([between(labels) for labels in labellings])
    return p_value(null, float(between(units.group[None])[0]), exact=exact)


def items_of(design: Design) -> list[Ints]:
    """Return, for each row, its item, or its stratum where no items are given, and the block of its cluster.

    Sides that cancel over blocks are those of accents, of which one is preferred in women and another in men.
    """
    found = [] if design.block_of_cluster is None else [design.block_of_cluster[design.cluster_of_row]]
    of_row = design.item_of_row if design.item_of_row is not None else design.stratum_of_row
    return found if of_row is None else [of_row, *found]


def of_several(found: Iterable[float]) -> float:
    """Return the smallest of several p-values times their number (Bonferroni), NaN left out; NaN without any.

    >>> of_several([0.01, math.nan, 0.5]), of_several([0.9, 0.8]), of_several([])
    (0.02, 1.0, nan)
    """
    p = [own for own in found if not math.isnan(own)]
    return min(1.0, len(p) * min(p)) if p else math.nan


def _items(of_row: Ints, design: Design, rows: Ints, n: int) -> Ints | None:
    """Return the item of each of `rows`, as codes from 0.

    None without clusters, without several items, and where a group has fewer than `LEAST_OF_ITEM` of the `n` answers
    to an item on average: one answer is not compared with itself.
    """
    if not design.clusters or not len(rows):
        return None
    present, item = np.unique(of_row[rows], return_inverse=True)
    few = n < LEAST_OF_ITEM * len(present) * len(design.groups)
    return None if len(present) < 2 or few else np.asarray(item, dtype=np.int64)
