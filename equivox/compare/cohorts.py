"""Total scores of compared runs relative to a published cohort."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from equivox.annotate import evaluation_of
from equivox.compare.runs import ComparedRun
from equivox.core.errors import RequestError
from equivox.core.metric import Cohort, CohortTotals
from equivox.run.scoring import read_scores
from equivox.run.stored import evaluations_of


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
    averaged. RequestError for an unknown cohort, and if no run has such a family.
    """
    found = []
    for family in dict.fromkeys(family for run in runs for family in run.metrics):
        metric = next(run.metrics[family] for run in runs if family in run.metrics)
        values = {run.model: own for run in runs if (own := _signed(run, family))}
        if metric.cohort is None or not values:
            continue
        begins = metric.cohort.stand_ins
        found.append(
            PublishedTotals(
                family=family,
                cohort=metric.cohort,
                totals=metric.cohort.totals(values, published, fixed=fixed),
                models=tuple(values),
                measures=tuple(measure.name for measure in metric.measures),
                by_stand_ins=tuple(
                    run.model
                    for run in runs
                    if any(s.task == family and note.startswith(begins) for s in run.scores for note in s.notes)
                ),
            )
        )
    if not found:
        raise RequestError(
            f"`with` {published}: no run has scores over all tasks of a family that a cohort takes; run all of "
            "its tasks"
        )
    return found


def _signed(run: ComparedRun, family: str) -> dict[str, float]:
    """Return a run's signed numbers over all tasks of a family; empty if it has none."""
    metric = run.metrics.get(family)
    given: dict[str, list[float]] = {}
    for name in evaluations_of(run.folder, evaluation_of(run.annotator)[0]) if metric and metric.cohort else ():
        for score in read_scores(run.folder, name):
            if score.task == family and score.is_whole and metric is not None and score.name in metric.by_name:
                given.setdefault(score.name, []).append(score.value)
    return {name: math.fsum(values) / len(values) for name, values in given.items()}
