"""The corpus of a GENRES task: the narrative elicitation pairs of one relationship."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from equivox.core.errors import RequestError, nearest
from equivox.core.hashing import digest
from equivox.core.task import DataSource
from equivox.dataset_builders.corpus import Corpus, from_builder, open_clips
from equivox.dataset_builders.genres import Genres


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
        raise RequestError(
            f"{source.corpus}: no element has the relationship {relationship!r}{nearest(relationship, known)}; "
            f"there are {', '.join(known)}"
        )
    return replace(
        whole, name=source.corpus, fingerprint=digest([whole.fingerprint, relationship]), samples=samples, notes=()
    )
