"""Two dimensions of the same tasks over models: do the answers differ more by gender than by accent?

The model is the unit: its score in one dimension and its score in the other are exchanged.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean

from equivox.compare.runs import Comparison
from equivox.core.hashing import seed_of
from equivox.core.lazy import np
from equivox.core.notes import Note
from equivox.core.scores import Score
from equivox.statistics import MeanDifference, compare_means

_LEAST = 2
"""The smallest number of models that are compared."""
_TOO_HIGH = 0.3
_SMALL_STEPS = (
    (0.0, 0.135, 0.159, 0.222, 0.288, 0.401, 0.765, 1.151, 2.217),
    (0.15, 0.2, 0.3, 0.55, 0.8, 1.05, 1.55, 2.05, 3.05),
)
"""How much too high an estimate may be on average, and the truth that it may stand for at most (beyond, as the last).

Both are in lengths of noise (`null_mean`), and the worst of 90 ways to spread a difference over 2 to 60 values of
two, three or six groups. An estimate is too low where all values differ by small steps; models do not average that out.
"""


@dataclass(frozen=True, kw_only=True)
class DimensionContrast:
    """The difference between the scores of a task in two dimensions, over models; `task` is empty for the tasks' mean.

    `difference` is between the scores as published, `estimate` between the estimates, because noise adds to a distance,
    and by another amount in another corpus. 0 means no difference. `ci_low`, `ci_high` and `p` allow for what an
    estimate may be too high in one dimension and too low in the other, however each is spread over the values.
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
    undefined: Note | None = None


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
                own = found.setdefault((kind, score.condition, score.metric), {}).setdefault(task, {})
                own.setdefault(score.dimension, {})[run.model] = score
    return found


def _contrast(
    named: tuple[str, str, str, str, str],
    pairs: Sequence[tuple[str, Sequence[Score], Sequence[Score]]],
) -> DimensionContrast:
    """Return the mean difference over models; each has its scores in the first dimension and in the second."""
    first, second, condition, metric, task = named

    def tested(first_by: float, second_by: float) -> MeanDifference:
        """Return the test of the estimates, those of each dimension moved by so much."""
        return compare_means(
            [one + by for own in estimates for one, by in zip(own, (first_by, second_by), strict=True)],
            ["first", "second"] * len(pairs),
            clusters=[model for model, _, _ in pairs for _ in range(2)],
            n_resamples=10_000,
            rng=np.random.default_rng(seed_of("dimensions", *named)),
        )

    estimates = [[fmean(s.unbiased for s in side) for side in sides] for _, *sides in pairs]
    of_first, of_second = (
        truths([s for side in sides for s in side]) for sides in zip(*(both for _, *both in pairs), strict=True)
    )
    means = [fmean(own) for own in zip(*estimates, strict=True)]
    least = tested(of_first[0] - means[0], of_second[1] - means[1])
    most = tested(of_first[1] - means[0], of_second[0] - means[1])
    nearest = least if least.difference > 0 else most if most.difference < 0 else None
    return DimensionContrast(
        first=first,
        second=second,
        condition=condition,
        metric=metric,
        task=task,
        n_models=len(pairs),
        difference=fmean(fmean(s.value for s in one) - fmean(s.value for s in other) for _, one, other in pairs),
        estimate=means[0] - means[1],
        ci_low=least.low,
        ci_high=most.high,
        p=(least.p if math.isnan(least.p) else 1.0) if nearest is None else nearest.p,
        undefined=least.undefined,
    )


def truths(scores: Sequence[Score]) -> tuple[float, float]:
    """Return the least and the largest mean that the estimates of scores may stand for, were each the mean of many.

    How a difference is spread over the values is not known. Both are the mean itself where no noise adds to a score.
    """
    estimate = fmean(s.unbiased for s in scores)
    noise = fmean(0.0 if math.isnan(s.null_mean) else s.null_mean for s in scores)
    if noise == 0.0:
        return estimate, estimate
    seen, true = _SMALL_STEPS
    beyond = max(0.0, estimate / noise - seen[-1])
    most = noise * (float(np.interp(estimate / noise, seen, true)) + beyond)
    return max(0.0, estimate - _TOO_HIGH * noise), most
