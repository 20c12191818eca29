"""Scores, and what numbers are about, for tests that make them by hand."""

from __future__ import annotations

from typing import Any

from equivox.core.coverage import Coverage
from equivox.core.scores import Score

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
