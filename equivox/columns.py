"""Metrics of plain columns, one entry per row: for tables that were not made here, and for `evaluate`.

A missing entry is None (for numbers also NaN). It counts in coverage, and never as a word or as zero.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from equivox.coverage import Coverage
from equivox.errors import RequestError, nearest

Kind = Literal["text", "number", "texts"]
"""What an entry is: a word, a number, or several words (one word alone is a list of one)."""

Column = Sequence[Any]


@dataclass(frozen=True, kw_only=True)
class ColumnMetric:
    """A metric of columns: which it takes, which may be left out, and the function of them.

    `measure` gets every column as a list, one that was left out as None's, and its options as keywords; it returns a
    flat dictionary of numbers, with reasons in words (or None) under names that end in `undefined`.
    """

    name: str
    measure: Callable[..., dict[str, Any]]
    required: Mapping[str, Kind]
    optional: Mapping[str, Kind] = field(default_factory=dict)
    description: str
    citation: str

    @property
    def kinds(self) -> dict[str, Kind]:
        """Every column with what it holds, those that must be given first."""
        return {**self.required, **self.optional}

    def __call__(self, **given: Any) -> dict[str, Any]:
        """Compute from columns and options; RequestError for no rows and for columns that do not fit."""
        import inspect

        options = set(inspect.signature(self.measure).parameters) - set(self.kinds)
        columns = self.check({name: column for name, column in given.items() if name not in options})
        if not next(iter(columns.values())):
            raise RequestError(f"{self.name} was given no rows: give {', '.join(self.required)}")
        return self.measure(**columns, **{name: value for name, value in given.items() if name in options})

    def check(self, given: Mapping[str, Iterable[Any] | None]) -> dict[str, list[Any]]:
        """Return every column as a list of equal length with entries of its kind, missing ones None."""
        if unknown := [name for name in given if name not in self.kinds and given[name] is not None]:
            raise RequestError(
                f"{self.name} has no column `{unknown[0]}`{nearest(unknown[0], self.kinds)}; "
                f"it takes {', '.join(self.kinds)}"
            )
        columns = {name: list(column) for name, column in given.items() if column is not None}
        if absent := [name for name in self.required if name not in columns]:
            raise RequestError(f"`{absent[0]}` is missing: {self.name} needs {', '.join(self.required)}")
        lengths = {name: len(column) for name, column in columns.items()}
        n = next(iter(lengths.values()))
        if set(lengths.values()) != {n}:
            told = ", ".join(f"{name} {length}" for name, length in lengths.items())
            raise RequestError(
                f"columns have unequal lengths ({told}): give one entry per row, None where it is missing"
            )
        return {
            name: [_entry(name, kind, value) for value in columns.get(name, [None] * n)]
            for name, kind in self.kinds.items()
        }


def _entry(name: str, kind: Kind, value: Any) -> Any:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if kind == "number":
        try:
            return float(value)
        except (TypeError, ValueError):
            raise RequestError(f"`{name}` holds {value!r}: give numbers, None where one is missing") from None
    if kind == "text":
        return str(value)
    # A word alone is meant as one, not as a list of its letters.
    return [value] if isinstance(value, str) else [str(word) for word in value]


def whole_or_none(name: str, column: Sequence[str | None]) -> list[str] | None:
    """Return a column that may be left out, None where it was; RequestError where only some rows have it."""
    absent = sum(entry is None for entry in column)
    if absent == len(column):
        return None
    if absent:
        raise RequestError(f"`{name}` is missing in {absent} of {len(column)} rows: give it for all rows or for none")
    return [entry for entry in column if entry is not None]


def whole(name: str, column: Sequence[str | None]) -> list[str]:
    """Return a column that every row must have."""
    found = whole_or_none(name, column)
    if found is None:
        raise RequestError(f"`{name}` is missing in every row")
    return found


def row_coverage(used: Sequence[bool], groups: Sequence[str] | None = None) -> Coverage:
    """Count rows and usable rows, by group where there are groups."""
    of = groups or ["all"] * len(used)
    names = sorted(set(of))
    n = sum(used)
    return Coverage(
        requested=len(used),
        generated=n,
        answered=n,
        parsed=n,
        used=n,
        requested_by_group={name: of.count(name) for name in names},
        used_by_group={name: sum(u for u, group in zip(used, of, strict=True) if group == name) for name in names},
    )
