"""The rows of a corpus: columns that all built corpora share, on disk and in memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from equivox.core.media import AudioFacts, inspect_audio, inspect_image, sha256
from equivox.dataset_builders.base import Builder, Clip, CorpusFacts

if TYPE_CHECKING:
    import datasets

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
    import datasets

    string, number = datasets.Value("string"), datasets.Value("float64")
    if media == "image":
        own = {column.name: datasets.Value(column.kind) for column in facts.columns}
        first = {name: datasets.Image(decode=False) if name == "image" else string for name in COMMON_IMAGE}
        problem = first.pop("image_problem")
        return datasets.Features({**first, **own, "image_problem": problem})
    return datasets.Features(
        {
            "audio": datasets.Audio(decode=False),
            "audio_sha256": string,
            "text": string,
            "speaker": string,
            "clip_id": string,
            **{column.name: datasets.Value(column.kind) for column in facts.columns},
            "sampling_rate": datasets.Value("int64"),
            "duration_s": number,
            "audio_problem": string,
        }
    )


def read_clip(clip: Clip) -> tuple[bytes | None, AudioFacts]:
    """Return the bytes and the facts of a clip's file; without a file the bytes are None and the problem says so."""
    try:
        data = clip.path.read_bytes()
    except FileNotFoundError:
        return None, AudioFacts("unknown", 0, 0, 0.0, "missing file")
    except OSError as error:
        return None, AudioFacts("unknown", 0, 0, 0.0, f"unreadable file: {error.strerror}")
    return data, inspect_audio(data, name=clip.path.name)


def read_image(clip: Clip) -> tuple[bytes | None, str | None]:
    """Return the bytes of an image's file, and why it cannot be used or None.

    Every image is checked by its first bytes; if Pillow is installed, it is also decoded.
    """
    try:
        data = clip.path.read_bytes()
    except OSError as error:
        return None, "missing file" if isinstance(error, FileNotFoundError) else f"unreadable file: {error.strerror}"
    return data, inspect_image(data, name=clip.path.name)


def _image_rows(builder: Builder) -> Iterator[tuple[Row, AudioFacts]]:
    for clip in builder.clips():
        data, problem = read_image(clip)
        row = {
            "image": {"bytes": data, "path": builder.relative(clip.path)},
            "image_sha256": None if data is None else sha256(data),
            "text": clip.text,
            "speaker": clip.speaker,
            "clip_id": clip.clip_id,
            **{column.name: clip.columns[column.name] for column in builder.facts.columns},
            "image_problem": problem,
        }
        yield row, AudioFacts("image", 0, 0, 0.0, problem)


def rows(builder: Builder) -> Iterator[tuple[Row, AudioFacts]]:
    """Yield a row per clip or image, sorted by id, with the facts of its audio; damaged ones are rows too."""
    if builder.MEDIA == "image":
        yield from _image_rows(builder)
        return
    for clip in builder.clips():
        data, audio = read_clip(clip)
        yield (
            {
                "audio": {"bytes": data, "path": builder.relative(clip.path)},
                "audio_sha256": None if data is None else sha256(data),
                "text": clip.text,
                "speaker": clip.speaker,
                "clip_id": clip.clip_id,
                **{column.name: clip.columns[column.name] for column in builder.facts.columns},
                "sampling_rate": audio.sampling_rate or None,
                "duration_s": audio.duration_s or None,
                "audio_problem": audio.problem,
            },
            audio,
        )


def dataset(builder: Builder) -> datasets.Dataset:
    """Return the rows as a `datasets.Dataset`, cached by fingerprint."""
    import datasets

    final = features(builder.facts, builder.MEDIA)
    encoded = {"bytes": datasets.Value("binary"), "path": datasets.Value("string")}
    rows = datasets.Dataset.from_generator(  # an Audio column would be encoded here, which needs torch
        _plain_rows,
        features=datasets.Features({**final, builder.MEDIA: encoded}),
        gen_kwargs={"builder": builder},
        fingerprint=builder.fingerprint()[:16],
    )
    return rows.cast(final)


def _plain_rows(builder: Builder) -> Iterator[Row]:
    for row, _ in rows(builder):
        yield row
