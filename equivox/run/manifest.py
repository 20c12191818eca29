"""The manifest: everything that is needed to repeat a run, its part that identifies the run, and the run's files.

It states the SHA-256 hashes of these, so that a run that was passed on can be checked. Scoring ends with them. While a
run goes on its manifest has none. They show what was changed by mistake or without care; somebody who changes a run on
purpose can state new ones. The hash of the manifest, which names all others, is therefore to be passed on by another
way than the run.
"""

from __future__ import annotations

import json
import os
import platform
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from equivox.core.errors import DamageError, UsageError
from equivox.core.fields import complaint
from equivox.core.files import file_hash, is_file_name, read_document, write_document
from equivox.core.foreign_files import refuse_odd_files, refuse_oversized
from equivox.core.redact import redacted_text, without_places
from equivox.core.requests import EngineIdentity
from equivox.core.task import Task
from equivox.core.version import __version__
from equivox.dataset_builders.corpus import SAMPLE, Corpus
from equivox.engines import model_label
from equivox.run.live import LIVE_FILE

MANIFEST_FILE = "manifest.json"

FORMAT = 3
"""Raised when the layout of a run directory changes."""

_LIBRARIES = (
    "numpy",
    "scipy",
    "pyarrow",
    "datasets",
    "soundfile",
    "pydantic",
    "vllm",
    "transformers",
    "torch",
)


def run_identity(
    *,
    engine: EngineIdentity,
    tasks: Sequence[Task],
    corpora: Mapping[str, Corpus],
    limit: int | None,
    seed: int,
) -> dict[str, Any]:
    """Return the identity of a run: two runs with equal identities request exactly the same responses."""
    identity = {
        "model": engine.as_public_dict(),
        "tasks": {task.name: task.fingerprint for task in tasks},
        "corpora": {name: corpus.fingerprint for name, corpus in sorted(corpora.items())},
        "limit": limit,
        "seed": seed,
    }
    # Converted to JSON and back, so that a fresh identity equals a stored one (tuples become lists).
    return dict(json.loads(json.dumps(identity)))


def new_manifest(identity: Mapping[str, Any], command: Mapping[str, Any]) -> dict[str, Any]:
    """Return the manifest of a run that starts now."""
    return {
        "format": FORMAT,
        "equivox": __version__,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": dict(command),
        "identity": dict(identity),
        "environment": {
            "python": platform.python_version(),
            "platform": platform.platform(terse=True),
            "libraries": library_versions(),
        },
    }


@cache
def library_versions() -> Mapping[str, str]:
    """Return the versions of the libraries that can change a response or a number, of those that are installed."""
    found = {}
    for name in _LIBRARIES:
        with suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found


def public_manifest(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Return a manifest as it may be published: without the places of files on this machine."""
    command = dict(manifest["command"])
    command["model"] = redacted_text(model_label(command["model"]))
    if command.get("data") not in {None, SAMPLE}:
        command["data"] = Path(command["data"]).resolve().name
    identity = {**manifest["identity"], "model": without_places(manifest["identity"]["model"])}
    served = {name: manifest[name] for name in ("served_as", "annotators_served_as") if name in manifest}
    return {**manifest, **without_places(served), "command": command, "identity": identity}


class _Command(BaseModel):
    """The fields of `command` that are read again, with the types that they are written in."""

    model_config = ConfigDict(extra="allow", strict=True)

    model: str
    data: str | None
    annotator: str


class _Identity(BaseModel):
    """The fields of `identity`, as `run_identity` writes them."""

    model_config = ConfigDict(extra="allow", strict=True)

    model: dict[str, Any]
    tasks: dict[str, str]
    corpora: dict[str, str]
    limit: int | None
    seed: int


class _Manifest(BaseModel):
    """The fields of a manifest that are read again; others may stand beside them."""

    model_config = ConfigDict(extra="allow", strict=True)

    equivox: str
    created: str
    command: _Command
    identity: _Identity
    environment: dict[str, Any] = {}
    files: dict[str, str] = {}
    served_as: list[str] = []
    annotators_served_as: dict[str, list[str]] = {}
    samples_without_group: dict[str, int] = {}
    asked_alike: dict[str, int] = {}


def _lost(path: Path, why: str) -> DamageError:
    """Return the error of a damaged manifest, which the run's command cannot make again."""
    return DamageError(
        f"{path} is damaged ({why}); restore it from a copy, or give the run's command with another folder: "
        "nothing else says what was asked",
        path,
        why,
    )


def read_manifest(folder: Path) -> dict[str, Any]:
    """Return the manifest of the run in `folder`.

    UsageError if there is none, if its format is not supported, or if the folder holds what no run holds: a pipe, a
    device, a link out of the folder. DamageError for entries that no manifest has.
    """
    path = folder / MANIFEST_FILE
    refuse_odd_files(folder)
    try:
        refuse_oversized(path)
        manifest = read_document(path)
    except (FileNotFoundError, NotADirectoryError):
        raise UsageError(f"{folder} is not a run: it has no manifest.json; give the folder that a run wrote") from None
    except DamageError as error:
        raise _lost(path, error.why) from error
    if manifest.get("format") != FORMAT:
        made = str(manifest.get("equivox"))[:40]
        raise UsageError(
            f"{folder} was made by equivox {made}, whose runs {__version__} does not read; read it with version "
            f"{made}, or run it again"
        )
    try:
        checked = _Manifest.model_validate(manifest)
        EngineIdentity.from_public_dict(checked.identity.model)
    except ValidationError as error:
        raise _lost(path, complaint(error)) from None
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise _lost(path, f"its model is none that equivox can have asked ({error})") from None
    if not is_file_name(checked.command.annotator):
        raise _lost(path, f"no file can be called after its annotator {checked.command.annotator!r:.80}")
    return dict(manifest)


_DATED = re.compile(r"[-@:](?:\d[\d.-]*|latest)")
"""What servers append to the name of a model for its version."""


def answered_by(manifest: Mapping[str, Any]) -> str:
    """Return the names of the models that answered in place of the one that was asked; empty if it answered itself.

    A name with a version behind it is the same model; two versions are two models.

    >>> asked = {"identity": {"model": {"model": "gpt-4o"}}}
    >>> answered_by({**asked, "served_as": ["gpt-4o-2024-08-06"]}), answered_by({**asked, "served_as": ["gpt-4o-mini"]})
    ('', 'gpt-4o-mini')
    >>> answered_by({**asked, "served_as": ["gpt-4o-2024-08-06", "gpt-4o-2024-11-20"]})
    'gpt-4o-2024-08-06, gpt-4o-2024-11-20'
    """
    model = str(manifest["identity"]["model"]["model"])
    others: list[str] = []
    versions: list[str] = []
    for name in manifest.get("served_as", ()):
        served = redacted_text(str(name)).removeprefix("models/")
        if served != model:
            dated = served.startswith(model) and _DATED.fullmatch(served[len(model) :])
            (versions if dated else others).append(served)
    return ", ".join([*others, *(versions if len(versions) > 1 else ())])


def annotator_answered(manifest: Mapping[str, Any], annotator: str) -> str:
    """Return the names by which an annotator's server answered; empty if it answered by the one it was asked for."""
    return ", ".join(map(redacted_text, manifest.get("annotators_served_as", {}).get(annotator, ())))


def label_with_answering(label: str, manifest: Mapping[str, Any]) -> str:
    """Return the label of a run's model, with the model that answered in its place, if one did."""
    other = answered_by(manifest)
    return f"{label} (answered by {other})" if other else label


def write_manifest(folder: Path, manifest: Mapping[str, Any]) -> None:
    """Write `manifest` to `folder`, whole or not at all."""
    write_document(folder / MANIFEST_FILE, manifest)


def differences(there: Mapping[str, Any], here: Mapping[str, Any], prefix: str = "") -> list[str]:
    """Return the entries in which two identities differ, as `key: theirs there, ours here`.

    >>> differences({"limit": 50, "seed": 0}, {"limit": None, "seed": 0})
    ['limit: 50 there, none here']
    >>> differences({"base_url": "http://127.0.0.1:8000/v1"}, {"base_url": "http://127.0.0.1:8001/v1"})
    ['base_url: http://127.0.0.1:8000/v1 there, http://127.0.0.1:8001/v1 here']
    >>> differences({"digest": "0a" * 32}, {"digest": "0b" * 32})
    ['digest: 0a0a0a0a0a0a… there, 0b0b0b0b0b0b… here']
    """
    found: list[str] = []
    for key in sorted({*there, *here}):
        old, new = there.get(key), here.get(key)
        if old == new:
            continue
        name = f"{prefix}{key}"
        if isinstance(old, Mapping) and isinstance(new, Mapping):
            found += differences(old, new, f"{name}.")
        else:
            found.append(f"{name}: {_short(old)} there, {_short(new)} here")
    return found


_DIGEST = re.compile("[0-9a-f]{32,}")


def _short(value: Any) -> str:
    text = "none" if value is None else str(value)
    longest = 12 if _DIGEST.fullmatch(text) else 60
    return text if len(text) <= longest else f"{text[:longest]}…"


FILES = "files"
"""The entry of the manifest that holds the hashes."""

NOT_LISTED = "not listed in the manifest"
"""What is wrong with a file that is not of the run; one that belongs to it would change what is computed."""

_APART = frozenset({MANIFEST_FILE, LIVE_FILE, "README.md", "equivox.json"})
"""Files beside the run: the manifest itself, the note of a run that is under way, and what `equivox data push` adds."""


def run_files(folder: Path) -> dict[str, Path]:
    """Return the files of the run in `folder` by their paths below it, in order; hidden and temporary ones are not its.

    Folders behind links are not read.
    """
    found: dict[str, Path] = {}
    for root, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for path in (Path(root) / name for name in files if not name.startswith(".")):
            if not (path.parent == folder and path.name in _APART):
                found[path.relative_to(folder).as_posix()] = path
    return dict(sorted(found.items()))


def hashes_of(folder: Path) -> dict[str, str]:
    """Return the hash of each file of the run in `folder`."""
    return {name: file_hash(path) for name, path in run_files(folder).items()}


def state_hashes(folder: Path) -> None:
    """State in the manifest the hashes of all files of the run in `folder`."""
    manifest, found = read_manifest(folder), hashes_of(folder)
    if manifest.get(FILES) != found:
        write_manifest(folder, manifest | {FILES: found})


def changed_files(folder: Path, manifest: Mapping[str, object]) -> dict[str, str]:
    """Return what is wrong with each file that is not as the manifest states; {} if it states no hashes."""
    stated = stated_hashes(manifest)
    if stated is None:
        return {}
    there = run_files(folder)
    found = {name: "missing" for name in stated if name not in there}
    for name, path in there.items():
        if name not in stated:
            found[name] = NOT_LISTED
        elif file_hash(path) != stated[name]:
            found[name] = "changed since the run was scored"
    return found


def forget_hashes(folder: Path) -> None:
    """Remove the hashes from the manifest, if there is one, of a run whose files are about to change."""
    if not (folder / MANIFEST_FILE).exists():
        return
    manifest = read_manifest(folder)
    if manifest.pop(FILES, None) is not None:
        write_manifest(folder, manifest)


def stated_hashes(manifest: Mapping[str, object]) -> dict[str, str] | None:
    """Return the hashes that a manifest states; None if it states none."""
    found = manifest.get(FILES)
    return {str(name): str(value) for name, value in found.items()} if isinstance(found, dict) else None
