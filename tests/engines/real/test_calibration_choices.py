"""Calibration of a choice among options: an intact chain passes, and what is specific to a choice is told."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("vllm", reason="the engine tests need vLLM: make test-engine")

import calibrating
from calibrating import Open, Swapped, measured, planned, settings

from equivox.calibration.recipe import Recipe
from equivox.calibration.verdicts import Line
from equivox.core import media
from equivox.core.requests import Request
from equivox.engines.vllm import VLLMEngine
from equivox.metrics.rules import Rules
from equivox.metrics.spoken_stereoset.annotation import scheme
from equivox.tasks.registry import resolve_tasks

pytestmark = pytest.mark.long
TASK = resolve_tasks("spoken_stereoset:gender")[0]
cache, taught, vllm, intact = calibrating.cache, calibrating.taught, calibrating.vllm, calibrating.intact


def test_an_intact_chain_passes(intact: tuple[Path, Line]) -> None:
    line = intact[1]
    assert line.passed, line.findings
    assert {finding.place for finding in line.findings if finding.passed} == {
        "arrival", "hearing", "answering", "annotation", "scoring", "teaching",
    }  # fmt: skip
    assert (line.planted, line.own.value, line.measured.value) == pytest.approx((80, 80, 80), abs=10)


def test_swapped_voices_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, intact: tuple[Path, Line], taught: Recipe, vllm: VLLMEngine
) -> None:
    decode = media.decode_audio
    swapped = Swapped(list(planned(TASK, vllm).requests()), decode)
    monkeypatch.setattr(media, "decode_audio", lambda data, *, name, **rate: swapped(decode(data, name=name), name))
    line = measured(settings(TASK, tmp_path), intact[0], taught, Open(vllm))
    assert line.first_fault.place == "hearing", line.findings
    assert line.measured.value < 40


def test_options_in_another_order_than_the_plan_has_are_told(
    tmp_path: Path, intact: tuple[Path, Line], taught: Recipe, vllm: VLLMEngine
) -> None:
    def turned(request: Request) -> Request:
        options = [request.labels.metadata[f"option_{letter}"] for letter in "abc"]
        first, *_, last = options
        text = request.text.replace(f"A. {first}", "A. \0").replace(f"C. {last}", f"C. {first}").replace("\0", last)
        assert text != request.text
        return replace(request, text=text)

    engine = Open(vllm)

    def generate(requests: Sequence[Request]) -> Iterator[Any]:
        return vllm.generate([turned(request) for request in requests])

    engine.generate = generate  # type: ignore[method-assign]
    line = measured(settings(TASK, tmp_path), intact[0], taught, engine)
    assert line.first_fault.place in ("hearing", "answering"), line.findings


def test_a_letter_that_is_read_as_another_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, intact: tuple[Path, Line], taught: Recipe, vllm: VLLMEngine
) -> None:
    right = scheme.READER

    def wrong(segments: Any) -> Iterator[Any]:
        for values in right.read(segments):
            yield values and [replace_letter(value) for value in values]

    def replace_letter(value: Any) -> Any:
        return value._replace(value="A") if value.value == "C" else value

    monkeypatch.setattr(scheme, "READER", Rules(right.described, wrong))
    line = measured(settings(TASK, tmp_path), intact[0], taught, Open(vllm))
    assert line.first_fault.place == "annotation", line.findings
