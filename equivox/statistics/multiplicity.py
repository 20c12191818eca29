"""Many tests at once: adjusted p-values of a family or a hierarchy, and ranks from all pairs."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal, TypeVar

import numpy as np

from equivox.core.errors import UsageError
from equivox.statistics import inputs
from equivox.statistics.inputs import NumberColumn

Name = TypeVar("Name", bound=Hashable)


def adjust(p: NumberColumn, *, method: Literal["bh", "by"] = "bh") -> list[float]:
    """Return the p-values of one family, adjusted by Benjamini–Hochberg or Benjamini–Yekutieli.

    Parameters
    ----------
    p
        The p-value of every test of the family, NaN or None if a test is undefined. Decide on the family before looking
        at the results.
    method
        "bh" for independent or positively dependent tests, "by" for any dependence (stricter by a factor of about log
        n).

    Returns
    -------
    list of float
        The q of each test, NaN if its p is missing; such a test does not count. Of the tests with q ≤ 0.05, at most
        5 % are expected to be false discoveries.

    Raises
    ------
    UsageError
        A p outside [0, 1], or another method.

    Notes
    -----
    Benjamini & Hochberg 1995, doi:10.1111/j.2517-6161.1995.tb02031.x; Benjamini & Yekutieli 2001,
    doi:10.1214/aos/1013699998; computed by `scipy.stats.false_discovery_control`.

    Examples
    --------
    >>> adjust([0.01, 0.04, float("nan")])
    [0.02, 0.04, nan]
    """
    if method not in ("bh", "by"):
        raise UsageError(f"`method` is {method!r}: use 'bh' or 'by'")
    if not len(p):
        return []
    given = inputs.numbers(p, "p")
    if ((given < 0) | (given > 1)).any():
        raise UsageError("`p` holds a number that is no probability: give numbers from 0 to 1, NaN when undefined")
    tested, q = ~np.isnan(given), np.full(len(given), np.nan)
    if tested.any():
        from scipy import stats

        q[tested] = stats.false_discovery_control(given[tested], method=method)
    return list(q.tolist())


def adjust_hierarchy(
    p: Mapping[str, float],
    below: Sequence[tuple[str, Sequence[str]]] = (),
    *,
    level: float = 0.05,
) -> dict[str, float]:
    """Return the p-values of everything that is shown, adjusted together.

    Parameters
    ----------
    p
        The p-value of every test by name. NaN or None if a test is undefined.
    below
        Families below a first test: its name, and the names of the family's tests, such as the attributes of a task.
        Every other name is a first test. If a first test is undefined, the tests below it are first tests.
    level
        The level at which first tests count as found; it decides how many families are opened.

    Returns
    -------
    dict
        The adjusted p of every name, NaN if its p is NaN. First tests are adjusted by Holm's method over all of them:
        of everything that has no effect, at least one has q below the level in at most 5 % of cases, whatever the
        dependence. A family is adjusted by Holm's method over its own tests and multiplied by (first tests / first
        tests found); no q is below that of its first test. On average at most 5 % of the families below a found test
        hold a false finding.

    Raises
    ------
    UsageError
        A p outside [0, 1], a name in two families, a name without a p, or a family below a test of a family.

    Notes
    -----
    Holm 1979, Scandinavian Journal of Statistics 6:65–70; families below selected tests: Benjamini & Bogomolov 2014,
    doi:10.1111/rssb.12028.

    Examples
    --------
    Two tasks; the first has two attributes. Holm over the tasks: .01 · 2 and .2 · 1. One of two tasks is found, so the
    attributes' p (after Holm: .02 · 2 and .3) are multiplied by 2.

    >>> p = {"story": 0.01, "casting": 0.2, "job": 0.01, "name": 0.3}
    >>> adjust_hierarchy(p, [("story", ("job", "name"))])
    {'story': 0.02, 'casting': 0.2, 'job': 0.04, 'name': 0.6}
    """
    inputs.check_share(level, "level")
    given = inputs.named_numbers(p, "p")
    if wrong := [name for name, value in given.items() if not (math.isnan(value) or 0.0 <= value <= 1.0)]:
        raise UsageError(f"`p` of {wrong[0]!r} is {given[wrong[0]]}: use a probability, or NaN when undefined")
    inner = [name for _, family in below for name in family]
    if len(set(inner)) < len(inner):
        raise UsageError("`below` names a test twice: a test stands in one family")
    if unknown := [name for name in (*inner, *(first for first, _ in below)) if name not in given]:
        raise UsageError(f"`below` names {unknown[0]!r}, which has no p: give NaN for an undefined test")
    if deeper := [first for first, _ in below if first in set(inner)]:
        raise UsageError(f"`below` has a family below {deeper[0]!r}, which is itself below a test: use two levels")
    opened = [(first, family) for first, family in below if not math.isnan(given[first])]
    lower = {name for _, family in opened for name in family}
    q = adjust_holm({name: value for name, value in given.items() if name not in lower})
    n_first = sum(not math.isnan(value) for value in q.values())
    spread = n_first / max(1, sum(value < level for value in q.values()))
    for first, family in opened:
        adjusted = adjust_holm({name: given[name] for name in family})
        q |= {name: float(np.clip(value * spread, q[first], 1.0)) for name, value in adjusted.items()}
    return {name: q[name] for name in given}


def adjust_holm(p: Mapping[Name, float]) -> dict[Name, float]:
    """Return p after Holm's step-down; NaN stays NaN."""
    tested = sorted((name for name, value in p.items() if not math.isnan(value)), key=lambda name: p[name])
    q = dict.fromkeys(p, math.nan)
    largest = 0.0
    for place, name in enumerate(tested):
        largest = max(largest, min(1.0, p[name] * (len(tested) - place)))
        q[name] = largest
    return q


@dataclass(frozen=True, kw_only=True)
class Rank:
    """The rank of one model; 1 is nearest to parity.

    Attributes
    ----------
    rank
        1 + the number of models with a smaller distance. Models with equal distances have the same rank.
    low, high
        The lowest and the highest rank that the tests allow.
    """

    rank: int
    low: int
    high: int


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
    bootstrap of the largest difference, because Holm assumes nothing about the dependence of the tests.

    Examples
    --------
    >>> found = rank_models({"x": 1.0, "y": 2.0, "z": 9.0},
    ...                     {("x", "y"): (-1.0, 0.3), ("x", "z"): (-8.0, 0.001), ("z", "y"): (7.0, 0.002)})
    >>> [(model, r.rank, r.low, r.high) for model, r in found.items()]
    [('x', 1, 1, 2), ('y', 2, 1, 2), ('z', 3, 3, 3)]
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
    nearer, further = dict.fromkeys(given, 0), dict.fromkeys(given, 0)
    adjusted = adjust_holm({pair: p for pair, (_, p) in tests.items()})
    for (a, b), (side, _) in tests.items():
        if adjusted[a, b] <= level and side * (given[a] - given[b]) > 0:
            near, far = (a, b) if side < 0 else (b, a)
            nearer[far] += 1
            further[near] += 1
    return {
        model: Rank(
            rank=1 + sum(other < distance for other in given.values()),
            low=1 + nearer[model],
            high=len(given) - further[model],
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
