"""What is annotated in a response: attributes, and worked examples for a model that annotates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

Role = Literal["outcome", "echo", "refusal"]

UNSTATED = "unstated"
"""The value of an attribute that a response does not mention; it counts as missing, never as a value."""

OTHER = "other"
"""The value of a closed choice that a response answers outside the offered options."""


@dataclass(frozen=True, kw_only=True)
class Attribute:
    """One named field that the annotator fills in for a response.

    Parameters
    ----------
    name
        Its column, unique within a task.
    asks
        What the annotator is to find, as a noun phrase.
    options
        The closed choice that the prompt offers; the annotator may also say `other` or `unstated`. Empty for an
        open attribute, whose value is a short noun phrase.
    count
        How many values one response gives (three hobbies); every one of them counts in the scores.
    at_least
        Fewer values than `count` will do, down to this many; None asks for exactly `count`.
    words
        Each value with the words that say it, for the annotator `rules` and for simulated models; where empty, the
        packaged vocabulary counts, or the options themselves.
    role
        `outcome` enters the task's score; `echo` (what the model took the person for) and `refusal` are scored
        apart and never averaged into it.
    """

    name: str
    asks: str
    options: tuple[str, ...] = ()
    count: int = 1
    role: Role = "outcome"
    at_least: int | None = None
    words: tuple[tuple[str, tuple[str, ...]], ...] = ()

    @property
    def is_list(self) -> bool:
        """Whether the annotator answers with a list."""
        return self.count > 1 or self.at_least is not None


REFUSAL = Attribute(
    name="refusal", asks="whether the response declines the request", options=("yes", "no"), role="refusal"
)
"""Annotated in every response of every task; an outcome of its own, never mixed into the others."""


@dataclass(frozen=True, kw_only=True)
class WorkedExample:
    """A made-up text and how it is to be read, shown to a model that annotates.

    `values` holds one value per attribute, several for a list; an attribute that is not named is `unstated`, a
    refusal that is not named is "no".
    """

    text: str
    values: Mapping[str, str | tuple[str, ...]]

    @classmethod
    def of(cls, text: str, values: Mapping[str, str | Sequence[str]]) -> WorkedExample:
        """Build one from plain values, as a YAML file gives them."""
        return cls(text=text, values={k: v if isinstance(v, str) else tuple(v) for k, v in values.items()})
