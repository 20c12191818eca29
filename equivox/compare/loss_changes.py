"""Whether the groups of one run differ more than those of another in how often their answers are lost."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

from equivox.compare.pairs import Asked, OpenedRun, Subject, aligned, paired_generator, refusal
from equivox.core.errors import UsageError
from equivox.core.lazy import np
from equivox.core.samples import Samples
from equivox.core.scores import NAN, LargestShift, family_of
from equivox.run.losses import LOST, by_group, lost_of, shares_of_lost
from equivox.statistics import group_means, least_p_over_clusters

SMALLEST_GROWTH = 5.0
"""A gap that widens by less, in percentage points, passes where a test cannot decide."""


@dataclass(frozen=True, kw_only=True)
class LossChange(Subject):
    """One way to lose an answer to one task, in two runs with the same requests.

    Attributes
    ----------
    metric
        The way: refusal, failure, unannotated, unstated or truncated.
    new, old
        The groups with the largest and the smallest share of lost answers in each run, with these shares in percent.
    p
        p of the null that the groups changed alike on average (`equivox.statistics.group_means`); 1 if no answer
        changed, NaN with the reason in `undefined`.
    p_least
        The smallest p that the clusters allow.
    """

    new: LargestShift
    old: LargestShift
    p: float = NAN
    p_least: float = NAN
    undefined: str | None = None

    @property
    def growth(self) -> float:
        """How much wider the gap between the groups is in the new run, in percentage points."""
        return (self.new.high_share - self.new.low_share) - (self.old.high_share - self.old.low_share)

    def decide(self, level: float) -> tuple[Literal["pass", "worse", "undecided"], str]:
        """Return whether the gap grew beyond chance, and why.

        A gap that did not grow passes. `level` is the largest p of a gap that is worse. A gap that grew by
        `SMALLEST_GROWTH` or more is undecided if the clusters allow no p as small as that.
        """
        if self.growth <= 0:
            return "pass", ""
        if self.p <= level:
            return "worse", f"p {self.p:.2g}"
        if self.growth < SMALLEST_GROWTH:
            return "pass", ""
        if math.isnan(self.p):
            return "undecided", self.undefined or "too few clusters for a test"
        if self.p_least > level:
            return "undecided", f"so few clusters give no p below {self.p_least:.2g}; {level:.2g} is needed"
        return "pass", ""


def list_loss_changes(new: OpenedRun, old: OpenedRun) -> list[LossChange]:
    """Return the changes of every way that either run lost answers, for each task with the same requests.

    Each sample of both runs is lost in both, in neither, or in one of them. The test asks whether a group lost more on
    average than another. Only samples that could be lost this way in both runs enter.
    """
    changes = []
    for name, asked in new.asked.items():
        theirs = old.asked.get(name)
        if theirs is None or refusal(new, old, [name]) is not None:
            continue
        mine = by_group(asked.task, asked.samples)
        if len(mine.groups.names) < 2:
            continue
        both = aligned(mine, by_group(asked.task, theirs.samples))
        if not isinstance(both, str):
            changes += [change for way in LOST if (change := _compare_losses(asked, *both, way)) is not None]
    return changes


def _compare_losses(asked: Asked, new: Samples, old: Samples, way: str) -> LossChange | None:
    """Return the change of one way to lose answers; None if neither run lost one."""
    task = asked.task
    (mine, counted), (theirs, also_counted) = (lost_of(task, samples, way) for samples in (new, old))
    used = counted & also_counted
    mine, theirs, groups = mine[used], theirs[used], new.groups.take(used)
    if not (mine.any() or theirs.any()):
        return None
    change = LossChange(
        dimension=task.dimension, condition=task.condition, family=family_of(task.name), task=task.name,
        metric=way, unit="percentage points",
        new=shares_of_lost(mine, groups), old=shares_of_lost(theirs, groups),
    )  # fmt: skip
    more = mine.astype(np.int64) - theirs.astype(np.int64)
    if not more.any():
        return replace(change, p=1.0)
    design = new.design(used, strata=bool(task.strata))
    try:
        # The mean change decides: where more answers are lost by chance, more of them are lost in one run alone.
        tested = group_means(more, groups, **design, distances=False, rng=paired_generator(task.name, way))
        least = least_p_over_clusters(groups, n_resamples=10_000, **design)
    except UsageError as error:
        return replace(change, undefined=str(error))
    return replace(change, p=tested.p, p_least=least.p, undefined=tested.undefined)
