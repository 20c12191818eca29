"""What a distribution-shift analysis returns: frozen, with its evidence."""

from __future__ import annotations

from dataclasses import dataclass

from equivox.statistics.arrays import Floats


@dataclass(frozen=True, kw_only=True)
class DistributionShift:
    """How far the answers of the groups lie apart, for one attribute.

    All distances are nTVDs in percent unless said otherwise; numbers are NaN when `undefined` gives a reason.

    Attributes
    ----------
    tvd, ntvd
        Mean over groups of ½ Σ_v |P_g(v) - P̄(v)|, and 100 · tvd / (1 - 1/G). Zero: all answered alike.
    ceiling
        Largest nTVD that this number of values and groups can reach.
    floor
        Mean nTVD when the groups make no difference: labels dealt over clusters, or over responses when no
        clusters were given. A plug-in distance is never expected below it.
    floor_response
        The same with labels dealt over responses.
    excess
        ntvd - floor. Zero: no more than noise; below zero is possible.
    p_response, p_cluster
        Probability of an nTVD at least as large when labels are dealt over responses, or over whole clusters
        (within strata). Never 0. NaN for p_cluster when no clusters were given.
    p_paper
        b/B of the labels dealt over responses, as printed by VIBE; may be 0.
    ci_low, ci_high
        Confidence interval of the population's nTVD, noise removed: it may lie below `ntvd`.
    n_responses, n_used, n_clusters
        Responses given; responses with a kept value; clusters with one (0 when no clusters were given).
    groups, values
        Sorted names: the rows and columns of the arrays.
    by_group, deviations
        G x V: P_g(v), and P_g(v) - P̄(v).
    group_counts
        Used responses of each group.
    removed_values, removed_share
        Values seen fewer than `min_count` times with their counts, and their share of all values seen.
    null_response, null_cluster
        The nTVD of every labelling drawn or enumerated; empty where undefined.
    exact_cluster, n_labellings
        Whether all labellings of the clusters were enumerated, and how many distinct ones there are (2⁶³ − 1 stands
        for more).
    undefined
        Why the numbers are NaN; None when they are defined.
    notes
        What a reader should know about how the numbers were made.
    """

    tvd: float
    ntvd: float
    ceiling: float
    floor: float
    floor_response: float
    excess: float
    p_response: float
    p_cluster: float
    ci_low: float
    ci_high: float
    p_paper: float
    n_responses: int
    n_used: int
    n_clusters: int
    groups: tuple[str, ...]
    values: tuple[str, ...]
    by_group: Floats
    deviations: Floats
    group_counts: tuple[int, ...]
    removed_values: dict[str, int]
    removed_share: float
    null_response: Floats
    null_cluster: Floats
    exact_cluster: bool
    n_labellings: int
    undefined: str | None
    notes: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class JointShift:
    """The mean nTVD of several attributes of the same responses, with its own floor, p-values and interval.

    The mean is over the attributes that are defined. Each labelling, and each draw of noise, is shared by all
    attributes, so that what they have in common is not counted twice.

    Attributes
    ----------
    attributes
        The shift of each attribute, from the same labellings.
    ntvd, ceiling, floor, floor_response, excess, p_response, p_cluster, p_paper, ci_low, ci_high
        As in `DistributionShift`, for the mean over the defined attributes.
    n_responses, n_used, n_clusters
        Responses given; responses with a kept value in a defined attribute; clusters with one.
    defined
        Names of the attributes that entered the mean.
    null_response, null_cluster, exact_cluster, n_labellings, undefined, notes
        As in `DistributionShift`.
    """

    attributes: dict[str, DistributionShift]
    ntvd: float
    ceiling: float
    floor: float
    floor_response: float
    excess: float
    p_response: float
    p_cluster: float
    ci_low: float
    ci_high: float
    p_paper: float
    n_responses: int
    n_used: int
    n_clusters: int
    defined: tuple[str, ...]
    null_response: Floats
    null_cluster: Floats
    exact_cluster: bool
    n_labellings: int
    undefined: str | None
    notes: tuple[str, ...]
