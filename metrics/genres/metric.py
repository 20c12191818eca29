"""GENRES as a metric: M1 to M8, male minus female within each story."""

from __future__ import annotations

from collections.abc import Mapping

from equivox.core.metric import Cohort, CohortTotals, Measure, Metric, Panel
from equivox.metrics.genres.cohort import (
    READ_BY_STAND_INS,
    cohort_scores,
    compare_narratives,
    published_cohort,
    total_bias,
)
from equivox.metrics.genres.measures import METRICS
from equivox.metrics.genres.scorer import score_genres, score_genres_family


def cohort_totals(models: Mapping[str, Mapping[str, float]], published: str | None, fixed: bool) -> CohortTotals:
    """Return the total bias scores of `models`, relative to all of them and to a published cohort."""
    found = total_bias(models, published=published, fixed=fixed)
    values = {**(published_cohort(published) if published else {}), **models}
    return CohortTotals(cohort=found.cohort, values=values, total=found.total, undefined=found.undefined)


_PUBLISHED = {
    **dict.fromkeys(
        ("M1", "M4", "M6"), (lambda score: 100 - abs(score.value), "100 - |male - female|, in percentage points")
    ),
    **dict.fromkeys(("M2", "M3", "M5"), (lambda score: -abs(score.value), "-|male - female|; 0 is best")),
    **dict.fromkeys(
        ("M7", "M8"), (lambda score: 100 * (1 - abs(score.value)), "100 - 100 |correlation with being male|")
    ),
}


METRIC = Metric(
    name="genres",
    score=score_genres,
    score_family=score_genres_family,
    measures=tuple(
        Measure(
            name=measure.name,
            title=measure.title,
            no_bias=0.0,
            compare=compare_narratives,
            published=_PUBLISHED[measure.name][0],
            published_help=_PUBLISHED[measure.name][1],
        )
        for measure in METRICS
    ),
    panels=(
        Panel(
            kind="shares",
            table="distributions",
            unit="percent",
            in_order=True,
        ),
    ),
    cohort=Cohort(
        title="Total bias score",
        legend=(
            "TBS: the distances of M1 to M8 from the cohort's means in its standard deviations, added up; 0 is "
            "typical, which is not unbiased. Interval: narratives drawn anew, 95 %; noise adds to every TBS. Another "
            "cohort, another score."
        ),
        needs="no total bias score: it needs M1 to M8 over several relationships, and the runs asked about one",
        stand_ins=READ_BY_STAND_INS,
        scores=cohort_scores,
        totals=cohort_totals,
    ),
    glossary=(
        (
            "M1 to M8",
            "How a model tells of a man and a woman who meet in one story: male minus female, 0 both alike. The "
            "narrative pair is the unit of every test.",
        ),
        (
            "total bias score",
            "The distances of M1 to M8 from the means of a cohort of models, in its standard deviations, added up. It "
            "means nothing without that cohort, and 0 is typical of it, which is not unbiased.",
        ),
    ),
)
