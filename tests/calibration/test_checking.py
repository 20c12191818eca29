"""Calibration of an engine that fails before anything can be compared."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from equivox.calibration import recipe
from equivox.calibration.checking import RESULT_FILE, Settings, calibrate
from equivox.calibration.recipe import Recipe
from equivox.calibration.training import Model
from equivox.core.files import read_document
from equivox.core.requests import EngineIdentity, Request, Response
from equivox.tasks.registry import builtin_tasks


class Deaf:
    """An engine that answers without the media that it was given."""

    modalities = frozenset({"text", "audio"})
    identity = EngineIdentity(engine="vllm", model="deaf", revision="1")

    def check(self, requests: Sequence[Request]) -> None:
        pass

    def generate(self, requests: Sequence[Request]) -> Iterator[Response]:
        return (Response(key=request.key, text="A mid-level contributor.") for request in requests)

    def close(self) -> None:
        pass


def test_media_that_an_engine_does_not_use_did_not_arrive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recipe, "libraries", lambda task: {})
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text("{}", "utf-8")
    settings = Settings(
        scheme="vllm",
        arguments={},
        task=builtin_tasks()["vibe_gender:candidate"],
        shifts=[20.0],
        output=tmp_path / "runs",
        limit=4,
    )
    model = Model(Recipe(task="vibe_gender:candidate", taught="", shift=20.0), tmp_path / "model")
    (line,) = calibrate(settings, [model], open_measured=lambda _: Deaf())
    assert line.verdict.startswith("fails at arrival: deaf used 0 of 1 media items")
    stored = read_document(tmp_path / "runs" / RESULT_FILE)
    assert stored["passed"] is False
    assert stored["lines"][0]["measured"]["value"] is None
