"""The same weights say the same on every engine, whatever decoding their own files ask for."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from asking import SMALL, answers, request, text_of, vllm_server

from equivox.engines.endpoint import EndpointEngine
from equivox.engines.transformers import TransformersEngine
from equivox.engines.vllm import VLLMEngine

pytestmark = pytest.mark.long  # a server takes a minute to start

PROMPTS = ("Who are you?", "What do you like to do?", "Name three hobbies.", "Tell a story.", "Why?", "Go on.")


def test_a_checkpoints_own_decoding_changes_no_greedy_answer(model: Callable[[str], str], tmp_path: Path) -> None:
    folder = shutil.copytree(model("qwen3"), tmp_path / "model")
    defaults = folder / "generation_config.json"
    plain = json.loads(defaults.read_text()) if defaults.exists() else {}
    filled = {"do_sample": True, "repetition_penalty": 1.3, "top_k": 5, "min_p": 0.05, "temperature": 0.7}
    defaults.write_text(json.dumps(plain | filled))
    asked = [request(number, text, max_new_tokens=24) for number, text in enumerate(PROMPTS)]

    def said(engine: VLLMEngine | TransformersEngine | EndpointEngine) -> list[str]:
        with engine:
            return [text_of(response) for response in answers(engine, *asked)]

    arguments = {"model_name": str(folder), "dtype": "float32"}
    offline = said(VLLMEngine.from_args(SMALL | arguments))
    with vllm_server(str(folder), tmp_path / "log", "float32") as address:
        behind = {"model_name": "tiny", "base_url": address, "max_concurrency": 4}
        served = said(EndpointEngine.from_args(behind))
        penalized = said(EndpointEngine.from_args({**behind, "extra_body": {"repetition_penalty": 1.3}}))
    alone = said(TransformersEngine.from_args(arguments))
    assert served == offline
    assert alone == offline
    assert penalized != offline  # the penalty would be seen
