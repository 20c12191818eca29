"""The smallest shift that a sample's noise lets the test find, for the spread over the values that hides it best."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import NormalDist

import numpy as np

from equivox.core.detectable import GOAL, LEVELS, Detectable
from equivox.statistics.arrays import Floats
from equivox.statistics.distance import mean_ntvd, ntvd_of_shares

N_DRAWS = 250
"""Draws of noise for the power; its 80 % are then known to 3 points."""
_GRID = np.array([0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 2.5, 3.0, 4.0])
"""Shifts that are tried, in medians of the noise's length; what is needed is near 1."""


def detectable(
    noise: Floats, lengths: Floats, errors: Floats, slices: Sequence[slice], answers: float, effect: float
) -> Detectable:
    """Return the smallest shift that is found in 80 of 100 samples with this noise.

    A distance adds up |shift + noise| over the values, and grows with the square of a shift below the noise. It is
    least where every value moves by the same number of standard errors, so that is the spread that is tried.

    Parameters
    ----------
    noise, lengths
        B x G x V draws of the deviations under the noise alone, and their distances.
    errors
        The standard errors of the deviations, G x V.
    slices
        The columns of each attribute; the shift is the same in all.
    answers
        Answers of each cluster.
    effect
        How many times the variance is that of independent answers.
    """
    hidden = np.zeros((1, *errors.shape))
    for part in slices:
        hidden[0, :, part] = _hidden(errors[:, part])
    typical = float(np.median(lengths))
    drawn = noise[:N_DRAWS]
    tried = _GRID * typical
    reached = np.array([np.quantile(mean_ntvd(drawn + shift * hidden, slices), 1 - GOAL) for shift in tried])
    reached = np.maximum.accumulate(reached)
    needed = [_crossing(tried, reached, critical) for critical in _critical(lengths)]
    return Detectable(
        at_5_percent=needed[0],
        at_5_of_10000=max(needed),
        answers=answers,
        correlation=float(np.clip((effect - 1) / (answers - 1), 0.0, 1.0)) if answers > 1 else 0.0,
    )


def _critical(lengths: Floats) -> list[float]:
    """Return the distances that noise alone exceeds with the probabilities `LEVELS`.

    The second is beyond what is drawn: the logarithm of a distance is close to normal in its upper half.
    """
    middle, upper = np.quantile(lengths, [0.5, 0.99])
    rate = float(np.log(upper / middle)) / NormalDist().inv_cdf(0.99) if middle > 0 else 0.0
    return [
        float(np.quantile(lengths, 1 - LEVELS[0])),
        float(middle * np.exp(rate * NormalDist().inv_cdf(1 - LEVELS[1]))),
    ]


def _crossing(tried: Floats, reached: Floats, critical: float) -> float:
    """Return the shift at which the distance reaches `critical`; beyond the grid it grows as the last step does."""
    if reached[-1] <= critical:
        steepest = (reached[-1] - reached[-2]) / max(tried[-1] - tried[-2], 1e-300)
        return float(tried[-1] + (critical - reached[-1]) / max(steepest, 1e-12))
    return float(np.interp(critical, reached, tried))


def _hidden(errors: Floats) -> Floats:
    """Return deviations of length 1 (nTVD in percent), each value moved by about as many standard errors: G x V."""
    n_groups, n_values = errors.shape
    size = np.maximum(errors.mean(axis=0), errors.mean() * 1e-6 + 1e-300)
    sign = np.ones(n_values)
    balance = 0.0
    for value in np.argsort(-size, kind="stable").tolist():
        sign[value] = -1.0 if balance > 0 else 1.0
        balance += sign[value] * size[value]
    moved = sign * size
    moved[sign > 0] /= moved[sign > 0].sum()
    moved[sign < 0] /= -moved[sign < 0].sum()
    side = np.where(np.arange(n_groups) % 2 == 0, 1.0, -1.0)
    spread = (side - side.mean())[:, None] * moved
    return np.asarray(spread / float(ntvd_of_shares(spread[None])[0]), dtype=np.float64)
