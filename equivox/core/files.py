"""Files that are whole or absent, and that show damage when they are read.

Every file of a run is written under a temporary name, flushed to disk and renamed. Tables carry checksums of their
pages, documents a checksum of their text: a file that was cut short or changed afterwards is refused by one line.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

from equivox.core.errors import DamageError, StorageError, UsageError, nearest
from equivox.core.lazy import pa, pq
from equivox.core.text import parsed_json

TEMPORARY = ".writing-"
"""The beginning of a file's name while the file is being written."""
WRITTEN: set[Path] = set()
"""The files that this process stored, or began to: after an interrupt, those that exist say whether something is."""

CHECKSUM = "sha256"
"""The entry of a document that holds the checksum of the others."""
_CHECK = b"equivox.check"


def cache_folder(name: str) -> Path:
    """Return the folder `name` of what is kept: in `EQUIVOX_CACHE`, or else in `equivox` of the user's cache."""
    usual = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "equivox"
    return Path(os.environ.get("EQUIVOX_CACHE") or usual).expanduser() / name


def is_file_name(name: str) -> bool:
    """Return whether a file can be called after `name`, in its own folder and not hidden.

    >>> is_file_name("vibe_gender:story"), is_file_name("../story"), is_file_name(".story"), is_file_name("")
    (True, False, False, False)
    """
    return bool(name) and not name.startswith(".") and not any(sign in name for sign in "/\\\0")


def shortened(text: str, longest: int = 80) -> str:
    """Return a text for a message, without its middle if it is long.

    >>> shortened("a" * 50 + "b" * 50, longest=11)
    'aaaaa…bbbbb'
    """
    half = longest // 2
    return text if len(text) <= longest else f"{text[:half]}…{text[-half:]}"


def write_whole(path: Path, write: Callable[[Path], Any]) -> None:
    """Call `write(temporary)` and rename the result to `path`; on any failure nothing is left behind.

    Raises StorageError when the disk refuses (full, read-only, over quota).
    """
    temporary = path.with_name(TEMPORARY + path.name)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write(temporary)
        with temporary.open("rb") as written:
            os.fsync(written.fileno())
        WRITTEN.add(path)
        os.replace(temporary, path)
    except BaseException as error:
        with suppress(OSError):  # a read-only disk refuses this too
            temporary.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise refused(path, error) from error
        raise


def unreadable(what: str, path: Path, error: OSError) -> UsageError:
    """Return the error about a file that cannot be read; beside one that is not there, it names those of like names."""
    there = path.parent.glob(f"*{path.suffix}") if isinstance(error, FileNotFoundError) else ()
    like = nearest(path.name, (entry.name for entry in there))
    return UsageError(f"cannot read {what}: {error.strerror or error}{like or '; check the path'}")


def refused(path: Path, error: OSError) -> StorageError:
    """Return the error of a disk that did not take what was to be written to `path`."""
    cure = "free space or permissions there, then give the same command again to go on"
    return StorageError(f"cannot write {path}: {error.strerror or error}; nothing half-written was left; {cure}")


def write_text(path: Path, text: str) -> None:
    """Write `text` to `path` whole or not at all."""
    write_whole(path, lambda temporary: temporary.write_text(text, encoding="utf-8", newline=""))


def write_document(path: Path, document: Mapping[str, Any]) -> None:
    """Write a JSON object with the checksum of its entries; `read_document` refuses it once it was changed."""
    plain = json.loads(json.dumps(dict(document), allow_nan=False))
    plain.pop(CHECKSUM, None)
    write_text(path, json.dumps(plain | {CHECKSUM: _checksum(plain)}, indent=1, ensure_ascii=False) + "\n")


def read_document(path: Path) -> dict[str, Any]:
    """Return the JSON object that `write_document` wrote, without its checksum.

    Raises DamageError, naming the file, for one that was cut short or changed, or holds half of a surrogate pair, which
    no file and no terminal can show; FileNotFoundError if there is none.
    """
    with name_damage(path):
        document = parsed_json(path.read_bytes())
        if not isinstance(document, dict):
            raise ValueError(f"it holds {type(document).__name__} where an object belongs")
        if document.pop(CHECKSUM, None) != _checksum(document):
            raise ValueError("its checksum does not fit its contents")
    return document


def _checksum(document: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(document, sort_keys=True, allow_nan=False).encode("ascii")).hexdigest()


def damaged(path: Path, why: str) -> DamageError:
    """Return the error of a file that is not what was written."""
    why = " ".join(why.split())[:200]
    cure = "restore it from a copy, or delete it and give the run's command again: what it held is made again"
    return DamageError(f"{path} is damaged ({why}); {cure}", path, why)


@contextmanager
def name_damage(path: Path) -> Iterator[None]:
    """Turn what reading a damaged file raises into DamageError, which names the file."""
    try:
        yield
    except (FileNotFoundError, NotADirectoryError, DamageError):
        raise
    except (OSError, pa.ArrowException, ValueError, KeyError, OverflowError, MemoryError, RecursionError) as error:
        raise damaged(path, getattr(error, "strerror", None) or str(error)) from error


def write_table(path: Path, table: pa.Table) -> None:
    """Write `table` as parquet with checksums of its pages and of its schema to `path`, whole or not at all."""
    notes = _read_notes(table.schema)
    table = table.replace_schema_metadata(notes | {_CHECK: _check(table.schema, table.num_rows)})
    write_whole(path, lambda temporary: pq.write_table(table, temporary, compression="zstd", write_page_checksum=True))


def read_table(path: Path, columns: Sequence[str] | None = None, *, memory_map: bool = False) -> pa.Table:
    """Return the table in a parquet file, or some of its columns; its checksums are verified.

    Raises DamageError, naming the file, for one that was cut short or changed, and FileNotFoundError if there is none.
    """
    with name_damage(path):
        footer, schema = _open_table(path, state_of(path))
        file = pq.ParquetFile(path, metadata=footer, memory_map=memory_map, page_checksum_verification=True)
        # One thread reads a small table sooner than several, to which its columns are handed.
        table = file.read(None if columns is None else list(columns), use_threads=footer.num_rows > 100_000)
        # The notes lie in the file twice; the checksum was verified against one copy, and this is the other.
        if _read_notes(table.schema) != _read_notes(schema):
            raise ValueError("its two copies of the notes on the table differ")
        return table.replace_schema_metadata(_read_notes(schema) or None)


def read_schema(path: Path) -> pa.Schema:
    """Return the columns of a parquet file and what it says of itself, as `read_table` does."""
    with name_damage(path):
        _, schema = _open_table(path, state_of(path))
        return schema.with_metadata(_read_notes(schema) or None)


@lru_cache(maxsize=256)
def _open_table(path: Path, state: tuple[int, ...]) -> tuple[pq.FileMetaData, pa.Schema]:
    """Return the footer and the schema of a table in a `state` on disk, once its checksum was verified.

    A comparison reads columns of the same tables many times, and the footer takes longer than a column.
    """
    with pq.ParquetFile(path) as file:
        footer, schema = file.metadata, file.schema_arrow
    # The footer counts rows twice; the reader follows the count of each row group, which no checksum covers.
    n_rows = sum(footer.row_group(number).num_rows for number in range(footer.num_row_groups))
    if (schema.metadata or {}).get(_CHECK) != _check(schema, n_rows) or n_rows != footer.num_rows:
        raise ValueError("its checksum does not fit its columns")
    return footer, schema


def _read_notes(schema: pa.Schema) -> dict[bytes, bytes]:
    return {name: value for name, value in (schema.metadata or {}).items() if name != _CHECK}


def _check(schema: pa.Schema, n_rows: int) -> bytes:
    """Return a checksum of what the checksums of pages do not cover: columns, rows, and the notes on the table."""
    columns = [(field.name, _kind(field.type)) for field in schema]
    notes = "".join(map(repr, sorted(_read_notes(schema).items())))
    return hashlib.sha256(f"{n_rows} {columns}{notes}".encode()).hexdigest().encode()


def _kind(kind: pa.DataType) -> str:
    """Return the type of a column in the words that parquet keeps."""
    if pa.types.is_dictionary(kind):
        return _kind(kind.value_type)
    return f"list of {_kind(kind.value_type)}" if pa.types.is_list(kind) else str(kind)


def state_of(path: Path) -> tuple[int, ...]:
    """Return what changes when a file is written anew: its inode, its size, and its time in nanoseconds."""
    status = path.stat()
    return status.st_ino, status.st_size, status.st_mtime_ns


def return_freed_memory() -> None:
    """Give memory that was freed back to the system; the C library of Linux keeps what large tables leave in pieces."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def file_hash(path: Path) -> str:
    """Return the SHA-256 of a file; StorageError for one that cannot be read."""
    try:
        with path.open("rb") as opened:
            return hashlib.file_digest(opened, "sha256").hexdigest()
    except OSError as error:
        raise StorageError(f"cannot read {path}: {error.strerror or error}; check its permissions") from error


def path_ends(paths: Sequence[Path]) -> list[str]:
    """Return the fewest last parts of each path that no other one ends with; no two are the same place."""
    parts = [path.resolve().parts for path in paths]
    ends = [[own[-n:] for n in range(1, len(own) + 1)] for own in parts]
    taken = Counter(end for own in ends for end in own)
    return [Path(*next(end for end in own if taken[end] == 1)).as_posix() for own in ends]
