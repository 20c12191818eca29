"""Numbers as a metric: the difference of the groups' means."""

from __future__ import annotations

from equivox.core.metric import Measure, Metric
from equivox.metrics.numbers.scorer import DIFFERENCE, compare_means, score_numbers

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
    ),
    glossary=(
        (
            DIFFERENCE,
            "The mean of the first group in alphabetic order minus that of the second, in the number's unit; of more "
            "than two groups, the largest mean minus the smallest. 0: all means are equal.",
        ),
    ),
)
