"""The smallest p-value that a design can give, whatever the answers: with few permutations it is large."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from equivox.core.errors import RequestError
from equivox.statistics import checks
from equivox.statistics.arrays import Ints
from equivox.statistics.encode import encode_design
from equivox.statistics.inputs import LabelColumn
from equivox.statistics.permutation import count_labellings, sizes_by_stratum

LEVEL = 0.05
"""The level of the tests: a design whose p cannot be below it cannot find anything."""

_MOST_GROUPS = 7
"""Up to this many groups all their renamings are tried; with more, renaming is taken to change every permutation."""


@dataclass(frozen=True, kw_only=True)
class LeastP:
    """The smallest p that a permutation test can give, and the number of distinct permutations.

    `p` is between 0 and 1 and never 0. It is 1 if no permutation changes anything.
    """

    p: float
    n_permutations: int

    @property
    def too_few(self) -> str | None:
        """Why the test can find nothing at the level .05, in words; None if it can."""
        if self.p < LEVEL:
            return None
        are = "1 permutation" if self.n_permutations == 1 else f"{self.n_permutations:,} permutations"
        return f"{are}: no p below {self.p:.2g}"


def least_p(sizes: Ints, *, n_resamples: int) -> LeastP:
    """Return the smallest p of a test that permutes groups over units within strata.

    Parameters
    ----------
    sizes
        Strata × groups: the number of units of each group in each stratum.
    n_resamples
        Permutations drawn. All of them are enumerated when there are no more than this.

    Returns
    -------
    LeastP
        The most extreme permutation is never alone if the statistic does not know the groups' names: renaming the
        groups gives permutations that are as extreme. `p` is their share of all permutations, and at least
        1 / (1 + n_resamples) when permutations are drawn.

    Raises
    ------
    RequestError
        `n_resamples` below 1.

    Examples
    --------
    Three speakers of each of two groups have 20 permutations, two of which are the most extreme. Two and four have 15,
    and no renaming of the groups is one of them. Five pairs of names have 32.

    >>> least_p(np.array([[3, 3]]), n_resamples=10_000).too_few
    '20 permutations: no p below 0.1'
    >>> least_p(np.array([[2, 4]]), n_resamples=10_000).p == 1 / 15
    True
    >>> least_p(np.array([[1, 1]] * 5), n_resamples=10_000).p
    0.0625
    """
    checks.resamples(n_resamples)
    n = count_labellings(sizes)
    share = float(min(1.0, _renamings(sizes) / n))
    p = share if n <= n_resamples else max(share, 1 / (1 + n_resamples))
    return LeastP(p=p, n_permutations=n)


def least_p_over_clusters(
    groups: LabelColumn,
    clusters: LabelColumn,
    strata: LabelColumn | None = None,
    *,
    blocks: LabelColumn | None = None,
    n_resamples: int = 10_000,
) -> LeastP:
    """Return the smallest p of a test that permutes the groups over whole clusters, such as `distribution_shift`.

    Parameters
    ----------
    groups, clusters
        One label per response. Each cluster has one group, or is in every group.
    strata
        One label per response. Groups are permuted within strata if each cluster has one stratum, else freely.
    blocks
        One label per response. Groups are permuted within the blocks of clusters.
    n_resamples
        Permutations drawn, as in `least_p`.

    Raises
    ------
    RequestError
        Columns of unequal lengths, a missing label, or clusters of which some are in one group and some in
        several.

    Examples
    --------
    >>> least_p_over_clusters(["f", "f", "f", "m", "m"], ["a", "a", "b", "c", "d"]).too_few
    '6 permutations: no p below 0.33'
    """
    design = encode_design(groups, clusters, strata, blocks)
    if design.group_of_cluster is None:
        raise RequestError("`clusters` is missing: give the cluster of each response")
    sizes = sizes_by_stratum(design.group_of_cluster, design.held, len(design.groups))
    # A stratum without some group says nothing, whoever is permuted there.
    whole = sizes[(sizes > 0).all(axis=1)]
    return least_p(whole if len(whole) else np.zeros_like(sizes[:1]), n_resamples=n_resamples)


def _renamings(sizes: Ints) -> int:
    """Count the renamings of groups that leave the sizes of every stratum as they are."""
    unlike = np.unique(sizes, axis=0)
    present = unlike[:, unlike.any(axis=0)]
    if present.shape[1] > _MOST_GROUPS:
        return 1
    return sum(
        bool((present[:, list(order)] == present).all()) for order in itertools.permutations(range(present.shape[1]))
    )
