"""Permutations of group labels, all of them or random ones, under the null that groups make no difference.

With few permutations the smallest p-value that a design can give, whatever the answers, is large.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equivox.core.columns import cross_count
from equivox.core.errors import UsageError
from equivox.core.notes import LEVEL, Note, NoteCode
from equivox.statistics import inputs
from equivox.statistics.encode import encode_design
from equivox.statistics.inputs import Floats, Ints, LabelColumn

Labels = NDArray[np.integer[Any]]


def label_dtype(n_groups: int) -> type[np.uint8] | type[np.int64]:
    """Return the smallest dtype that holds a group code."""
    return np.uint8 if n_groups <= 256 else np.int64


def sizes_and_order(group: Ints, stratum: Ints | None, n_groups: int) -> tuple[Ints, Ints]:
    """Count the units of each group in each stratum (S x G), and return the group that each column counts.

    The order of columns does not depend on names.
    """
    where = np.zeros_like(group) if stratum is None else stratum
    present, code = np.unique(where, return_inverse=True)
    sizes = cross_count(code, group, (len(present), n_groups))
    order = np.lexsort(sizes)[::-1]
    return sizes[:, order], order


def count_labellings(sizes: Ints) -> int:
    """Return the number of distinct permutations of the labels: a product of multinomials.

    >>> count_labellings(np.array([[2, 2]])), count_labellings(np.array([[2, 1], [1, 1]]))
    (6, 6)
    """
    total = 1
    for row in sizes.tolist():
        left = sum(row)
        for size in row:
            total *= math.comb(left, size)
            left -= size
    return total


def all_labellings(sizes: Ints) -> Labels:
    """Enumerate every distinct permutation: one row each, the units in stratum order.

    >>> all_labellings(np.array([[1, 2]])).tolist()
    [[0, 1, 1], [1, 0, 1], [1, 1, 0]]
    """
    dtype = label_dtype(sizes.shape[1])
    whole = np.zeros((1, 0), dtype=dtype)
    for row in sizes.tolist():
        within = np.asarray(list(_assignments(tuple(row), sum(row))), dtype=dtype).reshape(-1, sum(row))
        whole = np.concatenate([np.repeat(whole, len(within), axis=0), np.tile(within, (len(whole), 1))], axis=1)
    return whole


def _assignments(sizes: tuple[int, ...], n_units: int) -> Iterator[list[int]]:
    """Yield every way to give `sizes[g]` of the units the label g."""

    def fill(label: int, free: tuple[int, ...], labels: list[int]) -> Iterator[list[int]]:
        if label == len(sizes):
            yield list(labels)
            return
        for chosen in itertools.combinations(free, sizes[label]):
            for unit in chosen:
                labels[unit] = label
            taken = set(chosen)
            yield from fill(label + 1, tuple(unit for unit in free if unit not in taken), labels)

    yield from fill(0, tuple(range(n_units)), [0] * n_units)


def random_labellings(sizes: Ints, n: int, rng: np.random.Generator) -> Labels:
    """Draw `n` permutations uniformly: one row each, the units in stratum order."""
    if (sizes == sizes[0]).all():
        return _dealt(sizes[0], len(sizes), n, rng)
    alike, kind = np.unique(sizes, axis=0, return_inverse=True)
    starts = np.cumsum(sizes.sum(axis=1)) - sizes.sum(axis=1)
    found = np.empty((n, int(sizes.sum())), dtype=label_dtype(sizes.shape[1]))
    for code, row in enumerate(alike):
        # Strata of the same sizes are dealt together: there may be thousands of pairs.
        first = starts[kind.ravel() == code]
        place = (first[:, None] + np.arange(row.sum())).ravel()
        found[:, place] = _dealt(row, len(first), n, rng)
    return found


def _dealt(row: Ints, n_strata: int, n: int, rng: np.random.Generator) -> Labels:
    """Draw `n` permutations of strata that all have the sizes `row`."""
    dtype = label_dtype(len(row))
    if row.tolist() == [1, 1]:
        found = np.empty((n, n_strata, 2), dtype=dtype)
        found[..., 0] = rng.integers(0, 2, size=(n, n_strata), dtype=np.uint8)
        found[..., 1] = 1 - found[..., 0]
        return found.reshape(n, -1)
    labels = np.repeat(np.arange(len(row), dtype=dtype), row)
    return rng.permuted(np.tile(labels, (n, n_strata, 1)), axis=2).reshape(n, -1)


def random_row_labellings(sizes: Ints, n: int, rng: np.random.Generator) -> Labels:
    """Draw `n` permutations of many rows uniformly: n x rows, three times as fast as shuffling each.

    A row order is drawn by sorting 16-bit random keys (a radix sort); equal keys are ordered by a shuffled base
    order, so every permutation is equally likely.
    """
    labels = np.repeat(np.arange(len(sizes), dtype=label_dtype(len(sizes))), sizes)
    rng.shuffle(labels)
    keys = rng.integers(0, 2**16, size=(n, len(labels)), dtype=np.uint16)
    order = np.argsort(keys, axis=1, kind="stable")
    return np.asarray(labels[order])


def blocks(total: int, size: int) -> Iterator[int]:
    """Yield block lengths of at most `size` that add up to `total`.

    >>> list(blocks(5, 2))
    [2, 2, 1]
    """
    for start in range(0, total, size):
        yield min(size, total - start)


BLOCK_CELLS = 2**19
"""The numbers that are in memory at a time while permutations are drawn."""


def row_blocks(total: int, width: int, cells: int = BLOCK_CELLS) -> Iterator[int]:
    """Yield block lengths as `blocks` does, each of at most `cells` numbers in rows of `width`."""
    return blocks(total, max(1, cells // width))


def labellings(sizes: Ints, n_resamples: int, step: int, rng: np.random.Generator) -> Iterator[Labels]:
    """Yield permutations in blocks of at most `step`: all, if there are no more than `n_resamples`, or random ones."""
    if count_labellings(sizes) <= n_resamples:
        every = all_labellings(sizes)
        for start in range(0, len(every), step):
            yield every[start : start + step]
    else:
        for size in blocks(n_resamples, step):
            yield random_labellings(sizes, size, rng)


def all_swaps(n: int, n_resamples: int) -> bool:
    """Return whether some of `n` clusters can be swapped in at most `n_resamples` ways, so that all are counted."""
    return n <= 62 and 2**n <= n_resamples


def swaps(n: int, n_resamples: int, width: int, rng: np.random.Generator) -> Iterator[Floats]:
    """Yield blocks of patterns (B x n), 1 for each of `n` clusters that is swapped: all patterns, or random ones."""
    every, start = all_swaps(n, n_resamples), 0
    for size in row_blocks(2**n if every else n_resamples, width):
        if every:
            yield (np.arange(start, start + size)[:, None] >> np.arange(n) & 1).astype(np.float64)
        else:
            yield rng.integers(0, 2, size=(size, n), dtype=np.int8).astype(np.float64)
        start += size


def p_value(null: Floats, observed: float, *, exact: bool, size: float = 1.0) -> float:
    """Return the share of permutations at least as far out as the observed one; never 0.

    An exact set contains the observed permutation; to a random set it is added: (1 + b) / (1 + B). Values within a
    relative 1e-9 are ties, and a permutation whose distance is undefined counts as at least as far out. `size` is that
    of the numbers that are permuted, in their unit: less than 1e-9 of it is what rounding leaves.

    >>> p_value(np.array([1.0, 2.0, 3.0]), 3.0, exact=False), p_value(np.array([1.0, 3.0]), 3.0, exact=True)
    (0.5, 0.5)
    """
    extreme = n_extreme(null, observed, size)
    return extreme / len(null) if exact else (1 + extreme) / (1 + len(null))


def p_of_mean(null: Floats, observed: Floats, columns: Sequence[int] | slice, *, exact: bool) -> float:
    """Return the p of the mean of some columns of a null, B x C; NaN for an empty one."""
    if not len(null):
        return math.nan
    return p_value(null[:, columns].mean(axis=1), float(observed[columns].mean()), exact=exact)


def p_by_name(null: Floats, observed: Floats, names: Iterable[str], *, exact: bool) -> dict[str, float]:
    """Return the p of each of the first columns of a null, by its name, and under "" that of their mean."""
    places: dict[str, list[int] | slice] = {name: [place] for place, name in enumerate(names)}
    places[""] = slice(0, len(places))
    return {name: p_of_mean(null, observed, own, exact=exact) for name, own in places.items()}


def n_extreme(null: Floats, observed: float, size: float = 1.0) -> int:
    """Count the null values that are not below the observed one, see `p_value`."""
    return len(null) - int((null < observed - 1e-9 * max(size, abs(observed))).sum())


_MOST_GROUPS = 7
"""Up to this many groups all their renamings are tried; with more, renaming is taken to change every permutation."""


@dataclass(frozen=True, kw_only=True)
class LeastP:
    """The smallest p that a permutation test can give, and the number of distinct permutations.

    `p` is between 0 and 1 and never 0. It is 1 if no permutation changes anything.
    """

    p: float
    n_permutations: int

    @property
    def too_few(self) -> Note | None:
        """Why the test can find nothing at the level .05; None if it can."""
        return None if self.p < LEVEL else Note(NoteCode.SMALLEST_P, {"p": self.p, "permutations": self.n_permutations})


def least_p(sizes: Ints, *, n_resamples: int) -> LeastP:
    """Return the smallest p of a test that permutes groups over units within strata.

    Parameters
    ----------
    sizes
        Strata × groups: the number of units of each group in each stratum.
    n_resamples
        Permutations drawn. All of them are enumerated when there are no more than this.

    Returns
    -------
    LeastP
        The most extreme permutation is never alone if the statistic does not know the groups' names: renaming the
        groups gives permutations that are as extreme. `p` is their share of all permutations, and at least
        1 / (1 + n_resamples) when permutations are drawn.

    Raises
    ------
    UsageError
        `n_resamples` below 1.

    Examples
    --------
    Three speakers of each of two groups have 20 permutations, two of which are the most extreme. Two and four have 15,
    and no renaming of the groups is one of them. Five pairs of names have 32.

    >>> least_p(np.array([[3, 3]]), n_resamples=10_000).too_few.values
    {'p': 0.1, 'permutations': 20}
    >>> least_p(np.array([[2, 4]]), n_resamples=10_000).p == 1 / 15
    True
    >>> least_p(np.array([[1, 1]] * 5), n_resamples=10_000).p
    0.0625
    """
    inputs.check_resamples(n_resamples)
    n = count_labellings(sizes)
    share = _renamings(sizes) / n
    p = share if n <= n_resamples else max(share, 1 / (1 + n_resamples))
    return LeastP(p=p, n_permutations=n)


def least_p_over_clusters(
    groups: LabelColumn,
    clusters: LabelColumn,
    strata: LabelColumn | None = None,
    *,
    blocks: LabelColumn | None = None,
    n_resamples: int = 10_000,
) -> LeastP:
    """Return the smallest p of a test that permutes the groups over whole clusters, such as `distribution_shift`.

    Parameters
    ----------
    groups, clusters
        One label per response. Each cluster has one group, or is in every group.
    strata
        One label per response. Groups are permuted within strata if each cluster has one stratum, else freely.
    blocks
        One label per response. Groups are permuted within the blocks of clusters.
    n_resamples
        Permutations drawn, as in `least_p`.

    Raises
    ------
    UsageError
        Columns of unequal lengths, a missing label, or clusters of which some are in one group and some in
        several.

    Examples
    --------
    >>> least_p_over_clusters(["f", "f", "f", "m", "m"], ["a", "a", "b", "c", "d"]).too_few.values["permutations"]
    6
    """
    design = encode_design(groups, clusters, strata, blocks)
    if not design.clusters:
        raise UsageError("`clusters` is missing: give the cluster of each response")
    sizes, _ = sizes_and_order(design.group_of_cluster, design.held, len(design.groups))
    # A stratum without some group says nothing, whoever is permuted there.
    return least_p(sizes[(sizes > 0).all(axis=1)], n_resamples=n_resamples)


def _renamings(sizes: Ints) -> int:
    """Count the renamings of groups that leave the sizes of every stratum as they are."""
    unlike = np.unique(sizes, axis=0)
    present = unlike[:, unlike.any(axis=0)]
    if present.shape[1] > _MOST_GROUPS:
        return 1
    return sum(
        bool((present[:, list(order)] == present).all()) for order in itertools.permutations(range(present.shape[1]))
    )
