"""Columns of tables whose cells are objects and lists: each part is a column, named by its path."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from equivox.core.errors import UsageError, nearest
from equivox.core.files import shortened
from equivox.dataset_builders.plain_tables import Columns
from equivox.dataset_builders.table_limits import refuse_large

_MOST_PATHS = 40
"""The most names that a message lists."""

_MOST_PARTS = 4
"""The most entries of a list that are told apart: the first messages of a conversation."""

_FIRST_ENTRIES, _DEEPEST = 1_000, 50
"""The objects and lists of a column that are looked at to know its parts, and how far down."""


def renamed(columns: Columns, names: Mapping[str, str], *, where: str, option: str) -> Columns:
    """Return the columns with some also under other names: ours → theirs; UsageError for one that is not there.

    A part of an entry that is an object or a list is named by its path, such as `response.body.choices.0.message`, or
    `messages.-1.content` from the end of a list; an entry without this part is missing.
    """
    found: Columns = {}
    for ours, theirs in names.items():
        column = columns[theirs] if theirs in columns else _parts(columns, theirs)
        if column is None:
            raise UsageError(
                f"`{option.format(ours)}` names the column {theirs!r}, which {where} lacks{nearest(theirs, columns)}; "
                f"it has {names_of(columns)}"
            )
        found[ours] = column
    kept = {name: column for name, column in columns.items() if name not in names.values() or name in names}
    return {**kept, **found}


def flattened(columns: Columns) -> Columns:
    """Return the columns, with one for each part of those that hold objects or lists, named by its path.

    The parts are those of the first objects and lists of the column; a row that lacks one, or has an object or a list
    in its place, has None there. What is true or false is a word. UsageError for more parts than a table has columns.

    >>> flattened({"id": [1, 2], "messages": [[], [{"role": "user", "content": "Hello"}]]})
    {'id': [1, 2], 'messages.0.role': [None, 'user'], 'messages.0.content': [None, 'Hello']}
    """
    found: Columns = {}
    for name, column in columns.items():
        paths = [path for path in _paths_of(name, column) if path != name]
        refuse_large(f"what {shortened(name)!r} holds", len(paths), len(column))
        if not paths or any(_plain(entry) is not None for entry in column):
            found[name] = [_plain(entry) for entry in column]
        nothing = [None] * len(column)
        found |= {path: [_plain(part) for part in _parts(columns, path) or nothing] for path in paths}
    return found


def _plain(entry: Any) -> Any:
    if isinstance(entry, bool):
        return str(entry).lower()
    return None if isinstance(entry, Mapping | list) else entry


def names_of(columns: Columns) -> str:
    """Return the names of the columns in words; of a column of objects or lists, its parts' paths.

    >>> names_of({"id": [1], "response": [{"choices": [{"text": "yes"}], "model": "m"}]})
    'id, response.choices.0.text, response.model'
    """
    found = [path for name, column in columns.items() for path in _paths_of(name, column) or [name]]
    return ", ".join(found[:_MOST_PATHS]) + ", …" * (len(found) > _MOST_PATHS)


def _paths_of(name: str, column: Iterable[Any]) -> dict[str, None]:
    """Return the paths of the parts of a column's first objects and lists; empty where it has none."""
    inner = itertools.islice((entry for entry in column if isinstance(entry, Mapping | list)), _FIRST_ENTRIES)
    return dict.fromkeys(path for entry in inner for path in _paths(name, entry))


def _paths(name: str, entry: Any, depth: int = 0) -> list[str]:
    """Return the path of an entry, or those of its parts, at any depth; of a list, of its first parts."""
    inner: Iterable[tuple[Any, Any]] = entry.items() if isinstance(entry, Mapping) else ()
    if isinstance(entry, list):
        inner = enumerate(entry[:_MOST_PARTS])
    if depth == _DEEPEST:
        return [name]
    return [path for part, own in inner for path in _paths(f"{name}.{part}", own, depth + 1)] or [name]


def _parts(columns: Columns, path: str) -> list[Any] | None:
    """Return the part of every entry that a path names, None where an entry lacks it; None if none has it."""
    for name, column in columns.items():
        if path.startswith(f"{name}."):
            steps = path.removeprefix(f"{name}.").split(".")
            found = [_part(entry, steps) for entry in column]
            if any(entry is not None for entry in found):
                return found
    return None


def _part(entry: Any, steps: Sequence[str]) -> Any:
    for step in steps:
        if isinstance(entry, Mapping):
            entry = entry.get(step)
        elif isinstance(entry, list) and re.fullmatch(r"-?\d+", step) and -len(entry) <= int(step) < len(entry):
            entry = entry[int(step)]
        else:
            return None
    return entry
