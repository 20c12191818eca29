"""Fixtures of the tests of statistics."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="module", autouse=True)
def _no_collection() -> Iterator[None]:
    """Let nobody collect garbage: statsmodels does at every call, a second each in a process that ran other tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gc, "collect", lambda *generation: 0)
        yield
