"""One speech and one text calibration on vLLM, with models of little training: the chain is compared with the model's
own probabilities, so the model need not be taught well. `make calibration` runs the others.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("vllm", reason="the engine tests need vLLM: make test-engine")

from calibrating import cache_of_models, settings

from equivox.calibration.checking import calibrate, train
from equivox.calibration.recipe import Effort
from equivox.tasks.registry import resolve_tasks

LITTLE = Effort(hearing=60, basics=40, answering=0)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path) -> Iterator[None]:
    yield from cache_of_models(tmp_path / "cache")


@pytest.mark.parametrize(
    ("name", "limit", "places"),
    [
        ("vibe_gender:candidate", 32, {"arrival", "hearing", "answering"}),
        ("badf_single:gender", 16, {"arrival", "answering"}),
    ],
)
def test_an_intact_chain_passes(tmp_path: Path, name: str, limit: int, places: set[str]) -> None:
    (task,) = resolve_tasks(name)
    asked = settings(task, tmp_path / "runs", limit=limit, effort=LITTLE, drawn=2 * limit)
    (line,) = calibrate(asked, train(asked))
    found = {finding.place: finding.passed for finding in line.findings}
    assert {place for place in places if found[place]} == places, line.findings
    assert False not in [found[place] for place in ("arrival", "hearing", "answering", "annotation") if place in found]
