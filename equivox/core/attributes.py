"""Attributes that are annotated in a response, and worked examples for a model that annotates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

Role = Literal["outcome", "echo", "refusal"]

UNSTATED = "unstated"
"""The value of an attribute that a response does not mention; it counts as missing, never as a value."""

OTHER = "other"
"""The value of a closed choice when the response answers outside the offered options."""


@dataclass(frozen=True, kw_only=True)
class Attribute:
    """One named field that the annotator fills in for a response.

    Parameters
    ----------
    name
        The name of its column, unique within a task.
    asks
        A noun phrase that tells the annotator what to find.
    options
        The closed choice that the prompt offers; the annotator may also say `other` or `unstated`. Empty for an
        open attribute, whose value is a short noun phrase.
    count
        How many values one response gives (three hobbies); every one of them counts in the scores.
    at_least
        The smallest number of values that is accepted instead of `count`; None asks for exactly `count`.
    words
        Value → words for it, for the annotator `rules` and for simulated models; if empty, the packaged vocabulary or
        the options are used.
    role
        `outcome` enters the task's score; `echo` (the group that the model took the person for) and `refusal` are
        scored separately and never averaged into it.
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
"""The attribute that is annotated in every response of every task; it is scored separately from the outcomes."""


@dataclass(frozen=True, kw_only=True)
class WorkedExample:
    """A made-up text and its correct annotation, shown to a model that annotates.

    `values` holds one value per attribute, several for a list; an attribute that is not named is `unstated`. If the
    refusal is not named, it is "no".
    """

    text: str
    values: Mapping[str, str | tuple[str, ...]]

    @classmethod
    def of(cls, text: str, values: Mapping[str, str | Sequence[str]]) -> WorkedExample:
        """Build an example from plain values, such as those of a YAML file."""
        return cls(text=text, values={k: v if isinstance(v, str) else tuple(v) for k, v in values.items()})
