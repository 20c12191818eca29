"""Append-only parquet shards. Each is written whole under a temporary name, flushed to disk, then renamed.

If the process is killed, a shard exists entirely or not at all. Of two records with one key the later one counts, so
that a merged shard and the shards it was merged from have the same content.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from equivox.core.errors import StorageError

if TYPE_CHECKING:
    import pyarrow as pa

_TEMPORARY = ".writing-"
_SHARD = "shard-{:06d}.parquet"
_LARGE = 1024
"""Shards with at least this many rows are not merged."""


def write_whole(path: Path, write: Any) -> None:
    """Call `write(temporary)` and rename the result to `path`; after a failure nothing is left behind.

    Raises StorageError when the disk refuses (full, read-only, over quota).
    """
    temporary = path.with_name(_TEMPORARY + path.name)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write(temporary)
        with temporary.open("rb") as written:
            os.fsync(written.fileno())
        os.replace(temporary, path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise StorageError(
            f"cannot write {path}: {error.strerror or error}; nothing half-written was left; "
            "free space or permissions there, then give the same command again to go on"
        ) from error
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def write_text(path: Path, text: str) -> None:
    """Write `text` to `path` whole or not at all."""
    write_whole(path, lambda temporary: temporary.write_text(text, encoding="utf-8"))


def write_table(path: Path, table: pa.Table) -> None:
    """Write `table` as parquet to `path`, whole or not at all."""
    import pyarrow.parquet as pq

    write_whole(path, lambda temporary: pq.write_table(table, temporary, compression="zstd"))


class Store:
    """One folder of shards with one schema; records are dictionaries with a unique `key`.

    Records are buffered and written as a shard after `shard_rows` of them or `shard_seconds` after the first, whichever
    comes first; leaving the `with` block writes the rest.
    """

    def __init__(self, folder: Path, schema: pa.Schema, *, shard_rows: int = 4096, shard_seconds: float = 5.0) -> None:
        self.folder = folder
        self.schema = schema
        self._shard_rows = shard_rows
        self._shard_seconds = shard_seconds
        self._buffer: list[Mapping[str, Any]] = []
        self._oldest = 0.0
        self._next = 1 + max((int(p.stem.rpartition("-")[2]) for p in self.shards()), default=0)

    def shards(self) -> list[Path]:
        """Return the shards, oldest first."""
        return sorted(self.folder.glob("shard-*.parquet"))

    def keys(self) -> set[str]:
        """Return the keys of all stored records."""
        return set(self.table(("key",))["key"].to_pylist())

    def table(self, columns: Sequence[str] | None = None) -> pa.Table:
        """Return all records, or some columns of them: one row per key, the latest, in order of first occurrence."""
        import numpy as np
        import pyarrow as pa
        import pyarrow.parquet as pq

        wanted = list(self.schema.names if columns is None else dict.fromkeys((*columns, "key")))
        schema = pa.schema([self.schema.field(name) for name in wanted])
        shards = [pq.read_table(shard, columns=wanted).cast(schema) for shard in self.shards()]
        table = pa.concat_tables([schema.empty_table(), *shards])
        keys = table["key"].combine_chunks().dictionary_encode()
        if isinstance(keys, pa.ChunkedArray):
            keys = keys.chunk(0) if keys.num_chunks else pa.array([], keys.type)
        if len(keys.dictionary) < len(keys):
            codes = keys.indices.to_numpy()
            last = np.zeros(len(keys.dictionary), dtype=np.int64)
            last[codes] = np.arange(len(codes))
            table = table.take(pa.array(last))
        return table if columns is None else table.select(list(columns))

    def records(self) -> Iterator[dict[str, Any]]:
        """Yield every stored record once, the latest of each key, in the order in which keys first came."""
        for batch in self.table().to_batches(max_chunksize=4096):
            yield from batch.to_pylist()

    def append(self, record: Mapping[str, Any]) -> None:
        """Append one record; it is on disk within `shard_seconds` as long as further records follow."""
        now = time.monotonic()
        if not self._buffer:
            self._oldest = now
        self._buffer.append(record)
        if len(self._buffer) >= self._shard_rows or now - self._oldest >= self._shard_seconds:
            self.flush()

    def flush(self) -> None:
        """Write the buffered records as one shard."""
        if not self._buffer:
            return
        import pyarrow as pa

        columns = {name: [record.get(name) for record in self._buffer] for name in self.schema.names}
        write_table(self.folder / _SHARD.format(self._next), pa.table(columns, schema=self.schema))
        self._next += 1
        self._buffer = []

    def compact(self, *, above: int = 32) -> None:
        """Merge the shards into one if there are more than `above` and they are small.

        Other processes never see fewer records. Large shards stay: merging them would cost memory and save no time.
        """
        import pyarrow.parquet as pq

        shards = self.shards()
        if len(shards) <= above:
            return
        if sum(pq.read_metadata(shard).num_rows for shard in shards) > _LARGE * len(shards):
            return
        write_table(self.folder / _SHARD.format(self._next), self.table())
        self._next += 1
        for shard in shards:
            shard.unlink()

    def __enter__(self) -> Store:
        for leftover in self.folder.glob(f"{_TEMPORARY}*"):
            leftover.unlink()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # A write that the disk refused is not tried again while its error is raised.
        if not isinstance(error, StorageError):
            self.flush()


def response_schema() -> pa.Schema:
    """Return the columns of a stored response: `equivox.core.requests.Response`, field by field."""
    import pyarrow as pa

    return pa.schema(
        [
            pa.field("key", pa.string(), nullable=False),
            pa.field("text", pa.string()),
            pa.field("error", pa.string()),
            pa.field("thinking", pa.string()),
            pa.field("finish_reason", pa.string()),
            pa.field("prompt_tokens", pa.int64()),
            pa.field("completion_tokens", pa.int64()),
            pa.field("media_items", pa.int32(), nullable=False),
            pa.field("media_tokens", pa.int64()),
            pa.field("logprobs", pa.string()),
        ]
    )


def annotation_schema() -> pa.Schema:
    """Return the columns of a stored annotation: `equivox.core.annotation.Annotation`, values as a list of structs."""
    import pyarrow as pa

    value = pa.struct([("attribute", pa.string()), ("value", pa.string()), ("raw", pa.string())])
    return pa.schema(
        [
            pa.field("key", pa.string(), nullable=False),
            pa.field("response_key", pa.string(), nullable=False),
            pa.field("task", pa.string(), nullable=False),
            pa.field("status", pa.string(), nullable=False),
            pa.field("values", pa.list_(value), nullable=False),
            pa.field("output", pa.string()),
            pa.field("attempts", pa.int32(), nullable=False),
            pa.field("segment", pa.string(), nullable=False),
        ]
    )
