"""Annotation of the answer to a question with three options: by rules first, then by the annotator."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from equivox.configs import load_config
from equivox.core.segments import WHOLE, AnnotationScheme, AnnotatorPrompt, Segment, SegmentAnnotation, Value
from equivox.core.task import REFUSAL, Attribute, Task, digest
from equivox.metrics.rules import Rules
from equivox.metrics.spoken_stereoset.annotation.rules import VERSION, WORDS, read_choice

LETTERS = ("A", "B", "C")
CHOICE = Attribute(name="choice", asks="the letter of the sentence that the answer chooses", options=LETTERS)
DECIDED_BY = "decided_by"
"""The rule that decided, stored with the choice: letter, text or contradiction; absent if the annotator decided."""


def _choices(segments: Sequence[Segment]) -> Iterator[Sequence[Value] | None]:
    """Yield the choice of each answer and the rule that decided; None if no rule decides."""
    for segment in segments:
        found = read_choice(segment.text, options_of(segment.extra))
        if found.letter is None:
            yield None
        else:
            yield [
                Value(CHOICE.name, found.letter, found.raw),
                Value(DECIDED_BY, found.rule, found.raw),
                Value(REFUSAL.name, "no", ""),
            ]


READER = Rules(lambda: {"name": "choice", "version": VERSION, "words": digest(load_config(WORDS))}, _choices)
"""The rules as a tool: it gives the letter of an option, `other` for a contradiction, or nothing."""


@dataclass(frozen=True, kw_only=True)
class ChoiceScheme(AnnotationScheme):
    """Scheme with one segment, the whole answer, annotated together with the offered options."""

    attributes: tuple[Attribute, ...] = (CHOICE, REFUSAL)

    @property
    def identity(self) -> Mapping[str, Any]:
        """The name and version of the scheme, of its rules and of the annotator's prompt."""
        return {"name": "choice", "version": 1, "reader": dict(READER.identity), "prompt": digest(vars(_prompt()))}

    def segments(
        self, task: Task, metadata: Mapping[str, str], text: str, done: Mapping[str, SegmentAnnotation]
    ) -> Sequence[Segment]:
        """Return the whole answer as the only segment."""
        return [] if WHOLE in done else [_segment(text, metadata)]

    def asks(self, task: Task) -> Sequence[Segment]:
        """Return the only segment."""
        return [_segment("The second one.", {placeholder(letter): "A sentence." for letter in LETTERS})]


def placeholder(letter: str) -> str:
    """Return the name of the prompt's placeholder, and of the metadata, for an option's text.

    >>> placeholder("B")
    'option_b'
    """
    return f"option_{letter.lower()}"


def options_of(metadata: Mapping[str, str]) -> dict[str, str]:
    """Return the texts of the offered options, by letter."""
    return {letter: metadata[placeholder(letter)] for letter in LETTERS}


def _segment(text: str, metadata: Mapping[str, str]) -> Segment:
    extra = {placeholder(letter): option for letter, option in options_of(metadata).items()}
    return Segment(
        name=WHOLE, text=text, attributes=(CHOICE, REFUSAL), prompt=_prompt(), extra=extra, tool=READER
    )  # fmt: skip


@cache
def _prompt() -> AnnotatorPrompt:
    return AnnotatorPrompt(**load_config("reading/choice_prompt.yaml"))
