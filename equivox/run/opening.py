"""The door to stored runs: every command opens a run through `open_run`, whoever made it.

A run is data from elsewhere until its numbers were computed on this machine. `open_run` refuses files that are none of
a run, and says what is not as it was scored. What publishes or decides by a run asks `equivox.compare.believing` as
well, which computes every number again, once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

from equivox.core.errors import EquivoxError, UsageError
from equivox.core.files import cache_folder, file_hash
from equivox.core.foreign_files import refuse_oversized
from equivox.core.hashing import digest
from equivox.core.task import DataSource
from equivox.core.version import __version__
from equivox.dataset_builders.corpus import SAMPLE
from equivox.run.declarations import TASKS_FILE
from equivox.run.manifest import MANIFEST_FILE, changed_files, read_manifest, run_files, stated_hashes

COMPUTED = "computed"
"""The folder of the user's cache with a file for each run whose numbers were computed on this machine, which holds the
version that did; its name is the SHA-256 of the run's manifest, which states the hashes of all its other files."""
MADE = "made"
"""The folder of the user's cache with an empty file for each run that was begun on this machine."""
_UNFINISHED: dict[Path, str] = {}
"""The runs without scores of which this process did all so far, with the SHA-256 of the manifest as it left them: a run
file takes its models through one stage after the other, and only a run with scores can be noted as computed."""


def open_run(folder: Path) -> str | None:
    """Check that the files in `folder` are those of a run; return what is not as it was scored, None if nothing.

    UsageError as `read_manifest`, and for a document or a table that takes more memory than any of a run. A run that
    is under way states no hashes yet, and nothing is said of it.
    """
    changed = changed_files(folder, read_manifest(folder))
    if changed or not _is_noted(folder):
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


def is_computed(folder: Path) -> bool:
    """Return whether this version computed the numbers of a run on this machine, and no file changed since."""
    return _is_noted(folder) and not changed_files(folder, read_manifest(folder))


def note_computed(folder: Path) -> None:
    """Note that the numbers of the run in `folder` were computed on this machine; without hashes nothing is noted."""
    if stated_hashes(read_manifest(folder)) is None:
        return
    _write_note(_note(folder), __version__)


def _is_noted(folder: Path) -> bool:
    with suppress(OSError):
        return _note(folder).read_text() == __version__
    return False


def _note(folder: Path) -> Path:
    return cache_folder(COMPUTED) / file_hash(folder / MANIFEST_FILE)


def note_made(folder: Path) -> None:
    """Note that the run in `folder` was begun on this machine."""
    _write_note(_made(folder))


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


def _write_note(note: Path, text: str = "") -> None:
    with suppress(OSError):  # without a cache a run counts as one from elsewhere
        note.parent.mkdir(parents=True, exist_ok=True)
        note.write_text(text)


@contextmanager
def computing(folder: Path) -> Iterator[None]:
    """Note a run that is new, or that this machine computed before, as computed here once a block has scored it."""
    place, manifest = folder.resolve(), folder / MANIFEST_FILE
    left = _UNFINISHED.pop(place, None)
    ours = not manifest.exists() or left == file_hash(manifest) or is_computed(folder)
    yield
    if not ours or not manifest.exists():
        return
    if stated_hashes(read_manifest(folder)) is None:
        _UNFINISHED[place] = file_hash(manifest)
    else:
        note_computed(folder)
