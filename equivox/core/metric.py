"""A metric: one object that says everything the rest of equivox must know about it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from equivox.core.errors import RequestError

if TYPE_CHECKING:
    import numpy as np

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
class Measure:
    """One number that a metric reports of a whole task, and what the rest of equivox needs to know about it.

    Parameters
    ----------
    name
        As it stands in `Score.name`.
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
    """

    name: str
    no_bias: float | None = 0.0
    help: str = ""
    compare: Compare | None = None
    not_compared: str = ""
    overall: bool = False
    published: Callable[[Score], float] | None = None
    published_help: str = ""
    in_verdict: bool = True
    null_mean: bool = False


@dataclass(frozen=True, kw_only=True)
class Panel:
    """A figure or a table of one metric in the report: its kind, and the stored table or the scores that it shows.

    `kind` is what `equivox plot` calls it; `table` the name of the stored table it is drawn from, empty for scores.
    """

    kind: Literal["shares", "heat", "metrics", "speakers"]
    table: str = ""


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
    plannable
        Whether `equivox power` can reckon what it detects: it compares distributions of answers between clusters.
    cohort
        Family, members, resamples and seed → total scores relative to the compared runs; None: there are none.
    cohort_help
        Why there is no such score where a cohort lacks what it needs, for a reader.
    overlap
        Labels and folders of runs → how far the findings of every two of them are the same; None: that is not asked.
    """

    name: str
    unit: str
    help: str
    score: Callable[[Task, Samples, ScoringOptions], Scored]
    measures: tuple[Measure, ...]
    score_family: Callable[[Members, ScoringOptions], Scored] | None = None
    follow_up: Callable[[Members, ScoringOptions], Sequence[Segment]] | None = None
    panels: tuple[Panel, ...] = ()
    plannable: bool = False
    cohort: Callable[[str, Sequence[CohortMember], int, int], Sequence[CohortScore]] | None = field(
        default=None, repr=False
    )
    cohort_help: str = ""
    overlap: Callable[[Sequence[tuple[str, Path]]], Sequence[Any]] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        names = [measure.name for measure in self.measures]
        if not names or len(set(names)) < len(names):
            raise RequestError(f"metric {self.name}: `measures` name each number once and at least one, got {names}")

    @property
    def no_bias(self) -> float | None:
        """The value of the headline number that says "no bias"; None where no value does."""
        return self.measures[0].no_bias

    @property
    def by_name(self) -> Mapping[str, Measure]:
        """The measures by their names."""
        return {measure.name: measure for measure in self.measures}
