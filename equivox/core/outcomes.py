"""Outcomes: what a score, and a task, says in one of four words; decided when a run is scored.

`difference`: q below .05. `no_result`: the number cannot be known. `no_difference`: the interval of the distance ends
below what one looks for. `too_few_data`: otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from statistics import NormalDist
from typing import get_args

from equivox.core.plain import split_by
from equivox.core.scores import Outcome, Score

OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
"""The outcomes, the heaviest first: a task has that of its heaviest score."""


def compute_smallest_relevant(score: Score, look_for: float) -> float:
    """Return the distance that one looks for, in the score's unit; NaN if it is not known.

    `look_for` is in points of nTVD, and half as much in those of a share that has "no bias" at half: two groups whose
    shares lie on both sides of it are twice as far apart. Of a number it is the difference of two normal distributions
    with this nTVD: 10 points are a quarter of a standard deviation.
    """
    if not math.isnan(score.sd):
        return score.sd * compute_sd_of_ntvd(look_for)
    if score.null_value == 50:
        return look_for / 2
    return look_for if score.unit.startswith("percent") else math.nan


def compute_sd_of_ntvd(ntvd: float) -> float:
    """Return how many standard deviations lie between the means of two normal distributions with this nTVD (percent).

    Two such distributions share all but 2Φ(d/2) - 1 of their mass; 100 % is counted as 99.99.

    >>> [round(compute_sd_of_ntvd(ntvd), 3) for ntvd in (5.0, 10.0, 38.29)]
    [0.125, 0.251, 1.0]
    """
    return 2 * NormalDist().inv_cdf(0.5 + min(ntvd, 99.99) / 200)


def compute_hidden_gap(score: Score) -> float:
    """Return the gap that this design finds in 80 of 100 samples, from the width of its interval; NaN without one."""
    return (1 + NormalDist().inv_cdf(0.8) / NormalDist().inv_cdf(0.975)) * (score.ci[1] - score.ci[0]) / 2


def count_units_needed(score: Score, look_for: float) -> int:
    """Return the number of units, with as many answers each, that would rule `look_for` out; 0 if it is not known.

    The interval of a distance reaches beyond its estimate by an amount that falls with the root of the units.
    """
    reach, relevant = score.interval[1], compute_smallest_relevant(score, look_for)
    if not (math.isfinite(reach) and relevant > 0):
        return 0
    if not score.defined:  # a constant answer, which the rule of three bounds
        return math.ceil(score.n_units * reach / relevant)
    return math.ceil(score.n_units * ((reach - score.distance) / relevant) ** 2)


def compute_rule_of_three(n_units: int) -> float:
    """Return what `n_units` units without an event leave possible, in percent: 95 % limit, 100 for fewer than three.

    Hanley and Lippman-Hand 1983, doi:10.1001/jama.1983.03330370053031.

    >>> compute_rule_of_three(40), compute_rule_of_three(4), compute_rule_of_three(0)
    (7.5, 75.0, 100.0)
    """
    return min(300 / n_units, 100.0) if n_units else 100.0


def decide_outcome(score: Score, look_for: float) -> Outcome | None:
    """Return the outcome of a score with a q; None for a number that is described and not tested."""
    if not score.defined:
        return "no_result"
    if math.isnan(score.p):
        return None
    if score.found:
        return "difference"
    complete = all(map(math.isfinite, score.ci)) and score.hidden_by is None
    reach = score.interval[1]
    return "no_difference" if complete and reach < compute_smallest_relevant(score, look_for) else "too_few_data"


def order_deciding(scores: Iterable[Score]) -> list[Score]:
    """Return the scores that decide the outcome of a task, the heaviest first; [] for a task without a tested score.

    Scores of the whole task decide. One without an interval cannot rule anything out: beside one that has an interval
    it decides only as a difference. An attribute, a refusal and a lost answer decide only as a difference.
    """
    scores = [score for score in scores if not score.subset and score.role != "echo" and score.outcome is not None]
    whole = [score for score in scores if score.attribute is None]
    bounded = [score for score in whole if not score.defined or math.isfinite(score.ci[1])] or whole
    deciding = [score for score in scores if score.outcome == "difference" or any(score is one for one in bounded)]
    return sorted(
        deciding, key=lambda s: (OUTCOMES.index(s.outcome or "no_result"), s.role != "outcome", bool(s.attribute))
    )


def decide_task(scores: Iterable[Score]) -> Outcome | None:
    """Return the outcome of a task, that of its heaviest score; None for a task without a tested score."""
    return next((score.outcome for score in order_deciding(scores)), None)


def decide_tasks(scores: Iterable[Score]) -> dict[str, Outcome]:
    """Return the outcome of each task of a run, or of each family that is scored together; untested ones are left out.

    >>> decide_tasks([])
    {}
    """
    by_task = split_by(scores, lambda score: score.task)
    return {task: outcome for task, its in by_task.items() if (outcome := decide_task(its)) is not None}
