"""Planning for numbers: the smallest difference of means that a design detects, and the clusters that one needs."""

from __future__ import annotations

import numpy as np

from equivox.core.errors import UsageError
from equivox.statistics.inputs import Ints
from equivox.statistics.permutation import p_value
from equivox.statistics.power import DetectableSize, Plan, RequiredClusters
from equivox.statistics.unit_means import Units, gap

MOST_ERRORS = 12.0
"""The largest difference that is tried, in standard errors: far beyond what any level asks for."""


class _MeansPlan(Plan):
    """A design that is asked about a number."""

    @property
    def variance(self) -> float:
        """The variance of the mean of a cluster in one group, where that of a single answer is 1."""
        answers = self.responses_per_cluster / self.n_groups if self.crossed else self.responses_per_cluster
        return self.cluster_correlation + (1 - self.cluster_correlation) / answers

    def groups(self, n_clusters: int) -> Ints:
        """Return the group of each cluster; a unit that is in every group is a cluster in each."""
        return np.arange(n_clusters * self.n_groups if self.crossed else n_clusters) % self.n_groups

    def rejections(self, size: float, n_clusters: int, n: int, rng: np.random.Generator) -> int:
        """Count the experiments with a difference of this size in which p is at most alpha."""
        group = self.groups(n_clusters)
        # Noise of the groups between hides a difference best if they lie in the middle.
        truth = np.zeros(self.n_groups)
        truth[0], truth[-1] = size / 2, -size / 2
        sizes = np.bincount(group, minlength=self.n_groups)
        every, deals = np.arange(len(group)), np.tile(1 / sizes, (len(group), 1))
        stratum = every // self.n_groups if self.crossed else np.zeros_like(group)
        rejected = 0
        for _ in range(n):
            means = truth[group] + np.sqrt(self.variance) * rng.standard_normal(len(group))
            units = Units(
                means=means[:, None],
                group=group,
                stratum=stratum,
                deals=deals,
                values=means[:, None],
                cluster_of_value=every,
                rows=every,
            )
            labellings, exact = units.permuted(self.n_labellings, rng)
            null = np.concatenate([np.abs(units.permuted_gaps(labels)) for labels in labellings])
            observed = abs(float(gap(units.of_groups().T)[0]))
            p = max(p_value(null, observed, exact=exact), units.p_of_noise(observed, self.n_labellings, rng))
            rejected += p <= self.alpha + 1e-12
        return rejected


def minimum_detectable_difference(
    *,
    n_clusters: int,
    responses_per_cluster: int,
    n_groups: int,
    crossed: bool = False,
    alpha: float = 0.05,
    power: float = 0.8,
    cluster_correlation: float = 0.0,
    n_simulations: int = 2_000,
    rng: np.random.Generator,
) -> DetectableSize:
    """Return the smallest difference of means that a design detects, by simulating the test of `group_means`.

    Parameters
    ----------
    n_clusters, responses_per_cluster, n_groups, crossed, alpha, power, n_simulations, rng
        As in `minimum_detectable_shift`.
    cluster_correlation
        The correlation of two answers of one cluster (of a unit in one group) beyond its group.

    Returns
    -------
    DetectableSize
        In standard deviations of single answers within a group, with its Monte Carlo error. Answers are normal; two
        groups lie apart and all others in the middle. NaN with a reason when any difference is detected too rarely.

    Raises
    ------
    UsageError
        A number out of range.

    Examples
    --------
    >>> found = minimum_detectable_difference(n_clusters=100, responses_per_cluster=1, n_groups=2, n_simulations=400,
    ...                                       rng=np.random.default_rng(1))
    >>> 0.45 < found.size < 0.7  # (1.96 + 0.84) · √(2 / 50) = 0.56
    True
    """
    plan = _MeansPlan(
        responses_per_cluster=responses_per_cluster, n_groups=n_groups, crossed=crossed, alpha=alpha, power=power,
        cluster_correlation=cluster_correlation, n_simulations=n_simulations,
    )  # fmt: skip
    plan.check("n_clusters", n_clusters)
    sizes = np.bincount(plan.groups(n_clusters), minlength=n_groups)
    most = MOST_ERRORS * float(np.sqrt(plan.variance * 2 / sizes.min()))
    found, error = plan.smallest(n_clusters, most, rng)
    reason = f"even a difference of {most:.1f} SD is found in less than {power:.0%} of experiments"
    return DetectableSize(size=found, mc_error=error, undefined=reason if np.isnan(found) else None)


def clusters_for_difference(
    *,
    difference: float,
    responses_per_cluster: int,
    n_groups: int,
    crossed: bool = False,
    alpha: float = 0.05,
    power: float = 0.8,
    cluster_correlation: float = 0.0,
    max_clusters: int = 2_000,
    n_simulations: int = 2_000,
    rng: np.random.Generator,
) -> RequiredClusters:
    """Return the number of clusters that detect a given difference of means, by simulating the test of `group_means`.

    Parameters
    ----------
    difference
        The difference to detect, in standard deviations of single answers within a group.
    max_clusters
        The most clusters that are tried.
    responses_per_cluster, n_groups, crossed, alpha, power, cluster_correlation, n_simulations, rng
        As in `minimum_detectable_difference`.

    Returns
    -------
    RequiredClusters
        With its Monte Carlo error. None with a reason when `max_clusters` are not enough.

    Raises
    ------
    UsageError
        A number out of range.

    Examples
    --------
    >>> found = clusters_for_difference(difference=1.0, responses_per_cluster=1, n_groups=2, n_simulations=400,
    ...                                 max_clusters=200, rng=np.random.default_rng(1))
    >>> 26 <= found.n_clusters <= 42  # Student's t needs 34
    True
    """
    plan = _MeansPlan(
        responses_per_cluster=responses_per_cluster, n_groups=n_groups, crossed=crossed, alpha=alpha, power=power,
        cluster_correlation=cluster_correlation, n_simulations=n_simulations,
    )  # fmt: skip
    if not difference > 0:
        raise UsageError(f"`difference` is {difference}: use a number above 0")
    return plan.fewest(difference, max_clusters, rng)
