"""What every evaluation inside inspect_ai needs: a cache of its own, and its leavings taken away."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def evaluation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Decode media into a folder of the test, and collect what inspect_ai leaves to the garbage collector."""
    for name in ("XDG_CACHE_HOME", "EQUIVOX_CACHE"):
        monkeypatch.setenv(name, str(tmp_path / "cache"))
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        gc.collect()
