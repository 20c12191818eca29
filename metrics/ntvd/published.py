"""p as VIBE publishes it: b/B of permutations of the groups over single responses (arXiv 2604.17248).

Responses of one speaker resemble each other, so that this p is too small; the p of a score permutes whole speakers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from equivox.core.columns import EncodedLabels, EncodedValues
from equivox.statistics import inputs
from equivox.statistics.design import join_parts
from equivox.statistics.distance import center, compute_ntvd
from equivox.statistics.inputs import Floats, Ints
from equivox.statistics.permutation import Labels, count_extreme, label_dtype, row_blocks

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


def compute_published_p(
    attributes: Mapping[str, EncodedValues], groups: EncodedLabels, *, n_resamples: int, rng: np.random.Generator
) -> dict[str, float]:
    """Return the published p of each attribute, and under "" that of their mean; 0 is possible.

    Parameters
    ----------
    attributes
        The values that are compared, of the same responses; rare ones are left out.
    groups
        The group of each response.
    """
    read = {name: inputs.values(column, name) for name, column in attributes.items()}
    group = inputs.labels(groups, "groups")
    n_groups, parts = len(group.names), join_parts([len(column.names) for column in read.values()])
    columns = np.concatenate([column.codes + part.start for column, part in zip(read.values(), parts, strict=True)])
    rows = np.concatenate([column.rows for column in read.values()])
    counts = np.zeros((n_groups, parts[-1].stop))
    np.add.at(counts, (group.codes[rows], columns), 1.0)
    observed = _measure_tables(counts[None], parts)[0]
    null = permute_responses(rows, columns, parts, group.codes, n_groups=n_groups, n_resamples=n_resamples, rng=rng)
    p = {name: count_extreme(null[:, place], observed[place]) / len(null) for place, name in enumerate(read)}
    return p | {"": count_extreme(null.mean(axis=1), float(observed.mean())) / len(null)}


def _measure_tables(counts: Floats, parts: Sequence[slice]) -> Floats:
    """Return the nTVD of each attribute's columns: B x A from B x G x V counts; NaN for a group without counts."""
    found = []
    for part in parts:
        with np.errstate(invalid="ignore", divide="ignore"):
            shares = counts[:, :, part] / counts[:, :, part].sum(axis=2, keepdims=True)
        found.append(compute_ntvd(center(shares), [slice(0, shares.shape[2])]))
    return np.stack(found, axis=1)


def permute_responses(
    rows: Ints,
    columns: Ints,
    parts: Sequence[slice],
    group_of_row: Ints,
    *,
    n_groups: int,
    n_resamples: int,
    rng: np.random.Generator,
) -> Floats:
    """Return the nTVD of each attribute with groups permuted over single responses, B x A.

    Responses that gave the same answers are one *type*. Permuting the groups makes the types x groups table a random
    table with fixed margins, which scipy draws without touching the responses. Only when there are almost as many types
    as responses are single responses permuted. Responses without an answer take no part.
    """
    n_columns = parts[-1].stop
    present, row = np.unique(rows, return_inverse=True)
    sizes = np.sort(np.bincount(group_of_row[present], minlength=n_groups))[::-1].astype(np.int64)
    single = len(row) == len(present)
    of_type, multiplicity = _count_values(columns, n_columns) if single else _count_types(row, columns, n_columns)
    by_table = len(multiplicity) * (n_groups - 1) * TABLE_CELL_COST
    if by_table < len(present) * (4 + 0.75 * (n_groups - 1)):
        return _draw_tables(multiplicity, sizes, None if single else of_type, parts, n_resamples, rng)
    of_row = of_type[:, np.repeat(np.arange(len(multiplicity)), multiplicity)].tocsr()
    return _draw_rows(sizes, of_row, parts, n_resamples, rng)


def _count_values(columns: Ints, n_columns: int) -> tuple[sparse.csc_array, Ints]:
    """Return the types of single-valued answers: the values, the rarest first, so that names do not matter."""
    from scipy import sparse

    multiplicity = np.sort(np.bincount(columns, minlength=n_columns)).astype(np.int64)
    return sparse.eye_array(n_columns, dtype=np.uint16, format="csc"), multiplicity


def _count_types(row: Ints, columns: Ints, n_columns: int) -> tuple[sparse.csc_array, Ints]:
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


def _choose_counter(totals: Ints | Floats) -> type[np.uint16] | type[np.float64]:
    """Return the smallest type in which no count overflows; it makes sparse products several times faster."""
    return np.uint16 if totals.max() < 2**16 else np.float64


def _draw_tables(
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
    weights = None if of_type is None else of_type.tocsr().astype(_choose_counter(of_type @ multiplicity))
    width = n_groups * max(len(multiplicity), slices[-1].stop)
    parts = []
    for size in row_blocks(n_resamples, width, BLOCK_CELLS):
        drawn = draw.rvs(size, method="patefield", random_state=rng)
        if weights is None:
            tables = drawn.transpose(0, 2, 1).astype(np.float64)
        else:
            one_hot = drawn.transpose(1, 2, 0).reshape(len(multiplicity), -1).astype(weights.dtype)
            tables = (weights @ one_hot).reshape(-1, n_groups, size).transpose(2, 1, 0).astype(np.float64)
        parts.append(_measure_tables(tables, slices))
    return np.concatenate(parts)


def _draw_rows(
    sizes: Ints, of_row: sparse.csr_array, slices: Sequence[slice], n_resamples: int, rng: np.random.Generator
) -> Floats:
    """Permute the labels of single responses; `of_row` is V x responses."""
    parts = []
    for size in row_blocks(n_resamples, of_row.shape[1], LABEL_CELLS):
        parts.append(_measure_labellings(_permute_rows(sizes, size, rng), of_row, len(sizes), slices))
    return np.concatenate(parts)


def _split_labels(labels: Labels, width: int) -> Iterator[Labels]:
    """Yield some permutations at a time, units x permutations, of which each takes `width` cells."""
    by_unit = np.ascontiguousarray(labels.T)
    few = max(16, min(CACHED_CELLS // len(by_unit), BLOCK_CELLS // max(width, 1), 96))
    for start in range(0, len(labels), few):
        yield by_unit[:, start : start + few]


def _measure_labellings(labels: Labels, of_unit: sparse.csr_array, n_groups: int, slices: Sequence[slice]) -> Floats:
    """Compute distances under each permutation (B x units) of units whose value counts are `of_unit` (V x units).

    A sparse product is as fast as a dense one here, and does not start threads that compete.
    """
    n_values, n_units = of_unit.shape
    total = of_unit @ np.ones(n_units)
    of_unit = of_unit.astype(_choose_counter(total))
    parts = []
    for chunk in _split_labels(labels, n_groups * n_values):
        tables = np.empty((chunk.shape[1], n_groups, n_values))
        for code in range(n_groups - 1):
            tables[:, code] = (of_unit @ (chunk == code).astype(of_unit.dtype)).T
        tables[:, -1] = total - tables[:, :-1].sum(axis=1)
        parts.append(_measure_tables(tables, slices))
    return np.concatenate(parts)


def _permute_rows(sizes: Ints, n: int, rng: np.random.Generator) -> Labels:
    """Draw `n` permutations of many rows uniformly: n x rows, three times as fast as shuffling each.

    A row order is drawn by sorting 16-bit random keys (a radix sort); equal keys are ordered by a shuffled base
    order, so every permutation is equally likely.
    """
    labels = np.repeat(np.arange(len(sizes), dtype=label_dtype(len(sizes))), sizes)
    rng.shuffle(labels)
    keys = rng.integers(0, 2**16, size=(n, len(labels)), dtype=np.uint16)
    order = np.argsort(keys, axis=1, kind="stable")
    return np.asarray(labels[order])
