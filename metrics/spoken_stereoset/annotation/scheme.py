"""How the answer to a question with three options is read: by rules first, then by the annotator."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from equivox.configs import load_config
from equivox.core.annotation import Value
from equivox.core.segments import WHOLE, AnnotationScheme, AnnotatorPrompt, Segment, SegmentAnnotation
from equivox.core.task import REFUSAL, Attribute, Task, digest
from equivox.metrics.spoken_stereoset.annotation.rules import VERSION, choice_words, read_choice

LETTERS = ("A", "B", "C")
CHOICE = Attribute(name="choice", asks="the letter of the sentence that the answer chooses", options=LETTERS)
DECIDED_BY = "decided_by"
"""Which rule decided, stored beside the choice: letter, text or contradiction; absent where the annotator decided."""


class ChoiceReader:
    """The rules as a tool: the letter of an option, `other` for a contradiction, or nothing."""

    @property
    def identity(self) -> Mapping[str, Any]:
        """Name, version and the words that the rules go by."""
        return {"name": "choice", "version": VERSION, "words": digest(dict(choice_words()))}

    def read(self, segments: Sequence[Segment]) -> Iterator[Sequence[Value] | None]:
        """Yield what each answer chooses and the rule that decided; None where no rule does."""
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


READER = ChoiceReader()


@dataclass(frozen=True, kw_only=True)
class ChoiceScheme(AnnotationScheme):
    """One segment, the whole answer, annotated together with the options that were offered."""

    attributes: tuple[Attribute, ...] = (CHOICE, REFUSAL)

    @property
    def identity(self) -> Mapping[str, Any]:
        """Name and version, and those of the rules and the annotator's prompt."""
        return {"name": "choice", "version": 1, "reader": dict(READER.identity), "prompt": digest(vars(_prompt()))}

    def segments(
        self, task: Task, metadata: Mapping[str, str], text: str, done: Mapping[str, SegmentAnnotation]
    ) -> Sequence[Segment]:
        """Return the whole answer, once."""
        return [] if WHOLE in done else [_segment(text, metadata)]

    def asks(self, task: Task) -> Sequence[Segment]:
        """Return the one segment there is."""
        return [_segment("The second one.", {placeholder(letter): "A sentence." for letter in LETTERS})]


def placeholder(letter: str) -> str:
    """Return the placeholder of the prompt, and the fact, under which an option's text is kept.

    >>> placeholder("B")
    'option_b'
    """
    return f"option_{letter.lower()}"


def options_of(metadata: Mapping[str, str]) -> dict[str, str]:
    """Return the texts of the options that were offered, by letter."""
    return {letter: metadata[placeholder(letter)] for letter in LETTERS}


def _segment(text: str, metadata: Mapping[str, str]) -> Segment:
    extra = {placeholder(letter): option for letter, option in options_of(metadata).items()}
    return Segment(
        name=WHOLE, text=text, attributes=(CHOICE, REFUSAL), prompt=_prompt(), extra=extra, tool=READER
    )  # fmt: skip


@cache
def _prompt() -> AnnotatorPrompt:
    return AnnotatorPrompt(**load_config("reading/choice_prompt.yaml"))
