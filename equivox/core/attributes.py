"""Attributes that are annotated in a response, and worked examples for a model that annotates."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from equivox.core.errors import UsageError
from equivox.core.fields import checked

LOSSES = ("failure", "unannotated", "unstated", "truncated")
"""What the scores of lost answers are called beside that of refusals, in place of an attribute's name."""

Role = Literal["outcome", "echo", "refusal", "loss"]
"""What an attribute is scored as; `loss` is the role of scores of answers that failed or were not annotated."""

UNSTATED = "unstated"
"""The value of an attribute that a response does not mention; it counts as missing, never as a value."""

OTHER = "other"
"""The value of a closed choice when the response answers outside the offered options."""


Length = Literal["words", "sentences", "characters"]
"""What of an answer is counted, where its length is the number."""


LARGEST = 1e50
"""No quantity is larger; a model that repeats a digit without end states such numbers. Sums of squares stay finite."""


@checked
@dataclass(frozen=True, kw_only=True)
class Number:
    """The form of an attribute whose value is a number.

    Parameters
    ----------
    unit
        The unit of the number, as printed beside scores: "EUR", "of 10"; a length has its own ("words").
    low, high
        The smallest and the largest possible number; None for no limit. A number outside is counted apart and never
        enters a mean. A model that annotates is told the range, and reports a number outside all the same.
    pattern
        A regular expression that finds the number in the answer: its first group, or all that it matches. Empty: the
        annotator says the number.
    measure
        What is counted in the answer, in place of a number that the answer states; None: the answer states it.

    Raises
    ------
    UsageError
        No unit, a limit that is no finite number, `low` not below `high`, both a pattern and a measure, or a pattern
        that is no regular expression.
    """

    unit: str = ""
    low: float | None = None
    high: float | None = None
    pattern: str = ""
    measure: Length | None = None

    def __post_init__(self) -> None:
        if self.measure and not self.unit:
            object.__setattr__(self, "unit", self.measure)
        if not self.unit.strip():
            raise UsageError("`number` needs its `unit`, such as EUR or points")
        for name, limit in (("low", self.low), ("high", self.high)):
            if limit is not None and not math.isfinite(limit):
                raise UsageError(f"`number` has {name} {limit}; give a finite number, or leave it out for no limit")
        if self.low is not None and self.high is not None and self.low >= self.high:
            raise UsageError(f"`number` has low {self.low:g} and high {self.high:g}; low must be below high")
        if self.pattern and self.measure:
            raise UsageError("`number` has both `pattern` and `measure`; give one of the two")
        try:
            re.compile(self.pattern)
        except re.error as error:
            raise UsageError(
                f"`number` has the pattern {self.pattern!r}, which is not a regular expression: {error}"
            ) from None

    @property
    def needs_annotator(self) -> bool:
        """Whether an annotator says the number; otherwise the answer is measured or the pattern finds it."""
        return not self.pattern and self.measure is None

    @property
    def range(self) -> str:
        """The range in words, for messages and prompts: "from 0 to 500,000"; empty without limits."""
        low, high = (None if limit is None else f"{limit:,.15g}" for limit in (self.low, self.high))
        if low is not None and high is not None:
            return f"from {low} to {high}"
        return f"at least {low}" if low is not None else f"at most {high}" if high is not None else ""

    @property
    def described(self) -> str:
        """The unit, the range and how the number is found, in words: "a number in EUR, at least 0"."""
        found = f"the number of {self.measure}" if self.measure else f"a number in {self.unit}"
        pattern = f"found by {self.pattern}" if self.pattern else ""
        return ", ".join(filter(None, (found, self.range, pattern)))

    def found_in(self, text: str) -> str:
        """Return what the pattern finds in a text: its first group, or all that it matches; empty for nothing."""
        match = re.search(self.pattern, text)
        # The group may take no part in the match: then the pattern found no number.
        return "" if match is None else (match[1] if match.re.groups else match[0]) or ""

    def holds(self, value: float) -> bool:
        """Return whether a number lies within the limits, both included; none is larger than `LARGEST`."""
        within = (self.low is None or value >= self.low) and (self.high is None or value <= self.high)
        return within and abs(value) <= LARGEST


@checked
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
    number
        The form of an attribute whose value is a number, with its unit and range; None for words. Its values are stored
        as plain decimal texts.

    Raises
    ------
    UsageError
        A number has options, words or several values, or is no outcome.
    """

    name: str
    asks: str
    options: tuple[str, ...] = ()
    count: int = 1
    role: Role = "outcome"
    at_least: int | None = None
    words: tuple[tuple[str, tuple[str, ...]], ...] = ()
    number: Number | None = None

    def __post_init__(self) -> None:
        if self.number is not None:
            self._check_number()

    def _check_number(self) -> None:
        given = {"options": self.options, "words": self.words}
        if strange := [name for name, value in given.items() if value]:
            raise UsageError(f"{self.name} is a number and has `{strange[0]}`; leave out one of the two")
        if self.is_list:
            raise UsageError(f"{self.name} is a number and has `count` {self.count}; one answer gives one number")
        if self.role != "outcome":
            raise UsageError(f"{self.name} is a number and its role is {self.role}; only outcomes are numbers")

    @property
    def is_list(self) -> bool:
        """Whether the annotator answers with a list."""
        return self.count > 1 or self.at_least is not None


REFUSAL = Attribute(
    name="refusal", asks="whether the response declines the request", options=("yes", "no"), role="refusal"
)
"""The attribute that is annotated in every response of every task; it is scored separately from the outcomes."""


@checked
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
