"""BADF as a metric: phrases that a model's stories tell more often of one identity than of another."""

from __future__ import annotations

from equivox.core.metric import FollowUp, Measure, Metric, Panel
from equivox.core.samples import Samples
from equivox.core.scores import Scored, ScoringOptions
from equivox.core.task import Task
from equivox.metrics.badf.dimensions import exclusivity_questions
from equivox.metrics.badf.scorer import score_setting
from equivox.metrics.badf.tables import overlaps_of_runs


def score(task: Task, samples: Samples, options: ScoringOptions) -> Scored:
    """Return no scores, because a setting is scored as a whole: q is over everything tested."""
    return Scored([])


_ALL_AT_ONCE = (
    "associations are found in all stories of a setting at once, so that no share of their number belongs to one "
    "descriptor"
)


METRIC = Metric(
    name="badf",
    score=score,
    score_family=score_setting,
    follow_up=FollowUp(
        questions=exclusivity_questions,
        merged="unified",
    ),
    measures=(
        Measure(
            name="associations tested",
            title="phrases stick to one group",
            no_bias=None,
            not_compared=_ALL_AT_ONCE,
            published=lambda score: -score.unbiased,
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
            unit="associations",
        ),
    ),
    overlap=overlaps_of_runs,
    glossary=(
        (
            "associations",
            "Phrases that the stories tell more often of one identity than of another, by the published rule. They are "
            "counted in all stories of a setting at once; the number expected by chance is given too.",
        ),
    ),
)
