"""Which scores are submitted, and as what: one scalar per task where higher is better, as leaderboards want them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from equivox.core.scores import NAN, Score
from equivox.core.task import Task


def _above_floor(score: Score) -> float:
    return 100 - score.excess


def _percent(score: Score) -> float:
    return 100 - abs(score.value)


def _correlation(score: Score) -> float:
    return 100 * (1 - abs(score.value))


def _negated(score: Score) -> float:
    return -abs(score.value)


def _over_chance(score: Score) -> float:
    return -score.excess


SUBMITTED: Mapping[str, tuple[Callable[[Score], float], str]] = {
    "nTVD": (_above_floor, "100 - excess over the floor that chance gives"),
    "parity deviation": (_percent, "100 - deviation from parity"),
    **dict.fromkeys(("M1", "M4", "M6"), (_percent, "100 - |male - female|, in percentage points")),
    **dict.fromkeys(("M2", "M3", "M5"), (_negated, "-|male - female|; 0 is best")),
    **dict.fromkeys(("M7", "M8"), (_correlation, "100 - 100 |correlation with being male|")),
    "associations tested": (_over_chance, "-(associations - those that chance gives); 0 is as by chance"),
}
"""Metric → the scalar made of its score, and how in words. Other scores describe; they are not submitted.

An excess may be negative where a model differs less than chance makes it: then the scalar is above 100 (or 0).
"""


def scalar(score: Score) -> float:
    """Return what is submitted of a score; NaN where it is undefined, or its floor where the scalar needs that."""
    return NAN if not score.defined else SUBMITTED[score.name][0](score) + 0.0  # no -0.0


def submitted_metrics(task: Task) -> dict[str, str]:
    """Return metric → the id under which a task's scalar of it is submitted; one alone has the task's own name.

    >>> from equivox.tasks.registry import builtin_tasks
    >>> submitted_metrics(builtin_tasks()["vibe_gender:story"])
    {'nTVD': 'vibe_gender-story'}
    """
    from equivox.integrations.hub.dataset_folder import config_name

    name = config_name(task.name)
    metrics = _metrics(task)
    return {metric: name if len(metrics) == 1 else f"{name}-{metric}" for metric in metrics}


def _metrics(task: Task) -> tuple[str, ...]:
    from equivox.metrics.badf.scorer import scored_together
    from equivox.metrics.genres.cohort import METRICS
    from equivox.metrics.ntvd.scorer import score_distribution_shift
    from equivox.metrics.spoken_stereoset.scorer import score_choices

    if task.scorer is score_distribution_shift:
        return ("nTVD",)
    if task.scorer is score_choices:
        return ("parity deviation",)
    return ("associations tested",) if task.scorer is scored_together else METRICS
