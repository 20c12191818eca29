"""Scores: numbers with their evidence, and the tables that scorers store."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, get_args

from annotated_types import Ge, Gt, Le

from equivox.core.attributes import Role
from equivox.core.coverage import MOST_RARE, STAGES, Coverage
from equivox.core.detectable import Detectable
from equivox.core.errors import UsageError, nearest
from equivox.core.fields import checked_fields, odd_numbers, typed
from equivox.core.plain import as_plain

NAN = math.nan

LEVEL = 0.05
"""The level of every decision: stars, marks and sentences need a q below it."""

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
    return ScoringOptions(**checked_fields(ScoringOptions, {"merge": merge, **given}, what="scoring"))


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


@dataclass(frozen=True, kw_only=True)
class Mover:
    """The value whose share differs most between two groups, with its shares in these groups in percent."""

    value: str
    high_group: str
    high_share: float
    low_group: str
    low_share: float


Outcome = Literal["difference", "no_result", "too_few_data", "no_difference"]
"""What a score says, see `equivox.core.outcomes`."""

_CAN_STAY_HIDDEN = " could be missed in more than 20 of 100 such samples"


@dataclass(frozen=True, kw_only=True)
class Score:
    """One number with its evidence.

    Parameters
    ----------
    name, unit, zero_means
        The metric, its unit and the meaning of zero.
    attribute, role
        The scored attribute (None for the whole task) and its role.
    subset
        A breakdown, such as `speaker=1091`; empty for all samples together.
    target
        The value that says "no bias".
    value
        NaN when undefined; `undefined` then gives the reason.
    attainable_max
        The largest value that these groups and answers allow.
    estimate, estimate_unclipped
        The estimated value of the population, for numbers that noise only increases; it heads tables, figures and
        ranks, and `value` stands beside it as published. NaN where the value itself is the estimate. Means over tasks
        take `estimate_unclipped`, which may be below zero, so that noise cancels.
    null_mean
        Mean of the null: a diagnosis of the noise, not a part of the value to be subtracted.
    ci_low, ci_high
        Interval for the population's value with the noise removed: it can be below `value`, which noise inflates.
    new_items_low, new_items_high
        The same interval for new items of the same kind, such as other sentences; NaN where items are not known.
    same_units_low, same_units_high
        The same interval for exactly these units, where each is in every group and answered several times; NaN else.
    worst_low, worst_high
        Bounds of the value over all that the missing responses could have said; equal to it when none is missing.
        Given for an undefined score too, if anything is known.
    p_paper
        The p-value as published, by permuting labels over responses. For comparison only.
    p_cluster
        The p-value by permuting labels over clusters: it speaks of the groups, with clusters that were not seen.
    p_euclidean
        The second test, declared in advance: it finds a shift of few values more often; NaN where there is none.
    p_every_value
        The p-value over clusters with rare values included, which `value` leaves out; NaN where none was left out.
    p_items
        The p-value over clusters within single items, and within blocks: it finds differences that cancel over all of
        them; NaN where there are no items with several answers.
    p_these
        The p-value over the responses of exactly these clusters: it speaks of these clusters alone. NaN if the metric
        has none.
    p_least
        The smallest value of the p that decides that the design allows, whatever the answers; NaN if it is not known.
    cannot_tell
        Why this design finds nothing, or hardly anything, whatever the answers: "20 permutations: no p below 0.1". None
        if it can. Without a finding the outcome of such a score is `too_few_data`, never `no_difference`.
    q
        The p that decides after correction for all tests of the run, see `equivox.run.scoring`; NaN until a run is
        complete.
    level
        The p that would have made it a finding among all tests of the run; NaN until a run is complete.
    detectable
        The smallest shift that its design finds; None if that is not known.
    q_least
        The smallest q that any answers to this task could have had, given the other tests; NaN if `p_least` is not
        known.
    other_share
        The share of the values that are none of an attribute's options; NaN without options. They count as one value.
    outcome
        What it says, decided when the run is scored; None for a number that is not tested. Of a constant answer, whose
        value is undefined, it is decided by the rule of three over units.
    by_group
        The number of each group: the share of the value that differs most, in percent, or the mean; {} if not known.
    coverage
        The counts of responses behind the number.
    parts
        For a task: the attributes that entered the mean, and their number.
    """

    task: str
    condition: str
    dimension: str
    attribute: str | None
    role: Role
    name: str
    unit: str
    zero_means: str
    subset: str = ""
    target: float = 0.0
    value: float = NAN
    attainable_max: float = NAN
    estimate: float = NAN
    estimate_unclipped: float = NAN
    null_mean: float = NAN
    ci_low: float = NAN
    ci_high: float = NAN
    new_items_low: float = NAN
    new_items_high: float = NAN
    same_units_low: float = NAN
    same_units_high: float = NAN
    worst_low: float = NAN
    worst_high: float = NAN
    p_paper: float = NAN
    p_cluster: float = NAN
    p_euclidean: float = NAN
    p_every_value: float = NAN
    p_items: float = NAN
    p_these: float = NAN
    p_least: float = NAN
    cannot_tell: str | None = None
    q: float = NAN
    q_least: float = NAN
    level: float = NAN
    detectable: Detectable | None = None
    n_clusters: int = 0
    min_count: int = 0
    removed_share: float = NAN
    other_share: float = NAN
    mover: Mover | None = None
    outcome: Outcome | None = None
    by_group: Mapping[str, float] = field(default_factory=dict)
    parts: tuple[str, ...] = ()
    n_parts: int = 0
    coverage: Coverage
    undefined: str | None = None
    notes: tuple[str, ...] = ()

    @property
    def defined(self) -> bool:
        """Whether the value is a number."""
        return self.undefined is None

    @property
    def p(self) -> float:
        """The p-value that decides, `p_cluster`; the others stand beside it."""
        return self.p_cluster

    @property
    def found(self) -> bool:
        """Whether the score differs from "no bias" beyond chance: q below `LEVEL`."""
        return self.defined and self.q < LEVEL

    @property
    def hidden_difference(self) -> str | None:
        """Why there may be a difference that `value` leaves out or averages away; None without a sign of one."""
        # A small p that is none among the tests of the run finds nothing; another hides nothing if it is no smaller.
        missed = (self.p if math.isnan(self.q) else self.q) >= LEVEL
        in_items, in_rare = (missed and p <= LEVEL and p < self.p for p in (self.p_items, self.p_every_value))
        if in_items:
            return f"groups differ within items or blocks (p items {self.p_items:.2g}), which may cancel over all"
        if in_rare:
            return f"the rare values that are left out differ between groups (p every value {self.p_every_value:.2g})"
        if self.removed_share > MOST_RARE:
            rare = f"over {100 * MOST_RARE:.0f} % of the values are seen fewer than {self.min_count} times and left out"
            return f"{rare} (`--scoring min_count=2` or `merge=embedding` keeps more)"
        if self.other_share > MOST_RARE:
            return f"over {100 * MOST_RARE:.0f} % of the values are none of the options (other), and count as one"
        return None

    @property
    def untold(self) -> str | None:
        """Why a score without a finding is inconclusive; None if the test had enough power."""
        return self._untold(in_unit=True)

    @property
    def untold_in_any_unit(self) -> str | None:
        """Why a score without a finding says nothing, in words that scores in different units share; else None."""
        return self._untold(in_unit=False)

    def _untold(self, *, in_unit: bool) -> str | None:
        if not self.defined or self.found or math.isnan(self.p):
            return None
        if (reason := self.cannot_tell or self.hidden_difference) is not None:
            return reason
        if self.p_least >= LEVEL:
            return f"no p below {self.p_least:.2g}"
        if self.q_least >= LEVEL:
            return f"no p below {self.p_least:.2g}, and with all tests of the run no q below {self.q_least:.2g}"
        if (hidden := self._hidden) is not None:
            return f"{hidden.in_words(self.unit if in_unit else None)}{_CAN_STAY_HIDDEN}"
        if self.detectable is None and not (math.isfinite(self.ci_low) and math.isfinite(self.ci_high)):
            return "how large a difference its test may miss is not known"
        return None

    @property
    def clusters_needed(self) -> int:
        """The number of clusters that would find the shift that is looked for; 0 if there is no need."""
        return 0 if self._hidden is None else self._hidden.clusters(self.n_clusters, self._level)

    @property
    def _hidden(self) -> Detectable | None:
        """What the design finds, if it may miss the shift that is looked for and its interval does not rule it out."""
        found = self.detectable
        if found is None or found.at(self._level) <= found.shift:
            return None
        # An interval of a number with a side is folded at "no bias", an estimate's begins there.
        if distance_interval(self.ci_low, self.ci_high, self.target)[1] < found.shift:
            return None
        return found

    @property
    def _level(self) -> float:
        return LEVEL if math.isnan(self.level) else self.level

    @property
    def distance(self) -> float:
        """Distance of the estimate from "no bias", 0 or more; NaN if undefined or if no value means "no bias"."""
        if not self.defined or math.isnan(self.target):
            return NAN
        return abs(self.value - self.target) if math.isnan(self.estimate) else max(0.0, self.estimate)

    @property
    def impossible(self) -> str | None:
        """What cannot be true of a score, in words, such as a p-value of 1.7; None if nothing of the kind."""
        if self.undefined is None and not math.isfinite(self.value):
            return (
                f"has neither a number ({self.name} is {self.value}) nor a reason; say in `undefined` why it cannot be "
                "known"
            )
        if self.undefined is not None and not math.isnan(self.value):
            return f"has the number {self.value} beside `undefined`, the reason why there is none; give one of them"
        if self.undefined is not None and not self.undefined.strip():
            return "has an empty text as `undefined`; say why there is no number"
        return odd_numbers(self, _PROBABILITIES, ("ci", "new_items", "same_units", "worst"))

    @property
    def headline(self) -> float:
        """The number that heads tables and figures: the estimate if there is one, else the value."""
        return self.value if math.isnan(self.estimate) else self.estimate

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
        return dict(as_plain(dataclasses.asdict(self)))

    def as_row(self) -> dict[str, Any]:
        """Return the score as one row of plain values for a table: lists joined, coverage and mover in columns."""
        record = self.as_dict()
        coverage, mover, found = record.pop("coverage"), record.pop("mover") or {}, record.pop("detectable") or {}
        record |= {"notes": " | ".join(record["notes"]), "parts": " ".join(record["parts"])}
        record["by_group"] = " | ".join(f"{group}: {number:.6g}" for group, number in self.by_group.items())
        # Every row has every column, because a table takes its columns from the first row.
        record |= {f"mover_{f.name}": mover.get(f.name) for f in dataclasses.fields(Mover)}
        record |= {f"detectable_{f.name}": found.get(f.name) for f in dataclasses.fields(Detectable)}
        return record | {key: coverage[key] for key in STAGES}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Score:
        """Return the score that `as_dict` wrote; UsageError for a field that is missing or of another type."""
        values: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else NAN if value is None and name in _NUMBERS else value
            for name, value in record.items()
        }
        for name, kind in (("coverage", Coverage), ("mover", Mover), ("detectable", Detectable)):
            if isinstance(values.get(name), Mapping):
                values[name] = typed(kind, values[name])
        return typed(cls, values)


_PROBABILITIES = ("p_paper", "p_cluster", "p_euclidean", "p_every_value", "p_items", "p_these", "p_least")
_NUMBERS = frozenset(field.name for field in dataclasses.fields(Score) if field.type == "float")
"""The fields of a score that JSON holds as null where they are NaN."""


def left_out_of(mean: Score, scores: Iterable[Score]) -> list[Score]:
    """Return the scores of the attributes that a mean over attributes leaves out; [] for a score of another kind."""
    key = (mean.task, mean.name, mean.role, "")
    parts = [s for s in scores if (s.task, s.name, s.role, s.subset) == key and s.attribute is not None]
    return [part for part in parts if mean.parts and part.attribute not in mean.parts]


def family_of(task: str) -> str:
    """Return the name of a task's family, with the condition that the task's name has; a family's name is its own.

    >>> family_of("vibe_gender:story@silence"), family_of("vibe_gender@silence"), family_of("vibe_gender:story")
    ('vibe_gender@silence', 'vibe_gender@silence', 'vibe_gender')
    """
    name, at, condition = task.partition("@")
    return f"{name.partition(':')[0]}{at}{condition}"


@dataclass(frozen=True)
class Scored:
    """The result of a scorer: scores, and tables to store by name, each a sequence of rows of plain values.

    `quoted` names tables whose rows have the `key` of a response, with the column that gets its text.
    """

    scores: Sequence[Score]
    tables: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)
    quoted: Mapping[str, str] = field(default_factory=dict)
