"""The explorer as a folder for a static Space or any web server: the page, its tables, and some recordings."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from equivox.core.errors import RequestError
from equivox.core.files import refused
from equivox.core.progress import Progress, no_progress
from equivox.report.view.build import DOCUMENT, build
from equivox.report.view.media import Media
from equivox.report.view.server import PAGE, PAIR
from equivox.report.view.verdict import verdict_of_pair

if TYPE_CHECKING:
    import pyarrow as pa

FEW = 20
"""Recordings or pictures of each task and group that a folder holds unless more are asked for."""

_README = """---
title: {title}
sdk: static
pinned: false
---

Answers of {models}, shown by equivox {version}. Open `index.html` through a web server.
"""


@dataclass(frozen=True, kw_only=True)
class Written:
    """Its extent: the number and the bytes of the media, those that all media would take (about), and of all."""

    media: int
    media_bytes: int
    all_media: int
    all_media_bytes: int
    total_bytes: int


@dataclass(eq=False)
class _Chosen:
    """The media that go into the folder; their names replace the hashes in the tables of answers."""

    media: Media
    most: int | None
    folder: Path
    names: dict[str, str] = field(default_factory=dict)
    n_bytes: int = 0

    def named(self, table: pa.Table) -> pa.Table:
        """Return a task's table with the file names of chosen media, null for the others; the files are written."""
        import pyarrow as pa

        for sha256 in _spread(table, self.most):
            if sha256 not in self.names:
                content, ending = self.media.compact(sha256)
                self.names[sha256] = f"{sha256}.{ending}"
                self.folder.mkdir(exist_ok=True)
                (self.folder / self.names[sha256]).write_bytes(content)
                self.n_bytes += len(content)
        encoded = table["media"].combine_chunks().dictionary_encode()
        names = [self.names.get(sha256) for sha256 in encoded.dictionary.to_pylist()]
        column = pa.array(names, pa.string()).take(encoded.indices)
        return table.set_column(table.column_names.index("media"), "media", column)


def _spread(table: pa.Table, most: int | None) -> list[str]:
    """Return at most so many media of each group, those that the page shows first; all with None."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    if most is None:
        return [sha256 for sha256 in table["media"].unique().to_pylist() if sha256]
    strata, groups = (
        table[name].combine_chunks().dictionary_encode().indices.to_numpy() for name in ("stratum", "group")
    )
    places = np.arange(len(table))
    # The table is sorted: rows of one stratum and group follow one another.
    begins = np.flatnonzero(np.diff(strata, prepend=-1) | np.diff(groups, prepend=-1))
    rank = places - np.repeat(begins, np.diff(np.append(begins, len(table))))
    chosen: list[str] = []
    for group in range(int(groups.max(initial=-1)) + 1):
        own = np.flatnonzero(groups == group)
        ordered = table["media"].take(pa.array(own[np.lexsort((own, rank[own]))]))
        chosen += pc.unique(ordered.drop_null()).to_pylist()[:most]
    return list(dict.fromkeys(chosen))


def write_static(
    folders: Sequence[Path],
    output: Path,
    *,
    media: int | None = FEW,
    data: str | None = None,
    progress: Progress = no_progress,
) -> Written:
    """Write the page of the runs in `folders` into `output`, whole or not at all, and return what it holds.

    `media` is the number of recordings or pictures of each task and group, None for all. A folder that this function
    wrote before is replaced; RequestError for any other that is not empty.
    """
    _check_output(output)
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=output.parent, prefix=".equivox-view-") as scratch:
            made = Path(scratch) / "page"
            found = _write(folders, made, media=media, data=data, progress=progress)
            made.chmod(0o755)
            if output.exists():
                os.replace(output, Path(scratch) / "before")
            os.replace(made, output)
    except OSError as error:
        raise refused(output, error) from error
    return found


def _check_output(output: Path) -> None:
    if not output.exists():
        return
    if not output.is_dir():
        raise RequestError(f"`static` {output} is a file; name a folder")
    if any(output.iterdir()) and not _is_ours(output):
        raise RequestError(f"`static` {output} is not empty and no page of `equivox view`; name a new folder")


def _is_ours(output: Path) -> bool:
    try:
        return bool(json.loads((output / DOCUMENT).read_text("utf-8")).get("kind") == "equivox view")
    except (OSError, ValueError, AttributeError):
        return False


def _write(folders: Sequence[Path], made: Path, *, media: int | None, data: str | None, progress: Progress) -> Written:
    made.mkdir()
    _copy(PAGE, made)
    known = Media.of(folders, data)
    chosen = _Chosen(known, media, made / "media")
    document = build(folders, made / "data", live=False, media=chosen.named, progress=progress)
    os.replace(made / "data" / DOCUMENT, made / DOCUMENT)
    if document["pair"]:
        pair = json.dumps(verdict_of_pair(folders), ensure_ascii=False)
        (made / PAIR).write_text(f"{pair}\n", "utf-8")
    models = ", ".join(str(run["label"]) for run in document["runs"])
    readme = _README.format(title=json.dumps(f"Answers of {models}"[:80]), models=models, version=document["version"])
    (made / "README.md").write_text(readme, "utf-8")
    n, size = len(chosen.names), chosen.n_bytes
    return Written(
        media=n,
        media_bytes=size,
        all_media=len(known.places),
        all_media_bytes=size * len(known.places) // n if n else 0,
        total_bytes=sum(path.stat().st_size for path in made.rglob("*") if path.is_file()),
    )


def _copy(source: Traversable, target: Path) -> None:
    for entry in source.iterdir():
        if entry.is_dir():
            (target / entry.name).mkdir()
            _copy(entry, target / entry.name)
        else:
            (target / entry.name).write_bytes(entry.read_bytes())


def checked_media(given: str) -> int | None:
    """Return how many media of each task and group `--media` asks for; None for all.

    >>> checked_media("all"), checked_media("none"), checked_media("5")
    (None, 0, 5)
    """
    if given in {"all", "none"}:
        return None if given == "all" else 0
    if given.isascii() and given.isdigit():
        return int(given)
    raise RequestError(f"`media` is all, none or a number of each task and group, got {given!r}")


def sizes(found: Written) -> dict[str, Any]:
    """Return the sizes in MB, for a message."""
    names = ("media_bytes", "all_media_bytes", "total_bytes")
    return {name: f"{getattr(found, name) / 1e6:.1f} MB" for name in names}
