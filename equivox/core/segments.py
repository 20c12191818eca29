"""Annotation schemes: a response is annotated as a whole, or in segments, which are texts with their own attributes.

An `AnnotationScheme` returns the segments that can be annotated next, given the annotations so far. It is called until
it returns no new segment. A segment can have a `SegmentTool`: rules or a tool that annotates it before, or instead of,
the annotator.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, get_args

from equivox.core.attributes import REFUSAL, Attribute, WorkedExample
from equivox.core.errors import UsageError
from equivox.core.fields import checked
from equivox.core.hashing import digest, digest_of_texts

if TYPE_CHECKING:
    from equivox.core.task import Task

Status = Literal["parsed", "refused", "empty", "unparsed", "failed"]
"""`refused`: the text declines; `empty`: no text; `unparsed`: could not be annotated; `failed`: the annotator gave no
answer; only `parsed` has values."""

STATUSES: frozenset[Status] = frozenset(get_args(Status))


def select_redone(*, retry_failed: bool, redo_judge: bool, fresh: bool = False) -> frozenset[Status]:
    """Return the statuses of the stored annotations that are made again."""
    if fresh:
        return STATUSES
    return frozenset({"failed", "unparsed"} if redo_judge else {"failed"} if retry_failed else ())


WHOLE = ""
"""The name of the segment for the whole response, whose status is that of the response; every scheme has it."""


class Value(NamedTuple):
    """One value of one attribute: the canonical value, and the wording of the response."""

    attribute: str
    value: str
    raw: str


@dataclass(frozen=True, kw_only=True)
class AnnotatorPrompt:
    """The prompt to a model about a segment: `{fields}`, `{response}` and the keys of its `extra` are filled in."""

    name: str
    version: int
    text: str


class SegmentTool(Protocol):
    """Rules or a tool (a parser, a tagger, a classifier) that annotates segments without an annotator."""

    @property
    def identity(self) -> Mapping[str, Any]:
        """The name, version and settings that its annotations depend on."""
        ...

    def read(self, segments: Sequence[Segment]) -> Iterable[Sequence[Value] | None]:
        """Yield the values of each segment in order; None if the tool cannot tell."""
        ...


@dataclass(frozen=True, kw_only=True)
class Segment:
    """One text to be annotated.

    Parameters
    ----------
    name
        Unique within a response; `""` for the segment that decides the response's status.
    prompt
        None: the standard prompt, with `instructions` and `examples`.
    extra
        Further placeholders of `prompt`.
    tool
        Asked first; segments that it cannot annotate go to the annotator.
    alone
        Only `tool` annotates it; if it cannot, the segment is unparsed. All annotators share such annotations.
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
"""Digests of recent segment definitions, each with the segment from whose objects it was computed."""


def _definition(segment: Segment) -> str:
    """Return the digest of a segment without its texts; segments of one scheme share their objects and this digest."""
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
        # Keeping the segment keeps its objects alive, so that no new object can have the same id.
        _KNOWN[place] = (segment, found)
    return _KNOWN[place][1]


@cache
def _attributes_digest(attributes: tuple[Attribute, ...]) -> str:
    # `number` is left out where there is none: it came later.
    return digest(
        [
            {
                name: value
                for name, value in dataclasses.asdict(attribute).items()
                if not (name == "number" and value is None)
            }
            for attribute in attributes
        ]
    )


@dataclass(frozen=True, slots=True)
class SegmentAnnotation:
    """The annotation of one segment: its status, and its values by attribute, in the order given."""

    status: Status
    values: Mapping[str, tuple[str, ...]]


@checked
@dataclass(frozen=True, kw_only=True)
class AnnotationScheme:
    """A scheme that annotates each response as a whole, by `attributes`; subclasses annotate segments.

    Parameters
    ----------
    attributes
        The attributes of the whole response; the refusal is added if it is missing.
    instructions, examples
        Further rules and worked examples for a model that annotates.
    """

    attributes: tuple[Attribute, ...] = (REFUSAL,)
    instructions: str = ""
    examples: tuple[WorkedExample, ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        names = [attribute.name for attribute in self.attributes]
        if len(set(names)) != len(names):
            raise UsageError(f"`attributes` repeat a name, got {names}; rename one")
        if REFUSAL not in self.attributes:
            # Refusals are counted in every task.
            object.__setattr__(self, "attributes", (*self.attributes, REFUSAL))

    @property
    def identity(self) -> Mapping[str, Any]:
        """The name and version of the scheme, and everything else that its segments depend on."""
        return {"name": "whole response", "version": 1}

    @cached_property
    def digest(self) -> str:
        """SHA-256 over the attributes, the instructions and the examples."""
        examples = [[example.text, dict(example.values)] for example in self.examples]
        return digest([_attributes_digest(self.attributes), self.instructions, examples])

    def segments(
        self, task: Task, metadata: Mapping[str, str], text: str, done: Mapping[str, SegmentAnnotation]
    ) -> Sequence[Segment]:
        """Return the segments that can be annotated next, given the annotations so far in `done`."""
        return [] if WHOLE in done else [self.whole(text)]

    def asks(self, task: Task) -> Sequence[Segment]:
        """Return one example of each kind of segment that an annotator can receive, to check them before the run."""
        return [self.whole("A text.")]

    def most_calls(self, task: Task) -> Sequence[Segment]:
        """Return the segments of one response that reach an annotator, at most, as `asks` has them.

        A segment that a tool annotates first reaches it where the tool cannot tell, and then the others do not.
        """
        reached = [segment for segment in self.asks(task) if not segment.alone]
        first = [segment for segment in reached if segment.tool is not None]
        return max([segment for segment in reached if segment.tool is None], first, key=len)

    def whole(self, text: str) -> Segment:
        """Return the segment for the whole response `text`, annotated by `attributes`."""
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
        """Return the status of a response and the annotations to store in its sample, given all annotations."""
        return (done[WHOLE].status if WHOLE in done else "unparsed"), done

    @property
    def in_parts(self) -> bool:
        """Whether scores rest on segments of an answer, which labels of whole answers cannot check."""
        return False

    def stage_of(self, segment: str) -> str:
        """Return the stage of a segment by its name: what is before the first `/`, "narrative" or "profile"."""
        return segment.partition("/")[0]

    def missing_tools(self) -> list[str]:
        """Return the tools that the scheme needs and that are missing, each with what helps; no model is loaded."""
        return []


def check_tools(tasks: Iterable[Task]) -> None:
    """Raise UsageError if a tool that annotates responses of `tasks` is missing."""
    for task in tasks:
        for missing in task.annotation.missing_tools():
            raise UsageError(missing)
