"""Values as JSON can hold them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any


def as_plain(value: Any) -> Any:
    """Return a value as plain JSON: NaN and infinity become None, tuples lists, at any depth.

    >>> as_plain({"value": float("nan"), "parts": ("a", 1.5)})
    {'value': None, 'parts': ['a', 1.5]}
    """
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, (tuple, list)):
        return [as_plain(entry) for entry in value]
    if isinstance(value, Mapping):
        return {key: as_plain(entry) for key, entry in value.items()}
    return value
