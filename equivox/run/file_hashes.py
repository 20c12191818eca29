"""The SHA-256 hashes of a run's files, stated in its manifest, so that a run that was passed on can be checked.

Scoring ends with them. While a run goes on its manifest has none. They show what was changed by mistake or without
care; somebody who changes a run on purpose can state new ones. The hash of the manifest, which names all others, is
therefore to be passed on by another way than the run.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from equivox.core.errors import StorageError
from equivox.run.live import LIVE_FILE
from equivox.run.manifest import MANIFEST_FILE, read_manifest, write_manifest

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
    return dict(sorted((path.relative_to(folder).as_posix(), path) for path in _walk(folder)))


def _walk(folder: Path) -> Iterator[Path]:
    for root, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in files:
            if not name.startswith(".") and not (Path(root) == folder and name in _APART):
                yield Path(root) / name


def file_hash(path: Path) -> str:
    """Return the SHA-256 of a file; StorageError for one that cannot be read."""
    try:
        with path.open("rb") as opened:
            return hashlib.file_digest(opened, "sha256").hexdigest()
    except OSError as error:
        raise StorageError(f"cannot read {path}: {error.strerror or error}; check its permissions") from error


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
