"""Calibrations on real engines: settings, fixtures, an engine that several share, and its requests."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from asking import SMALL, need_torchvision

from equivox.calibration.checking import Settings, calibrate, train
from equivox.calibration.recipe import Recipe, calibration_task, effort_for
from equivox.calibration.verdicts import Line
from equivox.core.requests import Engine, Request
from equivox.core.task import Task
from equivox.engines.vllm import VLLMEngine
from equivox.run.pipeline import open_corpora
from equivox.run.plan import Plan, make_plan

Decode = Callable[..., Any]
SHIFT = 60.0
LIMIT = 96


class Open(Engine):
    """An engine that several calibrations share."""

    def __init__(self, engine: VLLMEngine) -> None:
        self.engine = engine
        self.identity, self.modalities = engine.identity, engine.modalities

    def generate(self, requests: Sequence[Request]) -> Iterator[Any]:
        return self.engine.generate(requests)

    def check(self, requests: Sequence[Request]) -> None:
        self.engine.check(requests)


class Swapped:
    """Each speaker has the voice of one of the other group, of the same length."""

    def __init__(self, requests: Sequence[Request], decode: Decode) -> None:
        voices: dict[str, list[Any]] = {}
        for request in requests:
            (part,) = request.media
            voices.setdefault(request.labels.group, []).append(decode(part.load(), name=part.name))
        one, two = sorted(voices)
        self.instead = {}
        for number, request in enumerate(requests):
            others = voices[two if request.labels.group == one else one]
            self.instead[request.media[0].name] = others[number % len(others)]

    def __call__(self, decoded: Any, name: str) -> Any:
        return np.resize(self.instead[name], len(decoded))


NAMED_CACHE = os.environ.get("EQUIVOX_CACHE")
"""The cache that the caller names, read before the tests get one of their own."""


def cache_of_models(folder: Path) -> Iterator[None]:
    """Models are made anew, unless the caller names a cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EQUIVOX_CACHE", NAMED_CACHE or str(folder))
        yield


@pytest.fixture(scope="module", autouse=True)
def cache(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The cache of a module's models; a module that wants the fixtures names its task `TASK`."""
    if any(medium.kind == "image" for medium in request.module.TASK.media):
        need_torchvision()
    yield from cache_of_models(tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="module")
def taught(request: pytest.FixtureRequest, cache: None) -> Recipe:
    """A calibration model of little training."""
    (model,) = train(settings(request.module.TASK, Path("unused")))
    return model


@pytest.fixture(scope="module")
def vllm(taught: Recipe) -> Iterator[VLLMEngine]:
    """The model in vLLM."""
    engine = vllm_of(taught.folder)
    yield engine
    engine.close()


@pytest.fixture(scope="module")
def intact(
    request: pytest.FixtureRequest, taught: Recipe, vllm: VLLMEngine, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, Line]:
    """A calibration of the intact chain: the folder of its runs, and its line."""
    folder = tmp_path_factory.mktemp("intact")
    (line,) = calibrate(settings(request.module.TASK, folder), [taught], open_measured=lambda _: Open(vllm))
    return folder, line


def settings(task: Task, output: Path, **changes: Any) -> Settings:
    chosen: dict[str, Any] = {
        "scheme": "vllm",
        "arguments": SMALL,
        "limit": LIMIT,
        "conditions": ("declared",),
        "effort": replace(effort_for(task), answering=100),
    }
    return Settings(task=task, shifts=[SHIFT], output=output, **(chosen | changes))


def vllm_of(model: Path) -> VLLMEngine:
    return VLLMEngine.from_args({"model_name": str(model), **SMALL, "dtype": "float32"})


def planned(task: Task, engine: Any, limit: int = LIMIT) -> Plan:
    asked = calibration_task(task)
    return make_plan([asked], open_corpora([asked], "sample", {}), engine.identity, limit=limit)


def measured(asked: Settings, intact: Path, taught: Recipe, engine: Any) -> Line:
    """Calibrate once more; the direct answers are those of the intact chain."""
    shutil.copytree(intact / "planted-60" / "direct", asked.output / "planted-60" / "direct")
    (line,) = calibrate(asked, [taught], open_measured=lambda _: engine)
    return line
