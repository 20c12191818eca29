"""A model's files: which revision they are, what the model takes and how much it hears; no model, no network."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from equivox.core.errors import UsageError
from equivox.engines.checkpoint import open_checkpoint

WHISPER = {"feature_extractor_type": "WhisperFeatureExtractor", "chunk_length": 30}


def write(folder: Path, config: dict[str, Any], preprocessor: dict[str, Any] | None = None) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "model.safetensors").write_bytes(bytes(range(256)) * (40 << 12))
    if preprocessor is not None:
        (folder / "preprocessor_config.json").write_text(json.dumps(preprocessor))
    return folder


def test_a_folder_is_named_by_its_content_and_not_by_its_place(tmp_path: Path) -> None:
    first = open_checkpoint(str(write(tmp_path / "a" / "tiny", {"architectures": ["X"]})))
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    second = open_checkpoint(str(tmp_path / "b" / "tiny"))
    assert (first.name, first.revision) == (second.name, second.revision) == ("tiny", first.revision)
    weights = tmp_path / "b" / "tiny" / "model.safetensors"
    with weights.open("r+b") as file:
        # 40 MiB of weights are sampled in blocks; a tuned model differs nearly everywhere.
        for place in range(0, weights.stat().st_size, 50_000):
            file.seek(place)
            file.write(b"tuned")
    assert open_checkpoint(str(tmp_path / "b" / "tiny")).revision != first.revision


@pytest.mark.parametrize(
    ("config", "takes"),
    [
        ({"architectures": ["LlamaForCausalLM"]}, set()),
        ({"audio_config": {"d_model": 1}, "text_config": {"vocab_size": 2}}, {"audio"}),
        ({"thinker_config": {"audio_config": {"d": 1}, "vision_config": {"d": 1}}}, {"audio", "image"}),
        ({"vision_config": {"depth": 2}, "vision_start_token_id": 5}, {"image"}),
        ({"audio_processor": {"name": "cascades"}, "embd_layer": {"image_embd_layer": {"hd": 1}}}, {"audio", "image"}),
    ],
)
def test_a_configuration_tells_what_a_model_takes(tmp_path: Path, config: dict[str, Any], takes: set[str]) -> None:
    assert open_checkpoint(str(write(tmp_path / "m", config))).modalities == takes | {"text"}


@pytest.mark.parametrize(
    ("architecture", "preprocessor", "seconds"),
    [
        ("Qwen2AudioForConditionalGeneration", WHISPER, 30.0),
        ("Qwen2_5OmniModel", WHISPER | {"chunk_length": 300}, 300.0),
        ("Unknown", {"feature_extractor": WHISPER}, 30.0),
        ("AudioFlamingo3ForConditionalGeneration", WHISPER, 600.0),
        ("AudioFlamingo3ForConditionalGeneration", WHISPER | {"max_audio_len": 120}, 120.0),
        ("VoxtralForConditionalGeneration", WHISPER, None),
        ("Gemma3nForConditionalGeneration", {"feature_extractor_type": "Gemma3nAudioFeatureExtractor"}, 30.0),
        ("LlamaForCausalLM", {}, None),
    ],
)
def test_how_much_a_model_hears(
    tmp_path: Path, architecture: str, preprocessor: dict[str, Any], seconds: float | None
) -> None:
    folder = write(tmp_path / "m", {"architectures": [architecture]}, preprocessor)
    assert open_checkpoint(str(folder)).longest_audio_s == seconds


def test_what_is_not_there_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub.constants

    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    (tmp_path / "empty").mkdir()
    write(tmp_path / "tiny", {})
    for arguments, message in (
        ({"model": str(tmp_path / "none")}, "there is no such folder"),
        ({"model": str(tmp_path / "empty")}, "has no config.json"),
        ({"model": str(tmp_path / "tiny"), "revision": "v2"}, "`revision` 'v2' is for models on the Hub"),
        ({"model": "a/b/c"}, "neither a folder nor a model on the Hub"),
        ({"model": "org/absent", "cache": str(tmp_path)}, "not in the local cache and the Hub cannot be reached"),
    ):
        with pytest.raises(UsageError, match=message):
            open_checkpoint(**arguments)


def test_a_cached_model_is_named_by_its_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub.constants

    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    commit = "0123456789abcdef0123456789abcdef01234567"
    cache = tmp_path / "models--org--model"
    write(cache / "snapshots" / commit, {"audio_config": {"d": 1}}, WHISPER)
    (cache / "refs").mkdir()
    (cache / "refs" / "main").write_text(commit)
    found = open_checkpoint("org/model", cache=str(tmp_path))
    assert (found.name, found.revision, found.longest_audio_s) == ("org/model", commit, 30.0)
    assert found.on_hub
    # Given by its path, it has the same name.
    assert open_checkpoint(str(cache / "snapshots" / commit)).name == "org/model"
