"""Metrics: each is one object that holds everything the rest of equivox needs to know about it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from equivox.core.errors import UsageError
from equivox.core.lazy import np
from equivox.core.notes import Note

if TYPE_CHECKING:
    from equivox.core.samples import Samples
    from equivox.core.scores import Score, Scored, ScoringOptions
    from equivox.core.segments import Segment
    from equivox.core.task import Task

Members = Sequence[tuple["Task", "Samples"]]
"""The tasks of one family in one condition, each with its samples."""


@dataclass(frozen=True, kw_only=True)
class PairedValues:
    """The result of a paired test of two runs; every number is NaN if `undefined` gives a reason.

    Attributes
    ----------
    value_a, value_b, difference
        The scores on the samples that both runs answered, and value_a − value_b.
    distance_a, distance_b
        The distances from "no bias" whose difference is `further`, with what noise adds removed, so that they can lie
        below 0; NaN where they are those of the values themselves.
    further
        How much further a lies from "no bias" than b; NaN for scores without such a value.
    ci_low, ci_high
        The 95 % interval of `further`, or of `difference` if no value means "no bias".
    p
        Two-sided p-value of equal distances from "no bias", or of equal scores if no value means "no bias".
    p_exchange
        p-value of models that answer alike within clusters, a stronger claim than equal distances.
    p_least
        The smallest p that this number of clusters and resamples can give.
    n_samples, n_clusters
        Samples that both runs answered, and clusters with such a sample.
    parts
        The attributes that entered a mean: those that are defined for both runs.
    """

    value_a: float = float("nan")
    value_b: float = float("nan")
    difference: float = float("nan")
    distance_a: float = float("nan")
    distance_b: float = float("nan")
    further: float = float("nan")
    ci_low: float = float("nan")
    ci_high: float = float("nan")
    p: float = float("nan")
    p_exchange: float = float("nan")
    p_least: float = float("nan")
    n_samples: int = 0
    n_clusters: int = 0
    parts: tuple[str, ...] = ()
    undefined: Note | str | None = None


@dataclass(frozen=True)
class PairedTask:
    """One task as two runs answered it: their samples in one order, and their scores."""

    task: Task
    samples_a: Samples
    samples_b: Samples
    score_a: Score
    score_b: Score


Compare = Callable[[str, Sequence[PairedTask], int, "np.random.Generator"], PairedValues]
"""Function of the measure's name, its tasks, the number of resamples and a generator that returns the paired test."""


@dataclass(frozen=True)
class CohortMember:
    """One model of a cohort: its scores of a family, and its samples of the family's tasks.

    `unlike` says why its samples cannot be compared with those of the first member; None if they can.
    """

    model: str
    scores: Sequence[Score]
    samples: Sequence[tuple[Task, Samples]]
    unlike: str | None = None


@dataclass(frozen=True, kw_only=True)
class CohortScore:
    """A model's total score relative to a cohort; it means nothing without that cohort.

    Attributes
    ----------
    name
        Name of the score, as printed.
    cohort
        Name of the cohort; `members` are its models.
    total
        Zero means typical of the cohort, not unbiased; NaN if `undefined` gives a reason.
    parts
        The signed distances whose sum is `total`.
    ci_low, ci_high
        95 % percentile interval over the units asked about; it shows how stable the number is and is not a test.
    no_interval
        Why there is no interval.
    stand_ins
        Whether stand-ins for the published tools annotated the responses; such scores cannot be compared with others.
    """

    family: str
    condition: str
    cohort: str
    members: tuple[str, ...]
    model: str
    name: str = ""
    total: float = float("nan")
    ci_low: float = float("nan")
    ci_high: float = float("nan")
    parts: Mapping[str, float] = field(default_factory=dict)
    stand_ins: bool = False
    undefined: str | None = None
    no_interval: str | None = None


@dataclass(frozen=True, kw_only=True)
class CohortTotals:
    """Total scores of some models relative to a cohort, without intervals.

    Attributes
    ----------
    cohort
        Name of the cohort.
    values
        The signed numbers of every member, published members first: model → measure → value.
    total
        The total score of every member; NaN if `undefined` gives a reason.
    """

    cohort: str
    values: Mapping[str, Mapping[str, float]]
    total: Mapping[str, float]
    undefined: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Cohort:
    """A total score that is relative to a cohort of models.

    Parameters
    ----------
    title, legend
        The name of the total score and its meaning, shown to users.
    needs
        The reason shown to users when a run lacks what the total score needs.
    stand_ins
        The beginning of the note of scores that use stand-ins for published tools, which no other score compares with.
    scores
        Function of family, members, resamples and seed that returns the total scores of the members, with intervals.
    totals
        Function of the signed numbers of runs (model → measure → value), the name of a published cohort whose models
        count too, or None, and whether they alone are the cohort. It returns total scores without intervals, and raises
        UsageError for an unknown cohort.
    """

    title: str
    legend: str
    needs: str
    stand_ins: str
    scores: Callable[[str, Sequence[CohortMember], int, int], Sequence[CohortScore]] = field(repr=False)
    totals: Callable[[Mapping[str, Mapping[str, float]], str | None, bool], CohortTotals] = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class FollowUp:
    """Questions to the annotator about findings, asked when all responses are annotated.

    `questions` returns them as segments. `merged` names the stored table of which wordings were counted as which, where
    findings rest on it.
    """

    questions: Callable[[Members, ScoringOptions], Sequence[Segment]] = field(repr=False)
    merged: str = ""


@dataclass(frozen=True, kw_only=True)
class Overlap:
    """The overlap of the findings of two runs, such as the associations of two models.

    Attributes
    ----------
    findings
        What overlaps, in one word.
    n_one, n_other, n_shared
        Findings of the first run, of the second, and of both.
    jaccard
        Shared findings divided by the findings of either run, 0 to 1; NaN if neither run has findings.
    rank_correlation
        Kendall's τ-b of the scores of the shared findings; NaN for fewer than three.
    """

    findings: str
    dimension: str
    one: str
    other: str
    n_one: int
    n_other: int
    n_shared: int
    jaccard: float
    rank_correlation: float


@dataclass(frozen=True, kw_only=True)
class Measure:
    """One number that a metric reports of a whole task, and what the rest of equivox needs to know about it.

    Parameters
    ----------
    name
        The value of `Score.name`.
    title
        The name on the screen, in two or three words; empty if `name` is clear.
    no_bias
        The value that means "no bias"; None if no value does.
    compare
        Paired comparison of two runs; None: there is none, and `not_compared` says why.
    overall
        Whether the mean over all tasks of a family is compared too.
    published
        Returns the number for leaderboards, higher is better; None: the number is descriptive and not submitted.
    published_help
        A description of that number, in words.
    in_verdict
        Whether the gate and the leaderboard decide by the number.
    null_mean
        Whether noise only increases the number, so that it has an estimate for the population and a null mean.
    corrected
        Function that returns the number as people would annotate the responses, from their labels of some of them, with
        the arguments and the result of `equivox.statistics.correct_groups`; None if labels cannot correct it.
    in_unit
        Whether the unit is that of what a task asks for (EUR, words), so that tables name it beside the measure.
    power
        Whether `equivox tasks plan` knows what a design can show with it.
    """

    name: str
    title: str = ""
    no_bias: float | None = 0.0
    compare: Compare | None = None
    not_compared: str = ""
    overall: bool = False
    published: Callable[[Score], float] | None = None
    published_help: str = ""
    in_verdict: bool = True
    null_mean: bool = False
    corrected: Callable[..., Any] | None = field(default=None, repr=False)
    in_unit: bool = False
    power: bool = False


@dataclass(frozen=True, kw_only=True)
class Panel:
    """A stored table of a metric that is drawn as a figure.

    Parameters
    ----------
    kind
        Its name for `equivox report --figure`: `shares` is drawn from a table of shares per group and value, `heat`
        from a table of counts (task, category, identity, count, surviving_q; count None where unknown).
    table
        The stored table.
    unit
        The unit of the numbers in the figure.
    in_order
        Whether the values of `shares` keep the order in which they are stored; otherwise the most common come first.
    """

    kind: Literal["shares", "heat"]
    table: str
    unit: str = ""
    in_order: bool = False


@dataclass(frozen=True, kw_only=True)
class Metric:
    """A family of numbers that is computed from the samples of a task.

    Parameters
    ----------
    name
        The name of its folder in `metrics/`.
    score
        Pure function of the task, its samples and the options that returns scores and tables to store.
    measures
        The numbers that it reports of a whole task, the headline first.
    glossary
        What it measures, for users: words and their meaning.
    score_family
        Returns scores over all tasks of a family and condition together; None: there are none.
    follow_up
        Questions to the annotator about findings; None: no questions.
    panels
        The figures of the report in addition to the forest of scores.
    cohort
        Total scores relative to a cohort of models; None: there are none.
    overlap
        Function of labels and folders of runs that returns the overlap of the findings of every two runs; None: there
        is no overlap.
    """

    name: str
    score: Callable[[Task, Samples, ScoringOptions], Scored]
    measures: tuple[Measure, ...]
    glossary: tuple[tuple[str, str], ...] = ()
    score_family: Callable[[Members, ScoringOptions], Scored] | None = None
    follow_up: FollowUp | None = None
    panels: tuple[Panel, ...] = ()
    cohort: Cohort | None = None
    overlap: Callable[[Sequence[tuple[str, Path]]], Sequence[Overlap]] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        names = [measure.name for measure in self.measures]
        if not names or len(set(names)) < len(names):
            raise UsageError(f"metric {self.name}: `measures` name each number once and at least one, got {names}")

    def panel(self, kind: str) -> Panel | None:
        """Return the panel of a kind, or None."""
        return next((panel for panel in self.panels if panel.kind == kind), None)

    @property
    def by_name(self) -> Mapping[str, Measure]:
        """The measures by their names."""
        return {measure.name: measure for measure in self.measures}
