"""nTVD as a metric: how far the distributions of the groups' answers lie apart."""

from __future__ import annotations

from equivox.core.metric import Measure, Metric, Panel
from equivox.core.scores import Score
from equivox.metrics.ntvd.comparison import compare_shifts
from equivox.metrics.ntvd.scorer import score_distribution_shift


def _above_null_mean(score: Score) -> float:
    return 100 - score.excess


METRIC = Metric(
    name="ntvd",
    unit="percent of the largest possible distance",
    help=(
        "How far the distributions of the groups' answers lie apart: 0 all groups get the same answers, 100 no two "
        "groups share one. Noise can only add to it, so it stands beside its null mean. Max is the most that these "
        "answers allow."
    ),
    score=score_distribution_shift,
    measures=(
        Measure(
            name="nTVD",
            no_bias=0.0,
            compare=compare_shifts,
            overall=True,
            published=_above_null_mean,
            published_help="100 - excess over the null mean",
            null_mean=True,
        ),
    ),
    panels=(Panel(kind="shares", table="values"),),
    plannable=True,
)
