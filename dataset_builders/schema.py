"""The rows of a corpus: columns that all built corpora share, on disk and in memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from typing import Any

from equivox.core.errors import DamageError, StorageError
from equivox.core.files import cache_folder, read_document, write_document
from equivox.core.hashing import digest
from equivox.core.lazy import datasets
from equivox.core.media import AudioFacts, inspect_audio, inspect_image, sha256
from equivox.core.version import __version__
from equivox.dataset_builders.base import Builder, Clip, CorpusFacts

Row = dict[str, Any]
COMMON = {
    "audio": "the file as distributed: its bytes, and its path below the source",
    "audio_sha256": "SHA-256 of the bytes; null when the file is missing",
    "text": "what is said; null when the source does not tell",
    "speaker": "the unit that carries the demographic labels",
    "clip_id": "unique name of the clip",
    "sampling_rate": "samples per second; null when the audio cannot be read",
    "duration_s": "seconds of audio that can be decoded; null when there are none",
    "audio_problem": "why the audio is not usable, in words; null when it is usable",
}
"""The columns of every corpus of clips, with the meaning of values and nulls."""
COMMON_IMAGE = {
    "image": COMMON["audio"],
    "image_sha256": COMMON["audio_sha256"],
    "text": "what the image goes with; null when the source does not tell",
    "speaker": "the unit that the image belongs to",
    "clip_id": "unique name of the image",
    "image_problem": "why the image is not usable, in words; null when it is usable",
}
"""The columns of every corpus of images."""


def features(facts: CorpusFacts, media: str) -> datasets.Features:
    """Return the columns of a corpus and their types; audio and images stay encoded (`decode=False`)."""
    kinds = {"sampling_rate": "int64", "duration_s": "float64"}
    common = {
        name: datasets.Value(kinds.get(name, "string")) for name in (COMMON if media == "audio" else COMMON_IMAGE)
    }
    common[media] = (datasets.Audio if media == "audio" else datasets.Image)(decode=False)
    last = {name: common.pop(name) for name in (*kinds, f"{media}_problem") if name in common}
    return datasets.Features({**common, **{c.name: datasets.Value(c.kind) for c in facts.columns}, **last})


def read_clip(clip: Clip, media: str, known: dict[str, AudioFacts]) -> tuple[bytes | None, AudioFacts]:
    """Return the bytes and the facts of a clip's file; without a file the bytes are None and the problem says so.

    A recording whose facts are `known` by its SHA-256 is not decoded; those of any other are added. Of an image only
    the problem is known: it is checked by its first bytes and, if Pillow is installed, decoded.
    """
    try:
        data = clip.path.read_bytes()
    except OSError as error:
        missing = isinstance(error, FileNotFoundError)
        problem = "missing file" if missing else f"unreadable file: {error.strerror}"
        return None, AudioFacts(0, 0.0, problem)
    if media == "audio":
        content = sha256(data)
        if content not in known:
            known[content] = inspect_audio(data)
        return data, known[content]
    return data, AudioFacts(0, 0.0, inspect_image(data, name=clip.path.name))


FEWEST_KEPT = 100
"""Of fewer clips nothing is kept: they are decoded in less than a second."""


@contextmanager
def kept_facts(builder: Builder) -> Iterator[dict[str, AudioFacts]]:
    """Give what decoding told of a source's clips, by SHA-256, from the user's cache; what is added to it is kept."""
    kept = cache_folder("clips") / f"{digest([__version__, builder.fingerprint()])}.json"
    known: dict[str, AudioFacts] = {}
    with suppress(OSError, DamageError, TypeError):
        known = {content: AudioFacts(**facts) for content, facts in read_document(kept).items()}
    n_known = len(known)
    yield known
    if len(known) > n_known and len(known) >= FEWEST_KEPT:
        with suppress(StorageError):
            write_document(kept, {content: asdict(facts) for content, facts in known.items()})


def rows(builder: Builder) -> Iterator[tuple[Row, AudioFacts]]:
    """Yield a row per clip or image, sorted by id, with the facts of its audio; damaged ones are rows too.

    A recording that was decoded before is not decoded again (`kept_facts`): its bytes are the same.
    """
    with kept_facts(builder) as known:
        for clip in builder.clips():
            yield _row(builder, clip, known)


def _row(builder: Builder, clip: Clip, known: dict[str, AudioFacts]) -> tuple[Row, AudioFacts]:
    media = builder.MEDIA
    data, facts = read_clip(clip, media, known)
    heard = {"sampling_rate": facts.sampling_rate or None, "duration_s": facts.duration_s or None}
    row = {
        media: {"bytes": data, "path": builder.relative(clip.path)},
        f"{media}_sha256": None if data is None else sha256(data),
        "text": clip.text,
        "speaker": clip.speaker,
        "clip_id": clip.clip_id,
        **{column.name: clip.columns[column.name] for column in builder.facts.columns},
        **(heard if media == "audio" else {}),
        f"{media}_problem": facts.problem,
    }
    return row, facts
