"""Two dimensions of the same tasks over models: do the answers differ more by gender than by accent?

The model is the unit: its score in one dimension and its score in the other are exchanged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean

from equivox.compare.runs import Comparison
from equivox.core.hashing import seed_of
from equivox.core.lazy import np
from equivox.core.scores import Score
from equivox.statistics import group_means

_LEAST = 2
"""The smallest number of models that are compared."""


@dataclass(frozen=True, kw_only=True)
class DimensionContrast:
    """The difference between the scores of a task in two dimensions, over models; `task` is empty for the tasks' mean.

    `difference` is between the scores as published, `estimate` between the estimates, because noise adds to a distance,
    and by another amount in another corpus. `ci_low`, `ci_high` and `p` belong to the estimate; 0 means no difference.
    """

    first: str
    second: str
    condition: str
    metric: str
    task: str
    n_models: int
    difference: float
    estimate: float
    ci_low: float
    ci_high: float
    p: float
    undefined: str | None = None


def dimension_contrasts(comparison: Comparison) -> list[DimensionContrast]:
    """Return the contrasts of every two dimensions in which the same tasks were asked of two models or more."""
    models = [run.model for run in comparison.runs]
    found = []
    for key, tasks in _by_task(comparison).items():
        dimensions = list(dict.fromkeys(dimension for own in tasks.values() for dimension in own))
        for first, second in combinations(dimensions, 2):
            shared = {name: (own[first], own[second]) for name, own in tasks.items() if first in own and second in own}
            together = {"": list(shared.values())} if len(shared) > 1 else {}
            for task, sides in ({name: [both] for name, both in shared.items()} | together).items():
                pairs = [
                    (model, [one[model] for one, _ in sides], [other[model] for _, other in sides])
                    for model in models
                    if all(model in one and model in other for one, other in sides)
                ]
                if len(pairs) >= _LEAST:
                    found.append(_contrast((first, second, *key[1:], task), pairs))
    return found


def _by_task(
    comparison: Comparison,
) -> dict[tuple[str, str, str], dict[str, dict[str, dict[str, Score]]]]:
    """Return the whole scores by kind of family, condition and metric, then by task, dimension and model."""
    found: dict[tuple[str, str, str], dict[str, dict[str, dict[str, Score]]]] = {}
    for run in comparison.runs:
        for score in run.scores:
            measure = run.measure(score)
            family, _, task = score.task.partition("@")[0].partition(":")
            if task and score.is_whole and score.defined and measure is not None and measure.overall:
                kind = family.replace(score.dimension, "*")
                own = found.setdefault((kind, score.condition, score.name), {}).setdefault(task, {})
                own.setdefault(score.dimension, {})[run.model] = score
    return found


def _contrast(
    named: tuple[str, str, str, str, str],
    pairs: Sequence[tuple[str, Sequence[Score], Sequence[Score]]],
) -> DimensionContrast:
    """Return the mean difference over models; each has its scores in the first dimension and in the second."""
    first, second, condition, metric, task = named
    estimates = [fmean(s.estimate_unclipped for s in side) for _, *sides in pairs for side in sides]
    result = group_means(
        estimates,
        ["first", "second"] * len(pairs),
        clusters=[model for model, _, _ in pairs for _ in range(2)],
        n_resamples=10_000,
        distances=False,
        rng=np.random.default_rng(seed_of("dimensions", *named)),
    )
    return DimensionContrast(
        first=first,
        second=second,
        condition=condition,
        metric=metric,
        task=task,
        n_models=len(pairs),
        difference=fmean(fmean(s.value for s in one) - fmean(s.value for s in other) for _, one, other in pairs),
        estimate=result.difference,
        ci_low=result.ci_low,
        ci_high=result.ci_high,
        p=result.p,
        undefined=result.undefined,
    )
