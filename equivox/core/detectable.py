"""The smallest shift that a design finds: what a score without a finding leaves open, and what would settle it."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from statistics import NormalDist

from equivox.core.notes import Note, NoteCode

LEVEL = 0.05
"""The level of every decision: a finding needs a q below it."""

GOAL = 0.8
"""The share of samples in which a shift must be found for the design to count as able to find it."""


@dataclass(frozen=True, kw_only=True)
class Detectable:
    """The shift that the test finds in 80 of 100 such samples, however it is spread over the values.

    A shift is an nTVD in percent, or a difference of means or a distance from "no bias" in the unit of a number.

    Attributes
    ----------
    smallest
        That shift where p must be .05 or less.
    sd
        The standard deviation of single answers within a group, for differences of means; None for an nTVD.
    per_ntvd
        What an nTVD of 1 is in the unit of the score, where `sd` is None: 1, and .5 for a share that has "no bias" at
        half, because two groups whose shares lie on both sides of it are twice as far apart.
    """

    smallest: float
    sd: float | None = None
    per_ntvd: float = 1.0

    def times(self, factor: float) -> Detectable:
        """Return the same design for a score in a unit in which every number is `factor` times as large."""
        return replace(
            self,
            smallest=self.smallest * factor,
            sd=None if self.sd is None else self.sd * factor,
            per_ntvd=self.per_ntvd * (factor if self.sd is None else 1.0),
        )

    def compute_relevant(self, look_for: float) -> float:
        """Return an nTVD that one looks for in the unit of the score, or a difference of means of that size.

        >>> round(Detectable(smallest=30.0, sd=100.0).compute_relevant(10.0), 2)
        25.13
        """
        return look_for * self.per_ntvd if self.sd is None else self.sd * in_sd(look_for)

    def count_clusters(self, now: int, look_for: float) -> int:
        """Return the number of clusters, with as many answers each as now, that would find the shift looked for.

        The standard error falls with the square root of the number of clusters, and what is found with it.

        >>> Detectable(smallest=20.0).count_clusters(40, 10.0)
        160
        """
        return math.ceil(now * (self.smallest / self.compute_relevant(look_for)) ** 2 - 1e-9)


def describe_design(detectable: Detectable | None, null_mean: float = math.nan) -> Note:
    """Return what a design can show as a note; a number that is not known is left out."""
    known = (
        {} if detectable is None else {name: value for name, value in asdict(detectable).items() if value is not None}
    )
    return Note(NoteCode.DESIGN, known | ({} if math.isnan(null_mean) else {"null_mean": null_mean}))


def reached(level: float, step: float) -> float:
    """Return the largest p up to `level` that a test can give whose p-values lie `step` apart; `level` if it has none.

    >>> reached(0.05, 2 / 64), reached(0.05, 0.0), reached(0.05, 0.1)
    (0.03125, 0.05, 0.05)
    """
    if step < level * 1e-9:  # so near that any level is a p
        return level
    return math.floor(level / step + 1e-9) * step or level


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
