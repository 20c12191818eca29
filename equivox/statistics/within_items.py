"""Differences within items (a sentence, a job) and blocks: those whose sides cancel over all show there alone."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import numpy as np

from equivox.core.columns import EncodedValues, cross_count
from equivox.statistics.encode import Design
from equivox.statistics.inputs import Floats, Ints
from equivox.statistics.nulls import in_order, null_of
from equivox.statistics.permutation import BLOCK_CELLS, Labels, p_by_name, p_value, sizes_and_order
from equivox.statistics.unit_means import Units

LEAST_OF_ITEM = 2
"""The fewest answers to an item that a group must have on average for answers to be compared within items."""
MOST_CELLS = 2 * 10**7
"""The most counts, clusters × what is counted of each item, for a test within items; so many take half a gigabyte."""
N_PERMUTED = 999
"""Permutations for a test within items at most."""


def p_of_values_within_items(
    attributes: Mapping[str, EncodedValues], design: Design, n_resamples: int, rng: np.random.Generator
) -> dict[str, float]:
    """Return the p of differences between the groups' values within items, by attribute and under "" of their mean.

    The statistic is the sum of how far the count of each value of an item in each group is from that of a group that is
    told the same: groups that were asked about other items more often do not differ by that. It is empty where nothing
    is to be compared within items, see `_items`.
    """
    each = [_p_of_values(of_row, attributes, design, n_resamples, rng) for of_row in _items_of(design)]
    names = dict.fromkeys(name for own in each for name in own)
    return {name: _of_several(own.get(name, math.nan) for own in each) for name in names}


def _p_of_values(
    of_row: Ints, attributes: Mapping[str, EncodedValues], design: Design, n_resamples: int, rng: np.random.Generator
) -> dict[str, float]:
    """Return what `p_of_values_within_items` does for one way to tell items apart, see `_items_of`."""
    items = {name: _items(of_row, design, own.rows, int(own.has_value.sum())) for name, own in attributes.items()}
    pairs = {
        name: np.unique(item * len(attributes[name].names) + attributes[name].codes, return_inverse=True)
        for name, item in items.items()
        if item is not None
    }
    if not pairs or sum(len(own) for own, _ in pairs.values()) * len(design.clusters) > MOST_CELLS:
        return {}
    found = {name: _counts(attributes[name], own, codes, design) for name, (own, codes) in pairs.items()}
    heard = np.any([counts.any(axis=1) for counts, _ in found.values()], axis=0)
    group = design.group_of_cluster[heard]
    held = np.zeros_like(group) if design.held is None else np.unique(design.held[heard], return_inverse=True)[1]
    sizes, label_group = sizes_and_order(group, held, len(design.groups))
    order = in_order(np.concatenate([counts[heard] for counts, _ in found.values()], axis=1), held)
    beyond = {name: _beyond(counts[heard][order], item, held[order]) for name, (counts, item) in found.items()}

    def apart(labels: Labels) -> Floats:
        found, mine = [], [(labels == code).astype(np.float64) for code in range(1, len(label_group))]
        for own in beyond.values():
            sums = [of_group @ own for of_group in mine]
            sums.append(np.sum(sums, axis=0))  # of the first group, less: those of all add up to 0
            found.append(sum(np.abs(one).sum(axis=1) for one in sums))
        return np.stack(found, axis=1)

    step = max(1, BLOCK_CELLS // max(len(group), *(own.shape[1] for own in beyond.values())))
    drawn = {"n_resamples": min(n_resamples, N_PERMUTED), "step": step}
    null, observed, _, exact = null_of(apart, group[order], sizes, label_group, **drawn, rng=rng)
    return p_by_name(null, observed, beyond, exact=exact)


def _counts(values: EncodedValues, pairs: Ints, codes: Ints, design: Design) -> tuple[Ints, Ints]:
    """Return how often each cluster has each value of each item, K × V, and the item of each column."""
    counts = cross_count(design.cluster_of_row[values.rows], codes, (len(design.clusters), len(pairs)))
    return counts, pairs // len(values.names)


def _beyond(counts: Ints, item: Ints, held: Ints) -> Floats:
    """Return what each cluster has beyond the shares of all in its stratum, item by item, as a share of all answers."""
    starts, column = np.unique(item, return_index=True, return_inverse=True)[1:]
    totals = np.zeros((int(held.max()) + 1, counts.shape[1]))
    np.add.at(totals, held, counts)
    shares = totals / np.maximum(np.add.reduceat(totals, starts, axis=1)[:, column], 1)
    return np.asarray((counts - np.add.reduceat(counts, starts, axis=1)[:, column] * shares[held]) / counts.sum())


def p_of_means_within_items(units: Units, design: Design, n_resamples: int, rng: np.random.Generator) -> float:
    """Return the p of differences between the groups' means within items, by permuting the groups of clusters.

    The numbers of an item are taken in its standard deviations, so that each item counts alike, less what a cluster has
    in all of several items; the statistic is the sum of squares between groups within items. NaN where nothing is to be
    compared within items, see `_items`.
    """
    return _of_several(_p_of_means(of_row, units, design, n_resamples, rng) for of_row in _items_of(design))


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

    permuted, exact = units.permuted(min(n_resamples, N_PERMUTED), rng)
    null = np.concatenate([between(labels) for labels in permuted])
    return p_value(null, float(between(units.group[None])[0]), exact=exact)


def _items_of(design: Design) -> list[Ints]:
    """Return, for each row, its item, or its stratum where no items are given, and the block of its cluster.

    Sides that cancel over blocks are those of accents, of which one is preferred in women and another in men.
    """
    found = [] if design.block_of_cluster is None else [design.block_of_cluster[design.cluster_of_row]]
    of_row = design.item_of_row if design.item_of_row is not None else design.stratum_of_row
    return found if of_row is None else [of_row, *found]


def _of_several(found: Iterable[float]) -> float:
    """Return the smallest of several p-values times their number (Bonferroni), NaN left out; NaN without any.

    >>> _of_several([0.01, math.nan, 0.5]), _of_several([0.9, 0.8]), _of_several([])
    (0.02, 1.0, nan)
    """
    p = [own for own in found if not math.isnan(own)]
    return min(1.0, len(p) * min(p)) if p else math.nan


def _items(of_row: Ints, design: Design, rows: Ints, n: int) -> Ints | None:
    """Return the item of each of `rows`, as codes from 0.

    None without clusters, without several items, and where a group has fewer than `LEAST_OF_ITEM` of the `n` answers
    to an item on average: one answer is not compared with itself. None, too, where units are in every group and each
    item is of one unit: swaps of a unit's groups leave the sides that they take apart as they are.
    """
    if not design.clusters or not len(rows):
        return None
    present, item = np.unique(of_row[rows], return_inverse=True)
    if design.crossed:
        unit = np.asarray(design.stratum_of_cluster)[design.cluster_of_row[rows]]
        if len(np.unique(np.stack([item, unit]), axis=1).T) == len(present):
            return None
    few = n < LEAST_OF_ITEM * len(present) * len(design.groups)
    return None if len(present) < 2 or few else np.asarray(item, dtype=np.int64)
