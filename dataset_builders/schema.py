"""The rows of a corpus: columns that all built corpora share, on disk and in memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from equivox.core.lazy import datasets
from equivox.core.media import AudioFacts, inspect_audio, inspect_image, sha256
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


def features(facts: CorpusFacts, media: str = "audio") -> datasets.Features:
    """Return the columns of a corpus and their types; audio and images stay encoded (`decode=False`)."""
    kinds = {"sampling_rate": "int64", "duration_s": "float64"}
    common = {
        name: datasets.Value(kinds.get(name, "string")) for name in (COMMON if media == "audio" else COMMON_IMAGE)
    }
    common[media] = (datasets.Audio if media == "audio" else datasets.Image)(decode=False)
    last = {name: common.pop(name) for name in (*kinds, f"{media}_problem") if name in common}
    return datasets.Features({**common, **{c.name: datasets.Value(c.kind) for c in facts.columns}, **last})


def read_clip(
    clip: Clip, media: str = "audio", known: dict[str, AudioFacts] | None = None
) -> tuple[bytes | None, AudioFacts]:
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
        known, content = {} if known is None else known, sha256(data)
        if content not in known:
            known[content] = inspect_audio(data)
        return data, known[content]
    return data, AudioFacts(0, 0.0, inspect_image(data, name=clip.path.name))


def rows(builder: Builder) -> Iterator[tuple[Row, AudioFacts]]:
    """Yield a row per clip or image, sorted by id, with the facts of its audio; damaged ones are rows too."""
    media = builder.MEDIA
    for clip in builder.clips():
        data, facts = read_clip(clip, media)
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
        yield row, facts
