"""Metrics of plain columns, one entry per row: for tables from elsewhere, and for `evaluate`.

Columns are lists, tuples, numpy arrays, pandas Series, pyarrow arrays. A missing entry is None, NaN, pandas' NA or NaT,
an Arrow null, or only white space. It counts in coverage, and never as a word or as zero; the texts "nan" and "None"
are words.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any, Generic, Literal, ParamSpec

from equivox.core.columns import convert_to_text, is_missing, read_entries, refuse_alike
from equivox.core.coverage import Coverage
from equivox.core.errors import UsageError, nearest
from equivox.core.text import folded

Kind = Literal["text", "number", "texts"]
"""The type of an entry: a word, a number, or several words (a single word becomes a list of one)."""

Column = Sequence[Any]
Given = ParamSpec("Given")

_LEAST = {"min_count": 1, "n_resamples": 1, "n_story_permutations": 1, "n_name_permutations": 1, "seed": 0}
"""Options that are whole numbers, with their smallest value."""

_SHARES = ("min_coverage", "confidence")


@dataclass(frozen=True, kw_only=True)
class ColumnMetric(Generic[Given]):
    """A metric of columns: a function of the columns and options that `measure` has.

    `measure` has them as keywords: first every column, required ones without a default, then the options with theirs.
    It receives every column as a list (a list of None for a missing column). It returns a flat dictionary of numbers;
    names that end in `undefined` hold a reason in words, or None. `required` and `optional` are the kinds of the
    columns.
    """

    name: str
    measure: Callable[Given, dict[str, Any]]
    required: Mapping[str, Kind]
    optional: Mapping[str, Kind] = field(default_factory=dict)
    description: str
    citation: str

    @property
    def kinds(self) -> dict[str, Kind]:
        """The kind of every column, required columns first."""
        return {**self.required, **self.optional}

    def __call__(self, *unnamed: Given.args, **given: Given.kwargs) -> dict[str, Any]:
        """Compute the metric; UsageError for no rows and for columns that do not fit."""
        if unnamed:
            raise UsageError(f"{self.name} takes its columns by name: {', '.join(self.kinds)}")
        every: Mapping[str, Any] = given
        options = {name: value for name, value in every.items() if name in self._options}
        columns = self.check({name: column for name, column in every.items() if name not in options})
        if not next(iter(columns.values())):
            raise UsageError(f"{self.name} was given no rows: give {', '.join(self.required)}")
        for name, value in options.items():
            whole = isinstance(value, Integral) and not isinstance(value, bool)
            absent = value is None and name == "min_count"
            if name in _LEAST and not absent and not (whole and int(value) >= _LEAST[name]):
                raise UsageError(f"`{name}` is a whole number from {_LEAST[name]} up, got {value!r}")
            if name in _SHARES and not (isinstance(value, Real) and 0 <= float(value) <= 1):
                raise UsageError(f"`{name}` is a share between 0 and 1, such as 0.8, got {value!r}")
        measure: Callable[..., dict[str, Any]] = self.measure
        return measure(**columns, **options)

    @property
    def _options(self) -> list[str]:
        return [name for name in inspect.signature(self.measure).parameters if name not in self.kinds]

    def check(self, given: Mapping[str, Iterable[Any] | None]) -> dict[str, list[Any]]:
        """Return every column as a list of equal length with entries of its kind; missing entries are None."""
        given = {name: column for name, column in given.items() if column is not None}
        if unknown := [name for name in given if name not in self.kinds]:
            like = nearest(unknown[0], [*self.kinds, *self._options])
            it = f"{self.name} has no column or option `{unknown[0]}`{like}"
            raise UsageError(f"{it}; it takes {', '.join(self.kinds)}")
        columns = {name: read_entries(column, name) for name, column in given.items()}
        if absent := [name for name in self.required if name not in columns]:
            raise UsageError(f"`{absent[0]}` is missing: {self.name} needs {', '.join(self.required)}")
        lengths = {name: len(column) for name, column in columns.items()}
        n = next(iter(lengths.values()))
        if set(lengths.values()) != {n}:
            got = ", ".join(f"{name} {length}" for name, length in lengths.items())
            raise UsageError(f"columns have unequal lengths ({got}): give one entry per row, None where it is missing")
        return {
            name: [_convert_entry(name, kind, value) for value in columns.get(name, [None] * n)]
            for name, kind in self.kinds.items()
        }


def _convert_entry(name: str, kind: Kind, given: Any) -> Any:
    """Return an entry as its kind says; None for whatever means that it is missing."""
    value = given
    for method in ("as_py", "tolist"):  # of pyarrow; of numpy
        value = getattr(value, method)() if hasattr(value, method) else value
    if is_missing(value) or (isinstance(value, str) and not value.strip()):
        return None
    if kind == "texts" and isinstance(value, list | tuple | set | frozenset):
        several = sorted(value) if isinstance(value, set | frozenset) else value
        words = [word for word in (_convert_entry(name, "text", word) for word in several) if word is not None]
        return words if words or not several else None  # an empty list says "no words", one of missing words "unknown"
    if kind == "number":
        try:
            number = float(value)
        except (TypeError, ValueError):
            number = math.inf
        if math.isinf(number):
            raise UsageError(f"`{name}` holds {value!r}: give finite numbers such as 52000.5, None for a missing one")
        return None if math.isnan(number) else number
    if isinstance(value, bytes | Iterable) and not isinstance(value, str):
        raise UsageError(f"`{name}` holds {value!r}, a {type(value).__name__}: give words")
    return convert_to_text(value) if kind == "text" else [convert_to_text(value)]


def whole_or_none(name: str, column: Sequence[str | None]) -> list[str] | None:
    """Return an optional column, or None if it is missing in all rows; UsageError if only some rows have it."""
    entries = [entry for entry in column if entry is not None]
    if entries and (absent := len(column) - len(entries)):
        raise UsageError(f"`{name}` is missing in {absent} of {len(column)} rows: give it for all rows or for none")
    return entries or None


def whole(name: str, column: Sequence[str | None]) -> list[str]:
    """Return a required column; UsageError if a row lacks it."""
    entries = whole_or_none(name, column)
    if entries is None:
        raise UsageError(f"`{name}` is missing in every row")
    return entries


def groups_of(name: str, column: Sequence[str | None]) -> list[str]:
    """Return a required column of groups.

    UsageError if a row lacks its group, if one is the text `nan`, and if two differ in case or space alone.
    """
    entries = whole(name, column)
    for group in dict.fromkeys(entries):
        if folded(group).strip() in ("nan", "<na>"):
            raise UsageError(f"`{name}` holds the text {group!r}, a missing entry: leave it empty, or name the group")
    refuse_alike(name, entries)
    return entries


def row_coverage(used: Sequence[bool], groups: Sequence[str] | None = None) -> Coverage:
    """Count rows and usable rows, also by group if `groups` are given."""
    rows = [*zip(used, groups or ["all"] * len(used), strict=True)]
    names, n = sorted({group for _, group in rows}), sum(used)
    return Coverage(
        requested=len(used),
        generated=n,
        answered=n,
        parsed=n,
        used=n,
        requested_by_group={name: sum(group == name for _, group in rows) for name in names},
        used_by_group={name: sum(has for has, group in rows if group == name) for name in names},
    )
