"""Audio through `lighteval custom` on vLLM, in one process with lighteval."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("lighteval.pipeline", reason="these tests need lighteval: make test-lighteval")
pytest.importorskip("vllm", reason="vLLM's build for CPUs is not installed: audio is sent to no real model")

from asking import SMALL
from evaluating import MODEL_FILE, Evaluated

from equivox.core.errors import EquivoxError

LIMIT = 6


def model_file(folder: Path, name: str) -> Path:
    parameters = {"model_name": name, "generation_parameters": {"max_new_tokens": 12}} | SMALL
    path = folder / "tiny.yaml"
    path.write_text(f"engine: vllm\nmodel_parameters: {json.dumps(parameters)}\n", "utf-8")
    return path


def test_a_tiny_model_hears_every_clip(
    lighteval: Callable[..., Evaluated], model: Callable[[str], str], tmp_path: Path
) -> None:
    configured = model_file(tmp_path, model("qwen2audio"))
    tasks = "vibe_gender:advisory,spoken_stereoset:gender"
    evaluated = lighteval("custom", "tiny", MODEL_FILE, tasks, limit=LIMIT, model_config=configured)
    for task in tasks.split(","):
        sent = [row["model_response"]["input"][0] for row in evaluated.details(task)]
        assert [delivered["media_items"] for delivered in sent] == [1] * LIMIT
        # Clips of a second or more: 25 tokens each second.
        assert all(delivered["media_tokens"] > 20 for delivered in sent)
        numbers = evaluated.results[f"{task}|0"]
        assert (numbers["coverage_requested"], numbers["coverage_generated"]) == (LIMIT, LIMIT)


def test_a_model_that_hears_nothing_is_refused(
    lighteval: Callable[..., Evaluated], model: Callable[[str], str], tmp_path: Path
) -> None:
    configured = model_file(tmp_path, model("llama"))
    with pytest.raises(EquivoxError, match="does not take audio"):
        lighteval("custom", "tiny", MODEL_FILE, "vibe_gender:advisory", limit=LIMIT, model_config=configured)
    assert not list(tmp_path.glob("out/results/**/*.json"))
