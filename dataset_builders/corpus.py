"""Corpora of runs: samples with their columns, and media that are read when they are needed.

Samples come from three sources: a corpus built to parquet, the embedded sample, and a folder of clips with a CSV. Only
the reading of bytes differs.

A table of texts is a corpus, too: own prompts, CVs or cases, a row each; swaps give every row to each group. A swap
fills a placeholder, such as `{name}`, with another word for each group, so that one text is asked about people who
differ in nothing else. Row 1 gets the first word of each list, row 2 the second, and so on, from the start again.
"""

from __future__ import annotations

import bisect
import itertools
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from equivox.core import media
from equivox.core.errors import RequestError
from equivox.core.files import file_hash, state_of
from equivox.core.hashing import digest
from equivox.core.lazy import pq
from equivox.core.media import AudioFacts
from equivox.core.task import Column, DataSource, in_single_braces, placeholders_of
from equivox.dataset_builders.clip_folder import ClipFolder, refuse_undeclared, stated
from equivox.dataset_builders.parts import flattened, renamed
from equivox.dataset_builders.plain_tables import read_columns
from equivox.dataset_builders.schema import kept_facts, read_clip

if TYPE_CHECKING:
    from equivox.dataset_builders import Builder
    from equivox.dataset_builders.base import Clip

SAMPLE = "sample"
"""The value of `--data` for the embedded sample."""

SAMPLING_RATE = "sampling_rate"
"""The column with the samples per second of a recording; None where it cannot be read."""

ITEM = "item"
"""The unit of a swap, in every group: a row of the table. Without a swap a table keeps its own column of this name."""

BUILD = "build.json"
_MEDIA = ("audio", "image")
_NOT_COLUMNS = frozenset({"clip_id", "sample_id", "duration_s"}) | {
    f"{kind}{suffix}" for kind in _MEDIA for suffix in ("", "_sha256", "_problem")
}


@dataclass(frozen=True, kw_only=True)
class Sample:
    """One row of a corpus: its columns, and its clip or image, if it has one, by content digest.

    `problem` says why the media cannot be used, None if they can; a sample with a problem stays in the plan and is
    counted in coverage. `clips` are those of further turns by their columns, each a sample of its own.
    """

    sample_id: str
    columns: Mapping[str, Column]
    sha256: str
    file_name: str
    problem: str | None
    duration_s: float | None = None
    load: Callable[[], bytes] = field(repr=False, compare=False)
    clips: Mapping[str, Sample] = field(default_factory=dict, repr=False)

    def sent(self, column: str) -> Sample:
        """Return the sample whose file is sent: that of a further turn by its column, otherwise this one."""
        return self.clips.get(column, self)


@dataclass(frozen=True, kw_only=True)
class Corpus:
    """A named set of samples; `fingerprint` changes with every row and clip, `notes` list oddities."""

    name: str
    fingerprint: str
    samples: tuple[Sample, ...]
    notes: tuple[str, ...] = ()

    def require(self, columns: Sequence[str], *, task: str) -> None:
        """Raise RequestError unless every sample has each of `columns`."""
        known = set(self.samples[0].columns) if self.samples else set()
        for column in columns:
            if column not in known:
                raise RequestError(
                    f"{task} needs the column {column!r}, which the corpus {self.name} lacks; "
                    f"it has: {', '.join(sorted(known))}"
                )


def open_clips(source: DataSource, data: str | Path | None) -> Corpus:
    """Return a corpus of clips or images: from a custom table, the embedded sample, or a build."""
    if source.table is None and str(data) == SAMPLE:
        return _open_sample(source.corpus)
    builder = builder_of(source, data)
    if builder is not None:
        return from_builder(builder)
    if data is None:
        raise RequestError(
            f"the corpus {source.corpus} is needed: give `--data sample` for the embedded sample, or `--data DIR` "
            f"with DIR from `equivox data build {source.corpus} --source … --output DIR`"
        )
    folder = build_folder(source.corpus, data)
    if not (folder / BUILD).is_file():
        if (Path(data) / BUILD).is_file():
            there = read_build(Path(data))["facts"]["name"]
            raise RequestError(
                f"`--data` {data} is the corpus {there}, and {source.corpus} is asked about; give its build"
            )
        others = sorted(path.parent.name for path in Path(data).glob(f"*/{BUILD}"))
        raise RequestError(
            f"`--data` {data} holds no built corpus {source.corpus} (no {source.corpus}/{BUILD}); "
            f"make it with `equivox data build {source.corpus} --source … --output {data}`"
            + "".join(f", or ask about {name} with `--data {Path(data) / name}`" for name in others[:1])
        )
    return _from_parquet(source.corpus, folder)


@cache
def _open_sample(name: str) -> Corpus:
    """Return the embedded sample of a corpus, which is read once: it does not change while a process runs."""
    return from_builder(_sample_builder(name))


def _sample_builder(name: str) -> Builder:
    from equivox.dataset_builders import open_builder, sample_source

    return open_builder(name, sample_source(name))


def build_folder(name: str, data: str | Path | None) -> Path:
    """Return the folder of the built corpus `name`: `data` itself if it is that build, else the folder in it."""
    folder = Path(str(data))
    if (folder / BUILD).is_file() and read_build(folder)["facts"]["name"] == name:
        return folder
    return folder / name


def read_build(folder: Path) -> dict[str, Any]:
    """Return the record of a built corpus; RequestError if it cannot be read."""
    try:
        record: dict[str, Any] = json.loads((folder / BUILD).read_text("utf-8"))
        str(record["facts"]["name"]), str(record["fingerprint"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RequestError(f"cannot read {folder / BUILD} ({error}); build the corpus again") from None
    return record


def media_of(folder: Path) -> str | None:
    """Return what the rows of a built corpus hold: audio, image, or None for neither."""
    shards = sorted(folder.glob("train-*.parquet"))
    return _media_in(pq.read_schema(shards[0]).names) if shards else None


def _media_in(names: Sequence[str]) -> str | None:
    return next((kind for kind in _MEDIA if kind in names), None)


def builder_of(source: DataSource, data: str | Path | None) -> Builder | None:
    """Return the builder that reads a custom table or the embedded sample; None for a build."""
    if source.table is not None:
        folder = source.table.parent if source.folder is None else source.folder
        return ClipFolder(
            folder,
            table=source.table.absolute(),
            name=source.corpus,
            columns=source.columns,
            where=source.where,
            values=source.values,
            needs=("path",),
            clips=source.clips,
            media="image" if source.kind == "image" else "audio",
        )
    if str(data) == SAMPLE:
        return _sample_builder(source.corpus)
    return None


def table_in(source: DataSource, data: str | Path | None) -> DataSource:
    """Return the source of a custom corpus with its table and clips in the folder `data`, where they lie now.

    A source without a table is returned as it is, and so is one whose table still lies where it was and not in `data`.
    """
    if source.table is None or data is None or str(data) == SAMPLE:
        return source
    home, clips, now = source.table.parent, source.folder, Path(data)
    if source.table.is_file() and not (now / source.table.name).is_file():
        return source
    if clips is not None:
        clips = now / (clips.relative_to(home) if clips.is_relative_to(home) else clips.name)
    return replace(source, table=now / source.table.name, folder=clips)


def from_builder(builder: Builder) -> Corpus:
    """Return the corpus that `builder` reads from its source, without a build.

    What decoding told of its clips is kept (`kept_facts`), so that the next process need not decode them.
    """
    with kept_facts(builder) as known:
        samples = tuple(_read(clip, builder.MEDIA, known) for clip in builder.clips())
    return Corpus(
        name=builder.facts.name,
        fingerprint=builder.fingerprint(),
        samples=samples,
        notes=tuple(builder.differences()),
    )


def _read(clip: Clip, kind: str, known: dict[str, AudioFacts]) -> Sample:
    data, facts = read_clip(clip, kind, known)
    return Sample(
        sample_id=clip.clip_id,
        columns={
            "text": clip.text,
            "speaker": clip.speaker,
            **clip.columns,
            **({SAMPLING_RATE: facts.sampling_rate or None} if kind == "audio" else {}),
        },
        sha256=_digest(data, clip.clip_id),
        file_name=clip.path.name,
        problem=_named(clip.path.name, facts.problem),
        duration_s=facts.duration_s or None,
        load=clip.path.read_bytes,
        clips={name: _read(replace(clip, path=path, further={}), kind, known) for name, path in clip.further.items()},
    )


def _digest(data: bytes | None, clip_id: str) -> str:
    # A clip without a file has no content to hash; its name distinguishes its requests from all others.
    return media.sha256(f"missing {clip_id}".encode() if data is None else data)


def _named(name: str, problem: str | None) -> str | None:
    return None if problem is None else f"{name}: {problem}"


def _from_parquet(name: str, folder: Path) -> Corpus:
    build = read_build(folder)
    samples: list[Sample] = []
    for shard in sorted(folder.glob("train-*.parquet")):
        names = pq.read_schema(shard).names
        kind = _media_in(names)
        state = state_of(shard)
        for row, record in enumerate(pq.read_table(shard, columns=[c for c in names if c != kind]).to_pylist()):
            load = _no_media if kind is None else partial(_bytes_in, shard, state, kind, row)
            samples.append(_sample(record, kind, load))
    if not samples:
        raise RequestError(f"`--data` {folder} holds no rows; build the corpus {name} again")
    return Corpus(
        name=name,
        fingerprint=build["fingerprint"],
        samples=tuple(samples),
        notes=tuple(build.get("differences", ())),
    )


def _sample(record: dict[str, Any], kind: str | None, load: Callable[[], bytes]) -> Sample:
    sample_id = record["clip_id"] if "clip_id" in record else record["sample_id"]
    columns = {key: value for key, value in record.items() if key not in _NOT_COLUMNS}
    if kind is None:
        return text_sample(sample_id, columns)
    return Sample(
        sample_id=sample_id,
        columns=columns,
        sha256=record[f"{kind}_sha256"] or _digest(None, sample_id),
        file_name=sample_id,
        problem=_named(sample_id, record[f"{kind}_problem"]),
        duration_s=record.get("duration_s"),
        load=load,
    )


def text_sample(sample_id: str, columns: Mapping[str, Column]) -> Sample:
    """Return a sample without a clip or an image."""
    return Sample(sample_id=sample_id, columns=columns, sha256="", file_name="", problem=None, load=_no_media)


def _no_media() -> bytes:
    raise RequestError("this corpus has neither clips nor images; a task that sends them cannot use it")


def _bytes_in(shard: Path, state: tuple[int, ...], kind: str, row: int) -> bytes:
    """Return the clip or image of a row of a parquet shard in a `state` on disk."""
    starts = _starts(shard, state)
    group = bisect.bisect_right(starts, row) - 1
    return _group(shard, state, kind, group)[row - starts[group]]


@lru_cache(maxsize=256)
def _starts(shard: Path, state: tuple[int, ...]) -> list[int]:
    """Return the first row of each row group of a shard."""
    metadata = pq.ParquetFile(shard).metadata
    sizes = (metadata.row_group(group).num_rows for group in range(metadata.num_row_groups))
    return list(itertools.accumulate(sizes, initial=0))


@lru_cache(maxsize=4)
def _group(shard: Path, state: tuple[int, ...], kind: str, group: int) -> list[bytes]:
    """Return the clips or images of a row group; rows that are sent one after another lie in one."""
    column = pq.ParquetFile(shard).read_row_group(group, columns=[kind]).column(kind)
    return [entry["bytes"] for entry in column.to_pylist()]


def open_texts(source: DataSource) -> Corpus:
    """Return the rows of the table of `source` as samples; with a swap, each row once for every group.

    A row is called by its column `id`, or by its number. A cell that is empty, or that says that a value is missing, is
    None; `values` may declare such a text as a value. A column of objects or lists has a column for each part, such as
    `messages.0.content`. RequestError for a table that cannot be read, an id that is there twice, values that are not
    declared, and a row in which a swap would change nothing.
    """
    assert source.table is not None
    path = source.table
    table = flattened(renamed(read_columns(path), source.columns, where=path.name, option="columns.{}"))
    _refuse_missing(table, source)
    samples: list[Sample] = []
    names: Counter[str] = Counter()
    where = {name: [wanted] if isinstance(wanted, str) else wanted for name, wanted in source.where.items()}
    left_out = 0
    for number, cells in enumerate(zip(*table.values(), strict=True), start=1):
        row: dict[str, Column] = {name: _cell(name, cell, source) for name, cell in zip(table, cells, strict=True)}
        if any(str(row[name]) not in wanted for name, wanted in where.items()):
            left_out += 1
            continue
        item = str(row.get("id") or f"{number:06d}")
        names[item] += 1
        if names[item] > 1:
            raise RequestError(
                f"{path.name}, row {number}: the id {item!r} is there twice; make it unique or, where rows share "
                "it, give it another name, such as `columns: {shared_id: id}`"
            )
        row = {"speaker": item, ITEM: item, **row}
        samples += _swapped(row, source, number, len(names) - 1) if source.swap else [text_sample(item, row)]
    for name, allowed in source.values.items():
        found = Counter(str(sample.columns[name]) for sample in samples if sample.columns[name] not in (None, *allowed))
        refuse_undeclared(str(path), name, found, allowed)
    given = (source.columns, source.where, source.values, source.swap)
    notes = [f"rows left out by `where`: {left_out:,} of {left_out + len(names):,}"] * bool(left_out)
    return Corpus(
        name=source.corpus,
        fingerprint=digest([file_hash(path), *map(_plain, given)]),
        samples=tuple(samples),
        notes=tuple(notes),
    )


def _refuse_missing(table: Mapping[str, Sequence[Any]], source: DataSource) -> None:
    """Raise RequestError for columns that `where` or `values` names and the table lacks, and for swapped ones."""
    assert source.table is not None
    made = {*source.swap, *(name for swaps in source.swap.values() for name in swaps)}
    for option, names in (("where", source.where), ("values", source.values)):
        for name in names:
            if name not in table and not (option == "values" and name in made):
                raise RequestError(
                    f"`{option}` names {name!r}, which {source.table.name} lacks; it has {', '.join(table)}"
                )
    for name in (made | ({ITEM} if source.swap else set())) & set(table):
        raise RequestError(
            f"`swap` makes the column {name!r}, and {source.table.name} has one; rename it with `columns`, or leave "
            "the swap out"
        )


def _cell(name: str, cell: Any, source: DataSource) -> Column:
    """Return a cell as text; None for an empty one and for a text that says that the value is missing."""
    return stated(str("" if cell is None else cell), source.values.get(name, ()))


def _swapped(row: Mapping[str, Column], source: DataSource, number: int, place: int) -> Iterator[Sample]:
    """Yield a row once for every group, or for every combination of the groups of several swaps."""
    assert source.table is not None
    placeholders = [name for swaps in source.swap.values() for name in swaps]
    swapped = "|".join(map(re.escape, placeholders))
    row = {name: in_single_braces(cell, swapped) if isinstance(cell, str) else cell for name, cell in row.items()}
    texts = [text for text in row.values() if isinstance(text, str)]
    for name in placeholders:
        if name not in source.in_prompts and not any(f"{{{name}}}" in text for text in texts):
            raise RequestError(
                f"{source.table.name}, row {number}: no text has {{{name}}}, so that the swap would change nothing; "
                f"put {{{name}}} where the word belongs, or leave the row out"
            )
    # All swaps of one column have the same groups.
    labels = [next(iter(swaps.values())) for swaps in source.swap.values()]
    for chosen in itertools.product(*labels):
        given = {
            name: (words[label][place % len(words[label])], label)
            for label, swaps in zip(chosen, source.swap.values(), strict=True)
            for name, words in swaps.items()
        }
        # A column that a word names may have other words of the swap in it.
        plain = {name: word for name, (word, _) in given.items() if not placeholders_of(word)}
        own = {name: _filled(cell, plain) for name, cell in row.items()}
        where = f"{source.table.name}, row {number}"
        words = {name: _of_row(word, own, where, label) for name, (word, label) in given.items()}
        columns = {name: _filled(cell, words) for name, cell in own.items()}
        groups = dict(zip(source.swap, chosen, strict=True))
        yield text_sample(f"{row[ITEM]}/{'/'.join(chosen)}", {**columns, **words, **groups})


def _of_row(word: str, row: Mapping[str, Column], where: str, group: str) -> str:
    """Return a group's word; a placeholder in it is the row's column of that name. RequestError if that is empty."""
    for name in placeholders_of(word):
        if row.get(name) is None:
            lacking = "is empty" if name in row else f"is not there; the table has {', '.join(row)}"
            raise RequestError(f"{where}: the column {name!r}, which `swap` gives to {group}, {lacking}")
    return str(_filled(word, {name: str(row[name]) for name in placeholders_of(word)}))


def _filled(cell: Column, words: Mapping[str, str]) -> Column:
    if isinstance(cell, str):
        for name, word in words.items():
            cell = cell.replace(f"{{{name}}}", word)
    return cell


def _plain(value: Any) -> Any:
    """Return mappings and sequences as lists, in their order, which determines the samples."""
    if isinstance(value, Mapping):
        return [[key, _plain(entry)] for key, entry in value.items()]
    return value if isinstance(value, str) else list(value)
