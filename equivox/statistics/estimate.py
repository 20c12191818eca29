"""Nearly unbiased estimate of the population's nTVD, from the observed deviations and their standard errors."""

from __future__ import annotations

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


def estimate_shift(deviations: Floats, errors: Floats, slices: Sequence[slice]) -> Floats:
    """Return the estimated nTVD of each attribute in percent, below zero where noise happens to fall short.

    The nTVD of a sample is too long, because each |deviation| is a little longer than the true one. Here each is
    replaced by a number whose mean is the true size as nearly as noise allows: s·g(|d|/s), with s its standard error.
    No function g does this exactly, since |δ| has no unbiased estimate (Cai & Low 2011, doi:10.1214/10-AOS849). This g
    has the least mean of squared bias and variance over true sizes of 0 to 8 standard errors, half of them 0; the more
    values a distance sums, the more the bias counts, because biases add up and errors cancel. It is found by least
    squares, and is not monotone: to be right on average it overshoots at some sizes.

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
        shortened = np.where(z < TOP, error * (np.interp(z, _knots(), _length(_terms(error)))), size)
        found[place] = shortened.sum() * 50.0 / (n_groups - 1)
    return found


def _terms(errors: Floats) -> float:
    """Return the number of independent deviations of like size that would be as noisy, in steps of a tenth."""
    total = float((errors**2).sum())
    if total == 0.0:
        return 1.0
    n_groups = len(errors)
    terms = max(1.0, (1 - 1 / n_groups) * float(errors.sum()) ** 2 / total)
    return float(np.exp(np.round(np.log(terms) * 10) / 10))


def _knots() -> Floats:
    return np.arange(0.0, TOP + _STEP / 2, _STEP)


@lru_cache(maxsize=256)
def _length(terms: float) -> Floats:
    """Return g at the knots, for a distance that sums `terms` independent deviations."""
    bias, square, bias_target, square_target = _moments()
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
def _moments() -> tuple[Floats, Floats, Floats, Floats]:
    """Return the terms of the quadratic loss of g: over true sizes x, the mean of g(x + noise) and of its square.

    g is linear between knots and |y| beyond the last, so both are linear and quadratic in its values at the knots.
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
    sizes = np.arange(0.0, 8.0, 0.1)
    weights = np.where(sizes == 0, 1.0, 0.1 * np.exp(-sizes / 2) / 2)
    weights /= weights.sum()
    density = norm.pdf(y - sizes[:, None]) * width
    mean, outside = density @ hats.T, density @ beyond
    bias = (mean * weights[:, None]).T @ mean
    square = (hats * (weights @ density)) @ hats.T
    bias_target = (weights * (sizes - outside)) @ mean
    square_target = (hats * (weights @ density)) @ beyond - (weights * outside) @ mean
    return bias, square, bias_target, square_target
