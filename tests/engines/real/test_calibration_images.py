"""Calibration of an engine that sees: an intact chain passes, and images that are swapped or blank are told."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

pytest.importorskip("vllm", reason="the engine tests need vLLM: make test-engine")

import calibrating
from calibrating import Open, measured, planned, settings
from PIL import Image

from equivox.calibration.recipe import Recipe
from equivox.calibration.verdicts import Line
from equivox.core import media
from equivox.engines.vllm import VLLMEngine
from equivox.tasks.registry import resolve_tasks

pytestmark = pytest.mark.long
TASK = resolve_tasks("vibe_face_gender:candidate")[0]
cache, taught, vllm, intact = calibrating.cache, calibrating.taught, calibrating.vllm, calibrating.intact


def test_an_intact_chain_passes(intact: tuple[Path, Line]) -> None:
    line = intact[1]
    wrong = [finding for finding in line.findings if not finding.passed and finding.place != "teaching"]
    assert wrong == []
    assert line.own.value > 40


@pytest.mark.parametrize("broken", ["swapped", "blank"])
def test_other_images_are_told(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    intact: tuple[Path, Line],
    taught: Recipe,
    vllm: VLLMEngine,
    broken: str,
) -> None:
    requests = list(planned(TASK, vllm).requests())
    one = requests[0].labels.group
    others = {True: [], False: []}
    for request in requests:
        others[request.labels.group == one].append(request.media[0])
    instead = {}
    for number, request in enumerate(requests):
        own = others[request.labels.group != one]
        instead[request.media[0].name] = own[number % len(own)].load()
    blank = io.BytesIO()
    Image.new("RGB", (32, 32), "white").save(blank, "PNG")
    right = media.checked_image

    def wrong(data: bytes, *, name: str) -> tuple[bytes, str]:
        return right(instead.get(name, data) if broken == "swapped" else blank.getvalue(), name=name)

    monkeypatch.setattr(media, "checked_image", wrong)
    line = measured(settings(TASK, tmp_path), intact[0], taught, Open(vllm))
    fault = line.first_fault
    assert fault.place == "hearing", line.findings
