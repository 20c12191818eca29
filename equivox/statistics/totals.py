"""Comparison of two models' scores that are functions of sums over clusters."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from equivox.core.errors import UsageError
from equivox.statistics import inputs
from equivox.statistics.inputs import Floats
from equivox.statistics.intervals import of_ratio
from equivox.statistics.sign_flip import sign_flip_test

Statistic = Callable[[Floats], Floats]
"""Function of sums over clusters (… x K) that returns the score (…), NaN if it is undefined."""


@dataclass(frozen=True, kw_only=True)
class TotalsComparison:
    """The scores of two models on the same clusters; NaN when `undefined` says why.

    Attributes
    ----------
    value_a, value_b
        The two scores.
    difference
        value_a − value_b, in the unit of the score. Zero means equal scores.
    p
        Two-sided p of the null that the scores are equal.
    ci_low, ci_high
        Confidence interval of the difference.
    further
        |value_a − target| − |value_b − target|. Zero means equally far from the target; above zero, model a is further.
        NaN without a target.
    p_further
        Two-sided p of the null that the distances are equal, on the same side of the target or on opposite sides.
    further_low, further_high
        Confidence interval of `further`: all values that the intervals of the difference and of the sum of the two
        scores, measured from the target, allow. Its coverage is nominal if one score is clearly further than the other
        or clearly off the target. If one score is on the target, the error rate is at most half as large again
        (coverage 92.5 instead of 95 %).
    n_clusters
        The number of clusters.
    """

    value_a: float = math.nan
    value_b: float = math.nan
    difference: float = math.nan
    p: float = math.nan
    ci_low: float = math.nan
    ci_high: float = math.nan
    further: float = math.nan
    p_further: float = math.nan
    further_low: float = math.nan
    further_high: float = math.nan
    n_clusters: int
    undefined: str | None = None


def compare_totals(
    totals_a: ArrayLike,
    totals_b: ArrayLike,
    statistic: Statistic,
    *,
    target: float = math.nan,
    sizes: int | None = None,
    n_resamples: int = 10_000,
    rng: np.random.Generator,
) -> TotalsComparison:
    """Compare two models' scores on the same clusters, and their distances from a target.

    Parameters
    ----------
    totals_a, totals_b
        C x K tables: the contribution of each cluster to the K sums from which the score is computed, with the same
        clusters in the same order.
    statistic
        The score as a function of the sums: an array of shape (…, K) to an array of shape (…), NaN if there is no
        score.
    target
        The value of the score that means "no bias"; NaN if there is none.
    sizes
        Which of the K sums is the size of a cluster, such as its answers; None where all clusters count alike.
    n_resamples, rng
        As in `sign_flip_test`.

    Returns
    -------
    TotalsComparison
        `difference` is zero when the scores are equal, `further` when they are equally far from the target. NaN with a
        reason when a score is NaN, with all clusters or without any one of them, or when there are fewer than two
        clusters. Two models that agree in every cluster have p = 1, and no interval: NaN.
        Intervals have 95 % and are Student's t over clusters.

    Raises
    ------
    UsageError
        Tables that are empty, of different shapes, or with a number that is not finite.

    Notes
    -----
    The pseudo-value n·θ − (n − 1)·θ₍₋c₎ of a cluster represents its part in the score (Tukey's jackknife; Efron & Stein
    1981, doi:10.1214/aos/1176345462). The differences of the pseudo-values flip signs by whole clusters, which
    exchanges the two models there. For a mean of clusters the pseudo-values are the cluster means, and the test is
    exact. With `sizes` they are n·θ − (n − k)·θ₍₋c₎, where k is the cluster's size over the mean size, so that each
    counts for what it does in the score; `intervals.of_ratio` says what the interval allows for.

    Two scores x and y, measured from the target, are equally far when x − y or x + y is zero: `p_further` is the larger
    p of these two tests (an intersection-union test, Berger 1982, doi:10.1080/00401706.1982.10487790), so that it keeps
    its level on either side.

    Examples
    --------
    Shares of hits in four contexts, 4 of 4 and 2 of 4; one half is even:

    >>> a, b = np.array([[1.0, 1]] * 4), np.array([[1.0, 1], [1, 1], [0, 1], [0, 1]])
    >>> found = compare_totals(a, b, lambda s: s[..., 0] / s[..., 1], target=0.5, rng=np.random.default_rng(1))
    >>> found.value_a, found.value_b, found.difference, found.p, found.further
    (1.0, 0.5, 0.5, 0.5, 0.5)
    """
    inputs.check_resamples(n_resamples)
    of_a, of_b = inputs.matrix(totals_a, "totals_a"), inputs.matrix(totals_b, "totals_b")
    for argument, totals in (("totals_a", of_a), ("totals_b", of_b)):
        if totals.shape != of_a.shape or not totals.size:
            raise UsageError(f"`{argument}` has shape {totals.shape}: give clusters x sums, alike for both models")
        if not np.isfinite(totals).all():
            raise UsageError(f"`{argument}` holds a number that is not finite: leave out what is missing")
    value_a, value_b = (float(_quiet(statistic, totals.sum(axis=0))) for totals in (of_a, of_b))
    each = [_relative(own, sizes) for own in (of_a, of_b)]
    counts = (each[0] + each[1]) / 2
    pseudo_a, pseudo_b = (
        pseudo_values(own, statistic, by) + (counts - by) * value
        for own, by, value in zip((of_a, of_b), each, (value_a, value_b), strict=True)
    )
    reason = None
    if len(of_a) < 2:
        reason = "one cluster: a comparison needs two"
    elif math.isnan(value_a) or math.isnan(value_b):
        reason = "one of the two models has no score on what both answered"
    elif not (np.isfinite(pseudo_a).all() and np.isfinite(pseudo_b).all()):
        reason = "a score rests on one cluster alone"
    if reason is not None:
        return TotalsComparison(n_clusters=len(of_a), undefined=reason)
    x, y = value_a - target, value_b - target
    size = float(max(np.abs(pseudo_a).max(), np.abs(pseudo_b).max()))
    apart, p = _tested(pseudo_a - pseudo_b, value_a - value_b, counts, size, n_resamples, rng)
    further, p_further, ends = math.nan, math.nan, (math.nan, math.nan)
    if not math.isnan(target):
        summed, p_sum = _tested(pseudo_a + pseudo_b - 2 * target * counts, x + y, counts, size, n_resamples, rng)
        further, p_further = abs(x) - abs(y), max(p, p_sum)
        ends = further_interval(apart, summed)
    apart = with_width(*apart)
    return TotalsComparison(
        value_a=value_a,
        value_b=value_b,
        difference=value_a - value_b,
        p=p,
        ci_low=apart[0],
        ci_high=apart[1],
        further=further,
        p_further=p_further,
        further_low=ends[0],
        further_high=ends[1],
        n_clusters=len(of_a),
    )


def further_interval(apart: tuple[float, float], summed: tuple[float, float]) -> tuple[float, float]:
    """Return the interval of |x| − |y| from those of x − y and x + y; NaN instead of one without width.

    >>> further_interval((1.0, 3.0), (4.0, 6.0)), further_interval((1.0, 3.0), (-1.0, 6.0))
    ((1.0, 3.0), (-1.0, 3.0))
    """
    # The difference of the distances is monotone in x − y and in x + y: its extremes are at the ends.
    corners = [math.copysign(min(abs(u), abs(v)), u * v) for u in apart for v in summed]
    return with_width(min(corners), max(corners))


def with_width(low: float, high: float) -> tuple[float, float]:
    """Return an interval; NaN instead of one without width, which would claim to know clusters that were not seen."""
    return (low, high) if high > low else (math.nan, math.nan)


def _relative(totals: Floats, sizes: int | None) -> Floats:
    """Return the size of each cluster over the mean size."""
    if sizes is None:
        return np.ones(len(totals))
    if not 0 <= sizes < totals.shape[1] or (totals[:, sizes] < 0).any():
        raise UsageError(f"`sizes` is {sizes}: give the place, from 0, of a sum that is 0 or more in every cluster")
    return _quiet(lambda own: own / own.mean(), totals[:, sizes])


def pseudo_values(totals: Floats, statistic: Statistic, counts: Floats | float = 1.0) -> Floats:
    """Return each cluster's pseudo-value, n·θ − (n − k)·θ₍₋c₎; NaN if the other clusters give no score.

    `counts`, the k, are how many clusters each counts for. In a ratio of sums each then has its own part of the sum.

    For a mean over clusters with equal weights it is the cluster's value:

    >>> pseudo_values(np.array([[1.0, 1], [5, 1]]), lambda s: s[..., 0] / s[..., 1]).tolist()
    [1.0, 5.0]
    """
    whole = totals.sum(axis=0)
    n = len(totals)
    return np.asarray(n * _quiet(statistic, whole) - (n - counts) * _quiet(statistic, whole - totals), dtype=np.float64)


def _quiet(statistic: Statistic, sums: Floats) -> Floats:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(statistic(sums), dtype=np.float64)


def _tested(
    pseudo: Floats, value: float, counts: Floats, size: float, n_resamples: int, rng: np.random.Generator
) -> tuple[tuple[float, float], float]:
    """Return Student's 95 % interval around `value` and the sign-flip p of pseudo-values with that mean."""
    from scipy.special import stdtrit

    # Differences as small as rounding errors of numbers of this size count as zero.
    pseudo = np.where(np.abs(pseudo) > 1e-9 * size, pseudo, 0.0)
    tested = sign_flip_test(pseudo, clusters=None, n_resamples=n_resamples, rng=rng)
    stretch, degrees = of_ratio(counts)
    left = stretch * (pseudo - counts * pseudo.mean())
    deviation = math.sqrt((left**2).sum() / (len(pseudo) - 1))
    half = float(stdtrit(degrees, 0.975) * deviation / math.sqrt(len(pseudo)))
    return (value - half, value + half), tested.p if tested.undefined is None else 1.0
