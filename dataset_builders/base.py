"""Base of the corpus builders: a corpus's facts, its clips, and the comparison of the two.

A builder turns a corpus *as distributed* into clips.  It reads names and tables when asked for `clips()`; the
audio itself is read only by `digests`, `differences()` and `fingerprint()`, and by code that opens `Clip.path`.
Everything that was read is cached: a builder is a snapshot of its source at the first access.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal

from equivox.core.errors import StorageError, UsageError, nearest
from equivox.core.files import file_hash, shortened
from equivox.core.foreign_files import refuse_unusable
from equivox.core.media import is_lfs_pointer
from equivox.core.plain import split_by
from equivox.core.text import how_many, listed
from equivox.dataset_builders.tables import read_columns

AUDIO_SUFFIXES = (".wav", ".flac", ".ogg", ".mp3")
"""Suffixes of audio files, in order of preference for a clip that exists in several formats."""
FACTS_FILE = "facts.json"
"""An optional file in a source folder; its facts replace those of the published corpus."""


Role = Literal["demographic", "stratum", "other"]


@dataclass(frozen=True, kw_only=True)
class Column:
    """One column of a corpus: its meaning and its role in a comparison."""

    name: str
    meaning: str
    role: Role = "demographic"
    kind: Literal["string", "int64", "float64"] = "string"


@dataclass(frozen=True, kw_only=True)
class CorpusFacts:
    """Published facts about a corpus, and the limits of what it can show.

    Attributes
    ----------
    licence, licence_id
        The licence in words, and its identifier on the Hugging Face Hub.
    published
        Counts to compare the source with, such as `{"clips": 7442, "speakers": 91}`; empty if none are published.
    columns
        Every column except the common ones (clip_id, text, speaker, audio), in order.
    cluster
        The column of the unit that carries a demographic label.
    version
        Raised whenever the same source gives other rows.
    """

    name: str
    title: str
    licence: str
    licence_id: str = "unknown"
    homepage: str | None = None
    paper: str | None = None
    doi: str | None = None
    citation: str | None = None
    language: str = "en"
    published: Mapping[str, int] = field(default_factory=dict)
    columns: tuple[Column, ...] = ()
    cluster: str = "speaker"
    cannot_say: tuple[str, ...] = ()
    version: int = 1

    @property
    def demographics(self) -> tuple[str, ...]:
        """The columns that describe the speaker and can be compared."""
        return tuple(column.name for column in self.columns if column.role == "demographic")

    @property
    def strata(self) -> tuple[str, ...]:
        """The columns that are held equal in a comparison."""
        return tuple(column.name for column in self.columns if column.role == "stratum")

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> CorpusFacts:
        """Return the facts that a record holds, such as that of a build."""
        columns = tuple(Column(**column) for column in record.get("columns", ()))
        return cls(**{**record, "columns": columns, "cannot_say": tuple(record.get("cannot_say", ()))})

    def with_file(self, source: Path) -> CorpusFacts:
        """Return these facts, replaced by those in the `facts.json` of a source folder; the file may be absent."""
        path = source / FACTS_FILE
        if not path.is_file():
            return self
        allowed = [f.name for f in dataclasses.fields(self) if f.name not in {"name", "columns", "cluster", "version"}]
        try:
            stated = json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise UsageError(f"{path}: not JSON ({error}); correct or remove it") from error
        if not isinstance(stated, dict):
            raise UsageError(f"{path}: expected a JSON object of facts, got {type(stated).__name__}; correct it")
        if unknown := sorted(set(stated) - set(allowed)):
            hint = nearest(unknown[0], allowed)
            raise UsageError(f"{path}: unknown fact {unknown[0]!r}{hint}; known are {', '.join(allowed)}")
        if "cannot_say" in stated:
            stated["cannot_say"] = tuple(stated["cannot_say"])
        return dataclasses.replace(self, **stated)


def published_facts(name: str) -> CorpusFacts:
    """Return what is published about a corpus that equivox knows (`dataset_builders/facts.yaml`)."""
    from equivox.core.yaml_files import packaged_yaml

    return CorpusFacts.of({"name": name, **packaged_yaml("dataset_builders/facts.yaml")[name]})


class Published:
    """The facts of a builder, which are read when they are asked for: to list builders takes no YAML."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, builder: object, kind: object = None) -> CorpusFacts:
        return published_facts(self._name)


@dataclass(frozen=True, kw_only=True)
class Clip:
    """One recording of one speaker.

    Attributes
    ----------
    clip_id
        Unique within the corpus.
    path
        The file; it may be missing or damaged, which is detected when it is read.
    text
        The spoken text; None if the source does not have it.
    speaker
        The unit that carries the demographic labels.
    columns
        Every column of `CorpusFacts.columns`; None if the source has no value.
    further
        Further files of the row, by their columns.
    """

    clip_id: str
    path: Path
    text: str | None
    speaker: str
    columns: Mapping[str, str | int | float | None]
    further: Mapping[str, Path] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Scan:
    """The result of one scan of the names and tables of a source.

    Attributes
    ----------
    counts
        Counts under the same names as `CorpusFacts.published`.
    oddities
        Description of an oddity → the names that it concerns; empty lists are ignored.
    notes
        Further remarks, in words.
    """

    clips: tuple[Clip, ...]
    counts: Mapping[str, int]
    oddities: Mapping[str, Sequence[str]]
    notes: tuple[str, ...] = ()


class Builder(ABC):
    """Builder that turns one corpus as distributed into clips; subclasses check and scan the source."""

    FACTS: ClassVar[CorpusFacts]
    MEDIA: Literal["audio", "image"] = "audio"
    facts: CorpusFacts

    def __init__(self, source: Path | str) -> None:
        self.source = Path(source).expanduser()
        refuse_unusable(self.source, "source")
        if not self.source.is_dir():
            kind = "a file" if self.source.exists() else "missing"
            raise UsageError(f"`source` must be the folder of the corpus, but {self.source} is {kind}")
        given = self.source
        self._check_source()  # which may find the clips elsewhere, where a table holds them itself
        self.facts = self._facts().with_file(given)

    @classmethod
    def described(cls, record: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the columns of a sample that a record in another form implies; none unless a corpus has such a form.

        A column that the record has as the corpus writes it is left as it is. `sample_id` may be among the columns.
        """
        return {}

    @abstractmethod
    def _check_source(self) -> None:
        """Raise UsageError if the source is not this corpus."""

    @abstractmethod
    def _scan(self) -> Scan:
        """Return the result of scanning the names and tables of the source."""

    def _facts(self) -> CorpusFacts:
        """Return what is known of the source before its own file of facts is read."""
        return self.FACTS

    @cached_property
    def _scanned(self) -> Scan:
        scan = self._scan()
        clips = tuple(scan.clips)  # a generator would be used up by the first look at it
        if not clips:
            raise UsageError(f"{self.source} holds no clip of {self.facts.title}; is the download complete?")
        ours = type(self).__module__.startswith("equivox.")  # their clips need no check
        if not ours and (odd := _odd(clips, {column.name for column in self.facts.columns})) is not None:
            raise UsageError(f"the data-set builder {self.facts.name} {odd}")
        refuse_lfs_pointers([clip.path for clip in clips])
        return dataclasses.replace(scan, clips=tuple(sorted(clips, key=lambda clip: clip.clip_id)))

    def clips(self) -> list[Clip]:
        """Return every clip, sorted by `clip_id`; reads names and tables, not audio."""
        return list(self._scanned.clips)

    def counts(self) -> dict[str, int]:
        """Return the counts that were found, under the same names as `facts.published`."""
        return dict(self._scanned.counts)

    def oddities(self) -> dict[str, list[str]]:
        """Return each oddity of the source with all names that it concerns; `differences()` names the first few."""
        return {what: list(names) for what, names in self._scanned.oddities.items() if names}

    @cached_property
    def _resolved(self) -> Path:
        """The source without links, in which every file that it names must lie."""
        return self.source.resolve()

    def relative(self, path: Path) -> str:
        """Return a clip's path below the source, with forward slashes."""
        return path.relative_to(self.source).as_posix()

    @cached_property
    def digests(self) -> Mapping[str, str | None]:
        """The SHA-256 of each clip's file by `clip_id`; None for a file that cannot be read."""
        clips = self._scanned.clips
        with ThreadPoolExecutor(max_workers=8) as pool:  # hashing and reading both release the interpreter lock
            return dict(
                zip((c.clip_id for c in clips), pool.map(_sha256_if_readable, (c.path for c in clips)), strict=True)
            )

    def differences(self) -> list[str]:
        """Return the differences of the source from published facts, and its oddities; reads audio.

        Covers published and found counts, files and table rows without their counterpart, bad names, duplicates by
        name or content, missing transcripts and missing values.  An empty list means: as published.
        """
        found, lines = self._scanned.counts, []
        for name, expected in self.facts.published.items():
            if found.get(name) != expected:
                lines.append(f"{name}: {expected:,} published, {found.get(name, 0):,} found")
        lines += [f"{what}: {_few(names)}" for what, names in self.oddities().items()]
        lines += self._scanned.notes
        untold = [clip.clip_id for clip in self._scanned.clips if clip.text is None]
        if untold and self.MEDIA == "audio":
            lines.append(f"clips without a transcript (text null): {_few(untold)}")
        same = split_by((clip for clip, digest in self.digests.items() if digest is not None), self.digests.get)
        doubles = [" = ".join(ids) for ids in same.values() if len(ids) > 1]
        if doubles:
            lines.append(f"clips with the same content: {_few(doubles)}")
        return lines

    def fingerprint(self) -> str:
        """Return a SHA-256 over the content of all rows, which changes with the source.

        It covers the corpus's name and version, its facts, the differences, and for each clip its id, path
        below the source, SHA-256 of its bytes, text, speaker and columns.  Times and locations are not part of it, so
        a copy of a source has the same fingerprint.  Files are hashed in parallel, about 1 GB/s from a cached
        disk.
        """
        digest = hashlib.sha256()
        digest.update(_json([dataclasses.asdict(self.facts), self.differences()]))
        for clip in self._scanned.clips:
            named = [clip.clip_id, self.relative(clip.path), self.digests[clip.clip_id]]
            digest.update(_json([*named, clip.text, clip.speaker, dict(clip.columns)]))
            if clip.further:
                digest.update(_json({name: _sha256_if_readable(path) for name, path in clip.further.items()}))
        return digest.hexdigest()


def _odd(clips: Iterable[Clip], columns: Set[str]) -> str | None:
    """Return what is wrong with the clips of a builder that is somebody's code, in words; None if nothing is."""
    from equivox.core.fields import typed

    seen: set[str] = set()
    for clip in clips:
        if not isinstance(clip, Clip):
            return f"gave {clip!r:.60}, no `Clip`"
        try:
            typed(Clip, vars(clip))
        except UsageError as error:
            return f"gave a clip with an odd field: {error}"
        if not clip.clip_id or clip.clip_id in seen:
            return f"gave a clip the name {clip.clip_id!r:.60}, which is empty or taken; give each its own"
        if differing := sorted(clip.columns.keys() ^ columns):
            return f"gave {clip.clip_id!r:.60} other columns than `FACTS.columns`: {', '.join(differing)}"
        if unknown := [name for name, value in clip.columns.items() if value != value]:
            return f"gave {clip.clip_id!r:.60} NaN as {unknown[0]}, which would be a group; use None instead"
        seen.add(clip.clip_id)
    return None


def audio_files(paths: Iterable[Path]) -> list[Path]:
    """Return the audio files among `paths` by folder and name, and of several formats the preferred one first."""
    audio = [path for path in paths if path.suffix.lower() in AUDIO_SUFFIXES]
    return sorted(audio, key=lambda path: (path.parent, path.stem, AUDIO_SUFFIXES.index(path.suffix.lower())))


def normal(value: str) -> str | None:
    """Return a category in lower case with single spaces; None if it means that nothing is known.

    >>> normal(" African  American "), normal("Unknown"), normal("")
    ('african american', None, None)
    """
    words = " ".join(value.lower().split())
    return None if words in {"", "unknown", "na", "n/a", "unspecified"} else words


def decade(age: int | None) -> str | None:
    """Return the ten years that an age falls into; None for no age.

    >>> decade(34), decade(None)
    ('30-39', None)
    """
    return None if age is None else f"{age // 10 * 10}-{age // 10 * 10 + 9}"


def speakers_with(clips: Iterable[Clip], column: str) -> dict[str | int | float, int]:
    """Count speakers (not clips) for each value of a column."""
    pairs = {(clip.speaker, clip.columns[column]) for clip in clips}
    values = [value for _, value in pairs if value is not None]
    return {value: values.count(value) for value in sorted(set(values), key=str)}


def read_rows(path: Path, required: Sequence[str], *, strip: bool = True) -> list[dict[str, str]]:
    """Return the rows of a table; an empty cell is an empty text.

    UsageError as `read_columns`, and for a column of `required` that is missing.
    """
    columns = read_columns(path)
    if missing := [name for name in required if name not in columns]:
        has = shortened(", ".join(columns), 300)
        raise UsageError(f"{path}: column {missing[0]!r} is missing; its columns are {has}")
    rows = (["" if cell is None else str(cell) for cell in cells] for cells in zip(*columns.values(), strict=True))
    return [dict(zip(columns, map(str.strip, cells) if strip else cells, strict=True)) for cells in rows]


def found_instead(folder: Path) -> str:
    """Return a description of a folder's content, for errors about a source that is not the corpus."""
    names = sorted(entry.name + "/" * entry.is_dir() for entry in folder.iterdir() if not entry.name.startswith("."))
    return f"found {listed(names)}" if names else "the folder is empty"


def refuse_lfs_pointers(paths: Iterable[Path]) -> None:
    """Raise UsageError if files are git-lfs pointers, as in a clone without git-lfs."""
    small = (path for path in paths if path.is_file() and path.stat().st_size < 1024)
    pointers = [path for path in small if is_lfs_pointer(path.read_bytes())]
    if pointers:
        raise UsageError(
            f"{how_many(len(pointers), 'file')} of the corpus, such as {pointers[0]}, hold only a git-lfs pointer; "
            "run `git lfs pull` in it and try again"
        )


def _few(names: Sequence[str]) -> str:
    return f"{len(names):,} ({listed(names)})"


def _sha256_if_readable(path: Path) -> str | None:
    with suppress(StorageError):
        return file_hash(path)
    return None


def _json(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, ensure_ascii=False).encode() + b"\n"
