"""GENRES as a metric: M1 to M8, male minus female within each story."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from equivox.core.metric import CohortMember, CohortScore, Measure, Members, Metric, PairedTask, PairedValues, Panel
from equivox.core.samples import Row, Samples
from equivox.core.scores import Score, Scored, ScoringOptions
from equivox.core.task import Task

if TYPE_CHECKING:
    import numpy as np


def score(task: Task, samples: Samples, options: ScoringOptions) -> Scored:
    """Return the scores of one relationship; the arithmetic is imported when it is needed."""
    from equivox.metrics.genres.scorer import score_genres

    return score_genres(task, samples, options)


def score_family(members: Members, options: ScoringOptions) -> Scored:
    """Return the scores of all relationships together."""
    from equivox.metrics.genres.scorer import score_genres_family

    return score_genres_family(members, options)


def cohort(family: str, members: Sequence[CohortMember], n_resamples: int, seed: int) -> list[CohortScore]:
    """Return the total bias score of every member of a cohort."""
    from equivox.metrics.genres.relative import cohort_scores

    return cohort_scores(family, members, n_resamples, seed)


def compare_narratives(
    name: str, tasks: Sequence[PairedTask], n_resamples: int, rng: np.random.Generator
) -> PairedValues:
    """Compare a metric of two models, narrative pair by narrative pair."""
    from equivox.metrics.genres.paired import aligned, nep_sums, value_of_sums
    from equivox.metrics.totals import paired_values
    from equivox.statistics import compare_totals

    kept: tuple[list[Row], list[Row]] = ([], [])
    for paired in tasks:
        for a, b in zip(paired.samples_a.rows(), paired.samples_b.rows(), strict=True):
            if "language" in a.segments and "language" in b.segments:
                kept[0].append(a)
                kept[1].append(b)
    sums_a, sums_b = aligned([nep_sums(name, rows) for rows in kept])
    if not len(sums_a):
        return PairedValues(undefined="no narrative that both models told can be counted")
    found = compare_totals(
        sums_a,
        sums_b,
        partial(value_of_sums, name),
        target=tasks[0].score_a.target,
        n_resamples=n_resamples,
        rng=rng,
    )
    return paired_values(found, len(kept[0]), n_resamples)


def _percent(score: Score) -> float:
    return 100 - abs(score.value)


def _correlation(score: Score) -> float:
    return 100 * (1 - abs(score.value))


def _negated(score: Score) -> float:
    return -abs(score.value)


_PUBLISHED = {
    **dict.fromkeys(("M1", "M4", "M6"), (_percent, "100 - |male - female|, in percentage points")),
    **dict.fromkeys(("M2", "M3", "M5"), (_negated, "-|male - female|; 0 is best")),
    **dict.fromkeys(("M7", "M8"), (_correlation, "100 - 100 |correlation with being male|")),
}

METRIC = Metric(
    name="genres",
    unit="percent of warmth and competence words",
    help=(
        "How a model tells of a man and a woman who meet in one story: M1 to M8, male minus female, 0 both alike; the "
        "narrative pair is the unit of every test."
    ),
    score=score,
    score_family=score_family,
    measures=tuple(
        Measure(
            name=name,
            no_bias=0.0,
            compare=compare_narratives,
            published=_PUBLISHED[name][0],
            published_help=_PUBLISHED[name][1],
        )
        for name in ("M1", "M2", "M3", "M4", "M5", "M6", "M7", "M8")
    ),
    panels=(Panel(kind="metrics", table="metrics"),),
    cohort=cohort,
    cohort_help="no total bias score: it needs M1 to M8 over several relationships, and the runs asked about one",
)
