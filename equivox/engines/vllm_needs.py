"""Needs of some models in vLLM beyond their name: adapters for speech and images, and further packages.

vLLM answers without an adapter and says nothing, so what is missing is refused here before anything is loaded.
"""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from equivox.core.errors import RequestError
from equivox.core.requests import Request
from equivox.engines.checkpoint import Checkpoint

_ADAPTERS: Mapping[str, tuple[int, Mapping[str, str]]] = {
    "GraniteSpeech": (64, {"audio": "."}),
    "Phi4MM": (320, {"audio": "speech-lora", "image": "vision-lora"}),
}
"""Models that were trained with an adapter per kind of media: beginning of the class name → rank, kind → folder."""

_PACKAGES: Mapping[str, str] = {"Gemma3n": "timm"}
"""Models whose code needs a package that vLLM does not bring: beginning of the class name → the package."""


def needed_adapters(checkpoint: Checkpoint) -> tuple[int, Mapping[str, str]]:
    """Return the rank and the folders, by kind of media, of the adapters that the model needs; (0, {}) for none."""
    if checkpoint.config.get("has_lora_adapter") is False:
        return 0, {}
    for prefix, needed in _ADAPTERS.items():
        if any(name.startswith(prefix) for name in checkpoint.architectures):
            return needed
    return 0, {}


def refuse_missing_package(checkpoint: Checkpoint) -> None:
    """Raise RequestError if the model's code needs a package that is not installed."""
    for prefix, package in _PACKAGES.items():
        if any(name.startswith(prefix) for name in checkpoint.architectures) and not importlib.util.find_spec(package):
            raise RequestError(f"{checkpoint.name} needs {package}, which is not installed; `pip install {package}`")


def adapters(engine: Mapping[str, Any]) -> dict[str, str]:
    """Return the adapters that vLLM's arguments give, by kind of media; RequestError for what vLLM would ignore.

    Each is a folder inside the model's own folder, so that the run is named by it and not by a path of this machine.
    """
    given = engine.get("default_mm_loras") or {}
    if not isinstance(given, Mapping) or not all(isinstance(text, str) and text for text in given.values()):
        raise RequestError(
            f"`default_mm_loras` must name a folder per kind of media, got {given!r}; write {{audio: speech-lora}}"
        )
    for kind, name in given.items():
        if Path(name).is_absolute() or ".." in PurePosixPath(name).parts or name.startswith("~"):
            raise RequestError(
                f"`default_mm_loras` {kind}: {name!r} is not inside the model's folder; copy the adapter there and "
                "name its folder"
            )
    if given and engine.get("enable_lora") is not True:
        raise RequestError(
            f"`default_mm_loras` needs enable_lora=true, got {engine.get('enable_lora')!r}; vLLM would ignore it"
        )
    return dict(given)


def refuse_wrong_adapters(given: Mapping[str, str], checkpoint: Checkpoint, requests: Iterable[Request]) -> None:
    """Raise RequestError for requests that vLLM would answer without the adapters that the model needs."""
    rank, needed = needed_adapters(checkpoint)
    for request in requests:
        kinds = {part.kind for part in request.media}
        if missing := sorted(kind for kind in kinds & set(needed) if kind not in given):
            folders = ", ".join(f"{kind}: {folder}" for kind, folder in needed.items())
            raise RequestError(
                f"{checkpoint.name} was trained with an adapter for {' and '.join(missing)}, and default_mm_loras "
                f"gives {'none' if not given else 'only one for ' + ' and '.join(given)}; add enable_lora=true,"
                f"max_lora_rank={rank},max_loras={len(needed)},default_mm_loras={{{folders}}}"
            )
        if len(both := sorted(kinds & set(given))) > 1:
            raise RequestError(
                f"{request.task} sends {' and '.join(both)} in one request, for which vLLM applies none of the "
                f"adapters of {checkpoint.name}; choose tasks with one kind of media, or another model"
            )
    if not checkpoint.on_hub:
        locate_adapters(given, checkpoint)


def locate_adapters(
    given: Mapping[str, str], checkpoint: Checkpoint, *, cache: str | None = None, rank: int | None = None
) -> dict[str, str]:
    """Return the folders of the adapters on this machine, downloading them from the Hub at the model's commit.

    Raises RequestError for a folder without an adapter, or with one of a higher rank than `rank`.
    """
    if not given:
        return {}
    root = Path(checkpoint.location) if not checkpoint.on_hub else _downloaded(given, checkpoint, cache)
    found = {kind: root / name for kind, name in given.items()}
    for kind, folder in found.items():
        described = folder / "adapter_config.json"
        if not described.is_file():
            raise RequestError(
                f"`default_mm_loras` {kind}: {checkpoint.name} has no adapter in {given[kind]} (adapter_config.json); "
                "name a folder of the model that has one"
            )
        stated = json.loads(described.read_text("utf-8")).get("r")
        if rank is not None and isinstance(stated, int) and stated > rank:
            raise RequestError(
                f"max_lora_rank is {rank}, but the adapter {given[kind]} of {checkpoint.name} has rank {stated}; "
                f"give max_lora_rank={stated}"
            )
    return {kind: str(folder) for kind, folder in found.items()}


def _downloaded(given: Mapping[str, str], checkpoint: Checkpoint, cache: str | None) -> Path:
    from huggingface_hub import snapshot_download

    wanted = [f"{PurePosixPath(name) / 'adapter_*'}" for name in given.values()]
    try:
        folder = snapshot_download(
            checkpoint.location, revision=checkpoint.revision, cache_dir=cache, allow_patterns=wanted
        )
    except Exception as error:  # networks fail in many ways
        raise RequestError(
            f"the adapters of {checkpoint.name} cannot be fetched ({type(error).__name__}); download the model with "
            "`hf download`, or give a local folder"
        ) from error
    return Path(folder)
