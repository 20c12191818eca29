"""Total bias score: the distance of a model from the mean of a cohort of models, over several metrics (GENRES, TBS)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from equivox.core.errors import UsageError
from equivox.statistics import inputs


@dataclass(frozen=True, kw_only=True)
class TotalBias:
    """Total bias scores relative to a named cohort.

    Attributes
    ----------
    cohort, members
        The name of the cohort and its models. The score means nothing without them.
    metrics
        The metrics in the sum.
    total
        The score of each model, in standard deviations; NaN if `undefined` gives a reason.
    parts
        (M − mean)/sd of each model and metric, with its sign.
    undefined
        The reason for each model without a total.
    """

    cohort: str
    members: tuple[str, ...]
    metrics: tuple[str, ...]
    total: dict[str, float]
    parts: dict[str, dict[str, float]]
    undefined: dict[str, str]


def total_bias_score(
    scores: Mapping[str, Mapping[str, float]], *, cohort: Mapping[str, Mapping[str, float]], cohort_name: str
) -> TotalBias:
    """Return the sum of each model's absolute z-scores in a cohort: Σ_k |(M_k − mean_k)/sd_k|.

    Parameters
    ----------
    scores
        Model → metric → signed value, for the models to score. All metrics of the cohort are used.
    cohort
        Model → metric → signed value, for the models that define mean and sd (population standard deviation, ddof = 0).
        It may contain the scored models.
    cohort_name
        The name to show with every score.

    Returns
    -------
    TotalBias
        Zero means that a model lies at the cohort's mean in every metric: it is typical, which is not the same as
        unbiased. NaN with a reason when the cohort has fewer than two models or does not vary in a metric, or when the
        model or a cohort member has no value (None, NaN) for a metric.

    Raises
    ------
    UsageError
        No scores, or a cohort without metrics.

    Notes
    -----
    GENRES, TBS. With ddof = 0 the published scores are reproduced to ±0.005.

    Examples
    --------
    >>> models = {"a": {"M1": 1.0}, "b": {"M1": 3.0}}
    >>> total_bias_score(models, cohort=models, cohort_name="two models").total
    {'a': 1.0, 'b': 1.0}
    """
    of_model = {model: inputs.named_numbers(values, "scores") for model, values in scores.items()}
    of_member = {model: inputs.named_numbers(values, "cohort") for model, values in cohort.items()}
    if not of_model:
        raise UsageError("`scores` is empty: give at least one model")
    metrics = tuple(dict.fromkeys(name for values in of_member.values() for name in values))
    if of_member and not metrics:
        raise UsageError("`cohort` has no metrics: give each model its values")
    reason = _unusable(of_member, metrics)
    table = np.array([[values.get(name, math.nan) for name in metrics] for values in of_member.values()], dtype=float)
    parts: dict[str, dict[str, float]] = {}
    total: dict[str, float] = {}
    undefined: dict[str, str] = {}
    for model, values in of_model.items():
        if reason is not None:
            parts[model], total[model], undefined[model] = {}, math.nan, reason
            continue
        own = np.array([values.get(name, math.nan) for name in metrics], dtype=float)
        z = (own - table.mean(axis=0)) / table.std(axis=0)
        parts[model] = dict(zip(metrics, z.tolist(), strict=True))
        total[model] = float(np.abs(z).sum())
        missing = [name for name, value in parts[model].items() if math.isnan(value)]
        if missing:
            undefined[model] = f"no value for {', '.join(missing)}"
    return TotalBias(
        cohort=cohort_name, members=tuple(of_member), metrics=metrics, total=total, parts=parts, undefined=undefined
    )


def _unusable(cohort: Mapping[str, Mapping[str, float]], metrics: tuple[str, ...]) -> str | None:
    if len(cohort) < 2:
        return f"the cohort has {len(cohort)} model: a score relative to others needs two"
    for name in metrics:
        values = [member.get(name, math.nan) for member in cohort.values()]
        if any(math.isnan(value) for value in values):
            lacking = next(model for model, member in cohort.items() if math.isnan(member.get(name, math.nan)))
            return f"cohort member {lacking} has no value for {name}"
        if math.isclose(max(values), min(values), rel_tol=1e-12):  # the rest is what rounding leaves
            return f"the cohort does not vary in {name}"
    return None
