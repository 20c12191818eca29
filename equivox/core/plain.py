"""Values as JSON can hold them, and rows by a key."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any, TypeVar

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)


def as_plain(value: Any) -> Any:
    """Return a value as plain JSON: NaN and infinity become None, tuples lists, numpy's numbers Python's, at any depth.

    >>> as_plain({"value": float("nan"), "parts": ("a", 1.5)})
    {'value': None, 'parts': ['a', 1.5]}
    """
    from pydantic_core import to_jsonable_python

    return to_jsonable_python(value, inf_nan_mode="null", fallback=lambda number: as_plain(number.item()))


def split_by(rows: Iterable[T], key: Callable[[T], K]) -> dict[K, list[T]]:
    """Return rows by their key, in the order in which keys appear."""
    found: dict[K, list[T]] = {}
    for row in rows:
        found.setdefault(key(row), []).append(row)
    return found
