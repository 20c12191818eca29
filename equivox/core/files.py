"""Files that are whole or absent, and that show damage when they are read.

Every file of a run is written under a temporary name, flushed to disk and renamed. Tables carry checksums of their
pages, documents a checksum of their text: a file that was cut short or changed afterwards is refused by one line.

Files from elsewhere: what is refused before any of them is read.

A file is a regular file, lies where it seems to lie, and takes a bounded amount of memory once it is expanded.
"""

from __future__ import annotations

import ctypes
import errno
import hashlib
import json
import os
import shutil
import stat
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

from equivox.core.errors import DamageError, StorageError, UsageError, nearest
from equivox.core.lazy import pa, pc, pq
from equivox.core.text import parsed_json

TEMPORARY = ".writing-"
"""The beginning of a file's name while the file is being written."""

_LONGEST = 3500
"""The longest path of a folder, in bytes; Linux takes 4,095 for a file below it."""

WRITTEN: set[Path] = set()
"""The files that this process stored, or began to: after an interrupt, those that exist say whether something is."""

CHECKSUM = "sha256"
"""The entry of a document that holds the checksum of the others."""


def cache_folder(name: str) -> Path:
    """Return the folder `name` of what is kept: in `EQUIVOX_CACHE`, or else in `equivox` of the user's cache."""
    own = os.environ.get("EQUIVOX_CACHE")
    root = Path(own) if own else Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "equivox"
    return root.expanduser() / name


def refuse_unusable(path: Path, name: str) -> None:
    """Raise UsageError, naming the argument `name`, for a path that no file or folder can have.

    Such a path, or a part of it, is too long, holds a NUL, or goes through symbolic links in a circle. Room is left for
    the names of files below it.
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
    """Raise UsageError for a path that cannot be used as a file, a folder among them; `name` is its option."""
    refuse_unusable(path, name)
    if path.is_dir():
        raise UsageError(f"`{name}` {path} is a folder; name the file")


def refuse_unusable_folder(path: Path, name: str) -> None:
    """Raise UsageError for a path that cannot be used as a folder, a file among them; `name` is its option."""
    refuse_unusable(path, name)
    if path.exists() and not path.is_dir():
        raise UsageError(f"`{name}` {path} is a file; name a folder")


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


@contextmanager
def whole_folder(folder: Path) -> Iterator[Path]:
    """Yield an empty folder that takes the place of `folder` in the end; after an error `folder` is as it was.

    What a process left that was killed meanwhile goes away with the next. UsageError if no folder can be made there.
    """
    partial, replaced = (folder.with_name(f".{folder.name}.{what}") for what in ("partial", "replaced"))
    try:
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
    except OSError as error:
        raise UsageError(f"`output`: cannot write in {folder.parent} ({error.strerror}); choose another") from error
    try:
        yield partial
        if folder.exists():
            folder.rename(replaced)
        partial.rename(folder)
    finally:
        if replaced.exists() and not folder.exists():
            replaced.rename(folder)
        for left in (partial, replaced):
            shutil.rmtree(left, ignore_errors=True)


def unreadable(what: str, path: Path, error: OSError) -> UsageError:
    """Return the error about a file that cannot be read; beside one that is not there, it names those of like names."""
    there = path.parent.glob(f"*{path.suffix}") if isinstance(error, FileNotFoundError) else ()
    like = nearest(path.name, (entry.name for entry in there))
    return UsageError(f"cannot read {what}: {error.strerror or error}{like or '; check the path'}")


def refused(path: Path, error: OSError) -> StorageError:
    """Return the error of a disk that did not take what was to be written to `path`."""
    return StorageError(
        f"cannot write {path}: {error.strerror or error}; nothing half-written was left; "
        "free space or permissions there, then give the same command again to go on"
    )


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
    try:
        document = parsed_json(path.read_bytes())
    except FileNotFoundError:
        raise
    except OSError as error:
        raise damaged(path, error.strerror or str(error)) from error
    except ValueError as error:
        raise damaged(path, f"it is not JSON: {error}") from error
    if not isinstance(document, dict):
        raise damaged(path, f"it holds {type(document).__name__} where an object belongs")
    stated = document.pop(CHECKSUM, None)
    try:
        found = _checksum(document)
    except (ValueError, RecursionError) as error:
        raise damaged(path, str(error)) from error
    if stated != found:
        raise damaged(path, "its checksum does not fit its contents")
    return document


def _checksum(document: Mapping[str, Any]) -> str:
    text = json.dumps(document, sort_keys=True, allow_nan=False)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def damaged(path: Path, why: str) -> DamageError:
    """Return the error of a file that is not what was written."""
    why = " ".join(why.split())[:200]
    return DamageError(
        f"{path} is damaged ({why}); restore it from a copy, or delete it and give the run's command again: what it "
        "held is made again",
        path,
        why,
    )


def write_table(path: Path, table: pa.Table) -> None:
    """Write `table` as parquet with checksums of its pages and of its schema to `path`, whole or not at all."""
    table = table.replace_schema_metadata(_without_check(table.schema) | {_CHECK: _check(table.schema, table.num_rows)})
    write_whole(path, lambda temporary: pq.write_table(table, temporary, compression="zstd", write_page_checksum=True))


def return_freed_memory() -> None:
    """Give memory that was freed back to the system; the C library of Linux keeps what large tables leave in pieces."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def read_table(path: Path, columns: Sequence[str] | None = None, *, memory_map: bool = False) -> pa.Table:
    """Return the table in a parquet file, or some of its columns; its checksums are verified.

    Raises DamageError, naming the file, for one that was cut short or changed, and FileNotFoundError if there is none.
    """
    wanted = None if columns is None else list(columns)
    with _told_as_damage(path):
        footer, schema = _verified(path, state_of(path))
        notes = _without_check(schema)
        file = pq.ParquetFile(path, metadata=footer, memory_map=memory_map, page_checksum_verification=True)
        table = file.read(wanted, use_threads=footer.num_rows > _FEW_ROWS)
        # The notes lie in the file twice; the checksum was verified against one copy, and this is the other.
        if _without_check(table.schema) != notes:
            raise damaged(path, "its two copies of the notes on the table differ")
        return table.replace_schema_metadata(notes or None)


@contextmanager
def _told_as_damage(path: Path, *also: type[Exception]) -> Iterator[None]:
    """Turn what reading a damaged table raises, and `also` these, into DamageError, which names its file."""
    try:
        yield
    except (FileNotFoundError, DamageError):
        raise
    except (OSError, pa.ArrowException, ValueError, KeyError, *also) as error:
        raise damaged(path, str(error)) from error


_FEW_ROWS = 100_000
"""A table of up to so many rows is read sooner by one thread: handing its columns to others takes longer."""

_CHECK = b"equivox.check"


def _without_check(schema: pa.Schema) -> dict[bytes, bytes]:
    return {name: value for name, value in (schema.metadata or {}).items() if name != _CHECK}


def _check(schema: pa.Schema, n_rows: int) -> bytes:
    """Return a checksum of what the checksums of pages do not cover: columns, rows, and the notes on the table."""
    columns = [(field.name, _kind(field.type)) for field in schema]
    hashed = hashlib.sha256(f"{n_rows} {columns}".encode())
    for name, value in sorted(_without_check(schema).items()):
        hashed.update(repr((name, value)).encode())
    return hashed.hexdigest().encode()


def _kind(kind: pa.DataType) -> str:
    """Return the type of a column in the words that parquet keeps."""
    if pa.types.is_dictionary(kind):
        return _kind(kind.value_type)
    if pa.types.is_list(kind):
        return f"list of {_kind(kind.value_type)}"
    return str(kind)


@lru_cache(maxsize=256)
def _verified(path: Path, state: tuple[int, ...]) -> tuple[pq.FileMetaData, pa.Schema]:
    """Return the footer and the schema of a table in a `state` on disk, once its checksum was found to fit.

    A comparison reads columns of the same tables many times, and the footer takes longer than a column.
    """
    with pq.ParquetFile(path) as file:
        footer, schema = file.metadata, file.schema_arrow
    if (schema.metadata or {}).get(_CHECK) != _check(schema, footer.num_rows):
        raise damaged(path, "its checksum does not fit its columns")
    # The footer counts rows twice; the reader follows the count of each row group, which no checksum covers.
    groups = sum(footer.row_group(number).num_rows for number in range(footer.num_row_groups))
    if groups != footer.num_rows:
        raise damaged(path, f"it states {footer.num_rows} rows and its row groups {groups}")
    return footer, schema


def state_of(path: Path) -> tuple[int, ...]:
    """Return what changes when a file is written anew: its inode, its size, and its time in nanoseconds."""
    found = path.stat()
    return found.st_ino, found.st_size, found.st_mtime_ns


def read_schema(path: Path) -> pa.Schema:
    """Return the columns of a parquet file and what it says of itself, as `read_table` does."""
    with _told_as_damage(path):
        _, schema = _verified(path, state_of(path))
        return schema.with_metadata(_without_check(schema) or None)


MOST_FILES = 100_000
"""Files and folders in one folder from elsewhere, at all depths."""
LONGEST_DOCUMENT = 64 * 2**20
"""Bytes of a JSON document; of a journal of records, twice as many."""
LONGEST_TABLE = 4 * 2**30
"""Bytes of a table in memory, with every value written out."""


def refuse_odd_files(folder: Path) -> None:
    """Raise UsageError for a folder with anything but folders and regular files, or with a link out of it.

    A pipe or a device would be waited for without end; a link leads to files that nobody handed over.
    """
    root, number = Path(os.path.realpath(folder)), 0
    for place, folders, files in os.walk(folder):  # links are not followed
        for name in (*folders, *files):
            number += 1
            if number > MOST_FILES:
                raise UsageError(
                    f"{folder} holds more than {MOST_FILES:,} files, more than any run; give the folder of a run"
                )
            with suppress(FileNotFoundError):  # a run that is under way renames its files
                mode = os.lstat(path := os.path.join(place, name)).st_mode
                if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
                    _refuse_odd(Path(path), mode, root, folder)


def _refuse_odd(path: Path, mode: int, root: Path, folder: Path) -> None:
    if stat.S_ISLNK(mode):
        if not Path(os.path.realpath(path)).is_relative_to(root):
            raise UsageError(f"{path} is a link out of {folder}; put the file itself there, or remove the link")
        with suppress(OSError):  # a link to nothing, or to itself, stays one
            mode = path.stat().st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        kinds = {stat.S_IFIFO: "a pipe", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device", stat.S_IFSOCK: "a socket"}
        kind = kinds.get(stat.S_IFMT(mode), "a link to nothing")
        raise UsageError(f"{path} is {kind}, not a regular file; remove it")


def refuse_oversized(path: Path) -> None:
    """Raise DamageError for a document or a table that would take more memory than any that equivox writes."""
    if path.suffix == ".parquet":
        with _told_as_damage(path, OverflowError, MemoryError):
            size = table_bytes(path, most=LONGEST_TABLE)
        if size > LONGEST_TABLE:
            raise damaged(path, f"it takes {size:,} bytes or more in memory, of at most {LONGEST_TABLE:,}")
    elif path.suffix in {".json", ".jsonl"}:
        most = LONGEST_DOCUMENT * (2 if path.suffix == ".jsonl" else 1)
        if (size := path.stat().st_size) > most:
            raise damaged(path, f"it holds {size:,} bytes, of at most {most:,}")


def table_bytes(path: Path, *, most: int, leaving_out: Collection[str] = ()) -> int:
    """Return the bytes that a parquet file takes with every value written out; above `most` counting stops.

    What the file declares is counted first. Its texts are then read, each distinct one once: a text that many rows
    share is stored once, so that a small file can hold more than fits into memory. Columns whose path in the file is in
    `leaving_out` count nothing. Raises what pyarrow raises.
    """
    metadata = pq.ParquetFile(path).metadata
    chunks = [
        metadata.row_group(group).column(column)
        for group in range(metadata.num_row_groups)
        for column in range(metadata.num_columns)
        if metadata.schema.column(column).path not in leaving_out
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
    kind: Any = array.type
    if pa.types.is_dictionary(kind):
        lengths = pc.binary_length(array.dictionary)
        return int(pc.sum(pc.cast(lengths.take(array.indices), pa.int64())).as_py() or 0)
    if pa.types.is_struct(kind):
        return sum(_written_out(field) for field in array.flatten())
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _written_out(array.flatten())
    return int(array.nbytes)


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
