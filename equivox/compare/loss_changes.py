"""Whether the groups of one run differ more than those of another in how often their answers are lost."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from equivox.compare.pairs import Asked, OpenedRun, Subject, aligned, paired_generator, refusal
from equivox.core.errors import RequestError
from equivox.core.lazy import np
from equivox.core.samples import Samples
from equivox.core.scores import LEVEL, NAN, Mover, family_of
from equivox.run.losses import LOST, by_group, lost_of, shares_of_lost
from equivox.statistics import adjust, group_means, least_p_over_clusters

SMALLEST_GROWTH = 5.0
"""A gap that is wider by less, in percentage points, is no change unless it is beyond chance."""


@dataclass(frozen=True, kw_only=True)
class LossChange(Subject):
    """One way to lose an answer to one task, in two runs with the same requests.

    Attributes
    ----------
    metric
        The way: refusal, failure, unannotated, unstated or truncated.
    new, old
        The groups with the largest and the smallest share of lost answers in each run, with these shares in percent.
    p, q
        p of the null that the groups changed alike on average (`equivox.statistics.group_means`); q over all changes of
        two runs (Benjamini and Yekutieli). NaN with the reason in `undefined`.
    p_least, q_least
        The smallest p that the clusters allow, and the q that it would have among the other changes.
    """

    new: Mover
    old: Mover
    p: float = NAN
    q: float = NAN
    p_least: float = NAN
    q_least: float = NAN
    undefined: str | None = None

    @property
    def growth(self) -> float:
        """How much wider the gap between the groups is in the new run, in percentage points."""
        return _gap(self.new) - _gap(self.old)

    @property
    def grew(self) -> bool:
        """Whether the gap is wider in the new run, beyond chance."""
        return self.growth > 0 and self.q < LEVEL

    @property
    def untold(self) -> str | None:
        """Why a gap that is wider in the new run cannot be told from chance; None if it can, or is not wider."""
        if self.growth <= 0 or self.grew:
            return None
        if math.isnan(self.q):
            return self.undefined or "too few clusters for a test"
        if self.growth < SMALLEST_GROWTH:
            return None
        if self.q_least >= LEVEL:
            return f"p {self.p:.2g}; so few clusters give no q below {self.q_least:.2g}"
        return f"p {self.p:.2g}, but among all changes q {self.q:.2g}" if self.p < LEVEL else None


def _gap(shares: Mover) -> float:
    return shares.high_share - shares.low_share


def loss_changes(new: OpenedRun, old: OpenedRun) -> list[LossChange]:
    """Return the changes of every task that both runs asked alike, and of every way that one of them lost answers.

    Each sample of both runs is lost in both, in neither, or in one of them; the test asks whether a group lost more on
    average than another. Only samples that could be lost this way in both runs are compared.
    """
    found = []
    for name, asked in new.asked.items():
        theirs = old.asked.get(name)
        if theirs is None or refusal(new, old, [name]) is not None:
            continue
        mine = by_group(asked.task, asked.samples)
        if len(mine.groups.names) < 2:
            continue
        both = aligned(mine, by_group(asked.task, theirs.samples))
        if isinstance(both, str):
            continue
        changes = [_change(asked, *both, attribute) for attribute in LOST]
        found += [change for change in changes if change is not None]
    p = [change.p for change in found]
    q = adjust(p, method="by")
    least = [adjust([*p[:n], own.p_least, *p[n + 1 :]], method="by")[n] for n, own in enumerate(found)]
    return [replace(change, q=own, q_least=other) for change, own, other in zip(found, q, least, strict=True)]


def _change(asked: Asked, new: Samples, old: Samples, attribute: str) -> LossChange | None:
    task = asked.task
    (mine, counted), (theirs, also_counted) = (lost_of(task, samples, attribute) for samples in (new, old))
    used = counted & also_counted
    mine, theirs, groups = mine[used], theirs[used], new.groups.take(used)
    if not (mine.any() or theirs.any()):
        return None
    found = LossChange(
        dimension=task.dimension, condition=task.condition, family=family_of(task.name), task=task.name,
        metric=attribute, unit="percentage points",
        new=shares_of_lost(mine, groups), old=shares_of_lost(theirs, groups),
    )  # fmt: skip
    change = mine.astype(np.int64) - theirs.astype(np.int64)
    if not change.any():
        return replace(found, p=1.0)
    design = new.design(used, strata=bool(task.strata))
    try:
        # The mean change decides: where more answers are lost by chance, more of them are lost in one run alone.
        tested = group_means(change, groups, **design, distances=False, rng=paired_generator(task.name, attribute))
        least = least_p_over_clusters(groups, n_resamples=10_000, **design)
    except RequestError as error:
        return replace(found, undefined=str(error))
    return replace(found, p=tested.p, p_least=least.p, undefined=tested.undefined)
