"""A model's files: revision, modalities and audio limit, found without importing anything heavy.

A model is a repository on the Hub, resolved to a commit, or a local folder, identified by its content.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any

from equivox.core.errors import UsageError
from equivox.core.task import digest

_SMALL = 8 << 20
_BLOCK = 1 << 16
_BLOCKS = 256
COMMIT = re.compile(r"[0-9a-f]{40}")
_PLACES = frozenset(("", "..", "checkpoint", "final", "hf", "model", "models", "snapshot", "snapshots", "weights"))
_LISTENING = ("audio", "speech", "sound")
_SEEING = ("vision", "visual", "image_embd", "img_processor")

_PIECEWISE: Mapping[str, float | None] = {
    "AudioFlamingo3": 600.0,
    "GlmAsr": 655.0,
    "GraniteSpeech": None,
    "MusicFlamingo": 1200.0,
    "Phi4M": None,
    "Ultravox": None,
    "Voxtral": None,
}
"""Models that process a long clip in pieces: beginning of the class name → their limit in seconds (None: no limit)."""
_WHISPER_S, _GEMMA3N_S = 30.0, 30.0


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """The files of one model.

    Attributes
    ----------
    name
        The repository, or the `folder_label` of the local folder (never its path: a run can move between machines).
    location
        The repository or folder that an engine loads.
    revision
        The commit on the Hub; `files-…` and a hash of the content for a local folder.
    config, preprocessor
        `config.json`, and the settings of its media processor (empty if it has none).
    """

    name: str
    location: str
    revision: str
    config: Mapping[str, Any] = field(repr=False)
    preprocessor: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def on_hub(self) -> bool:
        """Whether `revision` is a commit on the Hub."""
        return not Path(self.location).exists()

    @property
    def architectures(self) -> tuple[str, ...]:
        """The model classes that the configuration names."""
        return tuple(self.config.get("architectures") or ())

    @property
    def modalities(self) -> frozenset[str]:
        """The modalities in the model's configuration; an engine that has loaded the model knows them for certain."""
        parts = list(_parts(self.config))
        found = {"text"}
        if any(name.startswith(_LISTENING) for name in parts):
            found.add("audio")
        if any(name.startswith(_SEEING) for name in parts):
            found.add("image")
        return frozenset(found)

    @property
    def longest_audio_s(self) -> float | None:
        """Seconds after which the model's processor silently drops the rest of a clip; None if it never does."""
        for prefix, limit in _PIECEWISE.items():
            if any(name.startswith(prefix) for name in self.architectures):
                return _seconds(self.preprocessor.get("max_audio_len"), limit)
        extractor = self.preprocessor.get("feature_extractor", self.preprocessor)
        if extractor.get("feature_extractor_type") == "WhisperFeatureExtractor":
            return _seconds(extractor.get("chunk_length"), _WHISPER_S)
        return _GEMMA3N_S if any(name.startswith("Gemma3n") for name in self.architectures) else None


def folder_label(folder: PurePath) -> str:
    """Return the name of a model in a folder: the last part of the path that identifies it.

    >>> folder_label(PurePath("/models/tiny/hf")), folder_label(PurePath("/home/me/model"))
    ('tiny', 'model')
    >>> folder_label(PurePath("/hub/models--org--name/snapshots/" + "0a" * 20))
    'org/name'
    """
    # The name of a user's own folder is private.
    parts = re.sub(r"^(/home/|/Users/|[A-Z]:/Users/)[^/]*|^~", "", folder.as_posix()).split("/")
    named = [part for part in parts if part.lower() not in _PLACES and not COMMIT.fullmatch(part)]
    *_, label = named or [folder.name or "model"]
    return label.removeprefix("models--").replace("--", "/") if label.startswith("models--") else label


def _seconds(stated: Any, otherwise: float | None) -> float | None:
    return float(stated) if isinstance(stated, (int, float)) else otherwise


def _parts(config: Mapping[str, Any], depth: int = 3) -> Iterator[str]:
    """Yield the names of a configuration's parts, including nested parts."""
    for name, value in config.items():
        if isinstance(value, Mapping) and value:
            yield name
            if depth > 1:
                yield from _parts(value, depth - 1)


def open_checkpoint(model: str, *, revision: str | None = None, cache: str | None = None) -> Checkpoint:
    """Find `model`, read its configuration and resolve its revision; only small JSON files are downloaded.

    Raises UsageError if there is no such model, or if it is not cached and the Hub cannot be reached.
    """
    folder = Path(model).expanduser()
    if folder.is_dir():
        if revision is not None:
            raise UsageError(f"`revision` {revision!r} is for models on the Hub, and {model} is a folder; leave it out")
        if not (folder / "config.json").is_file():
            raise UsageError(f"`model_name` {model} has no config.json; name the folder that save_pretrained wrote")
        model, location, commit = folder_label(folder.resolve()), str(folder.resolve()), _content(folder)
        config, *settings = (_local_json(folder / name) for name in ("config.json", *_PREPROCESSORS))
    else:
        if model.startswith(("/", "./", "../", "~")):
            raise UsageError(
                f"`model_name` {model}: there is no such folder; name one, or a model on the Hub (org/name)"
            )
        location, (path, config) = model, _hub_json(model, "config.json", revision, cache)
        commit = next((part for part in reversed(path.parts) if COMMIT.fullmatch(part)), revision or "main")
        settings = [_optional_hub_json(model, name, commit, cache) for name in _PREPROCESSORS]
    preprocessor = settings[0] | settings[1]
    return Checkpoint(name=model, location=location, revision=commit, config=config, preprocessor=preprocessor)


_PREPROCESSORS = ("processor_config.json", "preprocessor_config.json")
"""Newer checkpoints keep the feature extractor's settings in the first; what the second says counts."""


def _local_json(path: Path) -> dict[str, Any]:
    try:
        document = json.loads(path.read_text("utf-8")) if path.is_file() else {}
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} cannot be read: {error}; restore the checkpoint") from error
    return document if isinstance(document, dict) else {}


def _hub_json(model: str, name: str, revision: str | None, cache: str | None) -> tuple[Path, dict[str, Any]]:
    from huggingface_hub import errors, hf_hub_download

    try:
        path = Path(hf_hub_download(model, name, revision=revision, cache_dir=cache))
    except errors.HFValidationError:
        raise UsageError(
            f"`model_name` {model!r} is neither a folder nor a model on the Hub (written org/name)"
        ) from None
    except errors.GatedRepoError:
        raise UsageError(
            f"`model_name` {model} is gated; accept its terms on its page, then `hf auth login` or set HF_TOKEN"
        ) from None
    except errors.RepositoryNotFoundError:
        raise UsageError(
            f"`model_name` {model} is not on the Hub, or is private; check the name, or log in with `hf auth login`"
        ) from None
    except errors.RevisionNotFoundError:
        raise UsageError(f"`revision` {revision!r} of {model} does not exist; leave it out for the newest") from None
    except errors.LocalEntryNotFoundError:
        raise UsageError(
            f"`model_name` {model} is not in the local cache and the Hub cannot be reached (HF_HUB_OFFLINE, or no "
            "network); download it with `hf download`, or give a local folder"
        ) from None
    except errors.EntryNotFoundError:
        raise UsageError(f"`model_name` {model} has no {name}: it is not a transformers checkpoint") from None
    except Exception as error:  # networks fail in many ways
        raise UsageError(f"`model_name` {model}: cannot fetch {name} ({type(error).__name__}: {error})") from error
    return path, _local_json(path)


def _optional_hub_json(model: str, name: str, commit: str, cache: str | None) -> dict[str, Any]:
    from huggingface_hub import errors, hf_hub_download

    try:
        return _local_json(Path(hf_hub_download(model, name, revision=commit, cache_dir=cache)))
    except (errors.EntryNotFoundError, errors.HfHubHTTPError, OSError):
        return {}  # missing on the Hub or in the cache; the engine reports what it lacks


def _content(folder: Path) -> str:
    """Return a hash name for the content of a local checkpoint.

    Files up to 8 MiB are hashed whole; larger ones by size and 256 evenly spread blocks of 64 KiB, because a different
    training or quantization changes nearly every block, and reading all of 200 GB would take minutes.
    """
    content = {
        path.relative_to(folder).as_posix(): [path.stat().st_size, _sampled(path)]
        for path in folder.rglob("*")
        if path.is_file() and not any(part.startswith(".") for part in path.relative_to(folder).parts)
    }
    return f"files-{digest(content)[:32]}"


def _sampled(path: Path) -> str:
    hashed = hashlib.sha256()
    size = path.stat().st_size
    with path.open("rb") as file:
        if size <= _SMALL:
            hashed.update(file.read())
        else:
            for number in range(_BLOCKS):
                file.seek(number * (size - _BLOCK) // (_BLOCKS - 1))
                hashed.update(file.read(_BLOCK))
    return hashed.hexdigest()
