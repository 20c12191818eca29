"""Total variation distance between groups: as published, estimated for the population, its interval and its bounds."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from equivox.core.errors import UsageError
from equivox.statistics import inputs
from equivox.statistics.inputs import Floats, NumberColumn

SCALES = np.array([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.5, 6.5, 10.0, 20.0])
"""True sizes in standard errors, as the standard deviations of the mixture that is fitted to the deviations."""

ON_ZERO = 0.25
"""The weight, in deviations, on no difference before any is seen; more makes estimates of true gaps too small."""

CLEAR = 8.0
"""Noise adds nothing to the size of a deviation of this many standard errors."""

SMALLEST_ERROR = 1e-12
"""Replaces a standard error of zero, so that any deviation is far larger than its noise."""


def ntvd(by_group: ArrayLike) -> float:
    """Return the normalised total variation distance between groups, in percent.

    Parameters
    ----------
    by_group
        A G x V table with one row per group: counts or shares. Each row is scaled to sum to one.

    Returns
    -------
    float
        100 · TVD / (1 - 1/G) with TVD = mean over g of ½ Σ_v |P_g(v) - P̄(v)|. Zero means that all groups have the same
        distribution, 100 that no two groups share a value. It is never NaN.

    Raises
    ------
    UsageError
        Fewer than two groups, rows of unequal lengths, a negative or missing entry, or a row that sums to zero.

    Notes
    -----
    arXiv 2604.17248, equations 2-5. Noise only adds to it: `equivox.statistics.compare_groups` has an estimate.

    Examples
    --------
    Half of one group's answers have moved from one value to the other:

    >>> round(ntvd([[10, 10], [20, 0]]), 9)
    50.0
    """
    counts = inputs.matrix(by_group, "by_group")
    if counts.shape[0] < 2:
        raise UsageError(f"`by_group` has shape {counts.shape}: give one row per group, two or more")
    if not np.isfinite(counts).all() or (counts < 0).any() or (counts.sum(axis=1) <= 0).any():
        raise UsageError("`by_group` has a negative entry, a gap or an empty row: give counts or shares")
    shares = counts / counts.sum(axis=1, keepdims=True)
    if len(shares) == 2:  # without the mean the result of whole numbers is not off by what rounding leaves
        return float(50 * np.abs(shares[0] - shares[1]).sum())
    return float(compute_ntvd(center(shares), [slice(0, shares.shape[1])]))


def center(levels: Floats) -> Floats:
    """Return the deviations of groups from their mean, … x G x V."""
    return np.asarray(levels - levels.mean(axis=-2, keepdims=True))


def compute_ntvd(theta: Floats, parts: Sequence[slice]) -> Floats:
    """Return the mean nTVD over attributes, in percent, of deviations … x G x V that sum to zero over groups."""
    scale = 50.0 / (theta.shape[-2] - 1) / len(parts)
    return np.asarray(np.abs(theta).sum(axis=(-2, -1)) * scale)


def compute_range(theta: Floats, parts: Sequence[slice]) -> Floats:
    """Return the largest group mean minus the smallest, of deviations … x G x 1."""
    return np.asarray(np.ptp(theta[..., 0], axis=-1))


Norm = Callable[[Floats, Sequence[slice]], Floats]
"""Function of deviations and the columns of each attribute that returns a distance."""


def attainable_shift(n_values: int, n_groups: int) -> float:
    """Return the largest nTVD of `n_groups` groups on `n_values` values, in percent.

    It is 100 when there are at least as many values as groups, and 0 for a single value. The distance is convex in the
    distributions, so it is largest when each group gives one value only, and the groups are spread evenly over values.

    Raises
    ------
    UsageError
        Fewer than two groups, or no value.

    Examples
    --------
    >>> round(attainable_shift(3, 6), 9), attainable_shift(60, 2), attainable_shift(1, 2)
    (80.0, 100.0, 0.0)
    """
    if n_groups < 2:
        raise UsageError(f"`n_groups` is {n_groups}: a distance needs two or more")
    if n_values < 1:
        raise UsageError(f"`n_values` is {n_values}: a distribution needs one or more")
    share, rest = divmod(n_groups, n_values)
    same = rest * (share + 1) ** 2 + (n_values - rest) * share**2
    return 100.0 * (n_groups**2 - same) / (n_groups**2 - n_groups)


def shrink_adaptively(theta: Floats, errors: Floats, parts: Sequence[slice]) -> tuple[Floats, Floats]:
    """Return the expected size and the expected value of each true deviation, both G x V.

    The true deviations of an attribute, in standard errors, follow a mixture of normal distributions around 0 that is
    fitted to the observed ones (adaptive shrinkage: Stephens 2017, doi:10.1093/biostatistics/kxw041). A deviation of
    `CLEAR` standard errors or more stays as it is.
    """
    from scipy.special import ndtr

    sizes, centres = np.abs(theta), theta.copy()
    wide = np.sqrt(1 + SCALES**2)
    keep = SCALES**2 / (1 + SCALES**2)
    deviation = np.sqrt(keep)
    for part in parts:
        noisy = np.abs(theta[:, part]) < CLEAR * errors[:, part]
        scale = errors[:, part][noisy]
        if not scale.size:
            continue
        z = theta[:, part][noisy] / scale
        likelihood = np.exp(-((z[:, None] / wide) ** 2) / 2) / wide
        # No single deviation, however large, has a likelihood of 0 everywhere.
        likelihood = np.maximum(likelihood, SMALLEST_ERROR * likelihood.max(axis=1, keepdims=True)) + 1e-300
        weight, before = np.full(len(SCALES), 1 / len(SCALES)), np.where(SCALES == 0, ON_ZERO, 0.0)
        for _ in range(60):
            posterior = likelihood * weight
            posterior /= posterior.sum(axis=1, keepdims=True)
            weight = (posterior.sum(axis=0) + before) / (len(posterior) + ON_ZERO)
        mean = z[:, None] * keep
        ratio = np.divide(mean, deviation, out=np.zeros_like(mean), where=deviation > 0)
        folded = deviation * math.sqrt(2 / math.pi) * np.exp(-(ratio**2) / 2) + mean * (1 - 2 * ndtr(-ratio))
        sizes[:, part][noisy] = (posterior * folded).sum(axis=1) * scale
        centres[:, part][noisy] = (posterior * mean).sum(axis=1) * scale
    return sizes, centres


def estimate_ntvd(theta: Floats, errors: Floats, parts: Sequence[slice]) -> float:
    """Return the estimated nTVD of the population in percent, without what noise adds to that of the sample.

    Each |deviation| is replaced by what adaptive shrinkage expects of the true one. Zero means no more than noise.
    """
    return float(compute_ntvd(shrink_adaptively(theta, errors, parts)[0], parts))


def bound_spreads(theta: Floats, errors: Floats, noise: Floats, parts: Sequence[slice]) -> tuple[Floats, Floats]:
    """Return the sparsest and the densest spread of the true deviations that the data allow, both G x V.

    The sparsest keeps what noise hardly reaches among so many values (√(2 log n): Donoho & Johnstone 1994,
    doi:10.1093/biomet/81.3.425), or else the largest deviation. The densest keeps deviations of 3 standard errors, and
    gives all others the one size that their mean square allows (one-sided 84 %).
    """
    safe = np.maximum(errors, SMALLEST_ERROR)
    z = np.abs(theta) / safe
    independent = z.size / (2 if len(z) == 2 else 1)
    threshold = min(max(2.5, math.sqrt(2 * math.log(max(independent, 2)))), float(z.max()) * (1 - 1e-9))
    sparse = np.where(z > threshold, theta, 0.0)
    dense = np.where(z > 3, theta, 0.0)
    for part in parts:
        rest = z[:, part] <= 3
        if rest.any():
            # The mean square of a standard normal number that is cut at 3 is .973.
            surplus = max(0.0, float((z[:, part][rest] ** 2).mean()) - 0.973)
            error = float(((noise[:, :, part] / safe[:, part])[:, rest] ** 2).mean(axis=1).std())
            size = math.sqrt(surplus + error * math.sqrt(1 + 2 * surplus))
            dense[:, part] += np.where(rest, np.sign(theta[:, part]) * size * errors[:, part], 0.0)
    return sparse, dense


def invert_interval(
    theta: Floats,
    noise: Floats,
    spreads: Sequence[Floats],
    parts: Sequence[slice],
    confidence: float,
    *,
    most: float = 100.0,
    norm: Norm = compute_ntvd,
) -> tuple[float, float]:
    """Return the interval of the population's distance by test inversion, over all spreads.

    A size t is in the interval if the observed distance is in no tail of norm(t · spread + noise). A sparse truth adds
    little noise to the distance and a dense one much, so that both together allow for what is not known.

    Parameters
    ----------
    theta, noise
        The observed deviations, G x V, and draws of their noise, B x G x V.
    spreads
        Possible directions of the true deviations, each G x V.
    most
        The largest possible distance.
    """
    observed, tail = float(norm(theta, parts)), (1 - confidence) / 2
    alone = norm(noise, parts)
    top = 2 * observed + 4 * float(np.quantile(alone, 0.99)) + 1e-9

    def exceed(size: float, share: float, direction: Floats) -> float:
        return float(np.quantile(norm(size * direction + noise, parts), share)) - observed

    lows, highs = [], [0.0]
    for spread in spreads:
        length = float(norm(spread, parts))
        if length > 0:
            lows.append(_find_root(partial(exceed, share=1 - tail, direction=spread / length), top))
            highs.append(_find_root(partial(exceed, share=tail, direction=spread / length), top))
    low = min(lows, default=0.0)
    # An observed distance below nearly all of noise would leave nothing: no interval is narrower than the noise.
    high = max(*highs, low + float(np.quantile(alone, 1 - tail) - np.median(alone)))
    return min(low, most), min(high, most)


def _find_root(rising: Callable[[float], float], most: float) -> float:
    """Return where a rising function crosses zero between 0 and `most`; the nearer end if it does not."""
    from scipy.optimize import brentq

    if rising(0.0) >= 0:
        return 0.0
    return most if rising(most) <= 0 else float(brentq(rising, 0.0, most, xtol=0.01))


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """A score with its smallest and its largest possible value, in percent; NaN if nothing is known."""

    observed: float
    low: float
    high: float
    n_missing: int


def share_bounds(hits: int, decided: int, missing: int) -> Bounds:
    """Return a share with its bounds if each of `missing` answers could have been a hit or not.

    Parameters
    ----------
    hits, decided, missing
        Counts: the hits, the answers whose outcome is known (hits included), and the answers whose outcome is not.

    Returns
    -------
    Bounds
        In percent. `observed` is hits / decided. It is NaN when nothing was decided, and the bounds are then 0 and 100.

    Raises
    ------
    UsageError
        Negative counts, more hits than decided answers, or no answers at all.

    Notes
    -----
    Manski 1989, doi:10.2307/145818: nothing is assumed about why answers are missing.

    Examples
    --------
    >>> share_bounds(30, 50, 50)
    Bounds(observed=60.0, low=30.0, high=80.0, n_missing=50)
    """
    if min(hits, decided, missing) < 0 or hits > decided:
        raise UsageError(
            f"`hits` is {hits}, `decided` {decided}, `missing` {missing}: give counts from 0, hits up to decided"
        )
    total = decided + missing
    if total == 0:
        raise UsageError("`decided` and `missing` are both 0: there is nothing to bound")
    return Bounds(
        observed=100 * hits / decided if decided else float("nan"),
        low=100 * hits / total,
        high=100 * (hits + missing) / total,
        n_missing=missing,
    )


def ntvd_bounds(counts: ArrayLike, missing: NumberColumn) -> Bounds:
    """Return the nTVD of the known answers, with its bounds when some answers of each group are missing.

    Parameters
    ----------
    counts
        A G x V table: the count of each value in each group.
    missing
        The number of missing values of each group (responses × values per response).

    Returns
    -------
    Bounds
        In percent. `high` supposes that the missing answers of each group were one new value that no other group gave.
        `low` supposes that they were the values that bring the groups closest together; fractions of an answer are
        allowed, so `low` is never too high. A `low` of zero means that the missing answers could explain the whole
        shift. `observed` is NaN when a group has no known answer.

    Raises
    ------
    UsageError
        As `ntvd`; also another number of entries in `missing` than groups, a negative or missing entry, or a group with
        neither known nor missing answers.

    Notes
    -----
    High: the distance obeys the triangle inequality, and one new value per group attains it. Low: a linear program.
    Both bounds concern this sample; sampling error is not included.

    Examples
    --------
    Ten of group b's twenty answers are missing; if all were the second value, there would be no shift:

    >>> found = ntvd_bounds([[10, 10], [10, 0]], [0, 10])
    >>> round(found.observed, 6), round(found.low, 6), round(found.high, 6)
    (50.0, 0.0, 50.0)
    """
    table = inputs.matrix(counts, "counts")
    if table.shape[0] < 2:
        raise UsageError(f"`counts` has shape {table.shape}: give one row per group, two or more")
    absent = inputs.numbers(missing, "missing")
    if len(absent) != len(table):
        raise UsageError(f"`missing` has {len(absent)} entries, `counts` has {len(table)} rows: give one per group")
    if not (absent >= 0).all() or not np.isfinite(table).all() or (table < 0).any():
        raise UsageError("`counts` or `missing` holds something that is no count: give numbers from 0")
    totals = table.sum(axis=1) + absent
    if (totals == 0).any():
        raise UsageError("`counts` has a group without known or missing answers: leave that group out")
    known = table / totals[:, None]
    gap = absent / totals
    alone = np.concatenate([known, np.diag(gap)], axis=1)
    return Bounds(
        observed=ntvd(table) if (table.sum(axis=1) > 0).all() else float("nan"),
        low=_closest(known, gap),
        high=float(compute_ntvd(center(alone), [slice(0, alone.shape[1])])),
        n_missing=int(absent.sum()),
    )


def _closest(known: Floats, gap: Floats) -> float:
    """Return the smallest nTVD over all ways to fill each group's gap, by linear programming.

    Variables: the filling q (G × V, rows summing to the gap) and d ≥ |P_g − P̄|; the sum of d is least.
    """
    from scipy import optimize, sparse

    n_groups, n_values = known.shape
    if not gap.any():
        return float(compute_ntvd(center(known), [slice(0, n_values)]))
    size = n_groups * n_values
    # Sparse arrays go in, because scipy 1.18 warns when `kron` has to choose between an array and a matrix.
    centring = sparse.kron(
        sparse.csr_array(np.eye(n_groups) - 1.0 / n_groups), sparse.eye_array(n_values), format="csr"
    )
    unit = sparse.eye_array(size, format="csr")
    above = sparse.hstack([centring, -unit], format="csr")
    below = sparse.hstack([-centring, -unit], format="csr")
    fill = sparse.kron(sparse.eye_array(n_groups), sparse.csr_array(np.ones((1, n_values))), format="csr")
    filled = sparse.hstack([fill, sparse.csr_array((n_groups, size))], format="csr")
    offset = (known - known.mean(axis=0)).ravel()
    found = optimize.milp(
        np.concatenate([np.zeros(size), np.ones(size)]),
        constraints=[
            optimize.LinearConstraint(above, ub=-offset),
            optimize.LinearConstraint(below, ub=offset),
            optimize.LinearConstraint(filled, gap, gap),
        ],
    )
    least = float(np.asarray(found.fun, dtype=np.float64))
    return max(0.0, float(least * 50.0 / (n_groups - 1)))
