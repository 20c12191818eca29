"""The test of few names: groups of a few clusters that differ in very many values."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from equivox.statistics.inputs import Floats, Ints

LEAST_DEGREES = 3
"""With fewer degrees of freedom between clusters than this, nothing is known of how they differ."""

LEAST_P = 1e-6
"""Nobody knows the tails of a distribution beyond this from a few clusters."""

_ALIKE = 1e-12

_CAREFUL = 2.0
"""The number of independent values is taken as its estimate over this: few clusters estimate it too high as often."""


def few_clusters_p(shares: NDArray[np.float64], group: Ints, stratum: Ints) -> float:
    """Return the p of a difference between groups in the shares of many values, from few clusters.

    The groups' sum of squares over all values is compared with that of the clusters of one group, within strata. Both
    are about χ² with a number of degrees of freedom for each independent value. How many values are independent is
    estimated by the clusters' covariance, and halved. Five pairs of clusters have only 32 permutations, and p
    can still be small. The price: clusters are supposed to differ about normally. Permutations suppose nothing.

    Parameters
    ----------
    shares
        K x V, the share of each cluster's answers with each value, scaled so that values count alike.
    group, stratum
        The codes of the K clusters. A stratum is compared within itself, such as a pair of names.

    Returns
    -------
    float
        Between `LEAST_P` and 1, which means that the groups do not differ at all. NaN with fewer than `LEAST_DEGREES`
        degrees of freedom, or if groups differ and no cluster differs from another of its group.

    Notes
    -----
    Dempster 1958, doi:10.1214/aoms/1177706437; the trace of the squared covariance: Bai & Saranadasa 1996, Statistica
    Sinica 6:311-329.
    """
    from scipy.special import fdtrc

    held, both = _projection([stratum]), _projection([stratum, group])
    between, within = both - held, np.eye(len(group)) - both
    of_groups, freedom = round(float(np.trace(between))), round(float(np.trace(within)))
    if of_groups < 1 or freedom < LEAST_DEGREES:
        return math.nan
    left = within @ shares
    cross = left @ left.T / freedom
    size, square = float(np.trace(cross)), float((cross**2).sum())
    total = float((shares**2).sum())
    apart = float(((between @ shares) ** 2).sum())
    if size <= _ALIKE * total:
        return math.nan if apart > _ALIKE * total else 1.0
    squared = freedom**2 / ((freedom + 2) * (freedom - 1)) * (square - size**2 / freedom)
    independent = max(1.0, size**2 / max(squared, size**2 * 1e-9) / _CAREFUL)
    ratio = apart / of_groups / size
    return max(LEAST_P, float(fdtrc(independent * of_groups, independent * freedom, ratio)))


def _projection(codes: list[Ints]) -> Floats:
    """Return the K x K projection onto the means of all of the codes' classes."""
    columns = np.concatenate([code[:, None] == np.unique(code) for code in codes], axis=1).astype(np.float64)
    return np.asarray(columns @ np.linalg.pinv(columns), dtype=np.float64)
