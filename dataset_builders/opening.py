"""The corpus that a task asks about: found by its name, its table or its builder, and opened."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

from equivox.core.errors import UsageError, nearest
from equivox.core.fields import typed
from equivox.core.hashing import digest
from equivox.core.plugins import Plugin, told_in_one_line
from equivox.core.task import DataSource
from equivox.dataset_builders import added_builders
from equivox.dataset_builders.badf import open_grid
from equivox.dataset_builders.base import Clip
from equivox.dataset_builders.corpus import (
    Corpus,
    Sample,
    builder_of,
    from_builder,
    open_clips,
    text_sample,
)
from equivox.dataset_builders.genres import Genres
from equivox.dataset_builders.made_applications import CORPUS, open_applications
from equivox.dataset_builders.own_tables import of_every_group, open_texts

Opener = Callable[[DataSource, "str | Path | None"], Corpus]
"""Function of a source and the value of `--data` that returns the corpus."""


@cache
def openers() -> Mapping[str, Opener]:
    """Return the functions that open corpora without the usual layout of clips or images, by the builder's name.

    A package adds one by an entry point in the group `equivox.dataset_builders` that is such a function.
    """
    plugins = {name: plugin.given or _refused(plugin) for name, plugin in added_builders().items()}
    functions = {name: given for name, given in plugins.items() if not isinstance(given, type)}
    return {"badf": open_grid, "genres": open_genres, CORPUS: open_applications, **functions}


def _refused(plugin: Plugin) -> Opener:
    """Return a function that opens nothing: it raises UsageError with the reason why the plug-in is refused."""
    return lambda source, data: plugin.use()


def open_genres(source: DataSource, data: str | Path | None) -> Corpus:
    """Return the NEPs of one relationship (`source.where`): from a build, the sample, or a custom folder."""
    if source.table is not None:
        whole = from_builder(Genres(source.table.parent))
    else:
        whole = open_clips(DataSource(corpus="genres"), data)
    relationship = str(source.where["relationship"])
    samples = tuple(sample for sample in whole.samples if sample.columns["relationship"] == relationship)
    if not samples:
        known = sorted({str(sample.columns["relationship"]) for sample in whole.samples})
        raise UsageError(
            f"{source.corpus}: no element has the relationship {relationship!r}{nearest(relationship, known)}; "
            f"there are {', '.join(known)}"
        )
    return replace(
        whole, name=source.corpus, fingerprint=digest([whole.fingerprint, relationship]), samples=samples, notes=()
    )


def open_corpus(source: DataSource, data: str | Path | None) -> Corpus:
    """Return the corpus of `source`, found through `data`.

    `data` is `sample`, the folder that `equivox data build` wrote into (with `<corpus>/build.json`), or the folder of
    the build itself. A source with a custom table needs no `data`.
    """
    if source.table is not None and source.kind == "text":
        return open_texts(source)
    name = source.builder or source.corpus
    opener = openers().get(name)
    if opener is None:
        return of_every_group(open_clips(source, data), source)
    if opener.__module__.startswith("equivox."):  # its samples need no check, which takes as long as making them
        return opener(source, data)
    with told_in_one_line(f"the data-set builder {name}"):
        corpus = opener(source, data)
        if (odd := _odd(corpus)) is not None:
            raise UsageError(f"the data-set builder {name} {odd}")
        return corpus


def _odd(corpus: object) -> str | None:
    """Return what is wrong with what an opener gave, which may be somebody's code; None if it is a corpus."""
    if not isinstance(corpus, Corpus):
        return f"returned {type(corpus).__name__}; return a `Corpus`"
    seen: set[str] = set()
    try:
        typed(Corpus, vars(corpus))
        for sample in corpus.samples:
            typed(Sample, vars(sample))
            if not sample.sample_id or sample.sample_id in seen:
                return f"gave a sample the name {sample.sample_id!r:.60}, which is empty or taken; give each its own"
            if differing := sorted(sample.columns.keys() ^ corpus.samples[0].columns.keys()):
                return f"gave {sample.sample_id!r:.60} other columns than the first sample: {', '.join(differing)}"
            if unknown := [name for name, value in sample.columns.items() if value != value]:
                return f"gave {sample.sample_id!r:.60} NaN as {unknown[0]}, which would be a group; use None instead"
            " ".join([sample.sample_id, *map(str, sample.columns.values())]).encode()
            seen.add(sample.sample_id)
    except (UsageError, UnicodeEncodeError) as error:
        return f"gave a corpus with an odd field: {error}"
    return None


def open_unread(source: DataSource, data: str | Path | None) -> Corpus | None:
    """Return a corpus without opening its clips, to show some of them: it has no hash, no problem and no duration.

    None for a corpus that `open_corpus` opens without reading clips, or with an opener of its own.
    """
    if source.kind == "text":
        return None
    builder = None if (source.builder or source.corpus) in openers() else builder_of(source, data)
    if builder is None:
        return None
    return of_every_group(
        Corpus(name=builder.facts.name, fingerprint="", samples=tuple(map(_unread, builder.clips()))), source
    )


def _unread(clip: Clip) -> Sample:
    """Return a clip, with those of further turns, as a sample that nobody has opened."""
    sample = text_sample(clip.clip_id, {"text": clip.text, "speaker": clip.speaker, **clip.columns})
    clips = {name: _unread(replace(clip, path=path, further={})) for name, path in clip.further.items()}
    return replace(sample, file_name=clip.path.name, load=clip.path.read_bytes, clips=clips)
