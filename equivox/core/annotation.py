"""Annotations, and the base class of an annotator."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from equivox.core.hashing import KEY_LENGTH, digest, digest_of_texts
from equivox.core.segments import Segment, Status, Value

if TYPE_CHECKING:
    from equivox.core.requests import Engine
    from equivox.core.task import Task

RULES = "rules"
"""The name of the annotator without a model."""


@dataclass(frozen=True, kw_only=True)
class Job:
    """One segment of a response that is to be annotated; `task` names the task that first needed the annotation.

    The annotator `failed_before` on it if it is asked again.
    """

    key: str
    response_key: str
    task: str
    segment: Segment
    failed_before: bool = False

    def annotated(
        self, status: Status, values: Iterable[Value] = (), *, output: str | None = None, attempts: int = 1
    ) -> Annotation:
        """Return an annotation with this job's keys and the given contents."""
        return Annotation(
            key=self.key,
            response_key=self.response_key,
            task=self.task,
            status=status,
            values=tuple(values),
            output=output,
            attempts=attempts,
            segment=self.segment.name,
        )


@dataclass(frozen=True, kw_only=True)
class Annotation:
    """The annotation of one segment of a response; an attribute that does not occur in `values` is unstated.

    `output` is the verbatim output of a model that annotates (None for rules) after `attempts` attempts.
    """

    key: str
    response_key: str
    task: str
    status: Status
    values: Sequence[Value]
    output: str | None = None
    attempts: int = 1
    segment: str = ""

    def as_record(self) -> dict[str, Any]:
        """Return the annotation as a row of the store."""
        return {**vars(self), "values": [value._asdict() for value in self.values]}

    def by_attribute(self) -> dict[str, tuple[str, ...]]:
        """Return the values by attribute, in the order given."""
        return grouped((value.attribute, value.value) for value in self.values)


def grouped(values: Iterable[tuple[str, str]]) -> dict[str, tuple[str, ...]]:
    """Return the values of each attribute, in the order given, from pairs of an attribute and a value.

    >>> grouped([("hobby", "chess"), ("job", "baker"), ("hobby", "yoga")])
    {'hobby': ('chess', 'yoga'), 'job': ('baker',)}
    """
    found: dict[str, tuple[str, ...]] = {}
    for attribute, value in values:
        found[attribute] = (*found.get(attribute, ()), value)
    return found


@dataclass(frozen=True, kw_only=True)
class AnnotatorIdentity:
    """Identity of an annotator: part of every annotation's key and of the manifest."""

    name: str
    version: str
    settings: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def digest(self) -> str:
        """SHA-256 over the identity."""
        return digest(self.as_dict())

    def as_dict(self) -> dict[str, Any]:
        """Return the identity as plain JSON values."""
        return {"name": self.name, "version": self.version, "settings": dict(self.settings)}


class Annotator:
    """Base class of an annotator. A subclass sets `identity` and writes `annotate`; all else has a default."""

    identity: AnnotatorIdentity
    engine: Engine | None = None
    """The engine of a model that annotates."""
    instant: bool = False
    """Whether annotations are made again in no time, so that they are stored a block at a time and not one by one."""

    @property
    def named(self) -> str:
        """The annotator in words, for messages."""
        return f"the annotator {self.identity.name}"

    @property
    def usage(self) -> Mapping[str, float]:
        """What its engine used of a server; empty without one."""
        return self.engine.used if self.engine else {}

    def annotate(self, jobs: Iterable[Job]) -> Iterator[Annotation]:
        """Yield one annotation per job; a job passed over, and a value that is no option or `other`, have failed."""
        raise NotImplementedError

    def check(self, tasks: Sequence[Task]) -> None:
        """Raise UsageError for a task this annotator cannot annotate, before anything is written."""

    def close(self) -> None:
        """Free the annotator's memory and connections."""


def annotation_key(identity: AnnotatorIdentity, segment: Segment, response_key: str) -> str:
    """Return the hash of everything that determines an annotation: annotator, segment with its text, and response.

    If only the segment's tool annotates it, the key does not depend on the annotator.
    """
    by = "" if segment.alone else identity.digest
    return digest_of_texts(by, segment.digest, response_key)[:KEY_LENGTH]
