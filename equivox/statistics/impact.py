"""Impact ratios: the share of favourable answers of each group, divided by that of the most favoured group."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from equivox.core.errors import RequestError
from equivox.statistics import inputs
from equivox.statistics.inputs import Bools, EncodedLabels, Floats, Ints, LabelColumn, NumberColumn
from equivox.statistics.intervals import of_ratio

FOUR_FIFTHS = 0.8
"""The ratio of the rule of thumb in 29 CFR 1607.4(D)."""

FEW_CLUSTERS = 10
"""With fewer clusters in a group than this, a note says so."""

NAN = float("nan")

Mark = Literal[
    "below",
    "below, not certain",
    "below, no interval",
    "not below, not certain",
    "not below, no interval",
    "not below",
    "",
]
"""Where a ratio lies against four fifths.

`not certain` means that the interval, or what the unknown answers allow, includes 0.8; `no interval`, that there is
none; `""`, that the group is the most favoured one or that there is no ratio.
"""


@dataclass(frozen=True, kw_only=True)
class GroupImpact:
    """One group: its counts, its share of favourable answers and its impact ratio.

    Attributes
    ----------
    requested, known, favourable, unknown
        Responses, those that are known to be favourable or not, the favourable ones, and all others.
    share
        Favourable of known, in percent; zero: none is favourable; NaN: none is known.
    ratio
        The share divided by that of the most favoured group, from 0 to 1. Zero: no answer is favourable. One: as
        favoured as the most favoured group. NaN if `undefined` gives a reason.
    low, high
        The interval of the ratio; NaN for the most favoured group, and where `undefined` gives a reason.
    least, most
        The smallest and the largest ratio that the unknown responses allow, whatever they would have been; NaN for one
        group alone, and where no other group can have a favourable response and this one has none that is known.
    mark
        Where the ratio lies against four fifths.
    """

    group: str
    requested: int
    known: int
    favourable: int
    unknown: int
    n_clusters: int
    share: float
    ratio: float = NAN
    low: float = NAN
    high: float = NAN
    least: float = NAN
    most: float = NAN
    mark: Mark = ""
    undefined: str | None = None


@dataclass(frozen=True, kw_only=True)
class ImpactRatios:
    """The impact ratios of all groups.

    `favoured` names the groups with the largest share: all of them if their shares are equal, none if `undefined` says
    why there is no ratio.
    """

    groups: tuple[GroupImpact, ...]
    favoured: tuple[str, ...]
    undefined: str | None
    notes: tuple[str, ...] = field(default=())


@dataclass(frozen=True)
class _Group:
    """The answers of one group by cluster (K): those that are known, and the favourable ones."""

    name: str
    known: Floats
    hits: Floats

    @property
    def clusters(self) -> int:
        """The number of clusters with a known answer."""
        return int((self.known > 0).sum())

    @property
    def share(self) -> float:
        """Favourable of known."""
        return float(self.hits.sum() / self.known.sum())

    @property
    def pulls(self) -> Floats:
        """The linearised deviation of each cluster from the logarithm of the share; zero where absent."""
        stretch, _ = of_ratio(self.known)
        deviations = (self.hits - self.share * self.known) / (self.known.sum() * self.share)
        return np.asarray(stretch * deviations, dtype=np.float64)

    @property
    def degrees(self) -> float:
        """The degrees of freedom of the share."""
        return of_ratio(self.known)[1]

    @property
    def variance(self) -> float:
        """The variance of the logarithm of the share, with both guards."""
        k = self.clusters
        return max(k / (k - 1) * float((self.pulls**2).sum()), self.binomial)

    @property
    def binomial(self) -> float:
        """The smallest variance of the logarithm of the share that is believed."""
        share, n = self.share, float(self.known.sum())
        if share < 1:
            return (1 - share) / (share * n)
        guarded = (self.clusters + 0.5) / (self.clusters + 1)
        return (1 - guarded) / (guarded * self.clusters)


def impact_ratios(
    favourable: NumberColumn,
    *,
    groups: LabelColumn,
    clusters: LabelColumn | None,
    min_known: float = 0.8,
    confidence: float = 0.95,
) -> ImpactRatios:
    """Return the impact ratio of each group, with intervals over clusters.

    Parameters
    ----------
    favourable
        1 for a favourable answer, 0 for any other, NaN or None where it is unknown (failed, refused, not stated).
    groups
        The group of each response.
    clusters
        The unit that gave several responses, one label per response. None makes each response a cluster. A cluster may
        have responses in several groups.
    min_known
        Ratios are defined only if this share of the responses is known in every group.
    confidence
        Coverage of the intervals of all pairs of groups together, between 0 and 1.

    Returns
    -------
    ImpactRatios
        A ratio of 1 means that the group is as favoured as the most favoured one, 0 that it has no favourable answer.
        Every ratio is NaN, with a reason, when there is one group, when too few answers of a group are known, and when
        no answer at all is favourable. Only an interval is NaN, with a reason, when one of the two groups has a single
        cluster.

    Raises
    ------
    RequestError
        No numbers, a number other than 0 and 1, a missing group or cluster, or columns of unequal lengths.

    Notes
    -----
    The interval is computed on the logarithm of the ratio (Katz et al. 1978, doi:10.2307/2530610), because a ratio is
    skewed, with the linearised variance of two ratio estimates over clusters (Rao and Scott 1992, doi:10.2307/2532311;
    a cluster in both groups adds its covariance) in place of the binomial one; `intervals.of_ratio` says what
    clusters of unequal size change. A bootstrap over clusters was not taken: with the few voices of a corpus it is too
    narrow, and it fails where every cluster of a group agrees.

    Two guards keep a variance from being too small. It is at least that of independent responses. A share of 0 or 100 %
    has the variance of one answer per cluster, with half a favourable and half another answer added.

    The interval of a group without a favourable answer begins at 0. Its upper end is the exact upper limit of the share
    (all of K clusters have none with a probability of (1 - share)^K at most) over the lower limit of the most favoured
    group's share; half of the error goes to each.

    The most favoured group is chosen from the data. The intervals therefore hold for all pairs of groups together
    (Bonferroni's correction: Dunn 1961, doi:10.1080/01621459.1961.10482090), with Student's t and Welch's degrees of
    freedom. The ratio itself is not corrected for this choice: with many
    groups and few answers it lies below 1 even when all groups are alike.

    Examples
    --------
    >>> found = impact_ratios([1, 1, 1, 0, 1, 0, 0, 0], groups=list("aaaabbbb"), clusters=[1, 1, 2, 2, 3, 3, 4, 4])
    >>> [(one.group, one.share, round(one.ratio, 3), one.mark) for one in found.groups]
    [('a', 75.0, 1.0, ''), ('b', 25.0, 0.333, 'below, not certain')]
    """
    inputs.check_share(confidence, "confidence")
    if not 0.0 <= min_known <= 1.0:
        raise RequestError(f"`min_known` is {min_known}: use a share from 0 to 1")
    column = inputs.numbers(favourable, "favourable")
    is_known = ~np.isnan(column)
    if not np.isin(column[is_known], (0.0, 1.0)).all():
        raise RequestError("`favourable` holds a number other than 0 and 1: use NaN where it is unknown")
    coded = inputs.labels(groups, "groups")
    inputs.same_length("favourable", len(column), {"groups": len(coded.codes)})
    cluster = inputs.cluster_codes(clusters, "favourable", len(column))
    given = _groups(column, is_known, coded, cluster)
    requested = np.bincount(coded.codes, minlength=len(given))
    known, hits = np.array([[own.known.sum(), own.hits.sum()] for own in given]).T
    shares = np.divide(hits, known, out=np.full(len(known), NAN), where=known > 0)
    least, most = _bounds(hits, requested - known, requested)
    undefined = _undefined(coded.names, requested, known, hits, min_known)
    reference = -1 if undefined else int(np.nanargmax(shares))
    found = []
    for code, own in enumerate(given):
        ratio = low = high = NAN
        reason = undefined
        if undefined is None:
            ratio = float(shares[code] / shares[reference])
            if code != reference:
                low, high, reason = _interval(own, given[reference], len(given), confidence)
        found.append(
            GroupImpact(
                group=own.name,
                requested=int(requested[code]),
                known=int(known[code]),
                favourable=int(hits[code]),
                unknown=int(requested[code] - known[code]),
                n_clusters=own.clusters,
                share=100 * float(shares[code]),
                ratio=ratio,
                low=low,
                high=high,
                least=float(least[code]),
                most=float(most[code]),
                mark="" if undefined or code == reference else _mark(ratio, low, high, least[code], most[code]),
                undefined=reason,
            )
        )
    favoured = () if undefined else tuple(one.group for one in found if one.ratio > 1 - 1e-12)
    return ImpactRatios(
        groups=tuple(found), favoured=favoured, undefined=undefined, notes=() if undefined else _notes(given)
    )


def _groups(column: Floats, is_known: Bools, group: EncodedLabels, cluster: Ints) -> list[_Group]:
    """Return the counts of each group."""
    shape = (int(cluster.max()) + 1, len(group.names))
    cells = (cluster * shape[1] + group.codes)[is_known]
    known = np.bincount(cells, minlength=shape[0] * shape[1]).reshape(shape).astype(np.float64)
    hits = np.bincount(cells, weights=column[is_known], minlength=known.size).reshape(shape).astype(np.float64)
    return [_Group(name, known[:, code], hits[:, code]) for code, name in enumerate(group.names)]


def _undefined(names: Sequence[str], requested: Ints, known: Floats, hits: Floats, min_known: float) -> str | None:
    """Return why there is no ratio; None if there is one."""
    if len(names) < 2:
        return "one group only: there is nothing to compare it with"
    worst = int(np.argmin(known / requested))
    if known[worst] == 0:
        return f"no answer of {names[worst]} is known"
    if known[worst] < min_known * requested[worst]:
        percent = math.floor(100 * known[worst] / requested[worst])
        return f"only {percent} % of the answers of {names[worst]} are known, {100 * min_known:g} % are needed"
    if not hits.any():
        return "no group has a favourable answer"
    return None


def _bounds(hits: Floats, unknown: Floats, requested: Ints) -> tuple[Floats, Floats]:
    """Return the smallest and the largest ratio of each group over all outcomes of the unknown responses."""
    lowest, highest = hits / requested, (hits + unknown) / requested
    least, most = np.full(len(hits), NAN), np.full(len(hits), NAN)
    for code in range(len(hits)):
        others = np.arange(len(hits)) != code
        if not others.any():
            continue
        # The most favoured group is chosen anew for each outcome: the ratio is 1 where this group is the one.
        top, bottom = highest[others].max(), lowest[others].max()
        if not max(lowest[code], top):  # where the unknown answers are not favourable either, there is no ratio
            continue
        least[code] = lowest[code] / top if lowest[code] < top else 1.0
        most[code] = highest[code] / bottom if highest[code] < bottom else float(highest[code] > 0)
    return least, most


def _interval(own: _Group, favoured: _Group, n_groups: int, confidence: float) -> tuple[float, float, str | None]:
    """Return the interval of one group's ratio, and why there is none."""
    from scipy.special import stdtrit

    for one in (own, favoured):
        if one.clusters < 2:
            return NAN, NAN, f"no interval: {one.name} has one cluster only"
    miss = (1 - confidence) / (n_groups * (n_groups - 1) // 2)
    if own.hits.sum() == 0:
        return 0.0, _most_of_none(own, favoured, miss), None
    variances = own.variance, favoured.variance
    both = (own.known > 0) & (favoured.known > 0)
    shared = int(both.sum())
    covariance = float(own.pulls[both] @ favoured.pulls[both]) * shared / max(shared - 1, 1)
    variance = max(sum(variances) - 2 * covariance, own.binomial + favoured.binomial)
    degrees = sum(variances) ** 2 / sum(
        square**2 / one.degrees for square, one in zip(variances, (own, favoured), strict=True)
    )
    if shared:
        degrees = min(degrees, own.degrees, favoured.degrees)
    half = float(stdtrit(degrees, 1 - miss / 2)) * math.sqrt(variance)
    centre = math.log(own.share / favoured.share)
    return math.exp(centre - half), math.exp(centre + half), None


def _most_of_none(own: _Group, favoured: _Group, miss: float) -> float:
    """Return the upper limit of the ratio of a group without a favourable answer."""
    from scipy.special import stdtrit

    highest = 1 - (miss / 4) ** (1 / own.clusters)
    factor = float(stdtrit(favoured.degrees, 1 - miss / 4))
    return float(highest / (favoured.share * math.exp(-factor * math.sqrt(favoured.variance))))


def _mark(ratio: float, low: float, high: float, least: float, most: float) -> Mark:
    below = ratio < FOUR_FIFTHS - 1e-12
    if math.isnan(low):
        return "below, no interval" if below else "not below, no interval"
    if below:
        return "below" if max(high, most) < FOUR_FIFTHS else "below, not certain"
    return "not below" if min(low, least) >= FOUR_FIFTHS else "not below, not certain"


def _notes(given: Sequence[_Group]) -> tuple[str, ...]:
    fewest = min(group.clusters for group in given)
    few = (
        f"a group has {fewest} clusters, fewer than {FEW_CLUSTERS}: the interval supposes that their shares are normal"
    )
    return (few,) if 2 <= fewest < FEW_CLUSTERS else ()
