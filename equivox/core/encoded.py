"""Encoded columns: each distinct text is stored once, each entry is an integer."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from equivox.core.lazy import NDArray, np, pa, pc

MISSING = -1
"""The code of a missing entry."""


@dataclass(frozen=True, eq=False)
class EncodedLabels:
    """One label per row: `names[codes[i]]` is the label of row i; a code of -1 means that it is missing."""

    codes: NDArray[np.int64]
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
        if isinstance(column, pa.ChunkedArray):
            column = column.combine_chunks()
        if isinstance(column, pa.ChunkedArray):  # an empty column stays chunked
            column = pa.array([], column.type)
        encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
        codes = pc.fill_null(encoded.indices, MISSING).to_numpy(zero_copy_only=False).astype(np.int64)
        listed = encoded.dictionary.to_pylist()
        met = np.zeros(len(listed) + 1, dtype=bool)
        met[codes] = True
        used = sorted({listed[number] for number in np.flatnonzero(met[:-1])})
        place = {name: number for number, name in enumerate(used)}
        lookup = np.array([*(place.get(name, MISSING) for name in listed), MISSING], dtype=np.int64)
        codes = lookup[codes]
        codes.flags.writeable = False  # all metrics of a task share the columns of its samples
        return cls(codes, tuple(used))

    @classmethod
    def concatenated(cls, columns: Sequence[EncodedLabels]) -> EncodedLabels:
        """Concatenate several columns; they then share one list of names."""
        names = tuple(sorted({name for column in columns for name in column.names}))
        place = {name: number for number, name in enumerate(names)}
        codes = []
        for column in columns:
            lookup = np.array([*(place[name] for name in column.names), MISSING], dtype=np.int64)
            codes.append(lookup[column.codes])
        return cls(np.concatenate(codes), names)

    def take(self, rows: NDArray[Any]) -> EncodedLabels:
        """Return the labels of some rows, selected by a mask or by row numbers."""
        return EncodedLabels(self.codes[rows], self.names)

    def texts(self) -> list[str]:
        """Return the label of each row; an empty text where it is missing."""
        names = [*self.names, ""]
        return [names[code] for code in self.codes]

    def counts(self, mask: NDArray[np.bool_] | None = None) -> dict[str, int]:
        """Count the rows with each label (in `mask`, if it is given); a label without a row counts zero."""
        codes = self.codes if mask is None else self.codes[mask]
        found = np.bincount(codes[codes >= 0], minlength=len(self.names))
        return {name: int(n) for name, n in zip(self.names, found, strict=True)}


@dataclass(frozen=True, eq=False)
class EncodedValues:
    """Any number of values per row: value j belongs to row `rows[j]` and is `names[codes[j]]`; rows ascend."""

    rows: NDArray[np.int64]
    codes: NDArray[np.int64]
    names: Sequence[str]
    n_rows: int

    def __len__(self) -> int:
        return self.n_rows

    @classmethod
    def of(cls, values: Sequence[Iterable[str]]) -> EncodedValues:
        """Encode a list of lists of values; names come in the order of their first occurrence."""
        place: dict[Hashable, int] = {}
        rows: list[int] = []
        codes: list[int] = []
        for number, given in enumerate(values):
            for value in given:
                rows.append(number)
                codes.append(place.setdefault(value, len(place)))
        names = tuple(str(name) for name in place)
        return cls(np.array(rows, dtype=np.int64), np.array(codes, dtype=np.int64), names, len(values))

    @cached_property
    def has_value(self) -> NDArray[np.bool_]:
        """Whether each row has at least one value."""
        found = np.zeros(self.n_rows, dtype=bool)
        found[self.rows] = True
        return found

    def take(self, mask: NDArray[np.bool_]) -> EncodedValues:
        """Return the values of the rows in `mask`; these rows are renumbered from 0."""
        kept = mask[self.rows]
        number = np.cumsum(mask) - 1
        return EncodedValues(number[self.rows[kept]], self.codes[kept], self.names, int(mask.sum()))

    def only(self, mask: NDArray[np.bool_]) -> EncodedValues:
        """Return the values of the rows in `mask`; the other rows stay, and have none."""
        kept = mask[self.rows]
        return EncodedValues(self.rows[kept], self.codes[kept], self.names, self.n_rows)

    def shifted(self, start: int, n_rows: int) -> EncodedValues:
        """Return the values with row numbers moved up by `start`, as part of a column of `n_rows` rows."""
        return EncodedValues(self.rows + start, self.codes, self.names, n_rows)

    def lists(self) -> list[list[str]]:
        """Return the values of each row as a list."""
        found: list[list[str]] = [[] for _ in range(self.n_rows)]
        for row, code in zip(self.rows.tolist(), self.codes.tolist(), strict=True):
            found[row].append(self.names[code])
        return found

    def renamed(self, names: Sequence[str]) -> EncodedValues:
        """Return the values under other names; equal names within one row become one value."""
        place: dict[str, int] = {}
        lookup = np.array([place.setdefault(name, len(place)) for name in names], dtype=np.int64)
        codes = lookup[self.codes] if len(self.codes) else self.codes
        # The first of equal values is kept, so that the order of a row's values does not change.
        _, first = np.unique(self.rows * max(len(place), 1) + codes, return_index=True)
        first.sort()
        return EncodedValues(self.rows[first], codes[first], tuple(place), self.n_rows)


def cross_count(first: NDArray[np.int64], second: NDArray[np.int64], shape: tuple[int, int]) -> NDArray[np.int64]:
    """Count how often each pair (first, second) occurs: an array of `shape`."""
    flat = np.bincount(first * shape[1] + second, minlength=shape[0] * shape[1])
    return flat.astype(np.int64).reshape(shape)
