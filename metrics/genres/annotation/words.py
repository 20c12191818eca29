"""Packaged word lists; `stand_in` replaces a model or a lexicon if a user asks for it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from equivox.configs import load_config


@cache
def words() -> Mapping[str, Any]:
    """Return the word lists of `configs/tools/words.yaml`."""
    return dict(load_config("tools/words.yaml"))
