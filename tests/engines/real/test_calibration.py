"""Calibration on real engines: an intact chain passes, and a chain that is broken on purpose is told by its place."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("vllm", reason="the engine tests need vLLM: make test-engine")


import calibrating
from calibrating import Open, Swapped, measured, planned, settings, vllm_of

from equivox.annotate.rules import RulesAnnotator
from equivox.calibration.checking import calibrate, train
from equivox.calibration.direct import DirectEngine
from equivox.calibration.recipe import Effort, Recipe
from equivox.calibration.verdicts import Line
from equivox.core import media
from equivox.core.annotation import Annotation, Job
from equivox.engines.vllm import VLLMEngine
from equivox.run.manifest import read_manifest
from equivox.tasks.registry import resolve_tasks

TASK = resolve_tasks("vibe_gender:candidate")[0]
cache, taught, vllm, intact = calibrating.cache, calibrating.taught, calibrating.vllm, calibrating.intact


@pytest.mark.long
def test_a_model_of_little_training_passes_an_intact_chain(tmp_path: Path) -> None:
    """The chain is compared with the model's own probabilities, so the model need not be taught well."""
    asked = replace(
        settings(TASK, tmp_path, limit=12, drawn=96, effort=Effort(hearing=5, basics=20, answering=0)),
        scheme="transformers",
        arguments={"device": "cpu"},
    )
    (model,) = train(asked)
    assert train(asked) == [model]
    assert (model.folder / "model.safetensors").stat().st_size < 3_000_000
    (line,) = calibrate(asked, [model])
    found = {finding.place: finding.passed for finding in line.findings}
    assert found["arrival"] is True
    assert found["answering"] is True
    assert line.first_fault is None or line.first_fault.place in ("annotation", "scoring", "teaching")
    about = read_manifest(tmp_path / "planted-60" / "measured")["calibration"]
    assert about["recipe_sha256"] == model.digest
    assert about["checkpoint"].startswith("files-")


@pytest.mark.long
def test_an_intact_chain_passes(intact: tuple[Path, Line]) -> None:
    line = intact[1]
    assert {finding.place: finding.passed for finding in line.findings if finding.place != "teaching"} == {
        "arrival": True,
        "hearing": True,
        "answering": True,
        "annotation": True,
        "scoring": True,
    }
    assert line.own.value > 40


def at_half_the_rate(decoded: Any, _: str) -> Any:
    return decoded[::2]


def at_half_the_rate_and_as_long(decoded: Any, _: str) -> Any:
    return np.tile(decoded[::2], 3)[: len(decoded)]


def truncated(decoded: Any, _: str) -> Any:
    return decoded[: len(decoded) // 3]


def silent(decoded: Any, _: str) -> Any:
    return np.zeros_like(decoded)


@pytest.mark.long
@pytest.mark.parametrize(
    ("change", "place", "says"),
    [
        (at_half_the_rate, "arrival", "tokens of audio where"),
        (truncated, "arrival", "tokens of audio where"),
        (at_half_the_rate_and_as_long, "hearing", "% of what the model hears"),
        (silent, "hearing", "% of what the model hears"),
        ("swapped", "hearing", "-"),
    ],
)
def test_a_broken_way_of_the_sound_is_told(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    intact: tuple[Path, Line],
    taught: Recipe,
    vllm: VLLMEngine,
    change: Any,
    place: str,
    says: str,
) -> None:
    decode = media.decode_audio
    if change == "swapped":
        change = Swapped(list(planned(TASK, vllm).requests()), decode)

    def broken(data: bytes, *, name: str, sampling_rate: int = 16_000) -> Any:
        return change(decode(data, name=name, sampling_rate=sampling_rate), name)

    monkeypatch.setattr(media, "decode_audio", broken)
    line = measured(settings(TASK, tmp_path), intact[0], taught, Open(vllm))
    fault = line.first_fault
    assert fault.place == place, line.findings
    assert says in fault.says
    assert not line.passed


@pytest.mark.long
def test_a_dropped_adapter_is_told(tmp_path: Path, intact: tuple[Path, Line], taught: Recipe) -> None:
    """The projector between encoder and language model is lost, as where an adapter was not loaded."""
    from safetensors.torch import load_file, save_file

    broken = shutil.copytree(taught.folder, tmp_path / "broken")
    weights = load_file(broken / "model.safetensors")
    for name in [name for name in weights if name.startswith("multi_modal_projector.")]:
        weights[name] = weights[name] * 0
    save_file(weights, broken / "model.safetensors", metadata={"format": "pt"})
    with closing(vllm_of(broken)) as engine:
        line = measured(settings(TASK, tmp_path / "runs"), intact[0], taught, engine)
    assert line.first_fault.place == "hearing", line.findings


@pytest.mark.long
@pytest.mark.parametrize(
    ("change", "place", "says"),
    [
        (lambda own: replace(own, sampling=replace(own.sampling, temperature=0.0)), "answering", "likelier"),
        (lambda own: replace(own, text=own.text.replace(" HR ", " ")), "arrival", "tokens of prompt where"),
    ],
    ids=["greedy answers", "another prompt"],
)
def test_another_request_is_told(
    tmp_path: Path, intact: tuple[Path, Line], taught: Recipe, vllm: VLLMEngine, change: Any, place: str, says: str
) -> None:
    engine = Open(vllm)
    engine.generate = lambda requests: vllm.generate(list(map(change, requests)))  # type: ignore[method-assign]
    line = measured(settings(TASK, tmp_path), intact[0], taught, engine)
    assert line.first_fault.place == place, line.findings
    assert says in line.first_fault.says


@pytest.mark.long
def test_an_annotator_that_misreads_one_group_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, intact: tuple[Path, Line], taught: Recipe, vllm: VLLMEngine
) -> None:
    groups = {request.key: row["group"] for row, request in planned(TASK, vllm).described()}
    right = RulesAnnotator.annotate

    def wrong(self: RulesAnnotator, jobs: Iterable[Job]) -> Iterator[Annotation]:
        for found in right(self, jobs):
            female = groups.get(found.response_key) == "female"
            yield replace(
                found,
                values=[
                    value._replace(value="junior novice") if female and value.attribute == "competency" else value
                    for value in found.values
                ],
            )

    monkeypatch.setattr(RulesAnnotator, "annotate", wrong)
    line = measured(settings(TASK, tmp_path), intact[0], taught, Open(vllm))
    assert line.first_fault.place == "annotation", line.findings
    assert line.first_fault.says.startswith("of female, competency")


@pytest.mark.long
def test_direct_likelihoods_are_those_of_the_answers_that_were_drawn(taught: Recipe) -> None:
    """The mean log-probability of drawn answers is minus their entropy, so two draws agree."""
    direct = DirectEngine(taught.folder)
    requests = list(planned(TASK, direct, limit=24).requests())
    both = []
    for seed in (1, 2):
        asked = [replace(request, seed=seed) for request in requests for _ in range(8)]
        answers = list(direct.generate(asked))
        texts = [(r, a.text or "", a.finish_reason == "stop") for r, a in zip(asked, answers, strict=True)]
        both.append(np.array(direct.log_likelihoods(texts)))
    error = np.sqrt(sum(found.var() / len(found) for found in both))
    assert abs(both[0].mean() - both[1].mean()) < 4 * error
    assert all((found < 0).all() for found in both)
