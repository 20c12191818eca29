"""Calls of tools as answers: the arguments of the one call are the attributes, without an annotator."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from equivox.annotate.numeric import number_text
from equivox.annotate.schema import LONGEST, canonical
from equivox.configs.vocabulary import load_vocabulary
from equivox.core.attributes import Attribute
from equivox.core.calls import CALL, MALFORMED, NONE, ONE, SEVERAL, Answer, Call
from equivox.core.errors import RequestError
from equivox.core.segments import AnnotationScheme, Segment, Value
from equivox.core.task import Tool
from equivox.core.text import folded


@dataclass(frozen=True)
class _CallReader:
    """The tool of the scheme: finds the attributes of a segment among the arguments of its one call."""

    tools: tuple[Tool, ...]

    @property
    def identity(self) -> Mapping[str, Any]:
        """The name and version, and the tools that may be called."""
        return {"name": "calls", "version": 1, "tools": [tool.as_function for tool in self.tools]}

    def read(self, segments: Sequence[Segment]) -> Iterable[Sequence[Value]]:
        """Yield the values of each answer: those of its call, or what is wrong with it, or that it declines."""
        for segment in segments:
            yield list(self._values(Answer.of(segment.text), segment.attributes))

    def _values(self, answer: Answer, attributes: Sequence[Attribute]) -> Iterator[Value]:
        if not answer.calls and load_vocabulary().declines(answer.content):
            yield Value("refusal", "yes", "")
            return
        found = self._arguments(answer.calls[0], attributes) if len(answer.calls) == 1 else None
        what = NONE if not answer.calls else SEVERAL if len(answer.calls) > 1 else MALFORMED if found is None else ONE
        yield Value(CALL.name, what, "")
        if found is not None:
            yield from found
            yield Value("refusal", "no", "")

    def _arguments(self, call: Call, attributes: Sequence[Attribute]) -> list[Value] | None:
        """Return the values that a call gives to the attributes; None for one that cannot be used."""
        known = {tool.name: tool.parameters.get("properties", {}) for tool in self.tools}
        if call.name not in known or isinstance(call.arguments, str):
            return None
        values = []
        for attribute in attributes:
            if attribute.role == "refusal" or attribute == CALL or attribute.name not in known[call.name]:
                continue
            value = _value(attribute, call.arguments.get(attribute.name))
            if value is None:
                return None
            values.append(Value(attribute.name, value, str(call.arguments[attribute.name])[:LONGEST]))
        return values


def _value(attribute: Attribute, given: Any) -> str | None:
    """Return an argument as the value of an attribute; None where it is missing or is no such value."""
    if attribute.number is not None:
        usable = isinstance(given, int | float) and not isinstance(given, bool) and abs(given) < 1e300
        return number_text(float(given)) if usable else None
    if isinstance(given, bool):
        given = "yes" if given else "no"
    if not isinstance(given, str):
        return None
    if attribute.options:
        said = folded(given.strip())
        return next((option for option in attribute.options if folded(option) == said), None)
    return canonical(given)[:LONGEST] or None


@dataclass(frozen=True, kw_only=True)
class CallScheme(AnnotationScheme):
    """Annotates an answer by the arguments of its call: each attribute is an argument of one of the `tools`.

    No call, a call that cannot be used and several calls are answers that could not be annotated; the attribute `call`
    says which. A text that declines is a refusal.

    Raises
    ------
    RequestError
        No tool, an attribute that no tool has as an argument, or a list.
    """

    tools: tuple[Tool, ...] = ()

    def __post_init__(self) -> None:
        if CALL not in self.attributes:
            object.__setattr__(self, "attributes", (*self.attributes, CALL))
        super().__post_init__()
        known = {name for tool in self.tools for name in tool.parameters.get("properties", {})}
        for attribute in self.attributes:
            if attribute.role != "outcome":
                continue
            if attribute.name not in known:
                listed = ", ".join(sorted(known)) or "none"
                raise RequestError(f"{attribute.name} is no argument of a tool; the tools' arguments are: {listed}")
            if attribute.is_list:
                raise RequestError(f"{attribute.name} has `count` {attribute.count}; an argument gives one value")

    @property
    def identity(self) -> Mapping[str, Any]:
        """The name and version of the scheme, and the tools."""
        return _CallReader(self.tools).identity

    def whole(self, text: str) -> Segment:
        """Return the segment for the whole answer, which its calls annotate and nobody else."""
        tool = _CallReader(self.tools)
        return Segment(name="", text=text, attributes=self.attributes, tool=tool, alone=True)
