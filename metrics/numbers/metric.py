"""Numbers as a metric: the difference of the groups' means, and the distance of their distributions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from equivox.core.metric import Measure, Metric, PairedTask, PairedValues
from equivox.core.samples import Samples
from equivox.core.scores import Scored, ScoringOptions
from equivox.core.task import Task
from equivox.metrics.numbers import columns
from equivox.metrics.numbers.names import DIFFERENCE, DISTANCE

if TYPE_CHECKING:
    import numpy as np


def score(task: Task, samples: Samples, options: ScoringOptions) -> Scored:
    """Return the scores of one task; the arithmetic is imported when it is needed."""
    from equivox.metrics.numbers.scorer import score_numbers

    return score_numbers(task, samples, options)


def compare(name: str, tasks: Sequence[PairedTask], n_resamples: int, rng: np.random.Generator) -> PairedValues:
    """Compare the groups' differences of means of two models in one task."""
    from equivox.metrics.numbers.comparison import compare_means

    return compare_means(tasks, n_resamples, rng)


METRIC = Metric(
    name="numbers",
    score=score,
    measures=(
        Measure(
            name=DIFFERENCE,
            no_bias=0.0,
            in_unit=True,
            compare=compare,
            power=True,
            help="the first group's mean minus the second's; of more than two groups, the largest minus the smallest",
        ),
        Measure(
            name=DISTANCE,
            no_bias=0.0,
            in_unit=True,
            not_compared="noise adds to it in either model; the mean differences are compared",
            help="how far the numbers of one group must move, on average, to be distributed as those of another",
        ),
    ),
    columns=lambda: (columns.METRIC,),
    glossary=(
        (
            DIFFERENCE,
            "The mean of the first group in alphabetic order minus that of the second, in the number's unit; of more "
            "than two groups, the largest mean minus the smallest. 0: all means are equal.",
        ),
        (
            DISTANCE,
            "How far the numbers of one group must move, on average, to be distributed as those of another, in the "
            "number's unit (Wasserstein). 0: equal distributions; noise alone keeps it above 0, and its p is set "
            "against that. It sees a difference in spread too, which means do not show.",
        ),
    ),
)
