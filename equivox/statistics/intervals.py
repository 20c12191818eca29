"""Confidence intervals: of the population nTVD by test inversion (docs/validity.md), and of a mean by the bootstrap."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from equivox.statistics.distance import mean_ntvd
from equivox.statistics.inputs import Floats

RESAMPLES = 9999
"""Number of resamples of the interval of a mean."""
TINY = 1e-12
"""Replaces a standard error of zero, so that any deviation is far larger than its noise."""


def invert(
    deviations: Floats,
    noise: Floats,
    errors: Floats,
    slices: Sequence[slice],
    confidence: float,
    *,
    alike: bool = False,
    rejected: bool = False,
) -> tuple[float, float]:
    """Return the interval of population shifts that are compatible with the observed one.

    A plug-in distance is too long by an amount that depends on how the true shift is spread: a value whose
    true deviation is large against its noise adds none, one without a true deviation adds all of its noise.
    The true spread is not known exactly, so each limit is computed under the least favourable spread that is
    compatible with the data:

    - lower limit: the sparsest. Deviations that noise alone may reach somewhere among so many values are set to zero,
      the others are kept.
    - upper limit: the densest. Deviations beyond 3 standard errors are kept; all others have one size, the
      largest (one-sided 84 %) that their mean square allows.

    Along each spread S the candidates t·S are tested; a candidate is kept if the observed nTVD is not in a tail
    of nTVD(t·S + noise).

    Parameters
    ----------
    deviations
        G x V, P_g - P̄ as observed.
    noise
        B x G x V draws of the sampling error of the deviations.
    errors
        G x V, the standard error of each deviation.
    slices
        The columns of each attribute; the distance is the mean over attributes.
    confidence
        Coverage; half of the remaining probability is on each side.
    alike
        Whether part of the noise is only supposed (`Noise.alike`). Then the upper limit is at least the distance that
        noise alone stays below with the probability `confidence`.
    rejected
        Whether the test rejects a shift of zero at the level 1 - confidence. It looks to one side, since a distance has
        no other. Then the lower limit is above zero: where half of the level does not lift it, the whole level does.

    Returns
    -------
    tuple
        The lower and the upper limit in percent; both zero when no value deviates and nothing is noisy.
    """
    tail = (1.0 - confidence) / 2.0
    errors = np.where(errors > 0, errors, TINY)

    distance = partial(mean_ntvd, slices=slices)
    observed = float(distance(deviations[None])[0])
    largest = 2.0 * observed + 4.0 * float(np.quantile(distance(noise), 0.99)) + 1.0

    def limit(spread: Floats, quantile: float) -> float:
        length = float(distance(spread[None])[0])
        if length == 0.0:  # no deviation at all: zero is the only candidate
            return 0.0
        unit = spread / length
        return _root(lambda t: float(np.quantile(distance(t * unit + noise), quantile)) - observed, largest)

    sparsest, densest = spreads(deviations, noise, errors, slices)
    low, high = limit(sparsest, 1.0 - tail), limit(densest, tail)
    if rejected and low == 0.0:
        low = limit(sparsest, confidence)
    # An observed distance below nearly all of noise would leave nothing: the interval is never narrower than the noise.
    lengths = distance(noise)
    high = max(high, low + float(np.quantile(lengths, 1.0 - tail) - np.quantile(lengths, 0.5)))
    return low, max(high, float(np.quantile(lengths, confidence))) if alike else high


def _root(rising: Callable[[float], float], largest: float) -> float:
    """Return the point where a rising function crosses zero on [0, largest]; 0 if it starts above zero."""
    from scipy.optimize import brentq

    if rising(0.0) >= 0.0:
        return 0.0
    if rising(largest) <= 0.0:
        return largest
    return float(brentq(rising, 0.0, largest, xtol=1e-2))


def spreads(deviations: Floats, noise: Floats, errors: Floats, slices: Sequence[slice]) -> tuple[Floats, Floats]:
    """Return the sparsest and the densest possible spread of the true shift over the values."""
    return _sparsest(deviations, errors), _densest(deviations, noise, errors, slices)


def _sparsest(deviations: Floats, errors: Floats) -> Floats:
    """Keep the deviations that noise alone hardly reaches, or else the largest one; set the others to zero.

    The largest of n standard normal numbers is about √(2 log n) (Donoho & Johnstone 1994,
    doi:10.1093/biomet/81.3.425); the threshold is 2.5 at least.
    """
    z = np.abs(deviations) / errors
    n = z.size / 2 if len(z) == 2 else z.size
    return np.where(z > min(max(2.5, np.sqrt(2 * np.log(n))), float(z.max()) * (1 - 1e-9)), deviations, 0.0)


def _densest(deviations: Floats, noise: Floats, errors: Floats, slices: Sequence[slice]) -> Floats:
    """Keep deviations of 3 standard errors or more; give all others the one size that their mean square allows.

    The mean square of z = deviation / error is 1 + size² (0.973 + size² when cut at 3); its own sampling
    error is read off the noise draws, whose values are dependent.
    """
    z = deviations / errors
    stands = np.abs(z) > 3.0
    spread = np.where(stands, deviations, 0.0)
    for part in slices:
        rest = ~stands[:, part]
        if not rest.any():
            continue
        surplus = max(0.0, float((z[:, part][rest] ** 2).mean()) - 0.973)
        error = float(((noise[:, :, part] / errors[:, part])[:, rest] ** 2).mean(axis=1).std())
        size = np.sqrt(surplus + error * np.sqrt(1 + 2 * surplus))
        spread[:, part] += np.where(rest, np.sign(z[:, part]) * size * errors[:, part], 0.0)
    return spread


def mean_interval(values: Sequence[float], *, rng: np.random.Generator) -> tuple[float, float]:
    """Return the 95 % BCa interval of the mean of independent values, in their unit; NaN if nothing varies.

    Efron 1987, https://doi.org/10.1080/01621459.1987.10478410, as scipy computes it.
    """
    from scipy import stats

    if len(set(values)) < 2:
        return math.nan, math.nan
    found = stats.bootstrap((np.asarray(values),), np.mean, n_resamples=RESAMPLES, rng=rng).confidence_interval
    return float(found.low), float(found.high)
