"""How a response is annotated: as a whole, or in segments, each a text with attributes of its own.

An `AnnotationScheme` names the segments that can be annotated now, given those that have been. It is asked again until
it names nothing new. A segment may bring a `SegmentTool`: rules or a tool that annotates it before, or instead of, the
annotator.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, Literal, Protocol

from equivox.core.attributes import REFUSAL, Attribute, WorkedExample
from equivox.core.errors import RequestError
from equivox.core.hashing import digest, digest_of_texts

if TYPE_CHECKING:
    from equivox.core.task import Task

Status = Literal["parsed", "refused", "empty", "unparsed", "failed"]
"""`refused` declines, `empty` says nothing, `unparsed` could not be annotated, `failed` was not: the annotator gave no
answer. Only `parsed` carries values."""

WHOLE = ""
"""The name of the segment whose status is that of the response; every scheme has it."""


@dataclass(frozen=True)
class Value:
    """One value of one attribute: canonical, and as the response worded it."""

    attribute: str
    value: str
    raw: str


@dataclass(frozen=True, kw_only=True)
class AnnotatorPrompt:
    """The question to a model about a segment: `{fields}`, `{response}` and the keys of its `extra` are filled in."""

    name: str
    version: int
    text: str


class SegmentTool(Protocol):
    """Rules or a tool (a parser, a tagger, a classifier) that annotates segments without an annotator."""

    @property
    def identity(self) -> Mapping[str, Any]:
        """Name, version and settings: everything that its annotations depend on."""
        ...

    def read(self, segments: Sequence[Segment]) -> Iterable[Sequence[Value] | None]:
        """Yield, for each segment in order, its values; None where it cannot tell."""
        ...


@dataclass(frozen=True, kw_only=True)
class Segment:
    """One text to be annotated.

    Parameters
    ----------
    name
        Unique within a response; `""` for the one that decides the response's status.
    prompt
        None: the standard one, with `instructions` and `examples`.
    extra
        Further placeholders of `prompt`.
    tool
        Asked first; what it leaves goes to the annotator.
    alone
        Only `tool` annotates it: what it leaves is unparsed. All annotators share such annotations.
    """

    name: str
    text: str
    attributes: tuple[Attribute, ...]
    prompt: AnnotatorPrompt | None = None
    instructions: str = ""
    examples: tuple[WorkedExample, ...] = ()
    extra: Mapping[str, str] = field(default_factory=dict)
    tool: SegmentTool | None = None
    alone: bool = False

    @property
    def digest(self) -> str:
        """SHA-256 over everything that determines the annotation, apart from the annotator."""
        return digest_of_texts(_definition(self), self.text, *(text for pair in self.extra.items() for text in pair))


_KNOWN: dict[tuple[Any, ...], tuple[Segment, str]] = {}
"""Digests of the definitions of segments met last, each with the segment whose objects it was made from."""


def _definition(segment: Segment) -> str:
    """Return the digest of a segment without its texts; segments of one scheme share their objects, and so this."""
    objects = (segment.attributes, segment.prompt, segment.examples, segment.tool)
    place = (segment.name, segment.instructions, segment.alone, *map(id, objects))
    if place not in _KNOWN:
        if len(_KNOWN) >= 4096:
            _KNOWN.clear()
        found = digest(
            [
                segment.name,
                _attributes_digest(segment.attributes),
                None if segment.prompt is None else dataclasses.asdict(segment.prompt),
                segment.instructions,
                [[example.text, dict(example.values)] for example in segment.examples],
                None if segment.tool is None else dict(segment.tool.identity),
                segment.alone,
            ]
        )
        # The segment is kept with its digest, so that no other object can take the place of its own.
        _KNOWN[place] = (segment, found)
    return _KNOWN[place][1]


@cache
def _attributes_digest(attributes: tuple[Attribute, ...]) -> str:
    return digest([dataclasses.asdict(attribute) for attribute in attributes])


@dataclass(frozen=True, slots=True)
class SegmentAnnotation:
    """The annotation of one segment: its status, and its values by attribute, in the order given."""

    status: Status
    values: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, kw_only=True)
class AnnotationScheme:
    """How the responses of a task are annotated: as a whole, by `attributes`; subclasses annotate segments.

    Parameters
    ----------
    attributes
        The attributes of the whole response; the refusal is added where it is missing.
    instructions, examples
        Further rules and worked examples for a model that annotates.
    """

    attributes: tuple[Attribute, ...] = (REFUSAL,)
    instructions: str = ""
    examples: tuple[WorkedExample, ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        names = [attribute.name for attribute in self.attributes]
        if len(set(names)) != len(names):
            raise RequestError(f"`attributes` repeat a name, got {names}; rename one")
        if REFUSAL not in self.attributes:
            # Refusals are counted in every task.
            object.__setattr__(self, "attributes", (*self.attributes, REFUSAL))

    @property
    def identity(self) -> Mapping[str, Any]:
        """Name and version of the scheme, and everything else that its segments depend on."""
        return {"name": "whole response", "version": 1}

    @cached_property
    def digest(self) -> str:
        """SHA-256 over the attributes, the instructions and the examples."""
        examples = [[example.text, dict(example.values)] for example in self.examples]
        return digest([_attributes_digest(self.attributes), self.instructions, examples])

    def segments(
        self, task: Task, metadata: Mapping[str, str], text: str, done: Mapping[str, SegmentAnnotation]
    ) -> Sequence[Segment]:
        """Return the segments that can be annotated now, given those that have been."""
        return [] if WHOLE in done else [self.whole(text)]

    def asks(self, task: Task) -> Sequence[Segment]:
        """Return every kind of segment that an annotator may be sent, once, with any text: to check it beforehand."""
        return [self.whole("A text.")]

    def whole(self, text: str) -> Segment:
        """Return `text` as the segment that is annotated by the attributes."""
        return Segment(
            name=WHOLE,
            text=text,
            attributes=self.attributes,
            instructions=self.instructions,
            examples=self.examples,
        )

    def sample(
        self, task: Task, metadata: Mapping[str, str], text: str, done: Mapping[str, SegmentAnnotation]
    ) -> tuple[Status, Mapping[str, SegmentAnnotation]]:
        """Return the status of a response and the segments that its sample keeps, given all annotations."""
        return (done[WHOLE].status if WHOLE in done else "unparsed"), done

    def check_tools(self) -> None:
        """Raise RequestError for a tool that the scheme needs and that is missing, before a model is asked anything."""


def check_tools(tasks: Iterable[Task]) -> None:
    """Raise RequestError when the annotation of `tasks` lacks a tool."""
    for task in tasks:
        task.annotation.check_tools()
