"""Hashes of plain content that are equal in every process and on every machine."""

from __future__ import annotations

import hashlib
import json
from typing import Any

_CANONICAL = json.JSONEncoder(sort_keys=True, ensure_ascii=False, separators=(",", ":"))

KEY_LENGTH = 32
"""Number of hexadecimal digits in the key of a response or an annotation (128 bits)."""


def digest_of_texts(*texts: str) -> str:
    """Return the SHA-256 hex digest of some texts; faster than `digest`, for millions of calls.

    >>> digest_of_texts("ab", "c") == digest_of_texts("a", "bc")
    False
    """
    hashed = hashlib.sha256()
    for text in texts:
        encoded = text.encode()
        hashed.update(b"%d:" % len(encoded))
        hashed.update(encoded)
    return hashed.hexdigest()


def digest(content: Any) -> str:
    """Return the SHA-256 hex digest of `content` in canonical JSON.

    >>> digest({"b": 1, "a": 2}) == digest({"a": 2, "b": 1})
    True
    """
    return hashlib.sha256(_CANONICAL.encode(content).encode()).hexdigest()


def seed_of(*parts: Any) -> int:
    """Return a whole number from 0 to 2^64 - 1, for a generator of random numbers, that `parts` determine as JSON.

    >>> seed_of("paired", 1) == int(digest(["paired", 1])[:16], 16)
    True
    """
    return int(digest(list(parts))[:16], 16)


def hashed_number(*parts: object) -> int:
    """Return a whole number from 0 to 2^64 - 1 that the texts of `parts` determine.

    >>> hashed_number(0, "speaker", "hobby") == hashed_number("0", "speaker", "hobby") < 2**64
    True
    """
    return int.from_bytes(hashlib.sha256("\x1f".join(map(str, parts)).encode()).digest()[:8])
