"""How a response is read: as a whole, or part by part, each part a text with attributes of its own.

A `Reading` names the parts that can be read now, given those already read; it is asked again until it names
nothing new. A part may bring a `PartReader`, rules or a tool that reads it before, or instead of, the annotator.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from equivox.core.task import Attribute, WorkedExample, digest

if TYPE_CHECKING:
    from equivox.core.annotation import Status, Value
    from equivox.core.task import Task

WHOLE = ""
"""The name of the part whose status is that of the response; every reading has it."""


@dataclass(frozen=True, kw_only=True)
class AnnotatorPrompt:
    """What a model is asked about a part: `{fields}`, `{response}` and any key of the part's `extra` are filled in."""

    name: str
    version: int
    text: str


class PartReader(Protocol):
    """Rules or a tool (a parser, a tagger, a classifier) that reads parts without an annotator."""

    @property
    def identity(self) -> Mapping[str, Any]:
        """Name, version and settings: what its readings depend on."""
        ...

    def read(self, parts: Sequence[Part]) -> Iterable[Sequence[Value] | None]:
        """Yield, for each part in order, its values; None where it cannot tell."""
        ...


@dataclass(frozen=True, kw_only=True)
class Part:
    """One text to be read.

    Parameters
    ----------
    name
        Unique within a response; `""` for the one that decides what became of it.
    prompt
        None: the standard one, with `instructions` and `examples`.
    extra
        Further placeholders of `prompt`.
    reader
        Tried first; what it leaves goes to the annotator.
    alone
        Only `reader` reads it: what it leaves is unparsed. Such readings are shared by all annotators.
    """

    name: str
    text: str
    attributes: tuple[Attribute, ...]
    prompt: AnnotatorPrompt | None = None
    instructions: str = ""
    examples: tuple[WorkedExample, ...] = ()
    extra: Mapping[str, str] = field(default_factory=dict)
    reader: PartReader | None = None
    alone: bool = False

    @property
    def digest(self) -> str:
        """SHA-256 over everything that determines the reading, apart from the annotator."""
        return digest(
            [
                self.name,
                self.text,
                _attributes_digest(self.attributes),
                None if self.prompt is None else dataclasses.asdict(self.prompt),
                self.instructions,
                [[example.text, dict(example.values)] for example in self.examples],
                dict(self.extra),
                None if self.reader is None else dict(self.reader.identity),
                self.alone,
            ]
        )


@cache
def _attributes_digest(attributes: tuple[Attribute, ...]) -> str:
    return digest([dataclasses.asdict(attribute) for attribute in attributes])


@dataclass(frozen=True)
class PartReading:
    """What was read in one part: values by attribute, in the order given, and as the response worded them.

    `shared` readings are those of a part's own reader alone: the same for all annotators.
    """

    status: Status
    values: Mapping[str, tuple[str, ...]]
    raw: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    shared: bool = False


class Reading(Protocol):
    """How the responses of a task are read."""

    @property
    def identity(self) -> Mapping[str, Any]:
        """Name and version: what the parts depend on; part of the task's fingerprint."""
        ...

    def parts(self, task: Task, facts: Mapping[str, str], text: str, done: Mapping[str, PartReading]) -> Sequence[Part]:
        """Return the parts that can be read now, given those that have been."""
        ...

    def asks(self, task: Task) -> Sequence[Part]:
        """Return every kind of part that an annotator may be sent, once, with any text: to check it beforehand."""
        ...


@runtime_checkable
class NeedsTools(Protocol):
    """A reading whose own readers need something installed or fetched."""

    def check_tools(self) -> None:
        """Raise RequestError for what is missing, before a model is asked anything."""
        ...


class WholeResponse:
    """Reads a response as one part, by the task's attributes."""

    identity: Mapping[str, Any] = {"name": "whole response", "version": 1}

    def parts(self, task: Task, facts: Mapping[str, str], text: str, done: Mapping[str, PartReading]) -> Sequence[Part]:
        """Return the response as a whole, once."""
        return [] if WHOLE in done else [whole_part(task, text)]

    def asks(self, task: Task) -> Sequence[Part]:
        """Return the one part there is."""
        return [whole_part(task, "A text.")]


def whole_part(task: Task, text: str) -> Part:
    """Return `text` as the part that is read by the attributes of `task`."""
    return Part(
        name=WHOLE, text=text, attributes=task.attributes, instructions=task.instructions, examples=task.examples
    )


WHOLE_RESPONSE = WholeResponse()


def check_tools(tasks: Iterable[Task]) -> None:
    """Raise RequestError when a reading of `tasks` lacks a tool of its own."""
    for reading in map(reading_of, tasks):
        if isinstance(reading, NeedsTools):
            reading.check_tools()


def reading_of(task: Task) -> Reading:
    """Return how the responses of `task` are read."""
    return WHOLE_RESPONSE if task.reading is None else task.reading
