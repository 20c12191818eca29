"""Ranks of models with rank intervals, and letters for models that do not differ.

Total bias score: the distance of a model from the mean of a cohort of models, over several metrics.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from equivox.core.errors import UsageError
from equivox.statistics import inputs
from equivox.statistics.families import adjust_holm


@dataclass(frozen=True, kw_only=True)
class Rank:
    """The rank of one model; 1 is nearest to parity.

    Attributes
    ----------
    rank
        1 + the number of models with a smaller distance. Models with equal distances have the same rank.
    low, high
        The lowest and the highest rank that the tests allow.
    nearer_than, further_than
        The models that differ from this model by a test: those further from parity, and those nearer.
    untested
        The models without a test against this model.
    letters
        Two models that share a letter do not differ by any test, or were not tested.
    """

    rank: int
    low: int
    high: int
    nearer_than: tuple[str, ...]
    further_than: tuple[str, ...]
    untested: tuple[str, ...]
    letters: str


def rank_models(
    distances: Mapping[str, float], differences: Mapping[tuple[str, str], tuple[float, float]], *, level: float = 0.05
) -> dict[str, Rank]:
    """Return the rank of every model, with an interval of ranks from all pairwise tests together.

    Parameters
    ----------
    distances
        The distance of each model from parity, a mapping or a pandas Series. All must be finite: leave out a model
        without a score.
    differences
        For each pair (a, b), in either order: the distance of a from parity less that of b, and its p-value. NaN or
        None if there is no test. A pair counts as different only if its test rejects and agrees with `distances` on
        the side (the two may use different samples).
    level
        The probability that any pair at all is wrongly called different (Holm 1979 over the pairs).

    Returns
    -------
    dict
        A `Rank` for each model. With probability 1 − `level` or more, all intervals contain the ranks in the population
        at once.

    Raises
    ------
    UsageError
        No model, a distance that is not finite, a pair with an unknown model or of a model with itself, or a level
        outside (0, 1).

    Notes
    -----
    low = 1 + the number of models that are significantly nearer, high = n − the number that are significantly further:
    Mogstad, Romano, Shaikh & Wilhelm 2024, doi:10.1093/restud/rdad006, with Holm's step-down in place of their
    bootstrap of the largest difference, because Holm assumes nothing about the dependence of the tests. Letters: Piepho
    2004, doi:10.1198/1061860043515.

    Examples
    --------
    >>> found = rank_models({"x": 1.0, "y": 2.0, "z": 9.0},
    ...                     {("x", "y"): (-1.0, 0.3), ("x", "z"): (-8.0, 0.001), ("z", "y"): (7.0, 0.002)})
    >>> [(model, r.rank, r.low, r.high, r.letters) for model, r in found.items()]
    [('x', 1, 1, 2, 'a'), ('y', 2, 1, 2, 'a'), ('z', 3, 3, 3, 'b')]
    """
    inputs.check_share(level, "level")
    given = inputs.named_numbers(distances, "distances")
    if not given:
        raise UsageError("`distances` is empty: give at least one model")
    for model, distance in given.items():
        if not math.isfinite(distance):
            raise UsageError(f"`distances` has {distance} for {model!r}: leave out what has no score")
    for pair in differences:
        if pair[0] == pair[1] or not set(pair) <= set(given):
            raise UsageError(f"`differences` has the pair {pair}: name two of {', '.join(given)}")
    tests = {pair: (inputs.number(side), inputs.number(p)) for pair, (side, p) in differences.items()}
    nearer: dict[str, list[str]] = {model: [] for model in given}
    adjusted = adjust_holm({pair: p for pair, (_, p) in tests.items()})
    for (a, b), (side, _) in tests.items():
        if adjusted[a, b] <= level and side * (given[a] - given[b]) > 0:
            near, far = (a, b) if side < 0 else (b, a)
            nearer[near].append(far)
    further = {model: [other for other in given if model in nearer[other]] for model in given}
    tested = {frozenset(pair) for pair, (_, p) in tests.items() if math.isfinite(p)}
    letters = _letters(given, nearer)
    return {
        model: Rank(
            rank=1 + sum(other < distance for other in given.values()),
            low=1 + len(further[model]),
            high=len(given) - len(nearer[model]),
            nearer_than=tuple(nearer[model]),
            further_than=tuple(further[model]),
            untested=tuple(other for other in given if other != model and {model, other} not in tested),
            letters=letters[model],
        )
        for model, distance in given.items()
    }


def differences_of_intervals(
    distances: Mapping[str, float], intervals: Mapping[str, tuple[float, float]]
) -> dict[tuple[str, str], tuple[float, float]]:
    """Return for each pair of models their difference in distance, and its p, from their intervals alone.

    For `rank_models`, where the samples are not at hand, or there are too many pairs to test each on its samples.

    Parameters
    ----------
    distances
        The distance of each model from parity.
    intervals
        The 95 % interval of each distance; two models without one, or with two of no width, have no test (NaN).

    Notes
    -----
    The nearer of two models may be as far as the upper end of its interval says, and the further as near as its lower
    end: the variance of the difference is recovered from these two (MOVER: Zou & Donner 2008, doi:10.1002/sim.3095).
    The p is that of the normal distribution, two-sided. Models are taken as independent; that both answered the same
    samples makes the tests careful.

    Examples
    --------
    >>> found = differences_of_intervals({"x": 1.0, "y": 9.0}, {"x": (0.0, 2.0), "y": (7.0, 11.0)})
    >>> [(pair, side, round(p, 4)) for pair, (side, p) in found.items()]
    [(('x', 'y'), -8.0, 0.0)]
    """
    from scipy.special import ndtr, ndtri

    per_width = float(ndtri(0.975))
    found = {}
    for (a, first), (b, second) in combinations(distances.items(), 2):
        near, far = (a, b) if first <= second else (b, a)
        high, low = intervals.get(near, (math.nan, math.nan))[1], intervals.get(far, (math.nan, math.nan))[0]
        error = math.hypot(high - distances[near], distances[far] - low) / per_width
        p = 2 * float(ndtr(-abs(first - second) / error)) if error > 0 else math.nan
        found[a, b] = (first - second, p)
    return found


def _letters(distances: Mapping[str, float], nearer: Mapping[str, list[str]]) -> dict[str, str]:
    """Give one letter to every largest set of models that do not differ by a test, the nearest first."""
    models = sorted(distances, key=lambda model: (distances[model], model))
    alike = {
        model: {
            other for other in models if other != model and other not in nearer[model] and model not in nearer[other]
        }
        for model in models
    }
    sets = sorted(_cliques(set(), set(models), set(), alike), key=lambda found: sorted(map(models.index, found)))
    return {
        model: "".join(_letter(number) for number, found in enumerate(sets) if model in found) for model in distances
    }


def _cliques(
    chosen: set[str], open_: set[str], done: set[str], alike: Mapping[str, set[str]]
) -> Iterator[frozenset[str]]:
    """Yield the maximal sets of models that do not differ (Bron & Kerbosch 1973, with a pivot)."""
    if not open_ and not done:
        yield frozenset(chosen)
        return
    pivot = max(sorted(open_ | done), key=lambda model: len(alike[model] & open_))
    for model in sorted(open_ - alike[pivot]):
        yield from _cliques(chosen | {model}, open_ & alike[model], done & alike[model], alike)
        open_ = open_ - {model}
        done = done | {model}


def _letter(number: int) -> str:
    """Return a, b, …, z, a2, b2, …."""
    turn, place = divmod(number, 26)
    return chr(ord("a") + place) + (str(turn + 1) if turn else "")


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
