"""Columns of any kind as codes or as numbers: lists, tuples, numpy, pandas and Arrow columns.

There are three kinds of column. *Labels* name the group, cluster or stratum of each response; none may be missing.
*Values* are the answers; a response has none, one or several. *Numbers* may be missing.

Labels and values may be text, integers or anything hashable; results carry their text. Two of them are the same when
their text is, so that 1, 1.0 and "1" name one group; True is another. They are sorted as numbers when all are numbers,
else as text. None, NaN, pandas' NA and NaT, Arrow's null and a masked entry of numpy are missing.
"""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections.abc import Hashable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from typing import Any, TypeAlias, cast

from equivox.core.errors import UsageError
from equivox.core.lazy import NDArray, np, pa, pc
from equivox.core.text import folded, one_coding

Floats: TypeAlias = "NDArray[np.float64]"
Ints: TypeAlias = "NDArray[np.int64]"
Bools: TypeAlias = "NDArray[np.bool_]"

LabelColumn: TypeAlias = "Sequence[Hashable] | NDArray[Any] | EncodedLabels"
"""One label per response. pandas and pyarrow columns are accepted too, but have no types that can be named here."""
ValueColumn: TypeAlias = "Sequence[object] | NDArray[Any] | EncodedValues | EncodedLabels"
"""One value, or a list of values, per response."""
NumberColumn: TypeAlias = "Sequence[float | None] | NDArray[Any]"
"""One number per response, None or NaN if it is missing."""

_SIMILAR = {"ARMENIAN", "CHEROKEE", "CYRILLIC", "GREEK", "LATIN"}
"""Alphabets with letters that look the same, as Unicode names begin."""


@dataclass(frozen=True, eq=False)
class EncodedLabels:
    """One label per row: `names[codes[i]]` is the label of row i; a code of -1 means that it is missing."""

    codes: Ints
    names: Sequence[str]

    def __len__(self) -> int:
        return len(self.codes)

    @classmethod
    def of(cls, labels: Sequence[str | None]) -> EncodedLabels:
        """Encode a list of labels; names are sorted."""
        return cls.of_arrow(pa.array(labels, pa.string()))

    @classmethod
    def of_arrow(cls, column: pa.ChunkedArray | pa.Array) -> EncodedLabels:
        """Encode a column of texts; names are sorted, and names that do not occur are dropped."""
        codes, names = _sort_names(*_encode_arrow(column))
        codes.flags.writeable = False  # all metrics of a task share the columns of its samples
        return cls(codes, names)

    @classmethod
    def concatenated(cls, columns: Sequence[EncodedLabels]) -> EncodedLabels:
        """Concatenate several columns; they then share one list of names."""
        names = tuple(sorted({name for column in columns for name in column.names}))
        code_of = {name: code for code, name in enumerate(names)}
        lookups = [np.array([*map(code_of.get, column.names), -1], dtype=np.int64) for column in columns]
        return cls(np.concatenate([new[column.codes] for new, column in zip(lookups, columns, strict=True)]), names)

    def take(self, rows: NDArray[Any]) -> EncodedLabels:
        """Return the labels of some rows, selected by a mask or by row numbers."""
        return EncodedLabels(self.codes[rows], self.names)

    def texts(self) -> list[str]:
        """Return the label of each row; an empty text where it is missing."""
        names = [*self.names, ""]
        return [names[code] for code in self.codes]

    def counts(self, mask: Bools | None = None) -> dict[str, int]:
        """Count the rows with each label (in `mask`, if it is given); a label without a row counts zero."""
        codes = self.codes if mask is None else self.codes[mask]
        numbers = np.bincount(codes[codes >= 0], minlength=len(self.names))
        return dict(zip(self.names, numbers.tolist(), strict=True))


@dataclass(frozen=True, eq=False)
class EncodedValues:
    """Any number of values per row: value j belongs to row `rows[j]` and is `names[codes[j]]`; rows ascend."""

    rows: Ints
    codes: Ints
    names: Sequence[str]
    n_rows: int

    def __len__(self) -> int:
        return self.n_rows

    @classmethod
    def of(cls, values: Sequence[Iterable[str]]) -> EncodedValues:
        """Encode a list of lists of values; names come in the order of their first occurrence."""
        rows, entries = _flatten([*map(list, values)], "values")
        codes, names = _encode_list(entries, "values", rows)
        return cls(rows, codes, tuple(map(str, names)), len(values))

    @cached_property
    def has_value(self) -> Bools:
        """Whether each row has at least one value."""
        return np.bincount(self.rows, minlength=self.n_rows) > 0

    def take(self, mask: Bools) -> EncodedValues:
        """Return the values of the rows in `mask`; these rows are renumbered from 0."""
        rest = self.only(mask)
        return EncodedValues((np.cumsum(mask) - 1)[rest.rows], rest.codes, self.names, int(mask.sum()))

    def only(self, mask: Bools) -> EncodedValues:
        """Return the values of the rows in `mask`; the other rows stay, and have none."""
        selected = mask[self.rows]
        return EncodedValues(self.rows[selected], self.codes[selected], self.names, self.n_rows)

    def lists(self) -> list[list[str]]:
        """Return the values of each row as a list."""
        lists: list[list[str]] = [[] for _ in range(self.n_rows)]
        for row, code in zip(self.rows.tolist(), self.codes.tolist(), strict=True):
            lists[row].append(self.names[code])
        return lists

    def renamed(self, names: Sequence[str]) -> EncodedValues:
        """Return the values under other names; equal names within one row become one value."""
        code_of = {name: code for code, name in enumerate(dict.fromkeys(names))}
        codes = np.array([*map(code_of.get, names), -1], dtype=np.int64)[self.codes]
        # The first of equal values stays, so that the order of a row's values does not change.
        _, first = np.unique(self.rows * max(len(code_of), 1) + codes, return_index=True)
        first.sort()
        return EncodedValues(self.rows[first], codes[first], tuple(code_of), self.n_rows)


def cross_count(first: Ints, second: Ints, shape: tuple[int, int]) -> Ints:
    """Count how often each pair (first, second) occurs: an array of `shape`."""
    return np.bincount(first * shape[1] + second, minlength=shape[0] * shape[1]).astype(np.int64).reshape(shape)


def labels(column: LabelColumn, argument: str) -> EncodedLabels:
    """Return a column of labels as codes.

    UsageError for an object that is not a column, and for a label that is missing or not hashable.

    >>> labels(["m", "f", "f"], "groups")
    EncodedLabels(codes=array([1, 0, 0]), names=('f', 'm'))
    """
    codes, names = _sort_names(*_encode(column, argument))
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
    UsageError for an object that is not a column, and for a value that is not hashable.

    >>> values([["chess", "yoga"], None, "chess"], "values").rows.tolist()
    [0, 0, 2]
    """
    names: Sequence[object]
    if isinstance(column, EncodedValues):
        n_rows = column.n_rows
        codes, names = _encode(EncodedLabels(column.codes, column.names), argument)
        rows = _check_codes(column.rows, 0, n_rows, f"the rows of `{argument}`")
        if len(rows) != len(codes):
            raise UsageError(f"`{argument}` has {len(rows)} rows and {len(codes)} codes: give the row of every code")
        if (np.diff(rows) < 0).any():
            order = np.argsort(rows, kind="stable")
            rows, codes = rows[order], codes[order]
    elif isinstance(column, EncodedLabels) or _is_numeric(column):
        codes, names = _encode(column, argument)
        n_rows, rows = len(codes), np.arange(len(codes))
    else:
        entries = column.tolist() if isinstance(column, np.ndarray) else read_entries(column, argument)
        n_rows = len(entries)
        rows, flat = _flatten(entries, argument)
        codes, names = _encode_list(flat, argument, rows)
    codes, texts = _sort_names(codes, names)
    known = codes >= 0
    if not known.all():
        rows, codes = rows[known], codes[known]
    return EncodedValues(rows=rows, codes=codes, names=texts, n_rows=n_rows)


def read_entries(column: object, argument: str) -> Sequence[Any]:
    """Return a column as a list or tuple; UsageError if it is not a column."""
    if isinstance(column, list | tuple):
        return column
    shape = getattr(column, "shape", (0,))
    if isinstance(column, str | bytes | Mapping | Set) or len(shape) != 1 or not isinstance(column, Iterable):
        raise UsageError(f"`{argument}` is a {type(column).__name__}: give one column, a list with one entry per row")
    for method in ("to_pylist", "tolist"):  # of pyarrow; of numpy and pandas
        if hasattr(column, method):
            return list(getattr(column, method)())
    return list(column)


def convert_to_text(name: object) -> str:
    """Return the text of a label or a value; that of a whole number has no `.0`."""
    if isinstance(name, str):
        return str.__str__(name)
    if hasattr(name, "item"):  # of numpy
        name = name.item()
    return str(int(name)) if isinstance(name, float) and name.is_integer() else str(name)


def is_missing(value: object) -> bool:
    """Return whether a value is None, NaN, NaT or pandas' NA."""
    # Comparing pandas' NA gives NA, which is neither true nor false; pandas is not imported only for this.
    return value is None or type(value).__name__ == "NAType" or bool(value != value)


def _encode(column: Any, argument: str) -> tuple[Ints, Sequence[object]]:
    """Return codes and names of a column of single entries; a code of -1 is missing, as is a missing name."""
    if isinstance(column, EncodedLabels):
        return _check_codes(column.codes, -1, len(column.names), f"the codes of `{argument}`"), column.names
    if _is_numeric(column):
        distinct, codes = np.unique(column, return_inverse=True)
        return codes.astype(np.int64), distinct.tolist()
    return _encode_list(read_entries(column, argument), argument)


def _is_numeric(column: Any) -> bool:
    """Return whether a column is a numpy array of numbers or truth values, none of them masked."""
    plain = isinstance(column, np.ndarray) and not isinstance(column, np.ma.MaskedArray)
    return bool(plain and column.ndim == 1 and column.dtype.kind in "biuf")


def _encode_arrow(column: pa.ChunkedArray | pa.Array) -> tuple[Ints, list[str | None]]:
    encoded: Any = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    if isinstance(encoded, pa.ChunkedArray):
        encoded = pa.concat_arrays(encoded.unify_dictionaries().chunks or [pa.array([], encoded.type)])
    codes = pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False)
    return codes.astype(np.int64), encoded.dictionary.to_pylist()


def _encode_list(entries: Sequence[Any], argument: str, rows: Ints | None = None) -> tuple[Ints, Sequence[object]]:
    """Return codes and names of a list; `rows` says which response each entry belongs to."""
    try:
        return _encode_arrow(pa.array(entries, pa.string(), from_pandas=True))
    except (pa.ArrowException, TypeError, ValueError):
        pass  # not all are texts
    # Python treats 1, 1.0 and True as equal; here True is a different name, so the type is part of the key.
    code_of: dict[tuple[type, object], int] = {}
    codes = []
    for at, entry in enumerate(entries):
        try:
            codes.append(code_of.setdefault((type(entry), entry), len(code_of)))
        except TypeError:
            where = f"`{argument}` holds {entry!r} at position {at if rows is None else rows[at]}"
            raise UsageError(f"{where}, which names nothing: use text or a number") from None
    return np.array(codes, dtype=np.int64), [name for _, name in code_of]


def _flatten(entries: Sequence[Any], argument: str) -> tuple[Ints, Sequence[Any]]:
    """Return the row of each value, and the values, of a list of values or of lists of values."""
    every = np.arange(len(entries))
    # Looked up in the class: an Enum can be iterated, its members cannot.
    several = {
        kind: not issubclass(kind, str | bytes) and any("__iter__" in vars(base) for base in kind.__mro__)
        for kind in set(map(type, entries))
    }
    if not any(several.values()):
        return every, entries
    if any(issubclass(kind, Mapping) for kind in several):
        raise UsageError(f"`{argument}` holds a mapping: give a value or a list of values in each row")
    if not several.keys() <= {list, tuple}:
        entries = [list(entry) if several[type(entry)] else [entry] for entry in entries]
    sizes = np.fromiter(map(len, entries), dtype=np.int64, count=len(entries))
    return np.repeat(every, sizes), list(itertools.chain.from_iterable(entries))


def _sort_names(codes: Ints, names: Sequence[object]) -> tuple[Ints, tuple[str, ...]]:
    """Sort the names (numbers as numbers), merge equal ones and drop those that do not occur."""
    occurs = np.flatnonzero(np.bincount(codes[codes >= 0], minlength=len(names))).tolist()
    known = [(code, names[code]) for code in occurs if not is_missing(names[code])]
    texts = [convert_to_text(name) for _, name in known]
    distinct = sorted(set(texts))
    if all(isinstance(name, Real) for _, name in known):
        size = dict(zip(texts, (cast(float, name) for _, name in known), strict=True))
        distinct.sort(key=size.__getitem__)
    code_of = {name: code for code, name in enumerate(distinct)}
    new = np.full(len(names) + 1, -1, dtype=np.int64)  # a code of -1 selects the last entry
    new[[code for code, _ in known]] = [code_of[name] for name in texts]
    return new[codes], tuple(distinct)


def _check_codes(column: NDArray[Any], least: int, n: int, what: str) -> Ints:
    """Return whole numbers from `least` to `n` - 1 as 64-bit integers; UsageError for other entries."""
    array = np.asarray(column)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise UsageError(f"{what} have type {array.dtype} and shape {array.shape}: give a column of integers")
    if array.size and not least <= array.min() <= array.max() < n:
        raise UsageError(f"{what} hold {array.min()} to {array.max()}: use positions from 0 that are below {n}")
    return array.astype(np.int64, copy=False)


def refuse_alike(name: str, groups: Iterable[str], *, case: bool = True) -> None:
    """Raise UsageError if two groups differ in nothing but space, `.0`, how a sign is coded or, with `case`, case.

    The codings of a sign are one (`one_coding`), and invisible signs are none. A column of whole numbers becomes one of
    1.0 and 2.0 where a value is missing. With `case`, a word in letters of two alphabets is refused, too: an "a" of
    Cyrillic makes another group that nobody sees.
    """
    spelled: dict[str, str] = {}
    for group in dict.fromkeys(groups):  # a column of a million rows has few of them
        for word in re.findall(r"[^\W\d_]+", group) if case and not group.isascii() else ():
            scripts = {unicodedata.name(sign, "").partition(" ")[0] for sign in word} & _SIMILAR
            if len(scripts) > 1:
                both = " and ".join(map(str.capitalize, sorted(scripts)))
                raise UsageError(f"`{name}` holds {group!a}, a word with {both} letters: write it in one alphabet")
        shown = folded(group) if case else group
        shown = one_coding("".join(sign for sign in shown if unicodedata.category(sign) != "Cf"))
        # Each of several groups that are crossed has single spaces, and no `.0` after a whole number.
        key = re.sub(r"(?:^|(?<=× ))(-?[0-9]+)\.0+(?= ×|$)", r"\1", " ".join(shown.split()))
        other = spelled.setdefault(key, group)
        if other != group:
            seen = repr if len({re.sub(r"\.0|\s", "", text.casefold()) for text in (other, group)}) == 1 else ascii
            both = f"`{name}` holds {seen(other)} and {seen(group)}"
            raise UsageError(f"{both}, which differ in case, space, coding or `.0`: write them in one way")
