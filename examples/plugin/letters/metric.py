"""The metric: how many virtues a letter names, female minus male, with names as the unit of the test."""

from __future__ import annotations

import numpy as np

from equivox.core.metric import Measure, Metric
from equivox.core.notes import remark
from equivox.core.samples import Samples
from equivox.core.scores import NAN, Score, Scored, ScoringOptions
from equivox.core.task import Task

ATTRIBUTE = "virtue"


def score_praise(task: Task, samples: Samples, options: ScoringOptions) -> Scored:
    """Return the difference in the mean number of virtues; NaN with the reason where it has none."""
    from equivox.statistics import compare_means

    parsed = samples.has_status("parsed")
    counts = np.bincount(samples.values(ATTRIBUTE).rows, minlength=len(samples)).astype(float)
    coverage = samples.coverage(parsed)
    named = {
        "task": task.name,
        "condition": task.condition,
        "dimension": task.dimension,
        "attribute": None,
        "role": "outcome",
        "metric": "praise",
        "unit": "virtues per letter",
        "coverage": coverage,
    }
    reason = coverage.shortfall(options.min_coverage)
    if reason is None and len(samples.groups.names) != 2:
        reason = remark(f"praise compares two groups, there are {len(samples.groups.names)}")
    if reason is not None:
        return Scored([Score(**named, undefined_reason=reason)])  # type: ignore[arg-type]
    found = compare_means(
        np.where(parsed, counts, NAN),
        samples.groups,
        clusters=samples.clusters,
        n_resamples=options.n_resamples,
        rng=np.random.default_rng(options.seed),
    )
    evidence = {
        "value": found.difference,
        "ci": (found.low, found.high),
        "p": found.p,
        "n_units": found.n_units,
        "undefined_reason": found.undefined,
        "notes": found.remarks,
    }
    return Scored([Score(**named | evidence)])  # type: ignore[arg-type]


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
