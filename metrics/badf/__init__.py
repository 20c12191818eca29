"""BADF: what do a model's stories associate with whom? (arXiv 2508.01412)."""

from __future__ import annotations

from equivox.metrics.badf.annotation.scheme import StoryReading
from equivox.metrics.badf.associations import (
    Association,
    Counts,
    Document,
    Phrase,
    associations,
    count,
    phrase_tests,
    summary,
    unify_phrases,
)
from equivox.metrics.badf.scorer import exclusivity_questions, score_setting, scored_together
from equivox.metrics.badf.simulated import StoryScript

__all__ = [
    "Association",
    "Counts",
    "Document",
    "Phrase",
    "StoryReading",
    "StoryScript",
    "associations",
    "count",
    "exclusivity_questions",
    "phrase_tests",
    "score_setting",
    "scored_together",
    "summary",
    "unify_phrases",
]
