"""Attributes that are annotated in a response, and worked examples for a model that annotates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from equivox.core.errors import RequestError

Role = Literal["outcome", "echo", "refusal", "loss"]
"""What an attribute is scored as; `loss` is the role of scores of answers that failed or were not annotated."""

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
    favourable
        The values that are good for the person, such as "exceptional expert"; empty if the attribute has no such
        values. Impact ratios count them (`equivox impact`). They change no question and no annotation, so they are no
        part of a task's fingerprint.

    Raises
    ------
    RequestError
        `favourable` is one text, repeats a value, names a value that is no option, or names every option, or the
        attribute is no outcome.
    """

    name: str
    asks: str
    options: tuple[str, ...] = ()
    count: int = 1
    role: Role = "outcome"
    at_least: int | None = None
    words: tuple[tuple[str, tuple[str, ...]], ...] = ()
    favourable: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.favourable:
            self._check_favourable()

    def _check_favourable(self) -> None:
        given, where = self.favourable, f"`favourable` of {self.name}"
        if isinstance(given, str) or len(set(given)) < len(given):
            raise RequestError(f"{where} is a tuple of values, each once, got {given!r}")
        if self.role != "outcome":
            raise RequestError(f"{where} is {', '.join(given)}, but its role is {self.role}; only outcomes have it")
        if strange := [value for value in given if self.options and value not in self.options]:
            raise RequestError(f"{where} has {strange[0]!r}, no option; choose among {', '.join(self.options)}")
        if self.options and len(given) == len(self.options):
            raise RequestError(f"{where} names every option; leave out those that are not favourable")

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
