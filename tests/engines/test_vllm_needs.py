"""What some models need in vLLM beyond their name is refused before anything is loaded; no vLLM, no network."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest
from made_requests import made_request

from equivox.configs import read_config_file
from equivox.core.errors import UsageError
from equivox.core.requests import MediaPart, Request
from equivox.engines import ModelFile
from equivox.engines.checkpoint import Checkpoint, open_checkpoint
from equivox.engines.limits import refuse_too_many_media
from equivox.engines.vllm_arguments import (
    VLLMArguments,
    adapters,
    locate_adapters,
    refuse_missing_package,
    refuse_wrong_adapters,
)

PHI = {"audio": "speech-lora", "image": "vision-lora"}


def checkpoint(architecture: str, **config: Any) -> Checkpoint:
    # A location that is no folder here: a model on the Hub.
    return Checkpoint(
        name="tiny", location="org/tiny", revision="0" * 40, config={"architectures": [architecture], **config}
    )


def asks(*kinds: Any) -> Request:
    return made_request(
        0, *(MediaPart(kind=kind, sha256="0" * 64, name=f"m.{kind}", load=lambda: b"") for kind in kinds)
    )


@pytest.mark.parametrize(
    ("given", "kinds", "message"),
    [
        ({}, ["audio"], r"trained with an adapter for audio, and default_mm_loras gives none; add enable_lora=true,"),
        ({}, ["image"], r"max_lora_rank=320,max_loras=2,default_mm_loras={audio: speech-lora, image: vision-lora}"),
        ({"audio": "speech-lora"}, ["image"], "for image, and default_mm_loras gives only one for audio"),
        (PHI, ["audio", "image"], "test:task sends audio and image in one request, for which vLLM applies none"),
    ],
)
def test_a_request_without_its_adapter_is_one_line(given: dict[str, str], kinds: list[str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        refuse_wrong_adapters(given, checkpoint("Phi4MMForCausalLM"), [asks(), asks(*kinds)])


def test_what_needs_no_adapter_is_not_refused() -> None:
    refuse_wrong_adapters({}, checkpoint("Phi4MMForCausalLM"), [asks()])
    refuse_wrong_adapters(PHI, checkpoint("Phi4MMForCausalLM"), [asks("audio"), asks("image"), asks()])
    refuse_wrong_adapters({}, checkpoint("Qwen2AudioForConditionalGeneration"), [asks("audio")])
    speech = "GraniteSpeechForConditionalGeneration"
    refuse_wrong_adapters({}, checkpoint(speech, has_lora_adapter=False), [asks("audio")])
    with pytest.raises(UsageError, match=r"max_lora_rank=64,max_loras=1,default_mm_loras={audio: \.}"):
        refuse_wrong_adapters({}, checkpoint(speech, has_lora_adapter=True), [asks("audio")])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"default_mm_loras": PHI}, "`default_mm_loras` needs enable_lora=true, got None; vLLM would ignore it"),
        ({"default_mm_loras": {"audio": "/models/lora"}, "enable_lora": True}, "not inside the model's folder"),
        ({"default_mm_loras": {"audio": "../lora"}, "enable_lora": True}, "not inside the model's folder"),
        ({"default_mm_loras": {"audio": 3}, "enable_lora": True}, "must name a folder per kind of media"),
        ({"default_mm_loras": "speech-lora", "enable_lora": True}, "must name a folder per kind of media"),
    ],
)
def test_adapters_that_vllm_would_ignore_or_not_find_are_one_line(given: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        VLLMArguments.parse({"model_name": "org/tiny"} | given)


def test_the_published_file_gives_what_the_model_needs() -> None:
    declared = read_config_file(ModelFile, "phi-4-multimodal-instruct", "models")
    parsed = VLLMArguments.parse(declared.model_parameters)
    given = adapters(parsed.engine)
    refuse_wrong_adapters(given, checkpoint("Phi4MMForCausalLM"), [asks("audio"), asks("image")])
    # The identity has names, not places.
    assert parsed.settings()["default_mm_loras"] == PHI


def adapter(folder: Path, rank: int) -> None:
    folder.mkdir(parents=True)
    (folder / "adapter_config.json").write_text(json.dumps({"r": rank}))
    (folder / "adapter_model.safetensors").write_bytes(b"weights")


def test_adapters_are_found_in_a_folder_and_in_the_cache_of_the_hub(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import huggingface_hub.constants

    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    commit = "0123456789abcdef0123456789abcdef01234567"
    cached = tmp_path / "hub" / "models--org--phi"
    for root in (tmp_path / "phi", cached / "snapshots" / commit):
        for number, name in enumerate(PHI.values()):
            adapter(root / name, 256 + 64 * number)
        (root / "config.json").write_text(json.dumps({"architectures": ["Phi4MMForCausalLM"]}))
    (cached / "refs").mkdir()
    (cached / "refs" / "main").write_text(commit)
    local = open_checkpoint(str(tmp_path / "phi"))
    assert locate_adapters(PHI, local, rank=320) == {
        "audio": str(tmp_path / "phi" / "speech-lora"),
        "image": str(tmp_path / "phi" / "vision-lora"),
    }
    hub = open_checkpoint("org/phi", cache=str(tmp_path / "hub"))
    snapshot = cached / "snapshots" / commit
    located = locate_adapters(PHI, hub, cache=str(tmp_path / "hub"), rank=320)
    assert located == {"audio": str(snapshot / "speech-lora"), "image": str(snapshot / "vision-lora")}
    with pytest.raises(UsageError, match="max_lora_rank is 16, but the adapter speech-lora of phi has rank 256"):
        locate_adapters(PHI, local, rank=16)
    with pytest.raises(UsageError, match=r"phi has no adapter in nowhere \(adapter_config.json\)"):
        refuse_wrong_adapters({"audio": "nowhere"}, local, [])


def test_a_missing_package_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    gemma = checkpoint("Gemma3nForConditionalGeneration")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UsageError, match="tiny needs timm, which is not installed; `pip install timm`"):
        refuse_missing_package(gemma)
    refuse_missing_package(checkpoint("Qwen2AudioForConditionalGeneration"))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    refuse_missing_package(gemma)


def test_more_clips_than_a_model_takes_are_one_line() -> None:
    flamingo = checkpoint("AudioFlamingo3ForConditionalGeneration")
    refuse_too_many_media(flamingo, {"audio": 1}, [asks("audio"), asks()])
    refuse_too_many_media(flamingo, {"audio": None, "image": 2}, [asks("audio", "audio", "image", "image")])
    with pytest.raises(UsageError, match="tiny takes at most 1 audio per request, test:task sends 2"):
        refuse_too_many_media(flamingo, {"audio": 1}, [asks("audio"), asks("audio", "audio")])
