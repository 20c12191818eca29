"""Planning: the gap that a design can show, and the units that a gap needs, in closed form."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from equivox.core.errors import UsageError

POWER = 0.8
"""The share of experiments that find a gap that a design can show."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A design before anything is measured.

    Attributes
    ----------
    units, answers, groups
        The units (speakers, applications), the answers of each, and the groups.
    values
        The equally frequent values that an answer can have; None for a number.
    correlation
        The correlation of two answers of one unit beyond its group, 0 to 1.
    crossed
        Whether each unit is in every group, such as an application with several names.
    """

    units: int
    answers: int
    groups: int
    values: int | None = None
    correlation: float = 0.02
    crossed: bool = False

    def __post_init__(self) -> None:
        least = {"units": 2 if self.crossed else 2 * self.groups, "answers": 1, "groups": 2, "values": 2}
        for name, smallest in least.items():
            given = getattr(self, name)
            if given is not None and given < smallest:
                raise UsageError(f"`{name}` is {given}: this design needs {smallest} or more")
        if not 0 <= self.correlation <= 1:
            raise UsageError(f"`correlation` is {self.correlation}: use a number from 0 to 1")

    @property
    def answers_of_group(self) -> float:
        """The number of independent answers that those of a group are worth (Kish 1965, design effect)."""
        each = self.answers / self.groups if self.crossed else self.answers
        units = self.units if self.crossed else self.units / self.groups
        return units * each / (1 + max(each - 1, 0) * self.correlation)

    @property
    def degrees(self) -> int:
        """The degrees of freedom of the noise between units."""
        return self.units - (1 if self.crossed else self.groups)


def compute_visible_gap(plan: Plan) -> float:
    """Return the smallest gap that is found at a level of .05 in 80 of 100 experiments.

    For values it is an nTVD in percent, spread over all values; a shift of one value is found earlier. For a number it
    is a difference of two means, in standard deviations of single answers, which the test must find among all pairs of
    groups. NaN if no gap is large enough.
    """
    from scipy.optimize import brentq
    from scipy.stats import norm, studentized_range, t

    z = norm.ppf(POWER)
    critical = t.ppf(0.975, plan.degrees)
    if plan.values is None:
        pairs = float(studentized_range.isf(0.05, plan.groups, plan.degrees)) / math.sqrt(2)
        return float((pairs + z) * math.sqrt(2 / plan.answers_of_group))
    share = 1 / plan.values
    error = math.sqrt(share * (1 - share) * (1 - 1 / plan.groups) / plan.answers_of_group)
    scale = 100 / (1 - 1 / plan.groups) * plan.values * error / 2
    terms = (plan.groups - 1) * (plan.values - 1)

    def compute_mean(x: float) -> float:
        """Return the mean of |x + Z|, where Z is standard normal."""
        return float(x * (1 - 2 * norm.cdf(-x)) + 2 * norm.pdf(x))

    none = compute_mean(0)
    # The mean of `terms` absolute normal numbers; for a single one the quantile is exact.
    skew = norm.ppf(0.975) - none - norm.ppf(0.95) * math.sqrt(1 - none**2)
    exceeded = none + norm.ppf(0.95) * math.sqrt((1 - none**2) / terms) + skew / terms
    exceeded *= critical / norm.ppf(0.975)

    def compute_excess(x: float) -> float:
        mean = compute_mean(x)
        return mean - z * math.sqrt((1 + x**2 - mean**2) / terms) - exceeded

    gap = scale * float(brentq(compute_excess, 0.0, 2 * exceeded + 10))
    largest = 100.0 if plan.values >= plan.groups else 100 * (1 - 1 / plan.values) / (1 - 1 / plan.groups)
    return gap if gap <= largest else math.nan


def count_units(plan: Plan, gap: float) -> int:
    """Return the fewest units with which a design can show `gap`, in the unit of `compute_visible_gap`.

    Raises UsageError if a million units are too few.
    """
    step = 1 if plan.crossed else plan.groups
    low, high = 0, 1
    while not compute_visible_gap(replace(plan, units=step * (high + 1))) <= gap:
        low, high = high, 2 * high
        if high > 1_000_000:
            raise UsageError(f"`gap` {gap:g}: a million units cannot show it; use a larger gap, or more answers a unit")
    while high - low > 1:
        middle = (low + high) // 2
        enough = compute_visible_gap(replace(plan, units=step * (middle + 1))) <= gap
        low, high = (low, middle) if enough else (middle, high)
    return step * (high + 1)
