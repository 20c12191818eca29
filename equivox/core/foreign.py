"""Files from elsewhere: what is refused before any of them is read.

A file is a regular file, lies where it seems to lie, and takes a bounded amount of memory once it is expanded.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from equivox.core.errors import RequestError
from equivox.core.files import damaged

if TYPE_CHECKING:
    import pyarrow as pa

MOST_FILES = 100_000
"""Files and folders in one folder from elsewhere, at all depths."""
LONGEST_DOCUMENT = 64 * 2**20
"""Bytes of a JSON document; of a journal of records, twice as many."""
LONGEST_TABLE = 4 * 2**30
"""Bytes of a table in memory, with every value written out."""


def refuse_odd_files(folder: Path) -> None:
    """Raise RequestError for a folder with anything but folders and regular files, or with a link out of it.

    A pipe or a device would be waited for without end; a link leads to files that nobody handed over.
    """
    root = Path(os.path.realpath(folder))
    for number, (path, mode) in enumerate(_entries(folder)):
        if number > MOST_FILES:
            raise RequestError(f"{folder} holds more than {MOST_FILES:,} files; no run does; give the folder of a run")
        if stat.S_ISLNK(mode):
            if not Path(os.path.realpath(path)).is_relative_to(root):
                raise RequestError(f"{path} is a link out of {folder}; put the file itself there, or remove the link")
            with suppress(OSError):  # a link to nothing, or to itself, stays one
                mode = path.stat().st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
            raise RequestError(f"{path} is no regular file but {_kind(mode)}; remove it")


def _entries(folder: Path) -> Iterator[tuple[Path, int]]:
    """Yield every path below `folder` with its mode; links are not followed."""
    for root, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = Path(root) / name
            try:
                yield path, path.lstat().st_mode
            except FileNotFoundError:  # a run that is under way renames its files
                continue


def _kind(mode: int) -> str:
    kinds = {stat.S_IFIFO: "a pipe", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device", stat.S_IFSOCK: "a socket"}
    return kinds.get(stat.S_IFMT(mode), "a link to nothing")


def refuse_oversized(path: Path) -> None:
    """Raise DamageError for a document or a table that would take more memory than any that equivox writes."""
    if path.suffix == ".parquet":
        _refuse_large_table(path)
    elif path.suffix in {".json", ".jsonl"}:
        most = LONGEST_DOCUMENT * (2 if path.suffix == ".jsonl" else 1)
        if (size := path.stat().st_size) > most:
            raise damaged(path, f"it holds {size:,} bytes, of at most {most:,}")


def _refuse_large_table(path: Path) -> None:
    import pyarrow as pa

    try:
        size = table_bytes(path, most=LONGEST_TABLE)
    except FileNotFoundError:
        raise
    except (OSError, pa.ArrowException, ValueError, OverflowError, MemoryError) as error:
        raise damaged(path, str(error)) from error
    if size > LONGEST_TABLE:
        raise damaged(path, f"it takes {size:,} bytes or more in memory, of at most {LONGEST_TABLE:,}")


def table_bytes(path: Path, *, most: int) -> int:
    """Return the bytes that a parquet file takes with every value written out; above `most` counting stops.

    What the file declares is counted first. Its texts are then read, each distinct one once: a text that many rows
    share is stored once, so that a small file can hold more than fits into memory. Raises what pyarrow raises.
    """
    import pyarrow.parquet as pq

    metadata = pq.ParquetFile(path).metadata
    chunks = [
        metadata.row_group(group).column(column)
        for group in range(metadata.num_row_groups)
        for column in range(metadata.num_columns)
    ]
    declared: int = sum(max(chunk.total_uncompressed_size, 8 * chunk.num_values) for chunk in chunks)
    texts = sorted({chunk.path_in_schema for chunk in chunks if chunk.physical_type == "BYTE_ARRAY"})
    if declared > most or sum(chunk.num_values * chunk.total_uncompressed_size for chunk in chunks) <= most:
        return declared
    held = 0
    for batch in pq.ParquetFile(path, read_dictionary=texts).iter_batches(columns=texts) if texts else ():
        held += sum(_written_out(column) for column in batch.columns)
        if held > most:
            break
    return max(declared, held)


def _written_out(array: pa.Array) -> int:
    """Return the bytes of the texts in an array, each counted as often as it occurs."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind: Any = array.type
    if pa.types.is_dictionary(kind):
        lengths = pc.binary_length(array.dictionary)
        return int(pc.sum(pc.cast(lengths.take(array.indices), pa.int64())).as_py() or 0)
    if pa.types.is_struct(kind):
        return sum(_written_out(field) for field in array.flatten())
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _written_out(array.flatten())
    return int(array.nbytes)
