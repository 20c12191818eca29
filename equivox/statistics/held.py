"""What is held equal between groups: weights that give every group the same mix of blocks and strata.

Groups that hold blocks or strata in unequal numbers differ by these numbers alone. Direct standardisation removes
that: within each stratum s the groups are compared with one another, and the strata are added up with the same weights
w_s for all groups, P_g = Σ_s w_s P_gs (Keiding & Clayton 2014, doi:10.1214/13-STS453).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from equivox.statistics.arrays import Bools, Floats, Ints

_ALIKE = 1e-9


@dataclass(frozen=True, kw_only=True)
class Standard:
    """How the clusters count so that every group has the same mix of strata.

    Attributes
    ----------
    weights
        K x A, the factor on the counts of each cluster in each attribute; 0 outside of the common support. The weighted
        counts of a group add up to its number of values within the common support.
    deals
        K x A x G, the factor on what a cluster has beyond the mean of its stratum, if it were of group g. Unlike
        `weights` it does not depend on the clusters' groups, so that permutations keep it.
    common
        S x A, whether every group has values of the attribute in the stratum, or none has.
    """

    weights: Floats
    deals: Floats
    common: Bools

    @property
    def balanced(self) -> bool:
        """Whether every group has the same mix of strata already, so that nothing has to be weighted."""
        given = self.weights[self.weights > 0]
        return bool((np.abs(given - 1) < _ALIKE).all() and self.common.all())


def standard(counts: Ints | Floats, group: Ints, held: Ints | None, slices: Sequence[slice], n_groups: int) -> Standard:
    """Return how the clusters count, from the values of each (`counts`, K x V), its group and its stratum.

    A stratum weighs as much as it has values in all groups together. A stratum in which some group has no value is no
    part of the common support: it counts for no group.
    """
    sizes = np.stack([counts[:, part].sum(axis=1) for part in slices], axis=1).astype(np.float64)
    n_parts = sizes.shape[1]
    stratum = np.zeros(len(group), dtype=np.int64) if held is None else np.unique(held, return_inverse=True)[1]
    n_strata = int(stratum.max()) + 1
    totals = np.zeros((n_strata, n_groups, n_parts))
    np.add.at(totals, (stratum, group), sizes)
    members = np.bincount(stratum * n_groups + group, minlength=n_strata * n_groups).reshape(n_strata, n_groups)
    of_stratum = totals.sum(axis=1)
    common = (totals.min(axis=1) > 0) | (of_stratum == 0)
    share = np.where(common, of_stratum, 0.0)
    inside = np.where(common[:, None], totals, 0.0).sum(axis=0)
    ratio = _divided((share / np.maximum(share.sum(axis=0), 1.0))[:, None] * inside[None], totals * common[:, None])
    # Both factors below depend on the numbers of clusters alone, which permutations keep.
    everywhere = of_stratum * (members.min(axis=1) > 0)[:, None]
    expected = members[:, :, None] * (of_stratum / members.sum(axis=1)[:, None])[:, None]
    deal = _divided((everywhere / np.maximum(everywhere.sum(axis=0), 1.0))[:, None] * np.ones_like(expected), expected)
    return Standard(
        weights=ratio[stratum, group],
        deals=deal[stratum].transpose(0, 2, 1),
        common=common,
    )


def _divided(above: Floats, below: Floats) -> Floats:
    """Return the quotient, 0 where the divisor is 0."""
    return np.asarray(np.divide(above, below, out=np.zeros_like(above), where=below > 0), dtype=np.float64)
