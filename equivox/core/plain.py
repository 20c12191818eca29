"""Values as JSON can hold them, and rows by a key."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping
from numbers import Integral, Real
from typing import Any, TypeVar

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)


def as_plain(value: Any) -> Any:
    """Return a value as plain JSON: NaN and infinity become None, tuples lists, numpy's numbers Python's, at any depth.

    >>> as_plain({"value": float("nan"), "parts": ("a", 1.5)})
    {'value': None, 'parts': ['a', 1.5]}
    """
    if value is None or isinstance(value, (str, int)):
        return value
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, (tuple, list)):
        return [as_plain(entry) for entry in value]
    if isinstance(value, Mapping):
        return {key: as_plain(entry) for key, entry in value.items()}
    return value


def split_by(rows: Iterable[T], key: Callable[[T], K]) -> dict[K, list[T]]:
    """Return rows by their key, in the order in which keys appear."""
    found: dict[K, list[T]] = {}
    for row in rows:
        found.setdefault(key(row), []).append(row)
    return found
