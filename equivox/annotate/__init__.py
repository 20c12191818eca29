"""Annotators turn responses into attributes."""

from __future__ import annotations

from equivox.annotate.base import (
    Annotation,
    Annotator,
    AnnotatorIdentity,
    Job,
    Status,
    Value,
    annotation_key,
)
from equivox.errors import RequestError, nearest

__all__ = [
    "Annotation",
    "Annotator",
    "AnnotatorIdentity",
    "Job",
    "Status",
    "Value",
    "annotation_key",
    "open_annotator",
]

ANNOTATORS = ("rules",)


def open_annotator(name: str) -> Annotator:
    """Return the annotator called `name`; RequestError if there is none."""
    if name == "rules":
        from equivox.annotate.rules import RulesAnnotator

        return RulesAnnotator()
    raise RequestError(f"unknown `annotator` {name!r}{nearest(name, ANNOTATORS)}; known: {', '.join(ANNOTATORS)}")
