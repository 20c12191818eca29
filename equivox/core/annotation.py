"""What reading a response gives: an annotation, and the protocol of whatever reads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from equivox.core.segments import Part
from equivox.core.task import Task, digest

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
    """One part of one response to be read; `task` is the name of the task it was first asked for."""

    key: str
    response_key: str
    task: str
    part: Part


@dataclass(frozen=True, kw_only=True)
class Annotation:
    """The reading of one part of a response; an attribute without a value among `values` is unstated.

    `output` is what a model that annotates wrote, word for word (None for rules), after `attempts` attempts.
    """

    key: str
    response_key: str
    task: str
    status: Status
    values: Sequence[Value]
    output: str | None = None
    attempts: int = 1
    part: str = ""

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
            "part": self.part,
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


def annotation_key(identity: AnnotatorIdentity, part: Part, response_key: str) -> str:
    """Return the hash of everything that determines an annotation: reader, part with its words, and response.

    Where the part's own reader alone reads it, the annotator is not among that.
    """
    return digest([None if part.alone else identity.as_dict(), part.digest, response_key])
