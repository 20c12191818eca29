"""The smallest shift that a design finds: what a score without a finding leaves open, and what would settle it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from statistics import NormalDist

GOAL = 0.8
"""The share of samples in which a shift must be found for the design to count as able to find it."""
LEVELS = (0.05, 0.0005)
"""The p-values at which the smallest shift is known; between and beyond them it is linear in the normal quantile."""


@dataclass(frozen=True, kw_only=True)
class Detectable:
    """The shift that the test finds in 80 of 100 such samples, however it is spread over the values.

    A shift is an nTVD in percent, or a difference of means or a distance from "no bias" in the unit of a number.

    Attributes
    ----------
    at_5_percent, at_5_of_10000
        That shift where p must be .05 or less, and .0005 or less.
    answers
        Answers of each cluster, on average.
    correlation
        The correlation of two answers of one cluster beyond its group, 0 or more.
    shift
        The shift that the user wants to find.
    sd
        The standard deviation of single answers within a group, for differences of means; None for an nTVD.
    per_ntvd
        What an nTVD of 1 is in the unit of the score, where `sd` is None: 1, and .5 for a share that has "no bias" at
        half, because two groups whose shares lie on both sides of it are twice as far apart.
    """

    at_5_percent: float
    at_5_of_10000: float
    answers: float
    correlation: float
    shift: float = 10.0
    sd: float | None = None
    per_ntvd: float = 1.0

    def times(self, factor: float) -> Detectable:
        """Return the same design for a score in a unit in which every number is `factor` times as large."""
        return replace(
            self,
            at_5_percent=self.at_5_percent * factor,
            at_5_of_10000=self.at_5_of_10000 * factor,
            shift=self.shift * factor,
            sd=None if self.sd is None else self.sd * factor,
            per_ntvd=self.per_ntvd * (factor if self.sd is None else 1.0),
        )

    def looking_for(self, ntvd: float) -> Detectable:
        """Return the same design for a user who wants to find this nTVD, or a difference of means of that size.

        >>> looked = Detectable(at_5_percent=30.0, at_5_of_10000=45.0, answers=1.0, correlation=0.0, sd=100.0)
        >>> round(looked.looking_for(10.0).shift, 2)
        25.13
        """
        return replace(self, shift=ntvd * self.per_ntvd if self.sd is None else self.sd * in_sd(ntvd))

    def in_words(self, unit: str | None = None) -> str:
        """Return the shift that is looked for, in the unit of the score; without it, in words that all units share.

        >>> Detectable(at_5_percent=9, at_5_of_10000=13, answers=1, correlation=0, shift=2.5, sd=10).in_words("EUR")
        'a difference of 2.5 EUR (0.25 SD)'
        """
        if self.sd is None:
            return f"a shift of {self.shift / self.per_ntvd if unit is None else self.shift:g}"
        in_sd = f"{self.shift / self.sd:.2g} SD"
        return f"a difference of {in_sd if unit is None else f'{self.shift:.3g} {unit} ({in_sd})'}"

    def at(self, level: float) -> float:
        """Return the smallest shift that is found in 80 of 100 samples where p must be `level` or less.

        >>> found = Detectable(at_5_percent=10.0, at_5_of_10000=15.0, answers=1.0, correlation=0.0)
        >>> round(found.at(0.05), 6), round(found.at(0.0005), 6), 10 < found.at(0.005) < 15
        (10.0, 15.0, True)
        """
        first, last, here = (NormalDist().inv_cdf(1 - own) for own in (*LEVELS, level))
        return self.at_5_percent + (self.at_5_of_10000 - self.at_5_percent) * (here - first) / (last - first)

    def clusters(self, now: int, level: float) -> int:
        """Return the number of clusters, with as many answers each as now, with which `shift` would be found.

        The standard error falls with the square root of the number of clusters, and what is found with it.

        >>> Detectable(at_5_percent=20.0, at_5_of_10000=30.0, answers=5.0, correlation=0.1).clusters(40, 0.05)
        160
        """
        return math.ceil(now * (self.at(level) / self.shift) ** 2 - 1e-9)


def reached(level: float, step: float) -> float:
    """Return the largest p up to `level` that a test can give whose p-values lie `step` apart; `level` if it has none.

    >>> reached(0.05, 2 / 64), reached(0.05, 0.0), reached(0.05, 0.1)
    (0.03125, 0.05, 0.05)
    """
    if step < level * 1e-9:  # so near that any level is a p
        return level
    return math.floor(level / step + 1e-9) * step or level


def correlation_of(effect: float, answers: float) -> float:
    """Return the correlation of two answers of one cluster, 0 to 1, from how much it adds to the variance.

    `effect` is how many times the variance is that of independent answers, of which each cluster has so many.

    >>> correlation_of(1.8, 5.0), correlation_of(0.9, 5.0), correlation_of(1.8, 1.0)
    (0.2, 0.0, 0.0)
    """
    return min(max((effect - 1) / (answers - 1), 0.0), 1.0) if answers > 1 else 0.0


def ntvd_of(difference: float) -> float:
    """Return the nTVD, in percent, of two normal distributions whose means lie so many standard deviations apart.

    >>> round(ntvd_of(0.2513), 2), round(ntvd_of(1.0), 2)
    (10.0, 38.29)
    """
    return 200 * NormalDist().cdf(difference / 2) - 100


def in_sd(ntvd: float) -> float:
    """Return how many standard deviations lie between the means of two normal distributions with this nTVD (percent).

    Two such distributions share all but 2Φ(d/2) - 1 of their mass; 100 % is counted as 99.99.

    >>> [round(in_sd(ntvd), 3) for ntvd in (5.0, 10.0, 38.29)]
    [0.125, 0.251, 1.0]
    """
    return 2 * NormalDist().inv_cdf(0.5 + min(ntvd, 99.99) / 200)
