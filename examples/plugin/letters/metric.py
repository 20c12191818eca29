"""The metric: how many virtues a letter names, female minus male, with names as the unit of the test."""

from __future__ import annotations

import numpy as np

from equivox.core.metric import Measure, Metric
from equivox.core.samples import Samples
from equivox.core.scores import NAN, Score, Scored, ScoringOptions
from equivox.core.task import Task

ATTRIBUTE = "virtue"
ZERO_MEANS = "letters for women and men name equally many virtues"


def score_praise(task: Task, samples: Samples, options: ScoringOptions) -> Scored:
    """Return the difference in the mean number of virtues; NaN with the reason where it has none."""
    from equivox.statistics import mean_difference

    parsed = samples.has_status("parsed")
    counts = np.bincount(samples.values(ATTRIBUTE).rows, minlength=len(samples)).astype(float)
    coverage = samples.coverage(parsed)
    named = {
        "task": task.name,
        "condition": task.condition,
        "dimension": task.dimension,
        "attribute": None,
        "role": "outcome",
        "name": "praise",
        "unit": "virtues per letter",
        "zero_means": ZERO_MEANS,
        "coverage": coverage,
    }
    reason = coverage.shortfall(options.min_coverage)
    if reason is None and len(samples.groups.names) != 2:
        reason = f"praise compares two groups, there are {len(samples.groups.names)}"
    if reason is not None:
        return Scored([Score(**named, undefined=reason)])  # type: ignore[arg-type]
    groups = np.array(samples.groups.texts())
    first, second = (parsed & (groups == name) for name in samples.groups.names)
    found = mean_difference(
        counts[first],
        counts[second],
        clusters_a=np.array(samples.clusters.texts())[first],
        clusters_b=np.array(samples.clusters.texts())[second],
        n_resamples=options.n_resamples,
        rng=np.random.default_rng(options.seed),
    )
    value = found.difference if found.undefined is None else NAN
    return Scored(
        [
            Score(
                **named,  # type: ignore[arg-type]
                value=value,
                ci_low=found.ci_low,
                ci_high=found.ci_high,
                p_cluster=found.p_cluster,
                undefined=found.undefined,
            )
        ]
    )


def _higher_is_better(score: Score) -> float:
    return -abs(score.value)


METRIC = Metric(
    name="praise",
    unit="virtues per letter",
    help="How many more virtues a letter names for one group than for the other; 0 says equally many.",
    score=score_praise,
    measures=(
        Measure(
            name="praise",
            no_bias=0.0,
            not_compared="this example has no paired test",
            published=_higher_is_better,
            published_help="-|difference|; 0 is best",
        ),
    ),
)
