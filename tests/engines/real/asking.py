"""Requests, media and answers for the engine tests."""

from __future__ import annotations

import importlib.util
import io
import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from made_requests import made_request

from equivox.core.media import sha256
from equivox.core.task import Sampling
from equivox.engines import Engine, MediaPart, Request, Response

SMALL: dict[str, Any] = {
    "dtype": "bfloat16",
    "enforce_eager": True,
    "max_model_length": 2048,
    "max_num_batched_tokens": 2048,
    "max_num_seqs": 32,
    "gpu_memory_utilization": 0.1,
    "kv_cache_memory_bytes": 2**29,
}
"""vLLM for two cores or a small part of a GPU, and a tiny model."""
LONG = SMALL | {"max_model_length": 8192, "max_num_batched_tokens": 8192}
"""The same for a prompt that asks for annotations, which a tiny model reads byte by byte."""


def vllm_model(folder: str, max_new_tokens: int = 32, **arguments: Any) -> str:
    """Return the name of a model in vLLM for a run, with `SMALL` and other arguments."""
    pairs = {"model_name": folder} | SMALL | arguments
    short = f"generation_parameters={{max_new_tokens: {max_new_tokens}}}"
    return f"vllm:{short}," + ",".join(f"{key}={json.dumps(value).strip(chr(34))}" for key, value in pairs.items())


def annotator_file(path: Path, model: str, *, attempts: int = 2, **sampling: Any) -> Path:
    """Write the file of an annotator that is a tiny model in vLLM, which need not be sampled alike."""
    parameters = {"model_name": model} | LONG
    declared = {"engine": "vllm", "model_parameters": parameters, "sampling": sampling, "attempts": attempts}
    path.write_text(json.dumps(declared))
    return path


def on_gpu() -> bool:
    """Return whether models are computed on a GPU here."""
    import torch

    return torch.cuda.is_available()


def need_torchvision() -> None:
    """Skip a test with images where torchvision is missing."""
    if importlib.util.find_spec("torchvision") is None:
        pytest.skip("images need torchvision, which is not installed (make test-engine installs it)")


def tone(seconds: float = 1.0, pitch: float = 220.0, rate: int = 16_000) -> bytes:
    buffer = io.BytesIO()
    wave = 0.3 * np.sin(np.arange(round(seconds * rate)) * pitch * 2 * np.pi / rate)
    soundfile.write(buffer, wave, rate, format="WAV")
    return buffer.getvalue()


def audio(data: bytes | None = None, name: str = "clip.wav") -> MediaPart:
    content = tone() if data is None else data
    return MediaPart(kind="audio", sha256=sha256(content), name=name, load=lambda: content)


def image(width: int = 84, height: int = 56, seed: int = 0) -> MediaPart:
    from PIL import Image

    buffer = io.BytesIO()
    pixels = np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(buffer, "PNG")
    content = buffer.getvalue()
    return MediaPart(kind="image", sha256=sha256(content), name="photo.png", load=lambda: content)


def request(
    number: int,
    text: str = "Who are you?",
    *media: MediaPart,
    seed: int | None = None,
    schema: dict[str, Any] | None = None,
    **sampling: Any,
) -> Request:
    chosen = Sampling(**({"max_new_tokens": 16} | sampling))
    return made_request(
        number, *media, text=text, sampling=chosen, seed=number if seed is None else seed, schema=schema
    )


def answers(engine: Engine, *requests: Request) -> list[Response]:
    """Return the responses in the order of their requests."""
    found = {response.key: response for response in engine.generate(requests)}
    assert len(found) == len(requests)
    return [found[entry.key] for entry in requests]


def text_of(response: Response) -> str:
    assert response.error is None, response.error
    assert response.text is not None
    return response.text


START_S = 180


@contextmanager
def vllm_server(folder: str, log: Path, dtype: str = "bfloat16") -> Iterator[str]:
    """Serve the model in `folder` under the name `tiny` and return the server's address."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port = int(listening.getsockname()[1])
    command = [
        *(sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model", folder),
        *("--served-model-name", "tiny", "--host", "127.0.0.1", "--port", str(port), "--dtype", dtype),
        *("--enforce-eager", "--max-model-len", "2048", "--max-num-batched-tokens", "2048", "--max-num-seqs", "8"),
        *("--gpu-memory-utilization", "0.1"),
        *("--structured-outputs-config", '{"backend": "guidance", "disable_any_whitespace": true}'),
    ]
    with log.open("w") as out:
        server = subprocess.Popen(command, stdout=out, stderr=out, env=os.environ.copy())
    try:
        deadline = time.monotonic() + START_S
        while True:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=2).close()
                break
            except (urllib.error.URLError, OSError):
                if server.poll() is not None or time.monotonic() > deadline:
                    pytest.fail(f"the server did not start:\n{log.read_text()[-3000:]}")
                time.sleep(0.5)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        server.terminate()
        try:
            server.wait(timeout=30)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()
