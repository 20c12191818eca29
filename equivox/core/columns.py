"""Metrics of plain columns, one entry per row: for tables from elsewhere, and for `evaluate`.

Columns are lists, tuples, numpy arrays, pandas Series, pyarrow arrays. A missing entry is None, NaN, pandas' NA or NaT,
an Arrow null, or only white space. It counts in coverage, and never as a word or as zero; the texts "nan" and "None"
are words.
"""

from __future__ import annotations

import inspect
import math
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral, Number, Real
from typing import Any, Generic, Literal, ParamSpec

from equivox.core.coverage import Coverage
from equivox.core.errors import UsageError, nearest
from equivox.core.text import folded, one_coding

Kind = Literal["text", "number", "texts"]
"""The type of an entry: a word, a number, or several words (a single word becomes a list of one)."""

Column = Sequence[Any]
Given = ParamSpec("Given")

_LEAST = {"min_count": 1, "n_resamples": 1, "n_story_permutations": 1, "n_name_permutations": 1, "seed": 0}
"""Options that are whole numbers, with their smallest value."""

_SIMILAR = {"ARMENIAN", "CHEROKEE", "CYRILLIC", "GREEK", "LATIN"}
"""Alphabets with letters that look the same, as Unicode names begin."""

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

    @property
    def options(self) -> dict[str, Any]:
        """The options by name, with their defaults."""
        parameters = inspect.signature(self.measure).parameters
        return {name: parameter.default for name, parameter in parameters.items() if name not in self.kinds}

    def __call__(self, *unnamed: Given.args, **given: Given.kwargs) -> dict[str, Any]:
        """Compute the metric; UsageError for no rows and for columns that do not fit."""
        if unnamed:
            raise UsageError(f"{self.name} takes its columns by name: {', '.join(self.kinds)}")
        options = self.options
        every: Mapping[str, Any] = given
        columns = self.check({name: column for name, column in every.items() if name not in options})
        if not next(iter(columns.values())):
            raise UsageError(f"{self.name} was given no rows: give {', '.join(self.required)}")
        chosen = {name: value for name, value in every.items() if name in options}
        _check_options(chosen)
        measure: Callable[..., dict[str, Any]] = self.measure
        return measure(**columns, **chosen)

    def check(self, given: Mapping[str, Iterable[Any] | None]) -> dict[str, list[Any]]:
        """Return every column as a list of equal length with entries of its kind; missing entries are None."""
        if unknown := [name for name in given if name not in self.kinds and given[name] is not None]:
            raise UsageError(
                f"{self.name} has no column or option `{unknown[0]}`"
                f"{nearest(unknown[0], [*self.kinds, *self.options])}; it takes {', '.join(self.kinds)}"
            )
        columns = {name: _entries(name, column) for name, column in given.items() if column is not None}
        if absent := [name for name in self.required if name not in columns]:
            raise UsageError(f"`{absent[0]}` is missing: {self.name} needs {', '.join(self.required)}")
        lengths = {name: len(column) for name, column in columns.items()}
        n = next(iter(lengths.values()))
        if set(lengths.values()) != {n}:
            told = ", ".join(f"{name} {length}" for name, length in lengths.items())
            raise UsageError(f"columns have unequal lengths ({told}): give one entry per row, None where it is missing")
        return {
            name: [_entry(name, kind, value) for value in columns.get(name, [None] * n)]
            for name, kind in self.kinds.items()
        }


def _check_options(options: Mapping[str, Any]) -> None:
    for name, value in options.items():
        if value is None and name == "min_count":
            continue
        whole = isinstance(value, Integral) and not isinstance(value, bool)
        if name in _LEAST and not (whole and int(value) >= _LEAST[name]):
            raise UsageError(f"`{name}` is a whole number from {_LEAST[name]} up, got {value!r}")
        if name in _SHARES and not (isinstance(value, Real) and 0 <= float(value) <= 1):
            raise UsageError(f"`{name}` is a share between 0 and 1, such as 0.8, got {value!r}")


def _entries(name: str, column: Any) -> list[Any]:
    """Return a column as a list; UsageError for an object without entries or without an order."""
    table = hasattr(column, "columns") or hasattr(column, "column_names")
    if table or isinstance(column, str | bytes | Mapping | set | frozenset) or not isinstance(column, Iterable):
        raise UsageError(f"`{name}` is a {type(column).__name__}: give one column, a list with one entry per row")
    for method in ("to_pylist", "tolist"):  # of pyarrow; of numpy, pandas and torch
        if hasattr(column, method):
            return list(getattr(column, method)())
    return list(column)


def _plain(value: Any) -> Any:
    """Return numpy's and pyarrow's scalars and arrays as Python values, and every missing value as None."""
    for method in ("as_py", "tolist"):
        if hasattr(value, method):
            value = getattr(value, method)()
    if type(value).__name__ in {"NAType", "NaTType"} or (isinstance(value, Number) and value != value):
        return None
    return None if isinstance(value, str) and not value.strip() else value


def _word(name: str, value: Any) -> str:
    if isinstance(value, bytes | Iterable) and not isinstance(value, str):
        raise UsageError(f"`{name}` holds {value!r}, a {type(value).__name__}: give words")
    # pandas turns a column of whole numbers into floats when one is missing: 1.0 is the group 1.
    return str(int(value) if isinstance(value, float) and value.is_integer() else value)


def _entry(name: str, kind: Kind, given: Any) -> Any:
    value = _plain(given)
    if value is None:
        return None
    if kind == "number":
        try:
            number = float(value)
        except (TypeError, ValueError):
            raise UsageError(
                f"`{name}` holds {value!r}: give numbers such as 52000.5, None where one is missing"
            ) from None
        if math.isinf(number):
            raise UsageError(f"`{name}` holds {value!r}: give finite numbers, None where one is missing")
        return None if math.isnan(number) else number
    if kind == "text":
        return _word(name, value)
    # A text is one word, not a list of letters.
    several = sorted(value) if isinstance(value, set | frozenset) else value
    if not isinstance(several, list | tuple):
        return [_word(name, value)]
    words = [_word(name, word) for word in map(_plain, several) if word is not None]
    # An empty list means "no words"; a list of missing words means "unknown".
    return words if words or not several else None


def whole_or_none(name: str, column: Sequence[str | None]) -> list[str] | None:
    """Return an optional column, or None if it is missing in all rows; UsageError if only some rows have it."""
    absent = sum(entry is None for entry in column)
    if absent == len(column):
        return None
    if absent:
        raise UsageError(f"`{name}` is missing in {absent} of {len(column)} rows: give it for all rows or for none")
    return [entry for entry in column if entry is not None]


def whole(name: str, column: Sequence[str | None]) -> list[str]:
    """Return a required column; UsageError if a row lacks it."""
    found = whole_or_none(name, column)
    if found is None:
        raise UsageError(f"`{name}` is missing in every row")
    return found


def groups_of(name: str, column: Sequence[str | None]) -> list[str]:
    """Return a required column of groups.

    UsageError if a row lacks its group, if one is the text `nan`, and if two are told apart by case or space alone.
    """
    found = whole(name, column)
    groups = dict.fromkeys(found)
    for group in groups:
        if _folded(group) in ("nan", "<na>"):
            raise UsageError(f"`{name}` holds the text {group!r}, a missing entry: leave it empty, or name the group")
    refuse_alike(name, groups)
    return found


def refuse_alike(name: str, groups: Iterable[str], *, case: bool = True) -> None:
    """Raise UsageError if two groups differ in nothing but space, `.0`, how a sign is coded or, with `case`, case.

    The codings of a sign are one (`one_coding`), and invisible signs are none. A column of whole numbers becomes one of
    1.0 and 2.0 where a value is missing. With `case`, a word in letters of two alphabets is refused, too: an "a" of
    Cyrillic makes another group that nobody sees.
    """
    groups = list(groups)
    if case:
        _refuse_mixed(name, groups)
    spelled: dict[str, str] = {}
    for group in dict.fromkeys(groups):  # a column of a million rows has few of them
        other = spelled.setdefault(_folded(group) if case else _shown(group), group)
        if other != group:
            seen = repr if _whole(other.casefold()) == _whole(group.casefold()) else ascii
            raise UsageError(
                f"`{name}` holds {seen(other)} and {seen(group)}, which differ in case, space, coding "
                "or `.0`: write them alike"
            )


def _refuse_mixed(name: str, groups: Iterable[str]) -> None:
    """Raise UsageError for a word with letters of two similar alphabets."""
    for group in dict.fromkeys(groups):
        for word in () if group.isascii() else re.findall(r"[^\W\d_]+", group):
            scripts = {unicodedata.name(sign, "").partition(" ")[0] for sign in word} & _SIMILAR
            if len(scripts) > 1:
                both = " and ".join(map(str.capitalize, sorted(scripts)))
                raise UsageError(f"`{name}` holds {group!a}, a word with {both} letters: write it in one alphabet")


def _folded(group: str) -> str:
    """Return a group without what case and space make of it."""
    return _shown(folded(group))


def _shown(group: str) -> str:
    visible = "".join(sign for sign in group if unicodedata.category(sign) != "Cf")
    return _whole(one_coding(visible))


def _whole(group: str) -> str:
    """Return a group, or each of several that are crossed, with single spaces and without `.0` after a whole number."""
    return re.sub(r"(?:^|(?<=× ))(-?[0-9]+)\.0+(?= ×|$)", r"\1", " ".join(group.split()))


def row_coverage(used: Sequence[bool], groups: Sequence[str] | None = None) -> Coverage:
    """Count rows and usable rows, also by group if `groups` are given."""
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
