"""Files that stand in a parquet file: the embedded sample, and tables with recordings or images as the Hub has them.

The sample is raw distributions in miniature, each one parquet file of the files that it holds; `tests/sample/` has the
scripts that make them. All are unpacked into the user's cache when they are first read.
"""

from __future__ import annotations

import atexit
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Literal

from equivox.core.errors import UsageError, nearest
from equivox.core.files import cache_folder, file_hash
from equivox.core.hashing import digest
from equivox.core.lazy import pa, pq
from equivox.core.media import begins_as_image

ARCHIVES = Path(__file__).resolve().parent / "sample"

_OTHER_IMAGES = (b"GIF8", b"BM")
"""The first bytes of images that are refused one by one, not taken for recordings."""
_BATCH, _MEMORY = 64, 256 << 20
"""The most rows whose files are in memory at a time, and about the most bytes of them."""
_BLOCK = 4096
"""The bytes that the smallest file takes of a disk."""


@cache
def sample_source(name: str) -> Path:
    """Return the folder of the embedded synthetic sample of a corpus, by the builder's name.

    The folder lies in the user's cache, or in a temporary folder if nothing can be written there. UsageError for a
    corpus without a sample.
    """
    archive = ARCHIVES / f"{name}.parquet"
    have = sorted(path.stem for path in ARCHIVES.glob("*.parquet"))
    if name not in have:
        raise UsageError(f"there is no sample of {name!r}{nearest(name, have)}; samples are {', '.join(have)}")
    try:
        return _unpacked(_listed(archive), cache_folder("sample") / f"{name}-{file_hash(archive)[:16]}")
    except OSError:
        made = tempfile.mkdtemp(prefix="equivox-sample-")
        atexit.register(shutil.rmtree, made, ignore_errors=True)
        return _unpacked(_listed(archive), Path(made) / name)


def _listed(archive: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the path and the bytes of every file of an archive."""
    for row in pq.read_table(archive).to_pylist():
        yield row["path"], row["bytes"]


def holds_bytes(kind: pa.DataType) -> bool:
    """Return whether a column holds bytes, alone or beside a path."""
    if pa.types.is_struct(kind):
        kind = next((field.type for field in kind if field.name == "bytes"), kind)
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def media_in(table: Path) -> dict[str, Literal["audio", "image"]]:
    """Return the columns of a parquet table that hold files as bytes, and what the first file of each is.

    So data sets of the Hub have them: `{bytes, path}`. Empty for a table of another kind. UsageError for a file that
    is damaged.
    """
    if table.suffix.lower() != ".parquet":
        return {}
    found: dict[str, Literal["audio", "image"]] = {}
    with _told(table):
        for name in (field.name for field in pq.read_schema(table) if holds_bytes(field.type)):
            if first := next(filter(None, _cells(table, name)), b""):
                is_image = begins_as_image(first) or first.startswith(_OTHER_IMAGES)
                found[name] = "image" if is_image else "audio"
    return found


@contextmanager
def _told(table: Path) -> Iterator[None]:
    """Raise UsageError, on one line, for files of a table that cannot be read, or not be written elsewhere."""
    try:
        yield
    except (OSError, pa.ArrowException) as error:
        why = getattr(error, "strerror", None) or str(error).partition("\n")[0]
        raise UsageError(f"cannot unpack the files in {table.name} ({why}); is it whole, and is there room?") from None


def unpacked_media(table: Path, names: Sequence[str]) -> tuple[Path, dict[str, list[str]]]:
    """Return a folder with the files that stand in columns of a parquet table, and these columns as paths in it.

    The folder lies in the user's cache under the hash of the table, and a file is called by its column and row. A row
    without bytes has a path where no file is. UsageError if the files cannot be written, or would fill the disk.
    """
    with _told(table):
        columns = {name: _paths(table, name, place) for place, name in enumerate(names)}
        folder = cache_folder("tables") / digest([file_hash(table), *names])
        folder.parent.mkdir(parents=True, exist_ok=True)
        room = shutil.disk_usage(folder.parent).free // 2
        return _unpacked(_files(table, columns, room), folder), columns


def _paths(table: Path, name: str, place: int) -> list[str]:
    """Return what the file of each row is called; an ending that the table gives stays."""
    below = name if re.fullmatch(r"\w+", name) else f"column-{place}"  # a name may lead out of the folder
    file = pq.ParquetFile(table)
    given: list[str | None] = [None] * file.metadata.num_rows
    kind = file.schema_arrow.field(name).type
    if pa.types.is_struct(kind) and any(field.name == "path" and pa.types.is_string(field.type) for field in kind):
        parts = file.read(columns=[f"{name}.path"]).column(0).to_pylist()
        given = [part and part["path"] for part in parts]
    suffixes = (PurePosixPath(path or "").suffix for path in given)
    return [f"{below}/{n:06d}{end if end[1:].isalnum() else ''}" for n, end in enumerate(suffixes, start=1)]


def _files(table: Path, columns: dict[str, list[str]], room: int) -> Iterator[tuple[str, bytes]]:
    """Yield the path and the bytes of every file; UsageError when they are more than `room` bytes together.

    Rows that share their bytes are stored once, so that a small table can hold more than a disk does.
    """
    for name, paths in columns.items():
        for path, data in zip(paths, _cells(table, name), strict=True):
            room -= max(len(data), _BLOCK)
            if room < 0:
                raise UsageError(
                    f"the files in {table.name} would fill more than half of the free disk; free space, or split it"
                )
            if data:
                yield path, data


def _cells(table: Path, name: str) -> Iterator[bytes]:
    """Yield the bytes of each row of a column, empty where there are none; few rows are in memory."""
    file = pq.ParquetFile(table)
    groups = [file.metadata.row_group(place) for place in range(file.metadata.num_row_groups)]
    chunks = [group.column(place) for group in groups for place in range(group.num_columns)]
    # No file is larger than the largest chunk, and each row may hold that one.
    largest = max((chunk.total_uncompressed_size for chunk in chunks), default=0)
    for batch in file.iter_batches(batch_size=min(_BATCH, 1 + _MEMORY // (1 + largest)), columns=[name]):
        for cell in batch.column(0).to_pylist():
            yield (cell["bytes"] if isinstance(cell, dict) else cell) or b""


def _unpacked(files: Iterable[tuple[str, bytes]], folder: Path) -> Path:
    """Return `folder` with these files in it, each by its path; a folder that is there was unpacked whole."""
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".unpacking-", dir=folder.parent) as made:
        for name, data in files:
            path = Path(made) / "whole" / PurePosixPath(name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        try:
            (Path(made) / "whole").rename(folder)
        except OSError:
            if not folder.is_dir():  # another process was first
                raise
    return folder
