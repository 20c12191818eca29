"""Corpora of runs: samples with their columns, and media that are read when they are needed.

Samples come from three sources: a corpus built to parquet, the embedded sample, and a folder of clips with a CSV. Only
the reading of bytes differs.
"""

from __future__ import annotations

import bisect
import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from equivox.core import media
from equivox.core.errors import UsageError
from equivox.core.files import state_of
from equivox.core.lazy import pq
from equivox.core.media import AudioFacts
from equivox.core.task import Column, DataSource
from equivox.dataset_builders.clip_folder import ClipFolder
from equivox.dataset_builders.schema import kept_facts, read_clip

if TYPE_CHECKING:
    from equivox.dataset_builders import Builder
    from equivox.dataset_builders.base import Clip

SAMPLE = "sample"
"""The value of `--data` for the embedded sample."""

SAMPLING_RATE = "sampling_rate"
"""The column with the samples per second of a recording; None where it cannot be read."""

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
        """Raise UsageError unless every sample has each of `columns`."""
        known = set(self.samples[0].columns) if self.samples else set()
        for column in columns:
            if column not in known:
                raise UsageError(
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
        raise UsageError(
            f"the corpus {source.corpus} is needed: give `--data sample` for the embedded sample, or `--data DIR` "
            f"with DIR from `equivox data build {source.corpus} --source … --output DIR`"
        )
    folder = build_folder(source.corpus, data)
    if not (folder / BUILD).is_file():
        if (Path(data) / BUILD).is_file():
            there = read_build(Path(data))["facts"]["name"]
            raise UsageError(
                f"`--data` {data} is the corpus {there}, and {source.corpus} is asked about; give its build"
            )
        others = sorted(path.parent.name for path in Path(data).glob(f"*/{BUILD}"))
        raise UsageError(
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
    """Return the record of a built corpus; UsageError if it cannot be read."""
    try:
        record: dict[str, Any] = json.loads((folder / BUILD).read_text("utf-8"))
        str(record["facts"]["name"]), str(record["fingerprint"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(f"cannot read {folder / BUILD} ({error}); build the corpus again") from None
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
            values={name: own for name, own in source.values.items() if name not in source.swap},
            missing=source.missing,
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
        raise UsageError(f"`--data` {folder} holds no rows; build the corpus {name} again")
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
    raise UsageError("this corpus has neither clips nor images; a task that sends them cannot use it")


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
