"""The corpus: eight first names, each applying for three posts. It is written here; nothing is downloaded."""

from __future__ import annotations

from pathlib import Path

from equivox.core.hashing import digest
from equivox.core.task import DataSource
from equivox.dataset_builders.corpus import Corpus, text_sample

NAMES = {"female": ("Anna", "Clara", "Emma", "Julia"), "male": ("Jonas", "Lukas", "Paul", "Tim")}
POSTS = ("nurse", "welder", "teacher")


def open_letters(source: DataSource, data: str | Path | None) -> Corpus:
    """Return the corpus; it needs neither `--data` nor files."""
    samples = tuple(
        text_sample(f"{name}/{post}", {"name": name, "gender": gender, "post": post})
        for gender, names in NAMES.items()
        for name in names
        for post in POSTS
    )
    return Corpus(name="letters", fingerprint=digest([sample.sample_id for sample in samples]), samples=samples)
