"""The door to stored runs: every command opens a run through `open_run`, whoever made it.

A run is data from elsewhere. `open_run` refuses files that are none of a run, and says what is not as it was scored.
Commands that publish or decide by a run verify it as well, see `equivox.compare.verification`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from pathlib import Path

from equivox.core.errors import EquivoxError, UsageError
from equivox.core.files import cache_folder, file_hash
from equivox.core.foreign_files import refuse_oversized
from equivox.core.hashing import digest
from equivox.core.task import DataSource
from equivox.dataset_builders.corpus import SAMPLE
from equivox.run.declarations import TASKS_FILE
from equivox.run.manifest import NOT_LISTED, changed_files, read_manifest, run_files

MADE = "made"
"""The folder of the user's cache with an empty file for each run that was begun on this machine."""


def open_run(folder: Path) -> str | None:
    """Check that the files in `folder` are those of a run; return what is not as it was scored, None if nothing.

    UsageError as `read_manifest`, and for a document or a table that takes more memory than any of a run. A run that
    is under way states no hashes yet, and nothing is said of it.
    """
    found = changed_files(folder, read_manifest(folder))
    changed = [name for name, why in found.items() if why != NOT_LISTED]
    for path in run_files(folder).values():
        with suppress(FileNotFoundError):  # a run that is under way replaces its files
            refuse_oversized(path)
    if not changed:
        return None
    names = ", ".join(sorted(changed)[:3]) + (", …" if len(changed) > 3 else "")
    files = "1 file is not as it was" if len(changed) == 1 else f"{len(changed)} files are not as they were"
    return f"{folder}: {files} when the run was scored ({names}); `equivox verify` says more"


LeftOut = tuple[str, str]
"""The name of a run that cannot be used, as the user gave it, and the reason."""


def usable_runs(
    named: Iterable[tuple[str, Callable[[], Path]]], check: Callable[[Path], object]
) -> tuple[list[tuple[Path, str]], list[LeftOut]]:
    """Return the folders of the runs that can be used, with their names, and each that cannot with the reason.

    Each name comes with what opens its folder; `check` raises EquivoxError for a folder that cannot be used. A single
    run that cannot be used raises what `check` raised.
    """
    usable: list[tuple[Path, str]] = []
    left_out: list[LeftOut] = []
    first: EquivoxError | None = None
    for name, opened in named:
        try:
            folder = opened()
            open_run(folder)
            check(folder)
        except EquivoxError as error:
            first = first or error
            left_out.append((name, str(error)))
        else:
            usable.append((folder, name))
    if first is not None and not usable and len(left_out) == 1:
        raise first
    return usable, left_out


def by_name(folders: Iterable[Path]) -> list[tuple[str, Callable[[], Path]]]:
    """Return folders of this machine as `usable_runs` takes them."""
    return [(str(folder), partial(Path, folder)) for folder in folders]


def note_made(folder: Path) -> None:
    """Note that the run in `folder` was begun on this machine."""
    note = _made(folder)
    with suppress(OSError):  # without a cache a run counts as one from elsewhere
        note.parent.mkdir(parents=True, exist_ok=True)
        note.touch()


def was_made(folder: Path) -> bool:
    """Return whether the run in `folder` was begun on this machine."""
    return _made(folder).exists()


def data_of(folder: Path, source: DataSource) -> str | None:
    """Return where the run in `folder` says that its data are: `sample`, a path, or None where none was given.

    UsageError for a path that is named by a run which was not begun on this machine: such a run leads to no file
    here but its own.
    """
    where: str | None = read_manifest(folder)["command"]["data"]
    if (source.table is None and where in (None, SAMPLE)) or was_made(folder):
        return where
    raise UsageError(
        f"{folder} was not made on this machine, so equivox does not open its data files; give their folder with "
        "`--data`"
    )


def _made(folder: Path) -> Path:
    manifest = read_manifest(folder)
    known = [manifest["created"], manifest["identity"], manifest["command"]["data"], file_hash(folder / TASKS_FILE)]
    return cache_folder(MADE) / digest(known)
