"""What the engine tests share. They need vLLM, hence an environment of their own: `make test-engine`."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from asking import SMALL

collect_ignore = ["asking.py", "cpu_torch_extras.py", "remote_code", "tiny_models.py"]

# One thread: a tiny model's matrices are not worth sharing, and threads that wait for each other on two cores take
# thirty times as long.
os.environ |= {
    "HF_HUB_OFFLINE": "1",
    "OMP_NUM_THREADS": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_LOGGING_LEVEL": "ERROR",
    "VLLM_NO_USAGE_STATS": "1",
}


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    """Return the folder of a tiny model, made on first use."""
    import tiny_models

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
