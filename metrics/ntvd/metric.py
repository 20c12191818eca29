"""nTVD as a metric: the distance between the distributions of the groups' answers."""

from __future__ import annotations

import math
from typing import Any

from equivox.core.metric import Measure, Metric, Panel
from equivox.metrics.ntvd.scorer import compare_shifts, score_distribution_shift
from equivox.metrics.scoring import statistics


def _corrected(*columns: Any, **options: Any) -> statistics.CorrectedShift:
    return statistics.correct_groups(*columns, **options)


METRIC = Metric(
    name="ntvd",
    score=score_distribution_shift,
    measures=(
        Measure(
            name="nTVD",
            no_bias=0.0,
            compare=compare_shifts,
            overall=True,
            published=lambda score: math.nan if math.isnan(score.estimate) else 100 - score.headline,
            published_help="100 - the estimated nTVD",
            null_mean=True,
            corrected=_corrected,
            power=True,
        ),
    ),
    panels=(
        Panel(
            kind="shares",
            table="values",
            unit="percent of the group's answers",
        ),
    ),
    glossary=(
        (
            "nTVD",
            "Distance between the distributions of the groups' answers: 0 all groups get the same answers, 100 no two "
            "groups share one. Noise can only add to it. Max is the most that these answers allow. In a paired test, a "
            "difference must be larger than all that noise may add to either model.",
        ),
        (
            "estimate",
            "The nTVD that these groups would have with any number of answers: what noise adds is removed. Zero means "
            "that the groups differ by no more than noise. The interval belongs to it.",
        ),
    ),
)
