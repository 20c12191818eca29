"""What reading a response gives: an annotation, and the protocol of whatever reads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from equivox.task import Task, digest

Status = Literal["parsed", "refused", "empty", "unparsed"]
"""`refused` declines, `empty` says nothing, `unparsed` could not be read; only `parsed` carries values."""


@dataclass(frozen=True)
class Value:
    """One value of one attribute: canonical, and as the response worded it."""

    attribute: str
    value: str
    raw: str


@dataclass(frozen=True, kw_only=True)
class Job:
    """One response to be read under one task's attributes."""

    key: str
    response_key: str
    task: Task
    text: str


@dataclass(frozen=True, kw_only=True)
class Annotation:
    """The reading of one response; an attribute without a value among `values` is unstated.

    `output` is what a model that annotates wrote, word for word (None for rules), after `attempts` attempts.
    """

    key: str
    response_key: str
    task: str
    status: Status
    values: Sequence[Value]
    output: str | None = None
    attempts: int = 1

    def as_record(self) -> dict[str, Any]:
        """Return the annotation as a row of the store."""
        return {
            "key": self.key,
            "response_key": self.response_key,
            "task": self.task,
            "status": self.status,
            "values": [vars(value) for value in self.values],
            "output": self.output,
            "attempts": self.attempts,
        }


@dataclass(frozen=True, kw_only=True)
class AnnotatorIdentity:
    """Who reads: part of every annotation's key and of the manifest."""

    name: str
    version: str
    settings: Mapping[str, Any] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Return the identity as plain JSON values."""
        return {"name": self.name, "version": self.version, "settings": dict(self.settings)}


class Annotator(Protocol):
    """Anything that reads responses; one annotation for every job."""

    identity: AnnotatorIdentity

    def check(self, tasks: Sequence[Task]) -> None:
        """Raise RequestError for a task this annotator cannot read, before anything is written."""
        ...

    def annotate(self, jobs: Iterable[Job]) -> Iterator[Annotation]:
        """Yield one annotation per job."""
        ...

    def close(self) -> None:
        """Free what the annotator holds."""
        ...


def annotation_key(identity: AnnotatorIdentity, task: Task, response_key: str, text: str) -> str:
    """Return the hash of everything that determines an annotation: reader, attributes, response and its words."""
    return digest([identity.as_dict(), task.attributes_digest, response_key, text])
