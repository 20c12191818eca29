"""Spoken answers: each is a file of the run, called after its content."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from equivox.core.errors import RequestError, StorageError
from equivox.core.files import TEMPORARY
from equivox.core.media import MOST_SOUND_BYTES

SOUNDS = "sounds"
"""The folder of a run that holds its spoken answers, called after their SHA-256."""


def keep_sound(folder: Path, content: bytes) -> str:
    """Store a spoken answer in the run in `folder` and return its SHA-256; what is stored already stays.

    Raises StorageError when the disk refuses.
    """
    sha256 = hashlib.sha256(content).hexdigest()
    path = sound_path(folder, sha256)
    if not path.exists():
        temporary = path.with_name(f"{TEMPORARY}{path.name}")
        try:
            path.parent.mkdir(exist_ok=True)
            temporary.write_bytes(content)
            os.replace(temporary, path)
        except OSError as error:
            raise StorageError(f"cannot write {path}: {error.strerror or error}; free some space") from error
    return sha256


def sound_path(folder: Path, sha256: str) -> Path:
    """Return where a spoken answer of the run in `folder` is stored; RequestError for a name that is no SHA-256."""
    if len(sha256) != 64 or not set(sha256) <= set("0123456789abcdef"):
        raise RequestError(f"{sha256!r:.80} names no spoken answer; it is no SHA-256")
    return folder / SOUNDS / f"{sha256}.wav"


def read_sound(folder: Path, sha256: str) -> bytes:
    """Return a stored spoken answer; RequestError for one that is missing, too long, or not what its name says."""
    path = sound_path(folder, sha256)
    try:
        if path.is_symlink() or not path.is_file() or path.stat().st_size > MOST_SOUND_BYTES:
            raise RequestError(f"{path} is no spoken answer of this run: it is missing, a link, or too long")
        content = path.read_bytes()
    except OSError as error:
        raise RequestError(f"cannot read {path}: {error.strerror or error}") from error
    if hashlib.sha256(content).hexdigest() != sha256:
        raise RequestError(f"{path} was changed: its content is not that of its name")
    return content
