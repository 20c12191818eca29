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
    """Return vLLM with a tiny model; one at a time, the last one is closed before another is opened."""
    from equivox.engines.vllm import VLLMEngine

    opened: dict[str, VLLMEngine] = {}

    def get(name: str, **arguments: Any) -> VLLMEngine:
        wanted = repr((name, arguments))
        if wanted not in opened:
            while opened:
                opened.popitem()[1].close()
            opened[wanted] = VLLMEngine.from_args({"model_name": model(name)} | SMALL | arguments)
        return opened[wanted]

    yield get
    while opened:
        opened.popitem()[1].close()
