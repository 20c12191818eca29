"""Files from elsewhere: what is refused before any of them is read.

A file is a regular file, lies where it seems to lie, and takes a bounded amount of memory.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import Any

from equivox.core.errors import UsageError
from equivox.core.files import name_damage, shortened
from equivox.core.lazy import pa, pc, pq

_LONGEST = 3500
"""The longest path of a folder, in bytes; Linux takes 4,095 for a file below it."""

MOST_FILES = 100_000
"""Files and folders in one folder from elsewhere, at all depths."""
LONGEST_DOCUMENT = 64 * 2**20
"""Bytes of a JSON document; of a journal of records, twice as many."""
LONGEST_TABLE = 4 * 2**30
"""Bytes of a table in memory, with every value written out."""


def refuse_unusable(path: Path, name: str) -> None:
    """Raise UsageError, naming the argument `name`, for a path that no file or folder can have.

    Such a path, or a part of it, is too long, holds a NUL, or goes through symbolic links in a circle.
    """
    try:
        if len(os.fsencode(path.absolute())) > _LONGEST:
            raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG))
        path.stat()
    except (OSError, ValueError) as error:
        if isinstance(error, OSError) and error.errno not in (errno.ENAMETOOLONG, errno.ELOOP):
            return
        why = (getattr(error, "strerror", None) or str(error)).lower()
        raise UsageError(f"`{name}` {shortened(str(path))} cannot be used: {why}; name another") from None


def refuse_unusable_file(path: Path, name: str) -> None:
    """Raise UsageError for a path that cannot be used as a file; `name` is its option."""
    refuse_unusable(path, name)
    if path.is_dir():
        raise UsageError(f"`{name}` {path} is a folder; name the file")


def refuse_unusable_folder(path: Path, name: str) -> None:
    """Raise UsageError for a path that cannot be used as a folder; `name` is its option."""
    refuse_unusable(path, name)
    if path.exists() and not path.is_dir():
        raise UsageError(f"`{name}` {path} is a file; name a folder")


def refuse_odd_files(folder: Path) -> None:
    """Raise UsageError for a folder with anything but folders and regular files, or with a link out of it.

    A pipe or a device would be waited for without end; a link leads to files that nobody handed over.
    """
    root, number = os.path.realpath(folder), 0
    for place, folders, files in os.walk(folder):  # links are not followed
        number += len(folders) + len(files)
        if number > MOST_FILES:
            raise UsageError(
                f"{folder} holds more than {MOST_FILES:,} files, more than any run; give the folder of a run"
            )
        for path in (os.path.join(place, name) for name in (*folders, *files)):
            with suppress(FileNotFoundError):  # a run that is under way renames its files
                mode = os.lstat(path).st_mode
                if stat.S_ISLNK(mode):
                    if not Path(os.path.realpath(path)).is_relative_to(root):
                        raise UsageError(f"{path} is a link out of {folder}; put the file itself there")
                    with suppress(OSError):  # a link to nothing, or to itself, stays one
                        mode = os.stat(path).st_mode
                if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
                    raise UsageError(f"{path} is not a regular file, but a pipe, a device or a broken link; remove it")


def refuse_oversized(path: Path) -> None:
    """Raise DamageError for a document or a table that would take more memory than any that equivox writes."""
    if path.suffix not in {".parquet", ".json", ".jsonl"}:
        return
    most = LONGEST_TABLE if path.suffix == ".parquet" else LONGEST_DOCUMENT * (2 if path.suffix == ".jsonl" else 1)
    with name_damage(path):
        size = table_bytes(path, most=most) if path.suffix == ".parquet" else path.stat().st_size
        if size > most:
            raise ValueError(f"it holds {size:,} bytes or more, of at most {most:,}")


def table_bytes(path: Path, *, most: int, leaving_out: Collection[str] = ()) -> int:
    """Return the bytes that a parquet file takes with every value written out; above `most` counting stops.

    A text that many rows share is stored once, so that a small file can hold more than fits into memory: each distinct
    text is read once, and counts as often as it occurs. Columns whose path in the file is in `leaving_out` count
    nothing. Raises what pyarrow raises.
    """
    metadata = pq.ParquetFile(path).metadata
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    chunks = [group.column(number) for group in groups for number in range(metadata.num_columns)]
    chunks = [chunk for chunk in chunks if chunk.path_in_schema not in leaving_out]
    size: int = sum(max(chunk.total_uncompressed_size, 8 * chunk.num_values) for chunk in chunks)
    texts = sorted({chunk.path_in_schema for chunk in chunks if chunk.physical_type == "BYTE_ARRAY"})
    if not texts or size > most or sum(chunk.num_values * chunk.total_uncompressed_size for chunk in chunks) <= most:
        return size
    written = 0
    for batch in pq.ParquetFile(path, read_dictionary=texts).iter_batches(columns=texts):
        arrays: list[Any] = list(batch.columns)
        while arrays and written <= most:
            array = arrays.pop()
            if pa.types.is_nested(array.type):
                arrays += array.flatten() if pa.types.is_struct(array.type) else [array.flatten()]
            elif pa.types.is_dictionary(array.type):
                lengths = pc.cast(pc.binary_length(array.dictionary), pa.int64())
                written += pc.sum(lengths.take(array.indices)).as_py() or 0
            else:
                written += array.nbytes
    return max(size, written)
