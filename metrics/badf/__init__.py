"""BADF: what do a model's stories associate with whom? (arXiv 2508.01412)."""

from __future__ import annotations

from equivox.metrics.badf.annotation.scheme import StoryScheme
from equivox.metrics.badf.associations import (
    Association,
    Counts,
    Phrase,
    associations,
    count,
    phrase_tests,
    summary,
    unify_phrases,
)
from equivox.metrics.badf.documents import Document, Documents
from equivox.metrics.badf.metric import METRIC
from equivox.metrics.badf.simulated import SimulatedStories

__all__ = [
    "METRIC",
    "Association",
    "Counts",
    "Document",
    "Documents",
    "Phrase",
    "SimulatedStories",
    "StoryScheme",
    "associations",
    "count",
    "phrase_tests",
    "summary",
    "unify_phrases",
]
