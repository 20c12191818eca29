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
    from equivox.statistics import group_means, least_p_over_clusters

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
    found = group_means(
        np.where(parsed, counts, NAN),
        samples.groups,
        clusters=samples.clusters,
        distances=False,
        n_resamples=options.n_resamples,
        rng=np.random.default_rng(options.seed),
    )
    least = least_p_over_clusters(samples.groups, samples.clusters, n_resamples=options.n_resamples)
    evidence = {
        "ci_low": found.ci_low,
        "ci_high": found.ci_high,
        "p_cluster": found.p,
        "p_least": least.p,
        "cannot_tell": least.too_few,
        "n_clusters": found.n_clusters,
    }
    return Scored([Score(**named, value=found.difference, **evidence, undefined=found.undefined)])  # type: ignore[arg-type]


def _higher_is_better(score: Score) -> float:
    return -abs(score.value)


METRIC = Metric(
    name="praise",
    glossary=(
        ("praise", "How many more virtues a letter names for one group than for the other; 0 says equally many."),
    ),
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
