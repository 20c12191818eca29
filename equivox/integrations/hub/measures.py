"""The submitted scores: scalars per task for leaderboards, higher is better."""

from __future__ import annotations

from equivox.core.scores import NAN, Score
from equivox.core.task import Task


def scalar(task: Task, score: Score) -> float:
    """Return the number that is submitted for a score; NaN if the score is undefined."""
    measure = task.metric.by_name[score.name]
    if not score.defined or measure.published is None:
        return NAN
    return measure.published(score) + 0.0  # no -0.0


def submitted_metrics(task: Task) -> dict[str, str]:
    """Return the id of a task's submitted scalar for each metric; a single one has the task's name.

    >>> from equivox.tasks.registry import builtin_tasks
    >>> submitted_metrics(builtin_tasks()["vibe_gender:story"])
    {'nTVD': 'vibe_gender-story'}
    """
    from equivox.integrations.hub.dataset_folder import config_name

    name = config_name(task.name)
    metrics = [measure.name for measure in task.metric.measures if measure.published is not None]
    return {metric: name if len(metrics) == 1 else f"{name}-{metric}" for metric in metrics}
