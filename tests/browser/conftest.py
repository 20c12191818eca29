"""Pages in a real browser: Debian's Chromium, or whichever one EQUIVOX_CHROMIUM names."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sample_runs import sample_run

NAMES = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """A headless browser; skipped, with the reason, where none is installed."""
    found = os.environ.get("EQUIVOX_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        pytest.skip(f"no browser: none of {', '.join(NAMES)} is installed and EQUIVOX_CHROMIUM names none")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        flags = ["--no-sandbox", "--disable-quic", "--autoplay-policy=no-user-gesture-required"]
        opened = driver.chromium.launch(executable_path=found, args=flags)
        yield opened
        opened.close()


@pytest.fixture
def browser(chromium: Any) -> Iterator[Any]:
    """The browser without pages; those of a test are closed after it, for they go on to be drawn otherwise."""
    yield chromium
    for context in list(chromium.contexts):
        context.close()


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Five small runs of several benchmarks on the embedded sample."""
    folder = tmp_path_factory.mktemp("runs")
    models = ("oracle", "biased", "planted,shift=0.3", "random,fail=0.4", "random,speaker=0.5")
    tasks = "vibe_gender,spoken_stereoset_orders:gender,genres_standin:ar,genres_standin:cs"
    return [sample_run(folder / str(number), model, tasks, 4_999) for number, model in enumerate(models)]
