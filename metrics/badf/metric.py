"""BADF as a metric: which phrases a model's stories tell more often of one identity than of another."""

from __future__ import annotations

from equivox.core.metric import Measure, Metric, Panel
from equivox.core.scores import Score
from equivox.metrics.badf.labels import score_badf_labels
from equivox.metrics.badf.overlap import overlaps_of_runs
from equivox.metrics.badf.scorer import exclusivity_questions, score_setting, scored_together


def _over_chance(score: Score) -> float:
    return -score.excess


_ALL_AT_ONCE = (
    "associations are found in all stories of a setting at once, so that no share of their number belongs to one "
    "descriptor"
)


METRIC = Metric(
    name="badf",
    unit="count",
    help=(
        "How many phrases the stories tell more often of one identity than of another, by the published rule, beside "
        "the number that chance gives; q is over everything tested."
    ),
    score=scored_together,
    score_family=score_setting,
    follow_up=exclusivity_questions,
    measures=(
        Measure(
            name="associations tested",
            no_bias=None,
            not_compared=_ALL_AT_ONCE,
            published=_over_chance,
            published_help="-(associations - those that chance gives); 0 is as by chance",
            null_mean=True,
        ),
        Measure(name="associations", no_bias=None, not_compared=_ALL_AT_ONCE),
        Measure(name="associations with q up to .05", no_bias=None, not_compared=_ALL_AT_ONCE),
    ),
    panels=(
        Panel(
            kind="heat",
            table="heat_map",
            title="Associations",
            caption=(
                "associations per kind of place and identity; in brackets those that survive correction for everything "
                "tested"
            ),
            unit="associations",
            top="top",
            top_columns={"identity": "identity", "category": "place", "phrase": "phrase", "score": "score", "q": "q"},
        ),
    ),
    overlap=overlaps_of_runs,
    overlap_help="associations",
    check_stages=score_badf_labels,
    glossary=(
        (
            "associations",
            "Phrases that the stories tell more often of one identity than of another, by the published rule. They are "
            "counted in all stories of a setting at once; what chance gives stands beside their number.",
        ),
    ),
)
