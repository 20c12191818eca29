"""Nearly unbiased estimate of the population's nTVD, from the observed deviations and their standard errors."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from equivox.statistics.arrays import Floats

TOP = 6.0
"""Deviations of this many standard errors or more are taken as they are: noise lengthens them by nothing."""

_STEP = 0.1
_SMOOTHNESS = 1e-4
_VARIANCE_WEIGHT = 2.0
"""The weight of the squared bias, as a multiple of its share of the mean squared error."""

_SPREADS = ((0.0, 1.0), *itertools.product((0.1, 0.3, 0.6, 1.0), (0.5, 1.0, 2.0, 4.0)))
"""What is tried for the true sizes: the share that is not 0, and the mean of these in standard errors."""

_ANY = 0.1
"""The weight of sizes of which nothing is known beside those that the deviations make likely."""


def estimate_shift(deviations: Floats, errors: Floats, slices: Sequence[slice]) -> Floats:
    """Return the estimated nTVD of each attribute in percent, below zero where noise happens to fall short.

    The nTVD of a sample is too long, because each |deviation| is a little longer than the true one. Here each is
    replaced by a number whose mean is the true size as nearly as noise allows: s·g(|d|/s), with s its standard error.
    No function g does this exactly, since |δ| has no unbiased estimate (Cai & Low 2011, doi:10.1214/10-AOS849). This g
    has the least mean of squared bias and variance over true sizes of 0 to 10 standard errors; the more values a
    distance sums, the more the bias counts, because biases add up and errors cancel. It is found by least squares, and
    is not monotone: to be right on average it overshoots at some sizes. How the true sizes are spread is read off the
    deviations (empirical Bayes): each of 17 spreads, from none to all large, counts as much as it makes them likely.

    Parameters
    ----------
    deviations
        G x V, P_g - P̄ as observed; each row sums to zero within an attribute.
    errors
        G x V, the standard error of each deviation; where it is zero, the deviation is taken as it is.
    slices
        The columns of each attribute.

    Returns
    -------
    ndarray
        One estimate per attribute. The mean over attributes estimates the mean nTVD. Zero means no more than noise
        gives; means over tasks use the numbers below zero as well, since they balance those above it.
    """
    n_groups = len(deviations)
    found = np.empty(len(slices))
    for place, part in enumerate(slices):
        size, error = np.abs(deviations[:, part]), errors[:, part]
        z = np.divide(size, error, out=np.full(size.shape, TOP), where=error > 0)
        shortened = np.where(z < TOP, error * np.interp(z, _knots(), _expected_length(z, _terms(error))), size)
        found[place] = shortened.sum() * 50.0 / (n_groups - 1)
    return found


def _expected_length(z: Floats, terms: float) -> Floats:
    """Return g at the knots: the mean over spreads of the true sizes, each as likely as the deviations z make it."""
    # The deviations of a value add up to zero over the G groups, so that each says (G - 1)/G of an independent one.
    log = _log_likelihoods()
    place = np.minimum(z.ravel() / _STEP, log.shape[1] - 1.001)
    low = place.astype(int)
    each = log[:, low] + (log[:, low + 1] - log[:, low]) * (place - low)
    total = each.sum(axis=1) * (1 - 1 / len(z))
    likely = np.exp(total - total.max())
    likely /= likely.sum()
    kept = np.flatnonzero(likely > 1e-3)
    return np.asarray(np.average([_length(terms, int(spread)) for spread in kept], axis=0, weights=likely[kept]))


def _terms(errors: Floats) -> float:
    """Return the number of independent deviations of like size that would be as noisy, in steps of a tenth."""
    total = float((errors**2).sum())
    if total == 0.0:
        return 1.0
    free = 1 - 1 / len(errors)
    terms = max(1.0, free * float(errors.sum()) ** 2 / total)
    return float(np.exp(np.round(np.log(terms) * 10) / 10))


def _knots() -> Floats:
    return np.arange(0.0, TOP + _STEP / 2, _STEP)


def _sizes() -> Floats:
    return np.arange(0.0, 10.0, _STEP)


def _weights(spread: int) -> Floats:
    """Return the probability of each true size in a spread: 0, or exponential."""
    share, mean = _SPREADS[spread]
    falling = np.exp(-_sizes()[1:] / mean)
    return np.concatenate([[1 - share], share * falling / falling.sum()])


@lru_cache(maxsize=1)
def _log_likelihoods() -> Floats:
    """Return the log density of |z| in steps of `_STEP` for each spread, spreads x steps."""
    from scipy.stats import norm

    at = np.arange(0.0, TOP + 4.0 + _STEP / 2, _STEP)
    density = norm.pdf(at - _sizes()[:, None]) + norm.pdf(at + _sizes()[:, None])
    # No single deviation, however large, rules a spread out by itself: noise is not quite normal.
    return np.log(np.maximum([_weights(spread) @ density for spread in range(len(_SPREADS))], 1e-8))


@lru_cache(maxsize=4096)
def _length(terms: float, spread: int) -> Floats:
    """Return g at the knots for a distance that sums `terms` independent deviations, of sizes spread like `spread`."""
    bias, square, bias_target, square_target = _moments(spread)
    weight = _VARIANCE_WEIGHT * terms
    n = len(_knots())
    bends = np.diff(np.eye(n), 2, axis=0)
    left = (weight - 1) * bias + square + _SMOOTHNESS * bends.T @ bends
    right = weight * bias_target - square_target
    found = np.empty(n)
    found[-1] = TOP
    found[:-1] = np.linalg.solve(left[:-1, :-1], right[:-1] - left[:-1, -1] * TOP)
    return found


@lru_cache(maxsize=1)
def _means() -> tuple[Floats, Floats, Floats, Floats, Floats]:
    """Return what g is made of: hats at the knots, |y| beyond them, the density of y, and the means of both by size.

    g is linear between knots and |y| beyond the last, so that its mean is linear in its values at the knots.
    """
    from scipy.stats import norm

    width = 0.02
    y = np.arange(-TOP - 10, TOP + 10 + width / 2, width)
    far = np.abs(y) > TOP
    beyond = np.where(far, np.abs(y), 0.0)
    knots = _knots()
    place = np.clip((np.abs(y) / _STEP).astype(int), 0, len(knots) - 2)
    part = np.abs(y) / _STEP - place
    hats = np.zeros((len(knots), len(y)))
    hats[place, np.arange(len(y))] = np.where(far, 0.0, 1 - part)
    hats[place + 1, np.arange(len(y))] = np.where(far, 0.0, part)
    density = norm.pdf(y - _sizes()[:, None]) * width
    return hats, beyond, density, density @ hats.T, density @ beyond


@lru_cache(maxsize=len(_SPREADS))
def _moments(spread: int) -> tuple[Floats, Floats, Floats, Floats]:
    """Return the terms of the quadratic loss of g: over true sizes x, the mean of g(x + noise) and of its square."""
    hats, beyond, density, mean, outside = _means()
    sizes = _sizes()
    weights = (1 - _ANY) * _weights(spread) + _ANY / 2 * ((sizes == 0) + _weights(_SPREADS.index((1.0, 2.0))))
    of_y = weights @ density
    bias = (mean * weights[:, None]).T @ mean
    square = (hats * of_y) @ hats.T
    bias_target = (weights * (sizes - outside)) @ mean
    square_target = (hats * of_y) @ beyond - (weights * outside) @ mean
    return bias, square, bias_target, square_target
