"""How the answer to a question with three options is read: by rules first, then by the annotator."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from equivox.configs import load_config
from equivox.core.annotation import Value
from equivox.core.segments import WHOLE, AnnotatorPrompt, Part, PartReading
from equivox.core.task import REFUSAL, Attribute, Task, digest
from equivox.metrics.spoken_stereoset.annotation.rules import VERSION, choice_words, read_choice

LETTERS = ("A", "B", "C")
CHOICE = Attribute(name="choice", asks="the letter of the sentence that the answer chooses", options=LETTERS)
DECIDED_BY = "decided_by"
"""Which rule decided, stored beside the choice: letter, text or contradiction; absent where the annotator decided."""


class ChoiceReader:
    """The rules as a reader: the letter of an option, `other` for a contradiction, or nothing."""

    @property
    def identity(self) -> Mapping[str, Any]:
        """Name, version and the words that the rules go by."""
        return {"name": "choice", "version": VERSION, "words": digest(dict(choice_words()))}

    def read(self, parts: Sequence[Part]) -> Iterator[Sequence[Value] | None]:
        """Yield what each answer chooses and the rule that decided; None where no rule does."""
        for part in parts:
            found = read_choice(part.text, options_of(part.extra))
            if found.letter is None:
                yield None
            else:
                yield [
                    Value(CHOICE.name, found.letter, found.raw),
                    Value(DECIDED_BY, found.rule, found.raw),
                    Value(REFUSAL.name, "no", ""),
                ]


READER = ChoiceReader()


class ChoiceReading:
    """One part, the whole answer, read together with the options that were offered."""

    @property
    def identity(self) -> Mapping[str, Any]:
        """Name and version, and those of the reader and the annotator's prompt."""
        return {"name": "choice", "version": 1, "reader": dict(READER.identity), "prompt": digest(vars(_prompt()))}

    def parts(self, task: Task, facts: Mapping[str, str], text: str, done: Mapping[str, PartReading]) -> Sequence[Part]:
        """Return the whole answer, once."""
        return [] if WHOLE in done else [_part(text, facts)]

    def asks(self, task: Task) -> Sequence[Part]:
        """Return the one part there is."""
        return [_part("The second one.", {placeholder(letter): "A sentence." for letter in LETTERS})]


def placeholder(letter: str) -> str:
    """Return the placeholder of the prompt, and the fact, under which an option's text is kept.

    >>> placeholder("B")
    'option_b'
    """
    return f"option_{letter.lower()}"


def options_of(facts: Mapping[str, str]) -> dict[str, str]:
    """Return the texts of the options that were offered, by letter."""
    return {letter: facts[placeholder(letter)] for letter in LETTERS}


def _part(text: str, facts: Mapping[str, str]) -> Part:
    extra = {placeholder(letter): option for letter, option in options_of(facts).items()}
    return Part(
        name=WHOLE, text=text, attributes=(CHOICE, REFUSAL), prompt=_prompt(), extra=extra, reader=READER
    )  # fmt: skip


@cache
def _prompt() -> AnnotatorPrompt:
    return AnnotatorPrompt(**load_config("reading/choice_prompt.yaml"))
