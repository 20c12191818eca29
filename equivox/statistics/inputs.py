"""Arguments of the statistics: labels and values as codes (`core.columns`), numbers, tables, options and lengths."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike

from equivox.core.columns import (
    Bools,
    EncodedLabels,
    EncodedValues,
    Floats,
    Ints,
    LabelColumn,
    NumberColumn,
    ValueColumn,
    is_missing,
    labels,
    read_entries,
    values,
)
from equivox.core.errors import UsageError

__all__ = [
    "Bools", "EncodedLabels", "EncodedValues", "Floats", "Ints", "LabelColumn", "NumberColumn", "ValueColumn", "labels",
    "values",
]  # fmt: skip


def numbers(column: NumberColumn, argument: str) -> Floats:
    """Return a column of numbers as floats; missing ones are NaN.

    UsageError for an object that is not a column of numbers, an empty column, or an infinite number.

    >>> numbers([1, None, True], "hits")
    array([ 1., nan,  1.])
    """
    plain = isinstance(column, np.ndarray) and column.dtype.kind != "O"
    entries: Any = _fill_masked(column) if plain else read_entries(column, argument)
    try:
        if not plain and any(type(entry).__name__ == "NAType" for entry in entries):  # of pandas alone
            entries = [np.nan if is_missing(entry) else entry for entry in entries]
        array = np.asarray(entries, dtype=np.float64)
    except (TypeError, ValueError):
        raise UsageError(f"`{argument}` holds something that is no number: use NaN where it is missing") from None
    if array.ndim != 1 or array.size == 0:
        raise UsageError(f"`{argument}` has shape {array.shape}: give one number per entry, at least one entry")
    if np.isinf(array).any():
        raise UsageError(f"`{argument}` holds an infinite number: use NaN where it is missing")
    return array


def matrix(table: object, argument: str) -> Floats:
    """Return a table of numbers (nested lists, a numpy array, a pandas table) as a two-dimensional array.

    UsageError for rows of unequal lengths, an entry that is not a number, or another number of dimensions.
    """
    try:
        array = np.asarray(_fill_masked(table), dtype=np.float64)
    except (TypeError, ValueError):
        raise UsageError(f"`{argument}` is no table of numbers: give rows of equal lengths, without gaps") from None
    if array.ndim != 2:
        raise UsageError(f"`{argument}` has shape {array.shape}: give a table of two or more rows")
    return array


def _fill_masked(table: Any) -> Any:
    """Return an array of numbers with masked entries as NaN; any other object unchanged."""
    masked = isinstance(table, np.ma.MaskedArray)
    return np.ma.filled(table.astype(np.float64), np.nan) if masked else table


def counts(table: Any, argument: str) -> Ints:
    """Return a table of whole counts from 0."""
    array = matrix(table, argument)
    if not np.isfinite(array).all() or (array < 0).any() or (array != np.round(array)).any():
        raise UsageError(f"`{argument}` holds something that is no count: give whole numbers from 0")
    return array.astype(np.int64)


def rows_of_table(table: Any) -> Any:
    """Return a pandas DataFrame as an array of its rows; any other object unchanged."""
    return table.to_numpy(dtype=object) if hasattr(table, "to_numpy") and hasattr(table, "columns") else table


def check_min_count(value: int) -> None:
    """Raise UsageError if `min_count` is below 1."""
    if value < 1:
        raise UsageError(f"`min_count` is {value}: use 1 to keep every value")


def check_resamples(n_resamples: int) -> None:
    """Raise UsageError if `n_resamples` is below 1."""
    if n_resamples < 1:
        raise UsageError(f"`n_resamples` is {n_resamples}: use at least 1, better 10000")


def check_share(value: float, argument: str) -> None:
    """Raise UsageError if a confidence, level or power is not between 0 and 1."""
    if not 0.0 < value < 1.0:
        raise UsageError(f"`{argument}` is {value}: use a share between 0 and 1")


def named_numbers(mapping: Mapping[str, float], argument: str) -> dict[str, float]:
    """Return a mapping or a pandas Series of numbers as a dictionary; missing ones are NaN."""
    try:
        return {name: number(value) for name, value in mapping.items()}
    except (AttributeError, TypeError, ValueError):
        raise UsageError(f"`{argument}` is no mapping from names to numbers: give one number per name") from None


def number(value: object) -> float:
    """Return one number, NaN when it is missing."""
    return float("nan") if is_missing(value) else float(cast(float, value))


def named_columns(columns: Mapping[str, Any], argument: str) -> dict[str, Any]:
    """Return a mapping, a pandas DataFrame or a pyarrow Table as a dictionary of columns."""
    if hasattr(columns, "column_names"):
        table: Any = columns
        return {name: table.column(name) for name in table.column_names}
    if not hasattr(columns, "items"):
        raise UsageError(f"`{argument}` is a {type(columns).__name__}: give a mapping from names to columns")
    return dict(columns.items())


def same_length(like: str, expected: int, lengths: Mapping[str, int]) -> None:
    """Raise UsageError if a column's length is not `expected`, the length of the argument `like`."""
    for argument, length in lengths.items():
        if length != expected:
            raise UsageError(
                f"`{argument}` has {length} entries, `{like}` has {expected}: give both in the same order, "
                "one entry per response"
            )


def cluster_codes(clusters: LabelColumn | None, like: str, n: int) -> Ints:
    """Return the cluster of each entry as a code; if no clusters are given, each entry is a cluster."""
    if clusters is None:
        return np.arange(n)
    codes = labels(clusters, "clusters").codes
    same_length(like, n, {"clusters": len(codes)})
    return codes


def positions(given: ArrayLike, n: int, n_labels: int) -> Ints:
    """Return the positions of the labelled responses; UsageError if they are doubled, out of range or too many."""
    array = np.asarray(given)
    if array.ndim != 1 or not (np.issubdtype(array.dtype, np.integer) or array.size == 0):
        raise UsageError("`labelled_rows` is no list of positions: give whole numbers, 0 for the first response")
    rows = array.astype(np.int64)
    same_length("labelled_rows", len(rows), {"labels": n_labels})
    if rows.size and not 0 <= rows.min() <= rows.max() < n:
        wrong = rows.max() if rows.max() >= n else rows.min()
        raise UsageError(f"`labelled_rows` names position {wrong}: there are {n}")
    if len(np.unique(rows)) < len(rows):
        raise UsageError("`labelled_rows` names a response twice: give one label for each, such as that of most people")
    return rows


def weights(given: ArrayLike | None, n: int) -> Floats:
    """Return how many responses each label stands for, 1 by default; UsageError unless all are above 0."""
    array = np.ones(n) if given is None else np.array(given, dtype=np.float64)
    same_length("labelled_rows", n, {"weights": array.size})
    if not (np.isfinite(array) & (array > 0)).all():
        raise UsageError("`weights` holds a number that is not above 0: give how many responses each label stands for")
    return array
