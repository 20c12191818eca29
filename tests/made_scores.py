"""Scores, and what numbers are about, for tests that make them by hand."""

from __future__ import annotations

from typing import Any

from equivox.core.coverage import Coverage
from equivox.core.metric import Metric
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
        "name": "nTVD", "unit": "percent", "zero_means": "alike", "value": 40.0, "coverage": FULL,
    }  # fmt: skip
    return Score(**(common | given))


def toy_task(metric: Metric, *attributes: Attribute, **changes: Any) -> Task:
    """Return a task about two genders that asks for `attributes`; `changes` are other values of its fields."""
    common = {
        "name": "toy:task", "version": 1, "card": "", "data": DataSource(corpus="toy"), "group": ("gender",),
        "prompt": Prompt(name="toy", version=1, text="?", source="here"), "cluster": "speaker", "metric": metric,
        "annotation": AnnotationScheme(attributes=attributes),
    }  # fmt: skip
    return Task(**(common | changes))
