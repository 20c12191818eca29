"""What a run has stored: its responses and their sounds, who annotated them, and their annotations."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from equivox.annotate import evaluation_of
from equivox.core.annotation import AnnotatorIdentity
from equivox.core.errors import RequestError
from equivox.core.files import read_document, read_schema, write_whole
from equivox.core.lazy import pc
from equivox.core.media import MOST_SOUND_BYTES
from equivox.core.task import Task, digest
from equivox.run.live import refuse_unfinished
from equivox.run.store import Store, annotation_schema, response_schema

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
    """Return the identity of the annotator `name`; RequestError if it has not annotated this run."""
    try:
        record = read_document(annotations_folder(folder, name) / "annotator.json")
    except FileNotFoundError:
        refuse_unfinished(folder)
        known = ", ".join(annotators_of(folder)) or "none"
        raise RequestError(
            f"{folder} has no annotations by {name!r} (there: {known}); make them with "
            f"`equivox annotate {folder} --annotator {name}`"
        ) from None
    return AnnotatorIdentity(**record)


def count_annotation_failures(folder: Path, name: str) -> tuple[Counter[str], Counter[str]]:
    """Count the texts that `name` failed on, by the error, and those for which its output was no valid form, by it."""
    table = Store(annotations_folder(folder, name), annotation_schema()).table(("status", "output"))
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
    """Return where a spoken answer of the run in `folder` is stored; RequestError for a name that is no SHA-256."""
    if len(sha256) != 64 or not set(sha256) <= set("0123456789abcdef"):
        raise RequestError(f"{sha256!r:.80} names no spoken answer; it is no SHA-256")
    return folder / SOUNDS / f"{sha256}.wav"


def read_sound(folder: Path, sha256: str) -> bytes:
    """Return a stored spoken answer; RequestError for one that is missing, too long, or not what its name says."""
    path = sound_path(folder, sha256)
    try:
        if path.is_symlink() or not path.is_file() or path.stat().st_size > MOST_SOUND_BYTES:
            raise RequestError(
                f"{SOUNDS}/{path.name} is no spoken answer of this run: it is missing (was the run published without "
                "its sounds?), a link, or too long"
            )
        content = path.read_bytes()
    except OSError as error:
        raise RequestError(f"cannot read {path}: {error.strerror or error}") from error
    if hashlib.sha256(content).hexdigest() != sha256:
        raise RequestError(f"{path} was changed: its content is not that of its name")
    return content
