"""The results of a distribution-shift analysis: frozen, with their null distributions."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from equivox.core.notes import LEVEL, Note, NoteCode, describe_design
from equivox.statistics.inputs import Floats


@dataclass(frozen=True, kw_only=True)
class ShiftNumbers:
    """The numbers that the shift of one attribute and that of a task have in common, as `DistributionShift` says."""

    ntvd: float = math.nan
    estimate: float = math.nan
    estimate_unclipped: float = math.nan
    attainable_max: float = math.nan
    null_mean: float = math.nan
    null_mean_response: float = math.nan
    p_response: float = math.nan
    p_cluster: float = math.nan
    p_noise: float = math.nan
    p_paper: float = math.nan
    ci_low: float = math.nan
    ci_high: float = math.nan


@dataclass(frozen=True, kw_only=True)
class _Shift(ShiftNumbers):
    """The parts of a shift besides its numbers: the data that they were computed from."""

    n_responses: int
    n_used: int
    n_clusters: int
    null_response: Floats = field(default_factory=lambda: np.empty(0))
    null_cluster: Floats = field(default_factory=lambda: np.empty(0))
    exact_cluster: bool = False
    n_labellings: int = 0
    undefined: str | None = None
    notes: tuple[str, ...]
    p_items: float = math.nan
    removed_share: float = math.nan

    @property
    def evidence(self) -> dict[str, Any]:
        """The fields of a score that the shift determines."""
        cancels = self.p_items <= LEVEL and self.p_items < self.p_cluster
        return {
            "value": self.ntvd,
            "estimate": self.estimate_unclipped,
            "attainable_max": self.attainable_max,
            "ci": (self.ci_low, self.ci_high),
            "p": self.p_cluster,
            "p_published": self.p_paper,
            "n_units": self.n_clusters,
            "notes": (
                describe_design(null_mean=self.null_mean),
                *([Note(NoteCode.WITHIN_ITEMS, {"p": self.p_items})] if cancels else []),
                *self.notes,
            ),
        }


@dataclass(frozen=True, kw_only=True)
class DistributionShift(_Shift):
    """The shift between the groups' answers for one attribute, with its evidence.

    Distances are nTVDs in percent unless stated otherwise. Numbers are NaN when `undefined` gives a reason. `ntvd`,
    `by_group`, `deviations`, `p_response` and `p_paper` are of the sample as it is; all others hold strata and
    blocks equal (`equivox.statistics.encode`).

    Attributes
    ----------
    tvd, ntvd
        tvd is the mean over groups of ½ Σ_v |P_g(v) - P̄(v)|, between 0 and 1; ntvd is 100 · tvd / (1 - 1/G). Zero
        means that all groups gave the same answers.
    estimate, estimate_unclipped
        The estimated nTVD of the population, with what noise adds to `ntvd` removed. Zero means that the groups differ
        by no more than noise. `estimate_unclipped` may be below zero or above the maximum: take it for means over tasks
        and for differences, where such numbers balance others.
    attainable_max
        The attainable maximum: the largest nTVD that this number of values and groups can reach.
    null_mean
        The null mean: the mean nTVD over permutations of the groups over clusters, or over responses when no clusters
        were given. A sample's nTVD is expected to be this large even without an effect. With few clusters an effect
        increases it, so that `ntvd` less this mean is no distance; it is a diagnosis of the noise.
    null_mean_response
        The null mean over permutations of the groups over responses.
    p_response, p_cluster
        The probability of an nTVD at least as large when groups are permuted over responses, or over whole clusters
        (within strata, blocks or units). Never 0. p_cluster is NaN when no clusters were given. It is at least
        `p_noise`, so that it holds where the clusters of one group differ more than those of another.
    p_noise
        The probability of an nTVD at least as large from draws of the groups' own noise. It needs no clusters of like
        dispersion, and is careful with few.
    p_paper
        b/B of the permutations over responses, as VIBE prints it; may be 0.
    ci_low, ci_high
        Confidence interval of the population's nTVD, for the items asked and for clusters like those seen. Sampling
        noise is removed, so it may lie below `ntvd`.
    n_responses, n_used, n_clusters
        The responses given, the responses with a kept value, and the clusters that are compared (0 without clusters):
        those with such a response, in whose stratum or block, or unit, every group has one.
    groups, values
        The sorted names of the rows and columns of the arrays, as text.
    by_group, deviations
        G x V arrays: P_g(v), and P_g(v) - P̄(v). Shares between 0 and 1.
    p_items
        As p_cluster of the permutations alone, for values within single items, or strata without items, and within
        blocks, with rare values; 999 permutations at most. It finds differences whose sides cancel, such as women who
        are preferred for one job and men for another. NaN without clusters, without several items, where a group has
        fewer than `LEAST_OF_ITEM` answers to an item on average, where units are in every group and each item is of one
        unit, and for more than `MOST_CELLS` counts.
    removed_values, removed_share
        The values seen fewer than `min_count` times with their counts, and their share of all values seen.
    null_response, null_cluster
        The nTVD of every permutation that was drawn or enumerated; empty if undefined.
    exact_cluster, n_labellings
        Whether all permutations of the clusters were enumerated, and the number of distinct ones (2⁶³ − 1 stands for
        that many or more).
    undefined
        The reason why the numbers are NaN; None when they are defined.
    notes
        Remarks on how the numbers were computed.
    """

    groups: tuple[str, ...]
    values: tuple[str, ...]
    by_group: Floats
    deviations: Floats
    removed_values: dict[str, int]


@dataclass(frozen=True, kw_only=True)
class JointShift(_Shift):
    """The mean nTVD of several attributes of the same responses, with the null distribution of that mean.

    The mean is over the attributes that are defined. All attributes share each permutation and each draw of noise, so
    that dependence between them is allowed for.

    Attributes
    ----------
    attributes
        The shift of each attribute, from the same permutations.
    ntvd, estimate, estimate_unclipped, attainable_max, null_mean, null_mean_response, p_response, p_cluster, p_noise,
    p_paper, ci_low, ci_high
        As in `DistributionShift`, for the mean over the defined attributes.
    n_responses, n_used, n_clusters
        The responses given, the responses with a kept value in a defined attribute, and the clusters that are
        compared.
    defined
        The names of the attributes in the mean.
    removed_share
        The share of values that were removed as rare, of the attribute with the largest.
    null_response, null_cluster, exact_cluster, n_labellings, undefined, notes, p_items
        As in `DistributionShift`.
    """

    attributes: dict[str, DistributionShift]
    defined: tuple[str, ...]
