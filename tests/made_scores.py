"""Scores, and what numbers are about, for tests that make them by hand."""

from __future__ import annotations

from typing import Any

from equivox.core.coverage import Coverage
from equivox.core.metric import Metric
from equivox.core.notes import Note, NoteCode
from equivox.core.scores import Score
from equivox.core.task import AnnotationScheme, Attribute, DataSource, Prompt, Task

FULL = Coverage(requested=6, generated=6, answered=6, parsed=6, used=6, requested_by_group={}, used_by_group={})
SUBJECT: dict[str, Any] = {
    "dimension": "gender", "condition": "audio", "family": "f", "task": "f:t", "metric": "nTVD", "unit": "percent",
}  # fmt: skip


def made_score(**given: Any) -> Score:
    """Return an nTVD of a whole task; `given` are other values of its fields."""
    common = {
        "task": "f:t", "condition": "audio", "dimension": "gender", "attribute": None, "role": "outcome",
        "metric": "nTVD", "unit": "percent", "value": 40.0, "coverage": FULL,
    }  # fmt: skip
    return Score(**(common | given))


def find_note(score: Score, code: NoteCode) -> Note:
    """Return the one note of a score with a code."""
    (note,) = (note for note in score.notes if note.code == code)
    return note


def code_of(score: Score) -> str:
    """Return the code of what could hide a difference from a score; empty if nothing could."""
    return "" if score.hidden_by is None else str(score.hidden_by.code)


def toy_task(metric: Metric, *attributes: Attribute, **changes: Any) -> Task:
    """Return a task about two genders that asks for `attributes`; `changes` are other values of its fields."""
    common = {
        "name": "toy:task", "version": 1, "card": "", "data": DataSource(corpus="toy"), "group": ("gender",),
        "prompt": Prompt(name="toy", version=1, text="?", source="here"), "cluster": "speaker", "metric": metric,
        "annotation": AnnotationScheme(attributes=attributes),
    }  # fmt: skip
    return Task(**(common | changes))
