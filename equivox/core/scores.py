"""Scores: numbers with their evidence, and the tables that scorers store."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Any, Literal, get_args

from annotated_types import Ge, Gt, Le
from pydantic import BeforeValidator, PlainSerializer

from equivox.core.attributes import Role
from equivox.core.coverage import MOST_RARE, STAGES, Coverage
from equivox.core.errors import UsageError, nearest
from equivox.core.fields import adapter, checked, read_fields
from equivox.core.notes import LEVEL as LEVEL
from equivox.core.notes import Note, NoteCode, as_note

NAN = math.nan

DEFAULT_ENCODER, DEFAULT_MERGE_THRESHOLD = "sentence-transformers/all-mpnet-base-v2", 0.63
"""The encoder and the threshold for merging open values by meaning: those of BADF."""

FEWEST_RESAMPLES, MOST_RESAMPLES = 99, 1_000_000
"""The range of the number of permutations: with fewer no p-value reaches 1 %, and more change no digit."""

Merge = Literal["none", "lemma", "embedding"]
"""Rule by which open values count as one: equal spelling, equal lemmas, or similar meaning."""


def distance_interval(low: float, high: float, target: float = 0.0) -> tuple[float, float]:
    """Return the interval of a distance from `target`, from that of the signed value; NaN stays NaN.

    >>> distance_interval(-3.0, 5.0), distance_interval(2.0, 4.0), distance_interval(40.0, 45.0, 50.0)
    ((0.0, 5.0), (2.0, 4.0), (5.0, 10.0))
    """
    ends = abs(low - target), abs(high - target)
    return 0.0 if low <= target <= high else min(ends), max(ends)


@dataclass(frozen=True, kw_only=True)
class ScoringOptions:
    """Options of the scoring; part of the manifest.

    `min_count` (VIBE's τ) None scales with the number of responses, see `effective_min_count`. `min_coverage` is the
    share of responses that must be usable in every group for a score to be defined. `merge` decides which open values
    count as one (`none`, `lemma`, `embedding`); `encoder` and `merge_threshold` are used by `embedding` only.
    `look_for` is the difference that one looks for, in points of nTVD: a design that may miss it cannot tell. The level
    of the intervals is no option: pages, gates and ranks take them for 95 % intervals.
    """

    min_count: Annotated[int, Ge(1)] | None = None
    n_resamples: Annotated[int, Ge(FEWEST_RESAMPLES), Le(MOST_RESAMPLES)] = 10_000
    min_coverage: Annotated[float, Ge(0), Le(1)] = 0.8
    seed: Annotated[int, Ge(0)] = 0
    look_for: Annotated[float, Gt(0), Le(100)] = 10.0
    merge: Merge = "lemma"
    encoder: str = DEFAULT_ENCODER
    merge_threshold: Annotated[float, Gt(0), Le(1)] = DEFAULT_MERGE_THRESHOLD


DEFAULT_OPTIONS = ScoringOptions()


def scoring_options(*, merge: str, **given: Any) -> ScoringOptions:
    """Return the options that a user typed; UsageError for an unknown value of `merge`, and outside of a range."""
    if merge not in get_args(Merge):
        raise UsageError(
            f"`merge` is one of {', '.join(get_args(Merge))}, got {merge!r}{nearest(merge, get_args(Merge))}"
        )
    return read_fields(ScoringOptions, {"merge": merge, **given}, what="scoring")


def unusual_options(options: ScoringOptions) -> dict[str, str]:
    """Return, by its name, each option that makes scores mean something else than declared, in words.

    A larger `look_for` leaves more differences out of what a design must be able to find, a smaller one asks for more.

    >>> unusual_options(ScoringOptions(look_for=30, n_resamples=99)), unusual_options(ScoringOptions(look_for=5))
    ({'look_for': 'scored with look_for 30 (as declared: 10.0)'}, {})
    """
    named = ["min_count", "min_coverage", "merge"]
    named += ["encoder", "merge_threshold"] if options.merge == "embedding" else []
    named += ["look_for"] if options.look_for > DEFAULT_OPTIONS.look_for else []
    usual = vars(DEFAULT_OPTIONS)
    return {
        name: f"scored with {name} {value} (as declared: {usual[name]})"
        for name in named
        if (value := vars(options)[name]) != usual[name]
    }


def effective_min_count(options: ScoringOptions, n_responses: int) -> int:
    """Return τ: the option if given, else the paper's 10 from 1,000 responses up and one per hundred below, at least 2.

    >>> [effective_min_count(ScoringOptions(), n) for n in (50, 288, 600, 1000, 14_400)]
    [2, 2, 6, 10, 10]
    """
    if options.min_count is not None:
        return options.min_count
    return max(2, min(10, n_responses // 100))


def _read_number(given: Any) -> Any:
    """Return a number of numpy as one of Python, and NaN for None."""
    return NAN if given is None else given.item() if hasattr(given, "item") else given


Number = Annotated[
    float,
    BeforeValidator(_read_number),
    PlainSerializer(lambda number: number if math.isfinite(number) else None, when_used="json"),
]
"""A number that JSON holds as null where it is not known (NaN)."""
Interval = tuple[Number, Number]
"""The lower and the upper end; NaN where they are not known."""
Remark = Annotated[Note, BeforeValidator(as_note)]
"""A note; a text becomes one with the code `remark`."""
UNKNOWN: Interval = (NAN, NAN)


@dataclass(frozen=True, kw_only=True)
class LargestShift:
    """The value whose share differs most between two groups, with its shares in these groups in percent."""

    value: str
    high_group: str
    high_share: float
    low_group: str
    low_share: float


Outcome = Literal["difference", "no_result", "too_few_data", "no_difference"]
"""What a score says, see `equivox.core.outcomes`."""

_CAN_HIDE = (
    NoteCode.SMALLEST_P, NoteCode.LEFT_OUT, NoteCode.HIDDEN_BY_MEAN, NoteCode.FEW_UNITS, NoteCode.NO_NOISE,
    NoteCode.CANNOT_TELL,
)  # fmt: skip
_TOO_MANY = (NoteCode.RARE_VALUES, NoteCode.OTHER_VALUES)
"""The codes of notes that hide a difference if their share is large."""


@checked
@dataclass(frozen=True, kw_only=True)
class Score:
    """One number with its evidence.

    Parameters
    ----------
    task, condition, dimension
        The task, what it was sent, and the dimension that is compared.
    attribute, role
        The scored attribute (None for the whole task) and its role.
    metric, unit
        The name of the number, and its unit.
    subset
        A breakdown, such as `speaker=1091`; empty for all samples together.
    value
        The number as published; NaN when it is not known, and `undefined_reason` then says why.
    null_value
        The value that says "no bias"; NaN if none does.
    estimate
        The estimated value of the population, for numbers that noise only increases; below zero where noise would add
        more than was seen, so that means over tasks have no bias. NaN where the value itself is the estimate.
    ci
        The 95 % interval of the population's value, with the noise removed: it can be below `value`.
    attainable_max
        The largest value that these groups and answers allow.
    missing_bounds
        Bounds of the value over all that the missing responses could have said; equal to it when none is missing.
    p
        The p-value over whole units, such as speakers: it speaks of units that were not seen, too. It decides.
    p_published
        The p-value as published, by permuting labels over responses. For comparison only.
    q
        p after correction for all tests of the run, see `equivox.run.scoring`; NaN until a run is complete.
    outcome
        What it says, decided when the run is scored; None for a number that is not tested. Of a constant answer, whose
        value is not known, it is decided by the rule of three over units.
    by_group
        The number of each group: the share of the value that differs most, in percent, or the mean; {} if not known.
    largest_shift
        The value whose share differs most between two groups; None if there are no shares.
    n_units
        The number of units that are compared.
    coverage
        The counts of responses behind the number.
    undefined_reason
        Why the value is not known; None if it is.
    notes
        What else to know about it, as codes with values (`equivox.core.notes`).
    """

    task: str
    condition: str
    dimension: str
    attribute: str | None
    role: Role
    metric: str
    unit: str
    subset: str = ""
    value: Number = NAN
    null_value: Number = 0.0
    estimate: Number = NAN
    ci: Interval = UNKNOWN
    attainable_max: Number = NAN
    missing_bounds: Interval = UNKNOWN
    p: Number = NAN
    p_published: Number = NAN
    q: Number = NAN
    outcome: Outcome | None = None
    by_group: Mapping[str, float] = field(default_factory=dict)
    largest_shift: LargestShift | None = None
    n_units: Annotated[int, BeforeValidator(_read_number)] = 0
    coverage: Coverage
    undefined_reason: Remark | None = None
    notes: tuple[Remark, ...] = ()

    @property
    def defined(self) -> bool:
        """Whether the value is a number."""
        return self.undefined_reason is None

    @property
    def found(self) -> bool:
        """Whether the score differs from "no bias" beyond chance: q below `LEVEL`."""
        return self.defined and self.q < LEVEL

    @property
    def omitted(self) -> tuple[Note, ...]:
        """What the value leaves out or averages away, which may differ between groups; () if nothing may."""
        return tuple(
            note
            for note in self.notes
            if (note.code in _TOO_MANY and note.values["share"] > MOST_RARE)
            or (note.code == NoteCode.WITHIN_ITEMS and not self.found)
        )

    @property
    def hidden_by(self) -> Note | None:
        """What could hide a difference from a score without a finding; None if nothing could."""
        return next((note for note in self.notes if note.code in _CAN_HIDE or note in self.omitted), None)

    @cached_property
    def _facts(self) -> Mapping[NoteCode, Mapping[str, Any]]:
        return {note.code: note.values for note in reversed(self.notes)}

    @property
    def sd(self) -> float:
        """The standard deviation of single answers within a group; NaN if it is not known."""
        return float(self._facts.get(NoteCode.DESIGN, {}).get("sd", NAN))

    @property
    def null_mean(self) -> float:
        """The mean of the null: a diagnosis of the noise; NaN if it is not known."""
        return float(self._facts.get(NoteCode.DESIGN, {}).get("null_mean", NAN))

    @property
    def parts(self) -> tuple[str, ...]:
        """The attributes that entered a mean; () for a number of another kind."""
        return tuple(self._facts.get(NoteCode.MEAN_OF, {}).get("attributes", ()))

    @property
    def min_count(self) -> int:
        """How often a value was seen at least that counts; 1 if all count."""
        return int(self._facts.get(NoteCode.RARE_VALUES, {}).get("min_count", 1))

    @property
    def rare_share(self) -> float:
        """The share of the values that is left out as rare, 0 to 1."""
        return float(self._facts.get(NoteCode.RARE_VALUES, {}).get("share", 0.0))

    @property
    def distance(self) -> float:
        """Distance of the estimate from "no bias", 0 or more; NaN if undefined or if no value means "no bias"."""
        if not self.defined or math.isnan(self.null_value):
            return NAN
        return abs(self.value - self.null_value) if math.isnan(self.estimate) else self.headline

    @property
    def interval(self) -> Interval:
        """The interval of the distance from "no bias"."""
        return distance_interval(*self.ci, self.null_value)

    @property
    def unbiased(self) -> float:
        """The number that means over tasks take: the estimate if there is one, else the value."""
        return self.value if math.isnan(self.estimate) else self.estimate

    @property
    def headline(self) -> float:
        """The number that heads tables and figures: the estimate within what is possible, else the value."""
        if math.isnan(self.estimate):
            return self.value
        limit = math.inf if math.isnan(self.attainable_max) else self.attainable_max
        return min(max(self.estimate, 0.0), limit)

    @property
    def impossible(self) -> str | None:
        """What cannot be true of a score, in words, such as a p-value of 1.7; None if nothing of the kind."""
        if self.defined and not math.isfinite(self.value):
            return f"has the number {self.value} and no `undefined_reason`; say why it cannot be known"
        if not self.defined and not math.isnan(self.value):
            return f"has the number {self.value} beside an `undefined_reason`; give one of them"
        if self.undefined_reason is not None and not str(self.undefined_reason).strip():
            return "has an empty `undefined_reason`; say why there is no number"
        for name, p in (("p", self.p), ("p_published", self.p_published)):
            if not (math.isnan(p) or 0 <= p <= 1):
                return f"has `{name}` {p}: use a probability, or NaN when undefined"
        for name, (low, high) in (("ci", self.ci), ("missing_bounds", self.missing_bounds)):
            if low > high and not math.isclose(low, high):  # equal ends may differ by rounding
                return f"has `{name}` from {low} to {high}: the lower end comes first"
        return f"has {self.n_units} units" if self.n_units < 0 else None

    @property
    def family(self) -> str:
        """The family of the task, its condition included."""
        return family_of(self.task)

    @property
    def is_whole(self) -> bool:
        """Whether the score is about a whole task, not about one attribute or a breakdown."""
        return self.attribute is None and not self.subset

    def as_dict(self) -> dict[str, Any]:
        """Return the score as plain JSON values; NaN becomes None."""
        return dict(adapter(Score).dump_python(self, mode="json"))

    def as_row(self) -> dict[str, Any]:
        """Return the score as one row of plain values for a table; intervals and counts have columns of their own."""
        record = self.as_dict()
        for name, stem in (("ci", "ci"), ("missing_bounds", "missing")):
            record[f"{stem}_low"], record[f"{stem}_high"] = record.pop(name)
        record |= {stage: record["coverage"][stage] for stage in STAGES}
        shift = self.largest_shift
        return record | {
            "coverage": self.coverage.share,
            "by_group": " | ".join(f"{group}: {number:.6g}" for group, number in self.by_group.items()),
            "largest_shift": "" if shift is None else shift.value,
            "undefined_reason": None if self.undefined_reason is None else str(self.undefined_reason),
            "notes": " | ".join(map(str, self.notes)),
        }

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Score:
        """Return the score that `as_dict` wrote; ValidationError for a field that is missing or of another type."""
        score: Score = adapter(Score).validate_json(json.dumps(record))
        return score


def left_out_of(mean: Score, scores: Iterable[Score]) -> list[Score]:
    """Return the scores of the attributes that a mean over attributes leaves out; [] for a score of another kind."""
    key = (mean.task, mean.metric, mean.role, "")
    parts = [s for s in scores if (s.task, s.metric, s.role, s.subset) == key and s.attribute is not None]
    return [part for part in parts if mean.parts and part.attribute not in mean.parts]


def family_of(task: str) -> str:
    """Return the name of a task's family, with the condition that the task's name has; a family's name is its own.

    >>> family_of("vibe_gender:story@silence"), family_of("vibe_gender@silence"), family_of("vibe_gender:story")
    ('vibe_gender@silence', 'vibe_gender@silence', 'vibe_gender')
    """
    name, at, condition = task.partition("@")
    return f"{name.partition(':')[0]}{at}{condition}"


COLUMNS = (
    *("task", "condition", "dimension", "attribute", "role", "metric", "subset", "value", "null_value", "estimate"),
    *("ci_low", "ci_high", "attainable_max", "missing_low", "missing_high", "p", "p_published", "q", "outcome"),
    *("by_group", "n_units", "coverage", "undefined_reason", "notes"),
)
"""The columns of a table of scores in Python."""


@dataclass(frozen=True)
class Scored:
    """The result of a scorer: scores, and tables to store by name, each a sequence of rows of plain values.

    `quoted` names tables whose rows have the `key` of a response, with the column that gets its text.
    """

    scores: Sequence[Score]
    tables: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)
    quoted: Mapping[str, str] = field(default_factory=dict)
