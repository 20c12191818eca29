"""Conversion of columns to arrays: only this module reads lists, tuples, numpy, pandas and pyarrow.

There are three kinds of column. *Labels* name the group, cluster or stratum of each response; none may be missing.
*Values* are the answers; a response has none, one or several. *Numbers* may be missing.

Labels and values may be text, integers or anything hashable; results carry their text. Two of them are the same when
their text is, so that 1, 1.0 and "1" name one group. They are sorted as numbers when all are numbers, else as text.
None, NaN, pandas' NA and NaT, pyarrow's null and a masked entry of numpy are missing.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterable, Mapping, Sequence, Set
from numbers import Real
from typing import Any, TypeAlias, TypeGuard, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from equivox.core.encoded import EncodedLabels, EncodedValues
from equivox.core.errors import UsageError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


__all__ = [
    "EncodedLabels",
    "EncodedValues",
    "LabelColumn",
    "NumberColumn",
    "ValueColumn",
]

LabelColumn: TypeAlias = Sequence[Hashable] | NDArray[Any] | EncodedLabels
"""One label per response. pandas and pyarrow columns are accepted too, but have no types that can be named here."""

ValueColumn: TypeAlias = Sequence[object] | NDArray[Any] | EncodedValues | EncodedLabels
"""One value, or a list of values, per response."""

NumberColumn: TypeAlias = Sequence[float | None] | NDArray[Any]
"""One number per response, None or NaN if it is missing."""


def labels(column: LabelColumn, argument: str) -> EncodedLabels:
    """Return a column of labels as codes.

    Raises
    ------
    UsageError
        An object that is not a column, a missing label, or one that is not hashable.

    Examples
    --------
    >>> labels(["m", "f", "f"], "groups")
    EncodedLabels(codes=array([1, 0, 0]), names=('f', 'm'))
    """
    codes, names = _sorted(*_factorised(column, argument))
    absent = np.flatnonzero(codes < 0)
    if absent.size:
        raise UsageError(
            f"`{argument}` is missing for {absent.size} of {len(codes)} responses, first at position {absent[0]}: "
            "name it, or leave these responses out"
        )
    return EncodedLabels(codes=codes, names=names)


def values(column: ValueColumn, argument: str) -> EncodedValues:
    """Return a column of values with rows in ascending order and sorted distinct names.

    A text is one value. A list, tuple, set or array at one position holds the values of that response.

    Raises
    ------
    UsageError
        An object that is not a column, or a value that is not hashable.

    Examples
    --------
    >>> values([["chess", "yoga"], None, "chess"], "values").rows.tolist()
    [0, 0, 2]
    """
    if isinstance(column, EncodedValues):
        rows, codes, given, n_rows = _of_encoded(column, argument)
    elif isinstance(column, EncodedLabels) or _is_numeric(column):
        codes, given = _factorised(column, argument)
        n_rows = len(codes)
        rows = np.arange(n_rows)
    else:
        entries = column.tolist() if isinstance(column, np.ndarray) else _entries(column, argument)
        n_rows = len(entries)
        rows, flat = _flattened(entries, argument)
        codes, given = _of_list(flat, argument, rows)
    codes, names = _sorted(codes, given)
    known = codes >= 0
    if not known.all():
        rows, codes = rows[known], codes[known]
    return EncodedValues(rows=rows, codes=codes, names=names, n_rows=n_rows)


def numbers(column: NumberColumn, argument: str) -> Floats:
    """Return a column of numbers as floats; missing ones are NaN.

    Raises
    ------
    UsageError
        An object that is not a column of numbers, an empty column, or an infinite number.

    Examples
    --------
    >>> numbers([1, None, True], "hits")
    array([ 1., nan,  1.])
    """
    try:
        array = _floats(column, argument)
    except (TypeError, ValueError):
        raise UsageError(f"`{argument}` holds something that is no number: use NaN where it is missing") from None
    if array.ndim != 1 or array.size == 0:
        raise UsageError(f"`{argument}` has shape {array.shape}: give one number per entry, at least one entry")
    if np.isinf(array).any():
        raise UsageError(f"`{argument}` holds an infinite number: use NaN where it is missing")
    return array


def matrix(table: object, argument: str) -> Floats:
    """Return a table of numbers (nested lists, a numpy array, a pandas table) as a two-dimensional array.

    Raises
    ------
    UsageError
        Rows of unequal lengths, an entry that is not a number, or another number of dimensions.
    """
    try:
        array = np.asarray(_unmasked(table), dtype=np.float64)
    except (TypeError, ValueError):
        raise UsageError(f"`{argument}` is no table of numbers: give rows of equal lengths, without gaps") from None
    if array.ndim != 2:
        raise UsageError(f"`{argument}` has shape {array.shape}: give a table of two or more rows")
    return array


def counts(table: Any, argument: str) -> Ints:
    """Return a table of whole counts from 0."""
    array = matrix(table, argument)
    if not np.isfinite(array).all() or (array < 0).any() or (array != np.round(array)).any():
        raise UsageError(f"`{argument}` holds something that is no count: give whole numbers from 0")
    return array.astype(np.int64)


def rows_of_table(table: Any) -> Any:
    """Return a pandas DataFrame as an array of its rows; any other object unchanged."""
    return table.to_numpy(dtype=object) if hasattr(table, "to_numpy") and hasattr(table, "columns") else table


def number(value: object) -> float:
    """Return one number, NaN when it is missing."""
    return float("nan") if is_missing(value) else float(cast(float, value))


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
    if rows.size and (rows.min() < 0 or rows.max() >= n):
        raise UsageError(
            f"`labelled_rows` names position {rows.max() if rows.max() >= n else rows.min()}: there are {n}"
        )
    if len(np.unique(rows)) < len(rows):
        raise UsageError("`labelled_rows` names a response twice: give one label for each, such as that of most people")
    return rows


def weights(given: ArrayLike | None, n: int) -> Floats:
    """Return how many responses each label stands for, 1 by default; UsageError unless all are above 0."""
    found = np.ones(n) if given is None else np.array(given, dtype=np.float64)
    same_length("labelled_rows", n, {"weights": found.size})
    if not (np.isfinite(found) & (found > 0)).all():
        raise UsageError("`weights` holds a number that is not above 0: give how many responses each label stands for")
    return found


def text(name: object) -> str:
    """Return the text of a label or a value.

    >>> text("f"), text(3), text(3.0), text(np.int64(3)), text(True)
    ('f', '3', '3', '3', 'True')
    """
    if isinstance(name, str):
        return str.__str__(name)
    if isinstance(name, np.generic):
        name = name.item()
    return str(int(name)) if isinstance(name, float) and name.is_integer() else str(name)


def is_missing(value: object) -> bool:
    """Return whether a value is None, NaN, NaT or pandas' NA.

    >>> [is_missing(value) for value in (None, float("nan"), np.datetime64("NaT", "D"), 0, "")]
    [True, True, True, False, False]
    """
    # Comparing pandas' NA gives NA, which is neither true nor false; pandas is not imported only for this.
    return value is None or type(value).__name__ == "NAType" or bool(value != value)


def _sorted(codes: Ints, names: Sequence[object]) -> tuple[Ints, tuple[str, ...]]:
    """Sort the names (numbers as numbers), merge equal ones and drop those that do not occur."""
    occurs = np.flatnonzero(np.bincount(codes[codes >= 0], minlength=len(names)))
    known = [(code, names[code]) for code in occurs.tolist() if not is_missing(names[code])]
    texts = [text(name) for _, name in known]
    if all(isinstance(name, Real) for _, name in known):
        size = dict(zip(texts, (cast(float, name) for _, name in known), strict=True))
        distinct = sorted(size, key=lambda name: (size[name], name))
    else:
        distinct = sorted(set(texts))
    position = {name: code for code, name in enumerate(distinct)}
    moved = np.full(len(names) + 1, -1, dtype=np.int64)  # a code of −1 selects the last entry
    moved[[code for code, _ in known]] = [position[name] for name in texts]
    return moved[codes], tuple(distinct)


def _factorised(column: object, argument: str) -> tuple[Ints, Sequence[object]]:
    """Return codes and names of a column of single entries; a code of −1 is missing, as is a missing name."""
    if isinstance(column, EncodedLabels):
        return _checked(column.codes, -1, len(column.names), f"the codes of `{argument}`"), column.names
    if _is_numeric(column):
        distinct, codes = np.unique(column, return_inverse=True)
        return codes.astype(np.int64), distinct.tolist()
    return _of_list(_entries(column, argument), argument)


def _is_numeric(column: object) -> TypeGuard[NDArray[Any]]:
    """Return whether a column is one of numbers or truth values, none of them masked."""
    if not isinstance(column, np.ndarray) or isinstance(column, np.ma.MaskedArray):
        return False
    return column.ndim == 1 and column.dtype.kind in "biuf"


def _entries(column: object, argument: str) -> Sequence[object]:
    """Return a column as a list or tuple; UsageError if it is not a column."""
    if isinstance(column, list | tuple):
        return column
    shape = getattr(column, "shape", (0,))
    if isinstance(column, str | bytes | Mapping | Set) or len(shape) != 1 or not isinstance(column, Iterable):
        what = f"the text {column!r}" if isinstance(column, str) else f"a {type(column).__name__}"
        if len(shape) != 1:
            what += f" of shape {shape}"
        raise UsageError(f"`{argument}` is {what}: give a column with one entry per response")
    for method in ("to_pylist", "tolist"):  # of pyarrow; of numpy and pandas
        if hasattr(column, method):
            return list(getattr(column, method)())
    return list(column)


def _of_list(entries: Sequence[object], argument: str, rows: Ints | None = None) -> tuple[Ints, Sequence[object]]:
    """Return codes and names of a list; `rows` says which response each entry belongs to."""
    try:
        distinct = set(entries)
        if set(map(type, distinct)) <= {str}:
            names: list[object] = list(distinct)
            position = {name: code for code, name in enumerate(names)}
            return np.fromiter(map(position.__getitem__, entries), dtype=np.int64, count=len(entries)), names
        # Python treats 1, 1.0 and True as equal; here True is a different name, so the type is part of the key.
        keys = list(zip(map(type, entries), entries, strict=True))
        place = {key: code for code, key in enumerate(dict.fromkeys(keys))}
        return np.fromiter(map(place.__getitem__, keys), dtype=np.int64, count=len(keys)), [name for _, name in place]
    except TypeError:
        at = next(index for index, entry in enumerate(entries) if not _is_hashable(entry))
        raise UsageError(
            f"`{argument}` holds {entries[at]!r} at position {at if rows is None else rows[at]}, which names nothing: "
            "use text or a number"
        ) from None


def _is_hashable(entry: object) -> bool:
    try:
        hash(entry)
    except TypeError:
        return False
    return True


def _flattened(entries: Sequence[object], argument: str) -> tuple[Ints, Sequence[object]]:
    """Return the single values of a list of values or of lists of values, and the row of each."""
    every = np.arange(len(entries))
    kinds = set(map(type, entries))
    if kinds <= {list, tuple}:
        lists = cast(Sequence[Sequence[object]], entries)
        sizes = np.fromiter(map(len, lists), dtype=np.int64, count=len(lists))
        return np.repeat(every, sizes), list(itertools.chain.from_iterable(lists))
    if not any(map(_holds_several, kinds)):
        return every, entries
    counts: list[int] = []
    flat: list[object] = []
    for row, entry in enumerate(entries):
        if isinstance(entry, Mapping):
            raise UsageError(f"`{argument}` holds a mapping at position {row}: give a value or a list of values")
        several = list(cast(Iterable[object], entry)) if _holds_several(type(entry)) else [entry]
        counts.append(len(several))
        flat += several
    return np.repeat(every, counts), flat


def _holds_several(kind: type) -> bool:
    # Looked up in the class: an Enum can be iterated, its members cannot.
    return not issubclass(kind, str | bytes) and any("__iter__" in vars(base) for base in kind.__mro__)


def _checked(column: NDArray[np.integer[Any]], least: int, n: int, what: str) -> Ints:
    """Return whole numbers from `least` to `n` − 1 as 64-bit integers; UsageError for other entries."""
    array = np.asarray(column)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise UsageError(f"{what} have type {array.dtype} and shape {array.shape}: give a column of integers")
    if array.size and (int(array.min()) < least or int(array.max()) >= n):
        wrong = int(array.min()) if int(array.min()) < least else int(array.max())
        raise UsageError(f"{what} hold {wrong}: use positions from 0 that are below {n}")
    return array.astype(np.int64, copy=False)


def _of_encoded(column: EncodedValues, argument: str) -> tuple[Ints, Ints, Sequence[object], int]:
    codes = _checked(column.codes, -1, len(column.names), f"the codes of `{argument}`")
    rows = _checked(column.rows, 0, column.n_rows, f"the rows of `{argument}`")
    if len(rows) != len(codes):
        raise UsageError(f"`{argument}` has {len(rows)} rows and {len(codes)} codes: give the row of every code")
    if (np.diff(rows) < 0).any():
        order = np.argsort(rows, kind="stable")
        rows, codes = rows[order], codes[order]
    return rows, codes, column.names, column.n_rows


def _unmasked(table: Any) -> Any:
    """Return an array of numbers with masked entries as NaN."""
    if isinstance(table, np.ma.MaskedArray):
        return np.ma.filled(table.astype(np.float64), np.nan)
    return table


def _floats(column: Any, argument: str) -> Floats:
    column = _unmasked(column)
    if isinstance(column, np.ndarray) and column.dtype.kind != "O":
        return np.asarray(column, dtype=np.float64)
    entries = _entries(column, argument)
    try:
        return np.asarray(entries, dtype=np.float64)
    except TypeError:  # pandas' NA, which numpy does not know
        return np.asarray([np.nan if is_missing(entry) else entry for entry in entries], dtype=np.float64)
