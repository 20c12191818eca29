"""Numbers as a metric: the difference of the groups' means, and the distance of their distributions."""

from __future__ import annotations

from equivox.core.metric import Measure, Metric
from equivox.metrics.numbers.scorer import DIFFERENCE, DISTANCE, compare_means, score_numbers

METRIC = Metric(
    name="numbers",
    score=score_numbers,
    measures=(
        Measure(
            name=DIFFERENCE,
            no_bias=0.0,
            in_unit=True,
            compare=compare_means,
            power=True,
        ),
        Measure(
            name=DISTANCE,
            no_bias=0.0,
            in_unit=True,
            not_compared="noise adds to it in either model; the mean differences are compared",
        ),
    ),
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
