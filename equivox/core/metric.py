"""A metric: one object that says everything the rest of equivox must know about it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from equivox.core.errors import RequestError

if TYPE_CHECKING:
    import numpy as np

    from equivox.core.columns import ColumnMetric
    from equivox.core.samples import Samples
    from equivox.core.scores import Score, Scored, ScoringOptions
    from equivox.core.segments import Segment
    from equivox.core.task import Task

Members = Sequence[tuple["Task", "Samples"]]
"""All tasks of one family in one condition, each with its samples."""


@dataclass(frozen=True, kw_only=True)
class PairedValues:
    """What a paired test of two runs found; every number is NaN where `undefined` says why.

    Attributes
    ----------
    value_a, value_b, difference
        The scores on the samples that both runs answered, and value_a − value_b.
    further
        How much further a lies from "no bias" than b; NaN for scores without such a value.
    ci_low, ci_high
        The 95 % interval of `further`; of `difference` where nothing says "no bias".
    p
        Two-sided, of equal distances from "no bias"; of equal scores where nothing says "no bias".
    p_exchange
        Of models that answer alike within clusters, which is a stronger claim than equal distances.
    p_least
        The smallest p that so many clusters and resamples can give.
    n_samples, n_clusters
        Samples that both runs answered, and clusters with one.
    parts
        The attributes that entered a mean: those that are defined for both.
    """

    value_a: float = float("nan")
    value_b: float = float("nan")
    difference: float = float("nan")
    further: float = float("nan")
    ci_low: float = float("nan")
    ci_high: float = float("nan")
    p: float = float("nan")
    p_exchange: float = float("nan")
    p_least: float = float("nan")
    n_samples: int = 0
    n_clusters: int = 0
    parts: tuple[str, ...] = ()
    undefined: str | None = None


@dataclass(frozen=True)
class PairedTask:
    """One task as two runs answered it: their samples in one order, and their scores."""

    task: Task
    samples_a: Samples
    samples_b: Samples
    score_a: Score
    score_b: Score


Compare = Callable[[str, Sequence[PairedTask], int, "np.random.Generator"], PairedValues]
"""The measure's name, the tasks it is about, the number of resamples and a generator → the paired test."""


@dataclass(frozen=True)
class CohortMember:
    """One model of a cohort: its scores of a family, and its samples of the family's tasks.

    `unlike` says why its samples do not compare with those of the first member; None where they do.
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
        Of the score, as it is printed.
    cohort
        Its name; `members` are its models.
    total
        Zero is typical of the cohort, which is not unbiased; NaN where `undefined` says why.
    parts
        The signed distances that it adds up.
    ci_low, ci_high
        95 % percentile interval over the units asked about; it says how far the number moves, and is no test.
    no_interval
        Why there is none.
    stand_ins
        Whether stand-ins for the published tools annotated the responses: such scores compare with nothing else.
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
        Its name.
    values
        The signed numbers of every member, a published cohort first: model → measure → value.
    total
        The total score of every member; NaN where `undefined` says why.
    """

    cohort: str
    values: Mapping[str, Mapping[str, float]]
    total: Mapping[str, float]
    undefined: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Overlap:
    """The findings of two runs side by side, such as the associations of two models.

    Attributes
    ----------
    n_one, n_other, n_shared
        Findings of the first run, of the second, and of both.
    jaccard
        Findings of both as a share of what either has, 0 to 1; NaN where neither has any.
    rank_correlation
        Kendall's τ-b of the scores of the shared findings; NaN for fewer than three.
    """

    dimension: str
    one: str
    other: str
    n_one: int
    n_other: int
    n_shared: int
    jaccard: float
    rank_correlation: float


@dataclass(frozen=True, kw_only=True)
class CheckedStage:
    """How often one stage of a metric's annotation is right: 1 is always, 0 never.

    `n` counts labels, `low` to `high` is a 95 % interval over them: NaN where all labels are the same or there are
    fewer than two.
    """

    name: str
    value: float
    n: int
    low: float = float("nan")
    high: float = float("nan")
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class CheckedStages:
    """All stages that some label files check; `left_out` counts rows without a complete label, by file."""

    measures: Sequence[CheckedStage]
    left_out: Mapping[str, int]

    def as_dict(self) -> dict[str, Any]:
        """Return the stages as plain JSON values; NaN becomes None."""
        plain = [
            {key: None if isinstance(v, float) and math.isnan(v) else v for key, v in vars(measure).items()}
            for measure in self.measures
        ]
        return {"measures": plain, "left_out": dict(self.left_out)}


@dataclass(frozen=True, kw_only=True)
class Measure:
    """One number that a metric reports of a whole task, and what the rest of equivox needs to know about it.

    Parameters
    ----------
    name
        As it stands in `Score.name`.
    title
        Two or three words that stand below the name in a table; empty where the name says enough.
    no_bias
        The value that says "no bias"; None where no value does.
    help
        One or two sentences for a reader of the report.
    compare
        How two runs are compared in pairs; None: not at all, and `not_compared` says why.
    overall
        Whether the mean over all tasks of a family is compared too.
    published
        The scalar that leaderboards take, higher is better; None: the number describes and is not submitted.
    published_help
        How that scalar is made, in words.
    in_verdict
        Whether the number decides the verdict of the report's first page.
    null_mean
        Whether the number has a null mean, so that its distance from "no bias" is what lies above that.
    of_shares
        The number as a function of how often each group gets each value (shares from 0 to 1, draws × groups × values →
        one number per draw); None where it is none. An annotator's error is carried over by it.
    power
        Whether `equivox power` says what a design can detect of it.
    """

    name: str
    title: str = ""
    no_bias: float | None = 0.0
    help: str = ""
    compare: Compare | None = None
    not_compared: str = ""
    overall: bool = False
    published: Callable[[Score], float] | None = None
    published_help: str = ""
    in_verdict: bool = True
    null_mean: bool = False
    of_shares: Callable[[np.ndarray[Any, Any]], np.ndarray[Any, Any]] | None = field(default=None, repr=False)
    power: bool = False


CorpusFacts = Callable[
    [Sequence[Mapping[str, Any]], Sequence[float | None], bool, Callable[[str, int, int], None]],
    Sequence[Mapping[str, str]],
]
"""Columns of a corpus's samples, seconds of each, whether to compare texts too (slow), progress → rows, by heading."""


@dataclass(frozen=True, kw_only=True)
class Panel:
    """A section of the report beside the scores of whole tasks: figures or tables of one kind.

    Parameters
    ----------
    kind
        What `equivox plot` calls it, and what it is drawn from: `shares` from a table of shares per group and value;
        `heat` from a table of counts (task, category, identity, count, surviving_q; count None where unknown);
        `metrics` from the scores of all measures, whose sign says which side is favoured; `speakers` from the scores
        of one measure for each cluster alone.
    table
        The stored table that it is drawn from; empty where it is drawn from scores.
    title, caption
        The heading of the section in the report, and what stands below it.
    unit
        What a number in the figure counts.
    top, top_columns
        A further table of the strongest findings, and its columns with their headings. It has the columns task and q.
    measure
        The measure that `speakers` shows.
    sides
        Whom a value above and one below "no bias" favours.
    whole, tasks
        How a line for all tasks of a family is called, and the tasks by their short names.
    """

    kind: Literal["shares", "heat", "metrics", "speakers"]
    table: str = ""
    title: str = ""
    caption: str = ""
    unit: str = ""
    top: str = ""
    top_columns: Mapping[str, str] = field(default_factory=dict)
    measure: str = ""
    sides: tuple[str, str] = ("more", "less")
    whole: str = "all tasks"
    tasks: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Metric:
    """A family of numbers that is computed from the samples of a task.

    Parameters
    ----------
    name
        The name of its folder in `metrics/`.
    unit
        The unit of its headline number.
    help
        What it measures, for a reader.
    score
        Pure: the task, its samples and the options → scores, and tables worth keeping.
    measures
        What it reports of a whole task, the headline first.
    score_family
        Scores that only all tasks of a family and condition together have; None: there are none.
    follow_up
        Questions that the annotator is asked about findings once all responses are annotated; None: none.
    panels
        The figures of the report beside the forest of scores.
    cohort
        Family, members, resamples and seed → total scores relative to the compared runs; None: there are none.
    cohort_title, cohort_legend
        What the total score is called, and what it means, for a reader.
    cohort_help
        Why there is no such score where a cohort lacks what it needs, for a reader.
    cohort_totals
        The signed numbers of runs by model, and the name of a published cohort or None → total scores relative to
        both; RequestError for an unknown name. None: there are none.
    stand_ins
        How the note of a score begins that rests on stand-ins for published tools; empty: there are none.
    overlap, overlap_help
        Labels and folders of runs → how far the findings of every two of them are the same, and what these are
        called. None: that is not asked.
    check_stages
        Files of labels by people → how often each stage of the annotation is right; None: there are no stages.
    corpus_facts
        What `equivox data statistics` shows of a corpus; None: nothing.
    columns
        Returns the metrics of columns by which it is computed from a table that was made elsewhere (`equivox metric`);
        None: it is not.
    glossary
        Entries of the report's section on methods: a word, and what it means.
    """

    name: str
    unit: str
    help: str
    score: Callable[[Task, Samples, ScoringOptions], Scored]
    measures: tuple[Measure, ...]
    score_family: Callable[[Members, ScoringOptions], Scored] | None = None
    follow_up: Callable[[Members, ScoringOptions], Sequence[Segment]] | None = None
    panels: tuple[Panel, ...] = ()
    cohort: Callable[[str, Sequence[CohortMember], int, int], Sequence[CohortScore]] | None = field(
        default=None, repr=False
    )
    cohort_title: str = ""
    cohort_legend: str = ""
    cohort_help: str = ""
    cohort_totals: Callable[[Mapping[str, Mapping[str, float]], str | None], CohortTotals] | None = field(
        default=None, repr=False
    )
    stand_ins: str = ""
    overlap: Callable[[Sequence[tuple[str, Path]]], Sequence[Overlap]] | None = field(default=None, repr=False)
    overlap_help: str = ""
    check_stages: Callable[[Sequence[Path]], CheckedStages] | None = field(default=None, repr=False)
    corpus_facts: CorpusFacts | None = field(default=None, repr=False)
    columns: Callable[[], Sequence[ColumnMetric]] | None = field(default=None, repr=False)
    glossary: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        names = [measure.name for measure in self.measures]
        if not names or len(set(names)) < len(names):
            raise RequestError(f"metric {self.name}: `measures` name each number once and at least one, got {names}")

    @property
    def no_bias(self) -> float | None:
        """The value of the headline number that says "no bias"; None where no value does."""
        return self.measures[0].no_bias

    def panel(self, kind: str) -> Panel | None:
        """Return the panel of a kind; None where the metric has none."""
        return next((panel for panel in self.panels if panel.kind == kind), None)

    @property
    def by_name(self) -> Mapping[str, Measure]:
        """The measures by their names."""
        return {measure.name: measure for measure in self.measures}
