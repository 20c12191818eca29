"""What the engine tests share. They need vLLM, hence an environment of their own: `make test-engine`."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import tiny_models
from asking import SMALL, on_gpu

collect_ignore = ["asking.py", "cpu_torch_extras.py", "remote_code", "tiny_models.py"]

os.environ |= tiny_models.ALONE


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let those that share what they start run first, one after another."""
    items.sort(key=lambda item: "kept" not in getattr(item, "fixturenames", ()))


@pytest.fixture(scope="session", autouse=True)
def _architectures_are_inspected_here() -> Iterator[None]:
    """Let vLLM look at an architecture in this process, which imports it anyway.

    For each that it has not seen on this machine, vLLM starts another process, lest CUDA start here. On a CPU nothing
    can start, and that process takes twelve seconds to import what this one has imported.
    """
    with pytest.MonkeyPatch.context() as patch:
        if importlib.util.find_spec("vllm") is not None and not on_gpu():
            from vllm.model_executor.models import registry

            patch.setattr(registry, "_run_in_subprocess", lambda inspect: inspect())
        yield


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    """Return the folder of a tiny model, made on first use."""
    folder = tmp_path_factory.mktemp("models")
    return lambda name: str(tiny_models.make(folder, name))


@pytest.fixture(scope="module")
def engine(model: Callable[[str], str]) -> Iterator[Callable[..., Any]]:
    """Return an engine with a tiny model.

    Engines that start vLLM with the same arguments share what the first of them started: templates, system prompts and
    the like are given with each request. What was started is closed before vLLM is started with other arguments.
    """
    from equivox.engines.vllm import VLLMEngine

    opened: dict[str, VLLMEngine] = {}

    def close() -> None:
        owner = next((each for each in opened.values() if each._noise is not None), None)
        for each in opened.values():
            if each is not owner:
                each._llm = None
        if owner is not None:
            owner.close()
        opened.clear()

    def get(name: str, **arguments: Any) -> VLLMEngine:
        wanted = repr((name, arguments))
        made = opened.get(wanted) or VLLMEngine.from_args({"model_name": model(name)} | SMALL | arguments)
        if any(each.arguments.engine != made.arguments.engine for each in opened.values()):
            close()
        started = next((each._llm for each in opened.values() if each._llm is not None), None)
        opened[wanted] = made
        if made._llm is None and started is not None:
            made._llm = started
            made._watch()
        return made

    yield get
    close()


@pytest.fixture(scope="session")
def started() -> Iterator[dict[str, Any]]:
    """What `kept` has started, by its arguments, until something else is stopped: vLLMs in one process share groups."""
    from equivox.engines import vllm

    found: dict[str, Any] = {}
    stop = vllm.unload

    def unload(*last: Any) -> None:
        while found:
            stop(found.popitem()[1][0])
        for llm in last:
            stop(llm)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vllm, "unload", unload)
        yield found
        unload()


@pytest.fixture
def kept(started: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Let runs that start vLLM with the same arguments share what the first of them started: a start takes seconds.

    `test_vllm_commands.py` has a run without it, which starts and stops each of its models.
    """
    from equivox.engines import vllm

    start = vllm.load

    def load(arguments: dict[str, Any], checkpoint: Any) -> Any:
        wanted = repr((sorted(arguments.items()), checkpoint.location))
        if wanted not in started:
            started[wanted] = start(arguments, checkpoint)
        return started[wanted]

    monkeypatch.setattr(vllm, "load", load)
    monkeypatch.setattr(vllm, "unload", lambda llm: vars(llm.llm_engine.engine_core).pop("add_request", None))
