"""Null distributions of nTVD: groups permuted over responses, or over whole clusters."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from equivox.statistics.distance import ntvd_of_shares, ntvd_per_attribute
from equivox.statistics.encode import Answers, Standard, part_of_column, sizes_of
from equivox.statistics.inputs import Floats, Ints
from equivox.statistics.permutation import (
    Labels,
    count_labellings,
    labellings,
    random_row_labellings,
    row_blocks,
    sizes_and_order,
)

if TYPE_CHECKING:
    from scipy import sparse


BLOCK_CELLS = 2**16
"""Counts in memory at a time (512 KiB as doubles), so that they fit into the cache however many are drawn."""

LABEL_CELLS = 2**21
"""Labels of single responses that are permuted at a time."""

TABLE_CELL_COST = 70.0
"""Nanoseconds to draw one cell of a random table; permuting a response takes 4, plus 0.75 for each label but one."""

CACHED_CELLS = 2**20
"""Labels that a sparse product works on at a time, so that they stay in the processor's cache."""


def null_over_clusters(
    counts: Ints,
    group: Ints,
    stratum: Ints | None,
    slices: Sequence[slice],
    *,
    n_groups: int,
    n_resamples: int,
    rng: np.random.Generator,
    standard: Standard | None = None,
) -> tuple[Floats, Floats, int, bool]:
    """Return the null with groups permuted over whole clusters, within strata.

    The distances are those of the counts as they are or, with `standard`, of what each cluster has beyond the mean of
    its stratum, added up with the weights of `standard`: then a difference between strata is neither an effect nor
    noise. Such a distance is that of the standardised shares to first order, and the same whatever the labels.

    Parameters
    ----------
    counts
        K x V, the count of each value in each cluster; attributes are adjacent blocks of columns.
    group, stratum
        The code of each cluster.
    standard
        How the clusters count where groups hold the strata in unequal numbers.

    Returns
    -------
    tuple
        B x A nTVDs; the A of the labels as they are; the number of distinct permutations; and whether all of them
        were enumerated.
    """
    from scipy import sparse

    sizes, label_group = sizes_and_order(group, stratum, n_groups)
    order = in_order(counts, stratum)
    of_cluster = sparse.csr_array(counts[order].T)
    step = max(1, LABEL_CELLS // len(counts))
    beyond = None
    if standard is not None:
        deals = standard.deals[order][:, :, label_group]
        held = np.zeros(len(order), dtype=np.int64) if stratum is None else stratum[order]
        beyond = _Beyond(counts[order], np.unique(held, return_inverse=True)[1], deals, slices)

    def distances(labels: Labels) -> Floats:
        if beyond is not None:
            return beyond.distances(labels)
        return _distances(labels, of_cluster, n_groups, slices)

    return null_of(distances, group[order], sizes, label_group, n_resamples=n_resamples, step=step, rng=rng)


def in_order(counts: Ints, stratum: Ints | None) -> Ints:
    """Return the clusters in stratum order, then by their answers: draws depend on the data, not on names or rows."""
    return np.lexsort([*counts.T[::-1], np.zeros(len(counts), dtype=np.int64) if stratum is None else stratum])


def null_of(
    distances: Callable[[Labels], Floats],
    group: Ints,
    sizes: Ints,
    label_group: Ints,
    *,
    n_resamples: int,
    step: int,
    rng: np.random.Generator,
) -> tuple[Floats, Floats, int, bool]:
    """Return the null of the distances of clusters that are `in_order`, as `null_over_clusters` does.

    `sizes` and `label_group` are those of `sizes_and_order`, and `step` the most permutations at a time.
    """
    n_labellings = count_labellings(sizes)
    null = np.concatenate([distances(labels) for labels in labellings(sizes, n_resamples, step, rng)])
    as_they_are: Ints = np.argsort(label_group)[group][None]
    return null, distances(as_they_are)[0], n_labellings, n_labellings <= n_resamples


class _Beyond:
    """What each cluster has beyond the mean of its stratum, as sparse arrays, whatever group it is dealt to."""

    def __init__(self, counts: Ints, stratum: Ints, deals: Floats, slices: Sequence[slice]) -> None:
        from scipy import sparse

        n_clusters, n_values = counts.shape
        self.slices, self.n_groups = slices, deals.shape[2]
        attribute = part_of_column(slices)
        sizes = sizes_of(counts, slices).astype(np.float64)
        own = sparse.coo_array(counts)
        cluster, value = own.coords
        # One row for each attribute of each stratum: its shares, all groups together.
        place = stratum[:, None] * len(slices) + np.arange(len(slices))
        total = np.bincount(place.ravel(), weights=sizes.ravel())
        where = place[cluster, attribute[value]]
        shares = sparse.coo_array((own.data / total[where], (where, value)), shape=(len(total), n_values))
        self.shares = sparse.csr_array(shares.T)
        rows = np.repeat(np.arange(n_clusters), len(slices))
        self.given, self.expected = [], []
        for code in range(self.n_groups):
            factor = deals[:, :, code]
            given = (own.data * factor[cluster, attribute[value]], (value, cluster))
            self.given.append(sparse.csr_array(given, shape=(n_values, n_clusters)))
            expected = ((sizes * factor).ravel(), (place.ravel(), rows))
            self.expected.append(sparse.csr_array(expected, shape=(len(total), n_clusters)))

    def distances(self, labels: Labels) -> Floats:
        """Return the nTVDs under each permutation: B x A."""
        parts = []
        for chunk in _chunks(labels, self.n_groups * max(self.shares.shape) // 16):
            found = np.empty((chunk.shape[1], self.n_groups, self.shares.shape[0]))
            for code, (given, expected) in enumerate(zip(self.given, self.expected, strict=True)):
                dealt = (chunk == code).astype(np.float64)
                found[:, code] = (given @ dealt - self.shares @ (expected @ dealt)).T
            parts.append(np.stack([ntvd_of_shares(found[:, :, part]) for part in self.slices], axis=1))
        return np.concatenate(parts)


def null_over_responses(
    answers: Answers, group_of_row: Ints, *, n_groups: int, n_resamples: int, rng: np.random.Generator
) -> Floats:
    """Return the null with groups permuted over single responses; all values of a response move together.

    Responses that gave the same answers are one *type*. Permuting the groups over responses makes the types x groups
    table a random table with fixed margins, which scipy draws without touching the responses. Only when there are
    almost as many types as responses are single responses permuted.

    `group_of_row` has the group of every response; those without an answer take no part. Returns `n_resamples` x A
    nTVDs.
    """
    slices, columns, n_columns = answers.parts, answers.columns, answers.width
    present, row = np.unique(answers.rows, return_inverse=True)
    sizes = np.sort(np.bincount(group_of_row[present], minlength=n_groups))[::-1].astype(np.int64)
    single = len(row) == len(present)
    of_type, multiplicity = _columns(columns, n_columns) if single else _types(row, columns, n_columns)
    by_table = len(multiplicity) * (n_groups - 1) * TABLE_CELL_COST
    if by_table < len(present) * (4 + 0.75 * (n_groups - 1)):
        return _from_tables(multiplicity, sizes, None if single else of_type, slices, n_resamples, rng)
    of_row = of_type[:, np.repeat(np.arange(len(multiplicity)), multiplicity)].tocsr()
    return _from_rows(sizes, of_row, slices, n_resamples, rng)


def _columns(columns: Ints, n_columns: int) -> tuple[sparse.csc_array, Ints]:
    """Return the types of single-valued answers: the values, the rarest first, so that names do not matter."""
    from scipy import sparse

    multiplicity = np.sort(np.bincount(columns, minlength=n_columns)).astype(np.int64)
    return sparse.eye_array(n_columns, dtype=np.uint16, format="csc"), multiplicity


def _types(row: Ints, columns: Ints, n_columns: int) -> tuple[sparse.csc_array, Ints]:
    """Return the distinct answers: their value counts (V x types) and the number of responses with each."""
    from scipy import sparse

    columns = columns[np.lexsort([columns, row])]
    sizes = np.bincount(row)
    starts = np.cumsum(sizes) - sizes
    # Answers are numbered in the order of their values, one place after another; 0 stands for "no value here".
    kind = np.zeros(len(sizes), dtype=np.int64)
    for place in range(sizes.max()):
        longer = sizes > place
        here = np.zeros(len(sizes), dtype=np.int64)
        here[longer] = columns[starts[longer] + place] + 1
        kind = np.unique(kind * (n_columns + 1) + here, return_inverse=True)[1]
    multiplicity = np.bincount(kind)
    example = np.empty(len(multiplicity), dtype=np.int64)
    example[kind] = np.arange(len(sizes))
    lengths = sizes[example]
    ends = np.cumsum(lengths)
    flat = columns[np.arange(ends[-1]) + np.repeat(starts[example] - ends + lengths, lengths)]
    values = np.ones(len(flat), dtype=np.uint16)
    of_type = sparse.csc_array((values, flat, np.append(0, ends)), shape=(n_columns, len(lengths)))
    of_type.sum_duplicates()
    return of_type, multiplicity


def _counter(totals: Ints | Floats) -> type[np.uint16] | type[np.float64]:
    """Return the smallest type in which no count overflows; it makes sparse products several times faster."""
    return np.uint16 if totals.max() < 2**16 else np.float64


def _from_tables(
    multiplicity: Ints,
    sizes: Ints,
    of_type: sparse.csc_array | None,
    slices: Sequence[slice],
    n_resamples: int,
    rng: np.random.Generator,
) -> Floats:
    """Draw types x groups tables; `of_type` None means that the types are the columns themselves."""
    from scipy.stats import random_table

    n_groups = len(sizes)
    draw = random_table(multiplicity, sizes)
    weights = None if of_type is None else of_type.tocsr().astype(_counter(of_type @ multiplicity))
    width = n_groups * max(len(multiplicity), slices[-1].stop)
    parts = []
    for size in row_blocks(n_resamples, width, BLOCK_CELLS):
        drawn = draw.rvs(size, method="patefield", random_state=rng)
        if weights is None:
            tables = drawn.transpose(0, 2, 1).astype(np.float64)
        else:
            one_hot = drawn.transpose(1, 2, 0).reshape(len(multiplicity), -1).astype(weights.dtype)
            tables = (weights @ one_hot).reshape(-1, n_groups, size).transpose(2, 1, 0).astype(np.float64)
        parts.append(ntvd_per_attribute(tables, slices))
    return np.concatenate(parts)


def _from_rows(
    sizes: Ints, of_row: sparse.csr_array, slices: Sequence[slice], n_resamples: int, rng: np.random.Generator
) -> Floats:
    """Permute the labels of single responses; `of_row` is V x responses."""
    parts = []
    for size in row_blocks(n_resamples, of_row.shape[1], LABEL_CELLS):
        parts.append(_distances(random_row_labellings(sizes, size, rng), of_row, len(sizes), slices))
    return np.concatenate(parts)


def _chunks(labels: Labels, width: int) -> Iterator[Labels]:
    """Yield some permutations at a time, units x permutations, of which each takes `width` cells."""
    by_unit = np.ascontiguousarray(labels.T)
    few = max(16, min(CACHED_CELLS // len(by_unit), BLOCK_CELLS // max(width, 1), 96))
    for start in range(0, len(labels), few):
        yield by_unit[:, start : start + few]


def _distances(
    labels: Labels,
    of_unit: sparse.csr_array,
    n_groups: int,
    slices: Sequence[slice],
    distance: Callable[[Floats, Sequence[slice]], Floats] = ntvd_per_attribute,
) -> Floats:
    """Compute distances under each permutation (B x units) of units whose value counts are `of_unit` (V x units).

    A sparse product is as fast as a dense one here, and does not start threads that compete.
    """
    n_values, n_units = of_unit.shape
    total = of_unit @ np.ones(n_units)
    of_unit = of_unit.astype(_counter(total))
    parts = []
    for chunk in _chunks(labels, n_groups * n_values):
        tables = np.empty((chunk.shape[1], n_groups, n_values))
        for code in range(n_groups - 1):
            tables[:, code] = (of_unit @ (chunk == code).astype(of_unit.dtype)).T
        tables[:, -1] = total - tables[:, :-1].sum(axis=1)
        parts.append(distance(tables, slices))
    return np.concatenate(parts)
