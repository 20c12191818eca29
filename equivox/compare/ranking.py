"""Ranks of the compared models: per task and metric, and over all tasks of a family, with intervals of ranks.

Total scores of compared runs relative to a published cohort.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from equivox.annotate import evaluation_of
from equivox.compare.conditions import ConditionTest, condition_tests
from equivox.compare.pairs import (
    OVERALL,
    OpenedRun,
    PairedTest,
    Subject,
    aligned,
    averaged_scores,
    open_runs,
    paired_tests,
    refusal,
    tasks_of,
)
from equivox.compare.runs import ComparedRun, Comparison
from equivox.core.errors import UsageError
from equivox.core.lazy import on_one_core
from equivox.core.metric import Cohort, CohortMember, CohortScore, CohortTotals
from equivox.core.notes import Note, NoteCode, note_about, remark
from equivox.core.plugins import told_in_one_line
from equivox.core.scores import LEVEL, NAN, Score
from equivox.run.scoring import read_scores
from equivox.run.store import evaluations_of
from equivox.statistics import rank_models


@dataclass(frozen=True)
class Judged:
    """The results of a comparison: tests between runs and conditions, ranks, cohort scores."""

    tests: Sequence[PairedTest]
    ranks: Sequence[Rank]
    cohorts: Sequence[CohortScore]
    conditions: Sequence[ConditionTest] = ()


@on_one_core()
def judge(comparison: Comparison, *, n_resamples: int = 10_000) -> Judged:
    """Return tests, ranks and cohort-relative scores of the compared runs; of one run, only tests of its conditions."""
    opened = open_runs(comparison)
    conditions = condition_tests(opened, n_resamples=n_resamples)
    if len(comparison.runs) < 2:
        return Judged((), (), (), conditions)
    tests = paired_tests(opened, n_resamples=n_resamples)
    cohorts = cohort_scores(opened, n_resamples=n_resamples)
    return Judged(tests, rank_all(comparison, tests), cohorts, conditions)


def cohort_scores(opened: Sequence[OpenedRun], *, n_resamples: int = 10_000) -> list[CohortScore]:
    """Return the cohort-relative scores of every family in at least two runs whose metric defines them."""
    found: list[CohortScore] = []
    metrics = {family: metric for one in opened for family, metric in one.run.metrics.items()}
    for family, metric in metrics.items():
        if metric.cohort is None:
            continue
        own = [one for one in opened if any(s.task == family and s.is_whole for s in one.run.scores)]
        if len(own) < 2:
            continue
        tasks = tasks_of(own[0], family)
        members = [
            CohortMember(
                model=one.run.model,
                scores=[s for s in one.run.scores if s.task == family and s.is_whole],
                samples=[(one.asked[t].task, one.asked[t].samples) for t in tasks if t in one.asked],
                unlike=None if one is own[0] else _unlike(own[0], one, tasks),
            )
            for one in own
        ]
        with told_in_one_line(f"the cohort of the metric {metric.name}"):
            found += metric.cohort.scores(family, members, n_resamples, 0)
    return found


def _unlike(first: OpenedRun, other: OpenedRun, tasks: Sequence[str]) -> str | None:
    """Return why the samples of two runs cannot be compared one by one; None if they can."""
    if reason := refusal(first, other, tasks):
        return reason
    both = (aligned(first.asked[task].samples, other.asked[task].samples) for task in tasks)
    return next((reason for reason in both if isinstance(reason, str)), None)


def missing_cohorts(comparison: Comparison) -> list[str]:
    """Return why families have no cohort-relative score although their metric defines one; empty if all have."""
    found = []
    for run in comparison.runs:
        for family, metric in run.metrics.items():
            whole = any(score.task == family for score in run.scores)
            if metric.cohort is not None and not whole:
                found.append(metric.cohort.needs)
    return list(dict.fromkeys(found))


@dataclass(frozen=True, kw_only=True)
class Rank(Subject):
    """A model's rank in one task and metric; `rank` is 0 if `undefined` gives a reason.

    Attributes
    ----------
    distance
        The model's estimated distance from "no bias" in the metric's unit; rank 1 is the nearest.
    rank, low, high
        The measured rank, and the rank interval: the ranks that the tests of all pairs allow (95 % jointly).
    too_few
        The reason why no test could have distinguished any two models, whatever their answers; None if one could.
    n_ranked
        The number of models with a rank.
    uneven
        Which group lost more answers than another; None if no two groups differ by much. A rank is of those left.
    """

    model: str
    distance: float = NAN
    rank: int = 0
    low: int = 0
    high: int = 0
    too_few: str | None = None
    n_ranked: int = 0
    undefined: Note | str | None = None
    uneven: Note | None = None


def rank_all(comparison: Comparison, tests: Sequence[PairedTest]) -> list[Rank]:
    """Return every model's rank in every task and metric that has a value for "no bias" and a paired test.

    A model with an undefined score has no rank, and the reason is kept; the ranks of the others do not change. One
    whose score may leave a difference out may have any rank, there and in the mean of its tasks.
    """
    columns: dict[tuple[str, str], dict[str, Rank]] = {}
    every = [(run, score) for run in comparison.runs for score in run.scores]
    hidden = {
        (task, score.metric, run.model)
        for run, score in every
        if score.is_whole and score.omitted
        for task in (score.task, f"{score.family}: {OVERALL}")
    }
    tests = [t for t in tests if not hidden & {(t.task, t.metric, model) for model in (t.model_a, t.model_b)}]
    for run, score in every:
        if is_ranked(run, score):
            known = {
                "distance": score.distance,
                "undefined": score.undefined_reason,
                "uneven": score.coverage.uneven,
            }
            own = Rank.of(score, model=run.model, **known)
            columns.setdefault((score.task, score.metric), {})[run.model] = own
    for run in comparison.runs:
        for (family, _, name), scores in averaged_scores(run).items():
            if len(scores) > 1:
                own = _overall(run.model, family, scores)
                columns.setdefault((f"{own.dimension} {own.task}", name), {})[run.model] = own
    return [rank for column in columns.values() for rank in _ranked(column, tests)]


def is_ranked(run: ComparedRun, score: Score) -> bool:
    """Return whether models are ranked by a score: of a whole task, with a value for "no bias" and a paired test."""
    measure = run.measure(score)
    tested = measure is None or measure.compare is not None
    return score.is_whole and score.role == "outcome" and not math.isnan(score.null_value) and tested


def _overall(model: str, family: str, scores: Mapping[str, Score]) -> Rank:
    missing = [score for score in scores.values() if not score.defined]
    first = missing[0] if missing else next(iter(scores.values()))
    uneven = next((found for score in scores.values() if (found := score.coverage.uneven)), None)
    own = Rank.of(first, task=f"{family}: {OVERALL}", model=model, uneven=uneven)
    if missing:
        tasks = "task has" if len(missing) == 1 else "tasks have"
        about = f"{len(missing)} of {len(scores)} {tasks} no score: {first.task}"
        return replace(own, undefined=note_about(about, first.undefined_reason or remark("")))
    # Estimates below zero are noise as much as those above, so the mean is clipped and not its parts.
    mean = math.fsum(score.unbiased for score in scores.values()) / len(scores)
    return replace(own, distance=max(0.0, mean))


def _ranked(column: Mapping[str, Rank], tests: Sequence[PairedTest]) -> Iterator[Rank]:
    first = next(iter(column.values()))
    distances = {model: own.distance for model, own in column.items() if math.isfinite(own.distance)}
    between = [
        test
        for test in tests
        if (test.task, test.metric, test.dimension) == (first.task, first.metric, first.dimension)
        and test.undefined is None
        and {test.model_a, test.model_b} <= set(distances)
    ]
    differences = {(test.model_a, test.model_b): (test.further, test.p) for test in between}
    ranks = rank_models(distances, differences, level=LEVEL) if len(distances) > 1 else {}
    too_few = _too_few(between)
    for model, own in column.items():
        if model in ranks:
            yield replace(own, **vars(ranks[model]), n_ranked=len(ranks), too_few=too_few)
        else:
            yield replace(own, undefined=own.undefined or "no other model has a score to be ranked with")


def _too_few(tests: Sequence[PairedTest]) -> str | None:
    """Return why no test can reach Holm's first step; None if one can, or nothing was tested."""
    if not tests or any(test.p_least <= LEVEL / len(tests) for test in tests):
        return None
    best = min(tests, key=lambda test: test.p_least)
    pairs = "1 pair" if len(tests) == 1 else f"{len(tests)} pairs"
    return (
        f"{best.n_clusters} clusters and the resamples drawn give no p below {best.p_least:.2g}, and of {pairs} one "
        f"must have {LEVEL / len(tests):.2g} or less"
    )


def judged_records(judged: Judged) -> dict[str, list[dict[str, Any]]]:
    """Return tests, ranks and cohort-relative scores as tables of plain values, by file name."""
    ranks = [
        {**vars(rank), "rank": rank.rank or None, "low": rank.low or None, "high": rank.high or None}
        for rank in judged.ranks
    ]
    cohorts = [
        {**{name: value for name, value in vars(score).items() if name not in {"parts", "members"}}, **score.parts}
        for score in judged.cohorts
    ]
    conditions = [
        {"model": model, **_test_record(test, "condition_a", "condition_b")} for model, test in judged.conditions
    ]
    tests = [_test_record(test, "model_a", "model_b") for test in judged.tests]
    return {"paired_tests": tests, "ranks": ranks, "cohort": cohorts, "conditions": conditions}


def _test_record(test: PairedTest, a: str, b: str) -> dict[str, Any]:
    """Return a test as plain values; `a` and `b` name the columns that say what its two sides are."""
    values = {name: value for name, value in vars(test).items() if name not in {"model_a", "model_b"}}
    return {a: test.model_a, b: test.model_b, **values, "parts": " ".join(test.parts)}


@dataclass(frozen=True, kw_only=True)
class PublishedTotals:
    """The total scores of one family's runs and of a published cohort; `by_stand_ins` names the models they annotated.

    `measures` are the numbers that each total is made of.
    """

    family: str
    cohort: Cohort
    totals: CohortTotals
    models: tuple[str, ...]
    measures: tuple[str, ...]
    by_stand_ins: tuple[str, ...]


def published_totals(runs: Sequence[ComparedRun], published: str, *, fixed: bool) -> list[PublishedTotals]:
    """Return the totals of every family that has them, relative to the runs and the published cohort together.

    With `fixed` the published models alone are the cohort. The numbers of several evaluations by a run's annotator are
    averaged. UsageError for an unknown cohort, and if no run has such a family.
    """
    found = []
    for family in dict.fromkeys(family for run in runs for family in run.metrics):
        metric = next(run.metrics[family] for run in runs if family in run.metrics)
        values = {run.model: own for run in runs if (own := _signed(run, family))}
        if metric.cohort is None or not values:
            continue
        with told_in_one_line(f"the cohort of the metric {metric.name}"):
            totals = metric.cohort.totals(values, published, fixed)
        found.append(
            PublishedTotals(
                family=family,
                cohort=metric.cohort,
                totals=totals,
                models=tuple(values),
                measures=tuple(measure.name for measure in metric.measures),
                by_stand_ins=tuple(
                    run.model
                    for run in runs
                    if any(s.task == family and note.code == NoteCode.STAND_INS for s in run.scores for note in s.notes)
                ),
            )
        )
    if not found:
        raise UsageError(f"`with` {published}: no run has scores for all tasks of the family; run the whole family")
    return found


def _signed(run: ComparedRun, family: str) -> dict[str, float]:
    """Return a run's signed numbers over all tasks of a family; empty if it has none."""
    metric = run.metrics.get(family)
    given: dict[str, list[float]] = {}
    for name in evaluations_of(run.folder, evaluation_of(run.annotator)[0]) if metric and metric.cohort else ():
        for score in read_scores(run.folder, name):
            if score.task == family and score.is_whole and metric is not None and score.metric in metric.by_name:
                given.setdefault(score.metric, []).append(score.value)
    return {name: math.fsum(values) / len(values) for name, values in given.items()}
