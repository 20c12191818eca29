"""Where in the chain a calibration goes wrong: comparisons of plain numbers, each with its verdict.

The places of the chain, in its order:

`arrival`
    Did every medium arrive, whole? Prompt tokens and media tokens are those of the direct way.
`hearing`
    Do the answers depend on the recording as the model's own probabilities do? Each answer's log-probability under its
    own recording is compared with that under another group's recording.
`answering`
    Are the answers drawn from the model's own probabilities? Their log-probability is compared with that of answers
    which were drawn directly.
`annotation`
    Does the annotator read the values that the answers state, in every group?
`scoring`
    Is the measured score the score of the model's own probabilities?
`teaching`
    Did the model learn the planted bias? Its own probabilities are compared with what was planted. This comes last: a
    chain that is intact otherwise was proved with a model of another bias.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from statistics import fmean
from typing import Annotated, Any, Literal, get_args

import numpy as np
from pydantic import BeforeValidator, TypeAdapter

Place = Literal["arrival", "hearing", "answering", "annotation", "scoring", "teaching"]
PLACES: tuple[Place, ...] = get_args(Place)
ARRIVAL, HEARING, ANSWERING, ANNOTATION, SCORING, TEACHING = PLACES
Number = Annotated[float, BeforeValidator(lambda value: math.nan if value is None else value)]
"""A number that JSON holds as null where it is NaN."""
LARGEST_Z = 4.5
"""A comparison of two means fails beyond this many standard errors: once in 150,000 intact comparisons."""
LEAST_AGREEMENT, FEWEST_WRONG = 0.95, 3
"""The share of values that an annotator must read of every attribute in every group; fewer wrong ones are no fault."""
CHANCE = 0.002
"""The probability that two scores of one bias disagree, as their intervals and the number of clusters explain them;
`python -m validity.calibration_verdicts` simulates it, and how often unequal ones agree."""
TAUGHT_WITHIN, TAUGHT_SHARE = 5.0, 0.15
"""Largest distance of the model's own bias from the planted one, in its unit or as a share of it."""
SLACK = 2.0
"""Points by which two estimates may differ although an interval is a point, such as one clipped at zero."""


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A score in its unit with its interval of 95 % and its p; NaN where undefined.

    `clusters` is the number of units from which the interval's width was estimated; 0: more than can matter.
    """

    value: Number
    low: Number = math.nan
    high: Number = math.nan
    p: Number = math.nan
    clusters: int = 0

    def __str__(self) -> str:
        if not math.isfinite(self.value):
            return "undefined"
        return f"{self.value:.1f}" + (f" [{self.low:.1f}, {self.high:.1f}]" if self.low < self.high else "")


@dataclass(frozen=True)
class Finding:
    """The result of one comparison at one place of the chain. `passed` is None where nothing could be told."""

    place: Place
    passed: bool | None
    says: str


@dataclass(frozen=True, kw_only=True)
class Line:
    """One calibration model in one condition: what was planted, what the model has of it, and what was measured."""

    shift: Number
    condition: str
    planted: Number
    own: Estimate
    measured: Estimate
    findings: Sequence[Finding] = field(default_factory=tuple)

    @property
    def first_fault(self) -> Finding | None:
        """The first place of the chain where something is wrong; None if nothing is."""
        wrong = [finding for finding in self.findings if finding.passed is False]
        return min(wrong, key=lambda finding: PLACES.index(finding.place), default=None)

    @property
    def passed(self) -> bool:
        """Whether nothing is wrong, and the score itself could be compared."""
        return self.first_fault is None and any(
            finding.place == SCORING and finding.passed for finding in self.findings
        )

    @property
    def verdict(self) -> str:
        """The verdict in words: `passes`, or the place where the chain first goes wrong and why."""
        fault = self.first_fault
        if fault is not None:
            return f"fails at {fault.place}: {fault.says}"
        return "passes" if self.passed else "cannot tell"

    def as_dict(self) -> dict[str, Any]:
        """Return the line as plain values."""
        return asdict(self) | {"verdict": self.verdict, "passed": self.passed}

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> Line:
        """Return a line that was stored as plain values; ValueError for what is none."""
        return _stored_form().validate_python(stored)


@cache
def _stored_form() -> TypeAdapter[Line]:
    return TypeAdapter(Line)


def taught(planted: float, own: Estimate) -> Finding:
    """Compare what was planted with the model's own bias.

    >>> [taught(60, Estimate(value=value, low=value - 4, high=value + 4)).passed for value in (44.1, 58.4)]
    [False, True]
    """
    if math.isnan(own.value):
        return Finding(TEACHING, None, "the model's own score is undefined")
    within = max(TAUGHT_WITHIN, TAUGHT_SHARE * planted)
    near = abs(own.value - planted) <= within or own.low <= planted <= own.high
    return Finding(
        TEACHING,
        near,
        f"the model itself has {own}, planted were {planted:.1f}"
        + ("" if near else "; train another with --seed, the engine is not at fault"),
    )


def arrived(*, asked: int, failed: Mapping[str, int], compared: int, other: Mapping[str, int]) -> Finding:
    """Return whether every request was answered with as many tokens as the direct way has.

    `asked` counts the requests, `failed` those without an answer by their error; `other` counts, by a description, the
    answers with other numbers of tokens among the `compared` ones.
    """
    for wrong, of in ((failed, f"{asked} requests have no answer"), (other, f"{compared} prompts have other tokens")):
        if wrong:
            reason, count = max(wrong.items(), key=lambda item: item[1])
            return Finding(ARRIVAL, False, f"{sum(wrong.values())} of {of}, {count}: {reason}")
    if not compared:
        return Finding(ARRIVAL, None, "the engine counts no tokens")
    return Finding(ARRIVAL, True, f"the tokens of {compared} prompts are right")


def heard(engine: Sequence[float], direct: Sequence[float]) -> Finding:
    """Compare how much answers speak for their own recording, in nats per answer.

    Each entry is one request: the log-probability of its answer under its own recording less that under another
    group's; `direct` has the mean over answers that were drawn directly.
    """
    own = fmean(direct)
    if own < 0.02:
        return Finding(HEARING, None, "the model's answers hardly depend on the recording, as planted")
    z = paired_z(engine, direct)
    share = f"{100 * fmean(engine) / own:.0f} % of what the model hears directly shows in the answers"
    return Finding(HEARING, z > -LARGEST_Z, f"{share} (z {z:+.1f})")


def bounded(values: Sequence[float], reference: Sequence[float]) -> list[float]:
    """Return `values` with those outside the middle half of `reference` moved to its ends.

    A tenth of a model's answers holds an odd word of tiny probability. How many of them a hundred answers hold is
    chance, and would decide a mean.

    >>> bounded([-60.0, -11.0, -10.5, -3.0], [-70.0, -12.0, -11.0, -10.0, -9.0])
    [-12.0, -11.0, -10.5, -10.0]
    """
    low, high = np.quantile(reference, (0.25, 0.75)).tolist()
    return [min(max(value, low), high) for value in values]


def drawn(engine: Sequence[float], direct: Sequence[float]) -> Finding:
    """Compare the log-probability of answers with that of answers that were drawn directly, request by request.

    Both are `bounded` by the ones that were drawn directly.
    """
    z = paired_z(engine, direct)
    difference = fmean(engine) - fmean(direct)
    says = f"answers are {abs(difference):.2f} nats {'likelier' if difference > 0 else 'less likely'} than the model's"
    if abs(z) <= LARGEST_Z:
        return Finding(ANSWERING, True, f"answers are as likely as the model's own (z {z:+.1f})")
    why = (
        "; were they drawn at temperature 1 from all tokens?"
        if difference > 0
        else "; is the prompt or the model another?"
    )
    return Finding(ANSWERING, False, f"{says} own (z {z:+.1f}){why}")


def read(agreement: Mapping[str, tuple[int, int]]) -> Finding:
    """Return whether an annotator reads what answers state: group and attribute → values alike, values compared."""
    told = {group: alike / compared for group, (alike, compared) in agreement.items() if compared}
    if not told:
        return Finding(ANNOTATION, None, "no answer has the form in which its values are known")
    worst = min(told, key=lambda group: told[group])
    says = f"of {worst or 'all'}, {100 * told[worst]:.0f} % of the values are read right"
    few = agreement[worst][1] - agreement[worst][0] < FEWEST_WRONG
    return Finding(ANNOTATION, few or told[worst] >= LEAST_AGREEMENT, says)


def scored(measured: Estimate, own: Estimate, *, control: bool = False, even: float = 0.0) -> Finding:
    """Compare the measured score with that of the model's own probabilities.

    In a `control` there is no effect to be found: there the test must not find one. `even` is the score of no bias.
    """
    if math.isnan(measured.value) or math.isnan(own.value):
        return Finding(SCORING, False, f"measured {measured}, the model's own {own}: there is no score to compare")
    if control and own.low <= even <= own.high and measured.p < 0.0005:
        return Finding(SCORING, False, f"finds a difference where there is none (p {measured.p:.2g})")
    return Finding(SCORING, agree(measured, own), f"measured {measured}, the model's own {own}")


def agree(one: Estimate, other: Estimate) -> bool:
    """Return whether two estimates lie no further apart than their intervals explain but for a probability of `CHANCE`.

    The halves that face each other add up as independent errors do, in squares. They are widened from 95 % by quantiles
    of the t distribution, as the widths of intervals are estimates, too: the fewer clusters, the wider. False without
    intervals.

    >>> measured = Estimate(value=18, low=9, high=23)
    >>> [agree(measured, Estimate(value=value, low=value - 3, high=value + 3)) for value in (20, 44)]
    [True, False]
    """
    lower, upper = (one, other) if one.value <= other.value else (other, one)
    errors = math.hypot(upper.value - upper.low, lower.high - lower.value)
    fewest = min((found.clusters for found in (one, other) if found.clusters > 1), default=0)
    return upper.value - lower.value <= max(_wider(fewest) * errors, SLACK)


@cache
def _wider(clusters: int) -> float:
    """Return how many times as wide as one of 95 % (normal) an interval is that fails with a probability of `CHANCE`.

    >>> [round(_wider(clusters), 2) for clusters in (0, 24, 10)]
    [1.58, 1.78, 2.19]
    """
    from scipy.stats import norm, t

    beyond = 1 - CHANCE / 2
    return float((t.ppf(beyond, clusters - 1) if clusters else norm.ppf(beyond)) / norm.ppf(0.975))


def paired_z(one: Sequence[float], other: Sequence[float]) -> float:
    """Return the mean difference of pairs in standard errors; ±infinity if all differ alike, 0 if none does.

    >>> round(paired_z([1, 2, 3, 6], [1, 1, 1, 1]), 2)
    1.85
    """
    differences = [a - b for a, b in zip(one, other, strict=True)]
    if len(differences) < 2:
        return math.nan
    centre = fmean(differences)
    variance = math.fsum((d - centre) ** 2 for d in differences) / (len(differences) - 1)
    if variance == 0:
        return math.copysign(math.inf, centre) if centre else 0.0
    return centre / math.sqrt(variance / len(differences))
