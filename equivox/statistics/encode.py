"""Responses as integer tables: who belongs to which group and cluster, and who gave which value."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from equivox.errors import RequestError
from equivox.statistics.arrays import Ints


@dataclass(frozen=True, kw_only=True)
class Design:
    """Who was heard: the group, cluster and stratum of every response, as codes into sorted names."""

    groups: tuple[str, ...]
    group_of_row: Ints
    clusters: tuple[str, ...] | None
    cluster_of_row: Ints | None
    group_of_cluster: Ints | None
    strata: tuple[str, ...] | None
    stratum_of_cluster: Ints | None
    notes: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Occurrences:
    """What was answered: one (row, value) pair per kept value of one attribute."""

    values: tuple[str, ...]
    rows: Ints
    codes: Ints
    removed: dict[str, int]
    n_total: int


def codes_of(names: Sequence[str]) -> tuple[tuple[str, ...], Ints]:
    """Return the sorted distinct names and, for each entry, its position among them."""
    distinct = tuple(sorted(set(names)))
    position = {name: code for code, name in enumerate(distinct)}
    return distinct, np.fromiter((position[name] for name in names), dtype=np.int64, count=len(names))


def encode_design(groups: Sequence[str], clusters: Sequence[str] | None, strata: Sequence[str] | None) -> Design:
    """Check that every cluster carries one group and return the design as codes.

    Raises
    ------
    RequestError
        No rows; a column of another length; a missing name; a cluster seen in two groups; strata without
        clusters.
    """
    if len(groups) == 0:
        raise RequestError("`groups` is empty: give the group of at least one response")
    for argument, column in (("groups", groups), ("clusters", clusters), ("strata", strata)):
        if column is None:
            continue
        if len(column) != len(groups):
            raise RequestError(
                f"`{argument}` has {len(column)} entries for {len(groups)} responses: give one per response"
            )
        for name in column:
            if not isinstance(name, str):
                raise RequestError(f"`{argument}` holds {name!r}, which is no text: name it, or drop that response")
    group_names, group_of_row = codes_of(groups)
    if clusters is None:
        if strata is not None:
            raise RequestError("`strata` was given without `clusters`: strata hold whole clusters; name both")
        return Design(
            groups=group_names,
            group_of_row=group_of_row,
            clusters=None,
            cluster_of_row=None,
            group_of_cluster=None,
            strata=None,
            stratum_of_cluster=None,
            notes=("no clusters were given: responses are treated as independent, p_cluster is undefined",),
        )
    cluster_names, cluster_of_row = codes_of(clusters)
    group_of_cluster, torn = _carried(group_of_row, cluster_of_row, len(cluster_names))
    if torn is not None:
        row = np.flatnonzero(cluster_of_row == torn)
        seen = sorted({groups[i] for i in row.tolist()})
        raise RequestError(
            f"`clusters` has {cluster_names[torn]!r} in more than one group ({', '.join(seen)}): "
            "a cluster carries one group; give each its own name"
        )
    notes: tuple[str, ...] = ()
    stratum_names, stratum_of_cluster = None, None
    if strata is not None:
        stratum_names, stratum_of_row = codes_of(strata)
        stratum_of_cluster, torn = _carried(stratum_of_row, cluster_of_row, len(cluster_names))
        if torn is not None:
            stratum_names, stratum_of_cluster = None, None
            notes = ("clusters span several strata: whole clusters are permuted freely",)
    return Design(
        groups=group_names,
        group_of_row=group_of_row,
        clusters=cluster_names,
        cluster_of_row=cluster_of_row,
        group_of_cluster=group_of_cluster,
        strata=stratum_names,
        stratum_of_cluster=stratum_of_cluster,
        notes=notes,
    )


def _carried(label_of_row: Ints, cluster_of_row: Ints, n_clusters: int) -> tuple[Ints, int | None]:
    """Return each cluster's label and the first cluster that carries two (None when none does)."""
    label = np.zeros(n_clusters, dtype=np.int64)
    label[cluster_of_row] = label_of_row
    torn = cluster_of_row[label[cluster_of_row] != label_of_row]
    return label, (int(torn.min()) if torn.size else None)


def encode_values(
    values: Sequence[Sequence[str]], n_rows: int, min_count: int, *, argument: str = "values"
) -> Occurrences:
    """Keep the values seen at least `min_count` times over all rows and return where they stand.

    Raises
    ------
    RequestError
        Another length than `n_rows`; an entry that is a bare text instead of a sequence of texts; a value
        that is no text.
    """
    if len(values) != n_rows:
        raise RequestError(
            f"`{argument}` has {len(values)} entries for {n_rows} responses: give one sequence of values per "
            "response, an empty one where nothing is known"
        )
    rows: list[int] = []
    flat: list[str] = []
    for row, answered in enumerate(values):
        if isinstance(answered, str) or answered is None:
            raise RequestError(
                f"`{argument}` holds {answered!r} at position {row}: write a sequence of values, such as "
                f"{[answered] if answered else []!r}"
            )
        for value in answered:
            if not isinstance(value, str):
                raise RequestError(
                    f"`{argument}` holds {value!r} at position {row}, which is no text: write it as text, or "
                    "leave it out when it is missing"
                )
            rows.append(row)
            flat.append(value)
    seen = Counter(flat)
    kept = tuple(sorted(value for value, count in seen.items() if count >= min_count))
    position = {value: code for code, value in enumerate(kept)}
    all_codes = np.fromiter((position.get(value, -1) for value in flat), dtype=np.int64, count=len(flat))
    all_rows = np.asarray(rows, dtype=np.int64)
    is_kept = all_codes >= 0
    removed = {value: seen[value] for value in sorted(seen) if value not in position}
    return Occurrences(
        values=kept, rows=all_rows[is_kept], codes=all_codes[is_kept], removed=removed, n_total=len(flat)
    )


def cross_count(first: Ints, second: Ints, shape: tuple[int, int]) -> Ints:
    """Count how often each pair (first, second) occurs: an array of `shape`."""
    flat = np.bincount(first * shape[1] + second, minlength=shape[0] * shape[1])
    return flat.astype(np.int64).reshape(shape)


def stack_attributes(
    attributes: Mapping[str, Occurrences],
) -> tuple[Ints, Ints, dict[str, slice]]:
    """Lay the values of several attributes side by side: rows, columns and each attribute's columns."""
    rows = [found.rows for found in attributes.values()]
    columns, slices, start = [], {}, 0
    for name, found in attributes.items():
        columns.append(found.codes + start)
        slices[name] = slice(start, start + len(found.values))
        start += len(found.values)
    return np.concatenate(rows), np.concatenate(columns), slices
