"""Stored records: a journal that each record reaches before it counts as finished, gathered into parquet shards.

What a run has stored: its responses and their sounds, who annotated them, and their annotations.

Every `shard_rows` records the journal becomes a parquet shard, which is written whole under a temporary name and
renamed. Of two records with one key the later counts, so that a merged shard and what it was merged from say the same.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from numbers import Integral
from pathlib import Path
from types import TracebackType
from typing import Any

from equivox.annotate import evaluation_of
from equivox.core.annotation import AnnotatorIdentity
from equivox.core.errors import StorageError, UsageError
from equivox.core.files import TEMPORARY, damaged, read_document, read_schema, read_table, write_table, write_whole
from equivox.core.journal import Journal, read_journal
from equivox.core.lazy import np, pa, pc, pq
from equivox.core.media import MOST_SOUND_BYTES
from equivox.core.task import Task, digest
from equivox.run.live import refuse_unfinished

_SHARD = "shard-{:06d}.parquet"
_JOURNAL = "journal-{:06d}.jsonl"
_LARGE = 1024
"""Rows from which a shard is not worth merging."""
_AT_ONCE = 16_384
"""Rows of a shard that is written without a journal, at most."""
_JOURNAL_BYTES = 64 * 2**20
"""A journal of this size becomes a shard, however few its records are."""


class Store:
    """One folder of records with one schema; records are dictionaries with a unique `key`.

    Only one process may append; any number may read meanwhile. Leaving the `with` block turns the journal into a
    shard, and merges small shards if no error ended it; entering it makes a shard of a journal that a killed process
    left.
    """

    def __init__(self, folder: Path, schema: pa.Schema, *, shard_rows: int = 4096, sync_seconds: float = 1.0) -> None:
        self.folder = folder
        self.schema = schema
        self._shard_rows = shard_rows
        self._sync_seconds = sync_seconds
        self._fits = {name: _fit_for(schema.field(name)) for name in schema.names}
        self._buffer: list[Mapping[str, Any]] = []
        self._journal: Journal | None = None
        self._next = 1 + max((_number(path) for path in (*self.shards(), *self.journals())), default=0)

    def shards(self) -> list[Path]:
        """Return the shards, oldest first; DamageError for a file of another name among them."""
        return sorted(self.folder.glob("shard-*.parquet"), key=_number)

    def journals(self) -> list[Path]:
        """Return the journals that have not become shards, oldest first; without a live writer there is none or one."""
        return sorted(self.folder.glob("journal-*.jsonl"), key=_number)

    def table(self, columns: Sequence[str] | None = None) -> pa.Table:
        """Return all records, or some columns of them: one row per key, the latest, in order of first occurrence.

        Raises DamageError, naming the file, where one was cut short or changed.
        """
        wanted = list(self.schema.names if columns is None else dict.fromkeys((*columns, "key")))
        table = _latest(self._all(pa.schema([self.schema.field(name) for name in wanted])))
        return table if columns is None else table.select(list(columns))

    def filled(self, column: str) -> pa.Table:
        """Return the key of each record and whether it has a value in `column`, which is read file by file."""

        def told(table: pa.Table) -> pa.Table:
            return pa.table({"key": table["key"], column: pc.is_valid(table[column])})

        return _latest(self._all(pa.schema([self.schema.field(name) for name in ("key", column)]), told))

    def where(self, column: str, values: Sequence[str], columns: Sequence[str] | None = None) -> pa.Table:
        """Return the records with one of `values` in `column`, or `columns` of them; read file by file.

        No later record of a key may have another value there.
        """
        wanted = pa.array(values, pa.string())
        schema = self.schema if columns is None else pa.schema([self.schema.field(name) for name in columns])
        return _latest(self._all(schema, lambda table: table.filter(pc.is_in(table[column], value_set=wanted))))

    def every(self, columns: Sequence[str]) -> pa.Table:
        """Return some columns of all rows, also of those that a later record of the same key replaces."""
        return self._all(pa.schema([self.schema.field(name) for name in columns]))

    def _all(self, schema: pa.Schema, shown: Callable[[pa.Table], pa.Table] = lambda table: table) -> pa.Table:
        """Return what `shown` makes of each file, later records last, whatever a writer does meanwhile."""
        for attempt in range(20):
            try:
                # A journal is read before the shards are listed: when it becomes one in between, it is met twice
                # rather than not at all.
                journals = [shown(_table(read_journal(path), schema)) for path in self.journals()]
                shards = [shown(_cast(path, read_table(path, schema.names), schema)) for path in self.shards()]
                return pa.concat_tables([shown(schema.empty_table()), *shards, *journals])
            except FileNotFoundError:
                time.sleep(0.01 * attempt)
        raise StorageError(f"{self.folder}: its files change faster than they can be read; try again")

    def records(self) -> Iterator[dict[str, Any]]:
        """Yield every stored record once, the latest of each key, in the order in which keys first came."""
        for batch in self.table().to_batches(max_chunksize=4096):
            yield from batch.to_pylist()

    def append(self, record: Mapping[str, Any]) -> None:
        """Store one record, fitted: a kill of the process after this returns does not lose it.

        Raises StorageError when the disk refuses; what was stored before is whole.
        """
        self.keep(self.fitted(record))

    def keep(self, fitted: dict[str, Any]) -> None:
        """Store a record that is `fitted` already, as `append` does."""
        if self._journal is None:
            path = self.folder / _JOURNAL.format(self._next)
            self._journal = Journal(path, new=True, sync_seconds=self._sync_seconds)
        self._journal.append(fitted)
        self._buffer.append(fitted)
        if len(self._buffer) >= self._shard_rows or self._journal.size >= _JOURNAL_BYTES:
            self.flush()

    def append_all(self, records: Sequence[Mapping[str, Any]]) -> None:
        """Store records that are made again in no time, as a shard without a journal: a kill meanwhile loses them.

        Raises StorageError when the disk refuses; what was stored before is whole.
        """
        if records:
            self.flush()
        for start in range(0, len(records), _AT_ONCE):
            fitted = [self.fitted(record) for record in records[start : start + _AT_ONCE]]
            self._write_shard(_table(fitted, self.schema))

    def fitted(self, record: Mapping[str, Any]) -> dict[str, Any]:
        """Return a record as it can be stored, whatever it holds.

        Lone surrogates become U+FFFD, a number where a text belongs becomes its text, a count that is none becomes
        null.
        """
        return {name: fit(record.get(name)) for name, fit in self._fits.items()}

    def _write_shard(self, table: pa.Table) -> None:
        write_table(self.folder / _SHARD.format(self._next), table)
        self._next += 1

    def flush(self) -> None:
        """Turn the journal into a shard."""
        if not self._buffer:
            return
        self._close()
        journal = self.folder / _JOURNAL.format(self._next)
        self._write_shard(_table(self._buffer, self.schema))
        journal.unlink()
        self._buffer = []

    def _close(self) -> None:
        if self._journal is not None:
            self._journal.close(flush=False)  # it becomes a shard, which is flushed, or its disk refuses to
            self._journal = None

    def compact(self, *, above: int = 32) -> None:
        """Merge the shards into one if there are more than `above` and they are small.

        Other processes never see fewer records. Large shards stay: merging them would cost memory and save no time.
        """
        shards = self.shards()
        if len(shards) <= above:
            return
        if sum(pq.read_metadata(shard).num_rows for shard in shards) > _LARGE * len(shards):
            return
        self._write_shard(self.table())
        for shard in shards:
            shard.unlink()

    def __enter__(self) -> Store:
        for leftover in self.folder.glob(f"{TEMPORARY}*"):
            leftover.unlink()
        for journal in self.journals():
            shard = self.folder / _SHARD.format(_number(journal))
            if not shard.exists() and (records := read_journal(journal)):
                write_table(shard, _table(records, self.schema))
            journal.unlink()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # What the disk refused is not tried again while its own error travels up: the journal holds it.
        if isinstance(error, StorageError):
            self._close()
            return
        self.flush()
        if error is None:
            self.compact()


def _number(path: Path) -> int:
    number = path.stem.rpartition("-")[2]
    if not (number.isascii() and number.isdigit()):
        raise damaged(path, "equivox writes no file of this name")
    return int(number)


def _table(records: Sequence[Mapping[str, Any]], schema: pa.Schema) -> pa.Table:
    columns = {name: [record.get(name) for record in records] for name in schema.names}
    return pa.table(columns, schema=schema)


def _cast(path: Path, table: pa.Table, schema: pa.Schema) -> pa.Table:
    try:
        return table.select(schema.names).cast(schema)
    except (pa.ArrowException, ValueError, KeyError) as error:
        raise damaged(path, str(error)) from error


def _latest(table: pa.Table) -> pa.Table:
    """Return one row per key, the latest, in the order of first occurrence."""
    keys = table["key"].combine_chunks().dictionary_encode()
    if len(keys.dictionary) == len(keys):
        return table
    codes = keys.indices.to_numpy()
    last = np.zeros(len(keys.dictionary), dtype=np.int64)
    last[codes] = np.arange(len(codes))
    return table.take(pa.array(last))


def _fit_for(field: pa.Field) -> Any:
    """Return the function that makes a value storable in this column."""
    if pa.types.is_string(field.type):
        return _text if field.nullable else lambda value: _text(value) or ""
    if pa.types.is_integer(field.type):
        most = 2 ** (field.type.bit_width - 1) - 1
        missing = None if field.nullable else 0
        return lambda value: int(value) if _is_count(value) and value <= most else missing
    if pa.types.is_struct(field.type):
        fits = {inner.name: _fit_for(inner) for inner in field.type}
        return lambda value: {name: fit(value.get(name)) for name, fit in fits.items()}
    fit = _fit_for(field.type.value_field)
    return lambda value: [fit(entry) for entry in value or ()]


def _is_count(value: Any) -> bool:
    """Return whether a value is a whole number from 0 up, numpy's included; True is none."""
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= 0


def _text(value: Any) -> str | None:
    r"""Return a text that UTF-8 can hold.

    >>> _text("caf\u00e9"), _text("half \ud83d of a pair"), _text(7), _text(None)
    ('café', 'half � of a pair', '7', None)
    """
    if value is None:
        return None
    text = value if type(value) is str else str(value)
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def response_schema() -> pa.Schema:
    """Return the columns of a stored response: `equivox.core.requests.Response`, field by field.

    `sound` is the SHA-256 of a spoken answer.
    """
    return pa.schema(
        [
            pa.field("key", pa.string(), nullable=False),
            pa.field("text", pa.string()),
            pa.field("error", pa.string()),
            pa.field("error_kind", pa.string()),
            pa.field("thinking", pa.string()),
            pa.field("finish_reason", pa.string()),
            pa.field("prompt_tokens", pa.int64()),
            pa.field("completion_tokens", pa.int64()),
            pa.field("media_items", pa.int32(), nullable=False),
            pa.field("media_tokens", pa.int64()),
            pa.field("logprobs", pa.string()),
            pa.field("sound", pa.string()),
        ]
    )


def annotation_schema() -> pa.Schema:
    """Return the columns of a stored annotation: `equivox.core.annotation.Annotation`, values as a list of structs."""
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


SOUNDS = "sounds"
"""The folder of a run that holds its spoken answers, called after their SHA-256."""


def annotations_folder(folder: Path, annotator: str) -> Path:
    """Return the folder of the annotations by `annotator` in a run."""
    return folder / "annotations" / annotator


def samples_path(folder: Path, annotator: str, task: str) -> Path:
    """Return the path of the samples of `task` as annotated by `annotator`."""
    return annotations_folder(folder, annotator) / "samples" / f"{file_name(task)}.parquet"


def samples_note(path: Path) -> dict[str, Any]:
    """Return what a table of samples says of itself: its task, its scheme, and how many requests were answered then."""
    return dict(json.loads((read_schema(path).metadata or {}).get(b"equivox", b"{}")))


def file_name(task: str) -> str:
    """Return the name of a task or family in a form that file names allow.

    >>> file_name("vibe_gender:story@silence")
    'vibe_gender-story@silence'
    """
    return task.replace(":", "-")


def annotators_of(folder: Path) -> list[str]:
    """Return the annotators that have annotated the run in `folder`."""
    return sorted(path.parent.name for path in (folder / "annotations").glob("*/annotator.json"))


def evaluations_of(folder: Path, name: str) -> list[str]:
    """Return the annotators whose scores are averaged: all evaluations by `name`, or `name` alone."""
    stored = annotators_of(folder)
    return [name] if name in stored else [own for own in stored if evaluation_of(own)[0] == name] or [name]


def stored_annotator(folder: Path, name: str) -> AnnotatorIdentity:
    """Return the identity of the annotator `name`; UsageError if it has not annotated this run."""
    try:
        record = read_document(annotations_folder(folder, name) / "annotator.json")
    except FileNotFoundError:
        refuse_unfinished(folder)
        known = ", ".join(annotators_of(folder)) or "none"
        raise UsageError(
            f"{folder} has no annotations by {name!r} (there: {known}); make them with "
            f"`equivox annotate {folder} --annotator {name}`"
        ) from None
    return AnnotatorIdentity(**record)


def count_annotation_failures(folder: Path, name: str) -> tuple[Counter[str], Counter[str]]:
    """Count the texts that `name` failed on, by the error, and those for which its output was no valid form, by it.

    Of two versions of the annotator that read the same text, the later counts.
    """
    columns = ("key", "response_key", "task", "segment", "status", "output")
    table = Store(annotations_folder(folder, name), annotation_schema()).table(columns)
    # A question about findings belongs to no response.
    text = pc.if_else(pc.equal(table["response_key"], ""), table["key"], table["response_key"])
    table = _latest(
        table.set_column(0, "key", pc.binary_join_element_wise(text, table["task"], table["segment"], "\n"))
    )
    failed, unparsed = (table.filter(pc.equal(table["status"], status))["output"] for status in ("failed", "unparsed"))
    # Rules write nothing that could be invalid.
    return Counter(failed.fill_null("no reason given").to_pylist()), Counter(unparsed.drop_null().to_pylist())


def stored_annotations(folder: Path, name: str) -> dict[str, dict[str, Any]]:
    """Return the annotations by the annotator `name`: key → record."""
    store = Store(annotations_folder(folder, name), annotation_schema())
    return {record["key"]: record for record in store.records()}


def stored_responses(folder: Path) -> dict[str, dict[str, Any]]:
    """Return the responses of the run in `folder`: key → record."""
    return {record["key"]: record for record in Store(folder / "responses", response_schema()).records()}


def stored_texts(folder: Path, keys: Sequence[str] | None = None) -> dict[str, str | None]:
    """Return the texts of all stored responses, or of those with `keys`: key → text, None if the request failed."""
    store, columns = Store(folder / "responses", response_schema()), ("key", "text")
    table = store.table(columns) if keys is None else store.where("key", keys, columns)
    return dict(zip(table["key"].to_pylist(), table["text"].to_pylist(), strict=True))


def scheme_digest(task: Task) -> str:
    """Return a hash of everything that determines the annotations of `task`, except the annotator."""
    return digest([dict(task.annotation.identity), task.annotation.digest])


def keep_sound(folder: Path, content: bytes) -> str:
    """Store a spoken answer in the run in `folder` and return its SHA-256; what is stored already stays.

    Raises StorageError when the disk refuses.
    """
    sha256 = hashlib.sha256(content).hexdigest()
    path = sound_path(folder, sha256)
    if not path.exists():
        write_whole(path, lambda temporary: temporary.write_bytes(content))
    return sha256


def sound_path(folder: Path, sha256: str) -> Path:
    """Return where a spoken answer of the run in `folder` is stored; UsageError for a name that is no SHA-256."""
    if len(sha256) != 64 or not set(sha256) <= set("0123456789abcdef"):
        raise UsageError(f"{sha256!r:.80} is not the SHA-256 of a spoken answer")
    return folder / SOUNDS / f"{sha256}.wav"


def read_sound(folder: Path, sha256: str) -> bytes:
    """Return a stored spoken answer; UsageError for one that is missing, too long, or not what its name says."""
    path = sound_path(folder, sha256)
    try:
        if path.is_symlink() or not path.is_file() or path.stat().st_size > MOST_SOUND_BYTES:
            raise UsageError(
                f"{SOUNDS}/{path.name} is no spoken answer of this run: it is missing (published runs have none), a "
                "link, or too long"
            )
        content = path.read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror or error}") from error
    if hashlib.sha256(content).hexdigest() != sha256:
        raise UsageError(f"{path} was changed: its content does not match its SHA-256")
    return content
