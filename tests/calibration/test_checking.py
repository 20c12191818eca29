"""Calibration: an engine that fails before anything can be compared, and what is compared of prompts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest
from made_requests import made_request

from equivox import measure
from equivox.calibration import checking
from equivox.calibration.checking import RESULT_FILE, Settings, calibrate
from equivox.calibration.recipe import Recipe
from equivox.core.files import read_document
from equivox.core.requests import Engine, EngineIdentity, MediaPart, Request, Response
from equivox.core.scores import ScoringOptions
from equivox.tasks.registry import builtin_tasks


class Deaf(Engine):
    """An engine that answers without the media that it was given."""

    modalities = frozenset({"text", "audio"})
    identity = EngineIdentity(engine="vllm", model="deaf", revision="1")

    def generate(self, requests: Sequence[Request]) -> Iterator[Response]:
        return (Response(key=request.key, text="A mid-level contributor.") for request in requests)


def test_media_that_an_engine_does_not_use_did_not_arrive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EQUIVOX_CACHE", str(tmp_path / "cache"))
    model = Recipe(task="vibe_gender:candidate", taught="", shift=20.0)
    model.folder.mkdir(parents=True)
    (model.folder / "config.json").write_text("{}", "utf-8")
    settings = Settings(
        scheme="vllm",
        arguments={},
        task=builtin_tasks()["vibe_gender:candidate"],
        shifts=[20.0],
        output=tmp_path / "runs",
        limit=4,
    )
    (line,) = calibrate(settings, [model], open_measured=lambda _: Deaf())
    assert line.verdict.startswith("fails at arrival: deaf used 0 of 1 media items")
    stored = read_document(tmp_path / "runs" / RESULT_FILE)
    assert stored["passed"] is False
    assert stored["lines"][0]["measured"]["value"] is None


@pytest.mark.parametrize(
    ("prompt", "media", "says"),
    [
        (100, 62, ""),
        (100, 64, ""),  # a server that counts the two marks around a recording among its tokens
        (69, 31, "31 tokens of audio where 62 are expected"),
        (99, 62, "99 tokens of prompt where 100 are expected"),
        (None, 62, ""),
        (None, 31, "31 tokens of audio where 62 are expected"),
        (None, None, ""),
    ],
)
def test_other_tokens_are_told_by_the_whole_prompt_first(prompt: int | None, media: int | None, says: str) -> None:
    chain = object.__new__(checking._Chain)
    chain.direct = SimpleNamespace(prompt_tokens=lambda request: 100, media_tokens=lambda request: 62)  # type: ignore
    request = made_request(1, MediaPart(kind="audio", sha256="a", name="a.wav", duration_s=1.0, load=bytes))
    assert chain._difference(request, {"prompt_tokens": prompt, "media_tokens": media}) == says


@pytest.mark.parametrize(("name", "planted"), [("vibe_gender:candidate", "nTVD"), ("spoken_stereoset:gender", "slbs")])
def test_the_score_that_is_compared_is_the_one_in_which_a_bias_is_planted(
    tmp_path: Path, name: str, planted: str
) -> None:
    options = ScoringOptions(n_resamples=99)
    model = "simulated:planted,shift=0.4"
    result = measure(model, name, data="sample", limit=24, output=tmp_path / "run", options=options)
    (score,) = (score for score in result.scores if score.is_whole and score.name == planted)
    assert checking.estimate(result.scores, builtin_tasks()[name]).value == score.headline < 100
