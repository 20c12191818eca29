"""What the engine tests share. They need vLLM, hence an environment of their own: `make test-engine`."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import tiny_models
from asking import SMALL

collect_ignore = ["asking.py", "cpu_torch_extras.py", "remote_code", "tiny_models.py"]

os.environ |= tiny_models.ALONE


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
