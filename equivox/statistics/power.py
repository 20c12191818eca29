"""Planning: the smallest shift that a design detects, and the clusters needed to detect a given shift."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from equivox.core.errors import UsageError
from equivox.statistics import inputs
from equivox.statistics.design_noise import apart, pulls_of
from equivox.statistics.distance import mean_ntvd, ntvd, ntvd_of_counts
from equivox.statistics.inputs import Floats, Ints, NumberColumn
from equivox.statistics.nulls import null_over_clusters
from equivox.statistics.permutation import p_value

MOST_LABELLINGS = 10_000
"""Number of permutations for a simulated p-value at most: as many as a run draws."""

ROUNDS = 10
"""Number of designs tried in a search; the simulations are divided among them."""


def of_clusters(truth: Floats, correlation: float, rng: np.random.Generator) -> Floats:
    """Draw each cluster's own distribution (rows) around its group's, so that two of its answers correlate."""
    if correlation == 0:
        return truth
    drawn = rng.gamma(truth * (1 - correlation) / correlation) + 1e-300
    return np.asarray(drawn / drawn.sum(axis=1, keepdims=True))


@dataclass(frozen=True, kw_only=True)
class DetectableSize:
    """The smallest shift (nTVD, percent) or difference of means (SD) that a test detects with the requested power.

    `mc_error` is its standard error from simulation. Both are NaN when `undefined` says why.
    """

    size: float
    mc_error: float
    undefined: str | None


@dataclass(frozen=True, kw_only=True)
class RequiredClusters:
    """The fewest clusters that detect a shift or a difference of means with the requested power.

    They are a multiple of the number of groups where clusters are nested. `mc_error` is their standard error from
    simulation. They are None and NaN when `undefined` says why.
    """

    n_clusters: int | None
    mc_error: float
    undefined: str | None


@dataclass(frozen=True, kw_only=True)
class Plan(ABC):
    """The settings that stay fixed while the size of an effect or the number of clusters varies."""

    responses_per_cluster: int
    n_groups: int
    crossed: bool
    alpha: float
    power: float
    cluster_correlation: float
    n_simulations: int

    def __post_init__(self) -> None:
        inputs.check_share(self.alpha, "alpha")
        inputs.check_share(self.power, "power")
        if self.alpha * MOST_LABELLINGS < 1:
            raise UsageError(
                f"`alpha` is {self.alpha:g}: {MOST_LABELLINGS} permutations give no p below {1 / MOST_LABELLINGS:g}; "
                "use a larger one"
            )
        if self.n_groups < 2:
            raise UsageError(f"`n_groups` is {self.n_groups}: a difference needs two or more")
        if self.responses_per_cluster < 1:
            raise UsageError(f"`responses_per_cluster` is {self.responses_per_cluster}: use 1 or more")
        if not 0.0 <= self.cluster_correlation < 1.0:
            raise UsageError(
                f"`cluster_correlation` is {self.cluster_correlation}: use a number from 0 up to, but not, 1"
            )
        if self.crossed and self.responses_per_cluster < self.n_groups:
            raise UsageError(
                f"`responses_per_cluster` is {self.responses_per_cluster}: a unit in every group has one or more in "
                f"each of {self.n_groups}"
            )
        if self.n_simulations < 20 * ROUNDS:
            raise UsageError(f"`n_simulations` is {self.n_simulations}: use {20 * ROUNDS} or more")

    @property
    def step(self) -> int:
        """By how much the number of clusters can grow."""
        return 1 if self.crossed else self.n_groups

    @property
    def each(self) -> int:
        """The number of experiments of each round of a search."""
        return self.n_simulations // ROUNDS

    @property
    def n_labellings(self) -> int:
        """Number of permutations for each simulated p-value: enough to decide at the level, not to report."""
        return min(MOST_LABELLINGS, max(500, math.ceil(10 / self.alpha))) - 1

    @abstractmethod
    def rejections(self, size: float, n_clusters: int, n: int, rng: np.random.Generator) -> int:
        """Count the experiments, of `n` with an effect of this size, in which the test's p is at most alpha."""

    def smallest(self, n_clusters: int, most: float, rng: np.random.Generator) -> tuple[float, float]:
        """Return the smallest effect that is found, and its standard error; NaN if one of the size `most` is not."""
        self.check("n_clusters", n_clusters)
        return search(lambda size: self.rejections(size, n_clusters, self.each, rng), self.each, 0.0, most, self.power)

    def fewest(self, size: float, max_clusters: int, rng: np.random.Generator) -> RequiredClusters:
        """Return the fewest clusters with which an effect of this size is found."""
        self.check("max_clusters", max_clusters)
        return fewest_clusters(
            lambda n: self.rejections(size, n, self.each, rng), self.step, max_clusters, self.power, self.each
        )

    def check(self, argument: str, n: int) -> None:
        """Raise UsageError for a number of clusters that no test can be made of."""
        if n < 2 * self.step:
            raise UsageError(f"`{argument}` is {n}: this design needs at least {2 * self.step}")


@dataclass(frozen=True, kw_only=True)
class _ShiftPlan(Plan):
    """A design that is asked about values."""

    n_values: int
    value_shares: NumberColumn | None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.n_values < 2:
            raise UsageError(f"`n_values` is {self.n_values}: a shift needs two or more values")
        if len(self.shares) != self.n_values or not (self.shares >= 0).all():
            raise UsageError(f"`value_shares` is not {self.n_values} shares from 0: give one per value")

    @cached_property
    def shares(self) -> Floats:
        """The share of each value without a shift; NaN where they add up to nothing."""
        if self.value_shares is None:
            return np.full(self.n_values, 1 / self.n_values)
        given = inputs.numbers(self.value_shares, "value_shares")
        return np.asarray(given / given.sum() if given.sum() > 0 else np.full(len(given), np.nan), dtype=np.float64)

    def answers(self, n_clusters: int) -> tuple[Ints, Ints, Ints | None]:
        """Return the group, the number of answers and the stratum of each cluster.

        A unit that is in every group is a cluster in each, and the stratum of these; its answers are dealt out in turn.
        """
        if not self.crossed:
            group = np.arange(n_clusters) % self.n_groups
            return group, np.full(n_clusters, self.responses_per_cluster), None
        unit, group = np.divmod(np.arange(n_clusters * self.n_groups), self.n_groups)
        each, left = divmod(self.responses_per_cluster, self.n_groups)
        return group, each + ((group + unit) % self.n_groups < left), unit

    def distributions(self, mass: float) -> Floats:
        """Move `mass` of each group to one value per group (shared if there are fewer values than groups)."""
        moved = np.eye(len(self.shares))[np.arange(self.n_groups) % len(self.shares)]
        return (1 - mass) * self.shares + mass * moved

    def rejections(self, size: float, n_clusters: int, n: int, rng: np.random.Generator) -> int:
        """Count the experiments in which the cluster-level p is at most alpha; `size` is the share that moves."""
        group, answers, unit = self.answers(n_clusters)
        truth = self.distributions(size)[group]
        columns = [slice(0, len(self.shares))]
        member = (group == np.arange(self.n_groups)[:, None]).astype(np.float64)
        rejected = 0
        for _ in range(n):
            counts = rng.multinomial(answers, of_clusters(truth, self.cluster_correlation, rng))
            null, _, _, exact = null_over_clusters(
                counts, group, unit, columns, n_groups=self.n_groups, n_resamples=self.n_labellings, rng=rng
            )
            observed = float(ntvd_of_counts((member @ counts)[None])[0])
            p = p_value(null[:, 0], observed, exact=exact)
            if self.crossed:
                # As in the test, p is never below that of the noise of the units, which needs more of few units.
                units = counts.reshape(n_clusters, self.n_groups, -1)
                p = max(p, _p_of_noise(units, observed, self.n_labellings, rng))
            rejected += p <= self.alpha + 1e-12
        return rejected


def _p_of_noise(counts: Ints, observed: float, n_draws: int, rng: np.random.Generator) -> float:
    """Return the p of an nTVD by draws of the noise of units that are in every group; `counts` are units x G x V."""
    pulls = apart(pulls_of(counts.astype(np.float64), counts.sum(axis=2, keepdims=True).astype(np.float64)))
    drawn = rng.standard_normal((n_draws, len(counts))) @ pulls.reshape(len(counts), -1)
    degrees = len(counts) - 1
    drawn *= np.sqrt(degrees / rng.chisquare(degrees, n_draws))[:, None]
    return p_value(mean_ntvd(drawn.reshape(-1, *counts.shape[1:]), [slice(0, counts.shape[2])]), observed, exact=False)


def minimum_detectable_shift(
    *,
    n_clusters: int,
    responses_per_cluster: int,
    n_values: int,
    n_groups: int,
    crossed: bool = False,
    alpha: float = 0.05,
    power: float = 0.8,
    cluster_correlation: float = 0.0,
    value_shares: NumberColumn | None = None,
    n_simulations: int = 2_000,
    rng: np.random.Generator,
) -> DetectableSize:
    """Return the smallest shift that a design detects, by simulating the cluster-level permutation test.

    Parameters
    ----------
    n_clusters, responses_per_cluster, n_values, n_groups
        The design. Clusters are assigned to groups as evenly as possible.
    crossed
        Whether each unit is in every group; its responses are then those in all groups together, and groups are swapped
        within units. Nothing is gained by a unit whose answers are alike in all groups.
    alpha, power
        The level of the test, .0001 or more, and the share of experiments in which it should reject.
    cluster_correlation
        The correlation of two answers of one cluster beyond its group; 0 means that clusters differ by chance only. It
        matters more than the number of responses: take it from a pilot study, or try 0.01 to 0.05.
    value_shares
        The share of each value without a shift; uniform by default. The shift moves answers to the first values.
    n_simulations
        The total number of simulated experiments, 200 or more.
    rng
        The only source of randomness.

    Returns
    -------
    DetectableSize
        In percent of nTVD, with its Monte Carlo error. The simulated shift moves the same share of the answers of every
        group to one value per group; a shift that is spread over many values is harder to detect. NaN with a reason
        when even complete separation is detected too rarely (2 + 2 clusters, for example, whose smallest p is 1/3).

    Raises
    ------
    UsageError
        A number out of range, or shares that do not match `n_values`.

    Examples
    --------
    >>> found = minimum_detectable_shift(n_clusters=12, responses_per_cluster=20, n_values=4, n_groups=2,
    ...                                  n_simulations=200, rng=np.random.default_rng(1))
    >>> 10 < found.size < 30, found.mc_error < 5
    (True, True)
    """
    plan = _ShiftPlan(
        responses_per_cluster=responses_per_cluster, n_groups=n_groups, crossed=crossed, alpha=alpha, power=power,
        cluster_correlation=cluster_correlation, n_simulations=n_simulations,
        n_values=n_values, value_shares=value_shares,
    )  # fmt: skip
    mass, error = plan.smallest(n_clusters, 1.0, rng)
    full = ntvd(plan.distributions(1.0))
    reason = f"even groups without a common value are found in less than {power:.0%} of experiments"
    return DetectableSize(size=mass * full, mc_error=error * full, undefined=reason if np.isnan(mass) else None)


def required_clusters(
    *,
    shift: float,
    responses_per_cluster: int,
    n_values: int,
    n_groups: int,
    crossed: bool = False,
    alpha: float = 0.05,
    power: float = 0.8,
    cluster_correlation: float = 0.0,
    value_shares: NumberColumn | None = None,
    max_clusters: int = 1_000,
    n_simulations: int = 2_000,
    rng: np.random.Generator,
) -> RequiredClusters:
    """Return the number of clusters that detect a given shift, by simulating the cluster-level permutation test.

    Parameters
    ----------
    shift
        The population nTVD to detect, in percent.
    max_clusters
        The most clusters that are tried.
    responses_per_cluster, n_values, n_groups, crossed, alpha, power, cluster_correlation, value_shares, n_simulations
        As in `minimum_detectable_shift`.
    rng
        The only source of randomness.

    Returns
    -------
    RequiredClusters
        A multiple of `n_groups` where clusters are nested, with its Monte Carlo error. None with a reason when
        `max_clusters` are not enough.

    Raises
    ------
    UsageError
        A number out of range, or a shift above the attainable maximum of the values and groups.

    Examples
    --------
    >>> found = required_clusters(shift=40, responses_per_cluster=20, n_values=4, n_groups=2, n_simulations=200,
    ...                           rng=np.random.default_rng(1))
    >>> found.n_clusters in (8, 10)
    True
    """
    plan = _ShiftPlan(
        responses_per_cluster=responses_per_cluster, n_groups=n_groups, crossed=crossed, alpha=alpha, power=power,
        cluster_correlation=cluster_correlation, n_simulations=n_simulations,
        n_values=n_values, value_shares=value_shares,
    )  # fmt: skip
    full = ntvd(plan.distributions(1.0))
    if not 0.0 < shift <= full:
        raise UsageError(
            f"`shift` is {shift}: use a number above 0 and up to {full:.4g}, the most that {n_values} values can "
            f"show between {n_groups} groups"
        )
    return plan.fewest(shift / full, max_clusters, rng)


def fewest_clusters(
    rejections: Callable[[int], int], step: int, most: int, power: float, each: int
) -> RequiredClusters:
    """Return the fewest clusters, a multiple of `step`, whose test rejects with this power; None if `most` do not.

    `rejections` counts them among `each` experiments with a number of clusters.
    """

    def clusters(steps: float) -> int:
        return step * min(int(steps), most // step)

    def tried(log_steps: float) -> int:
        return rejections(clusters(round(float(np.exp(log_steps)))))

    low = float(np.log(2.0))
    found, error = search(tried, each, low, float(np.log(most / step)), power, rising_from=low)
    if np.isnan(found):
        reason = f"{most} clusters find it in less than {power:.0%} of experiments"
        return RequiredClusters(n_clusters=None, mc_error=float("nan"), undefined=reason)
    n_clusters = clusters(np.ceil(np.exp(found) - 1e-9))
    return RequiredClusters(n_clusters=n_clusters, mc_error=float(error * np.exp(found) * step), undefined=None)


def search(
    tried: Callable[[float], int], each: int, low: float, high: float, power: float, rising_from: float | None = None
) -> tuple[float, float]:
    """Return where the rejection rate crosses `power`: bisect six times, then sample near a fitted logistic curve.

    `tried` counts the rejections among `each` experiments. Returns the crossing and its standard error (delta method),
    NaN if the rate at `high` is too low. `rising_from` is an end where the rate may already be high enough.
    """
    enough = power * each
    points = [(high, tried(high))]
    if points[0][1] < enough:
        return float("nan"), float("nan")
    if rising_from is not None:
        points.append((rising_from, tried(rising_from)))
        if points[1][1] >= enough:
            return rising_from, 0.0
    first, last = low, high
    for _ in range(5):
        middle = (first + last) / 2
        points.append((middle, tried(middle)))
        first, last = (middle, last) if points[-1][1] < enough else (first, middle)
    while len(points) < ROUNDS:
        crossing = float(np.clip(_crossing(points, each, power)[0], low, high))
        points.append((crossing, tried(crossing)))
    crossing, error = _crossing(points, each, power)
    return float(np.clip(crossing, low, high)), error


def _crossing(points: list[tuple[float, int]], n: int, power: float) -> tuple[float, float]:
    """Fit rate = logistic(a + b x) by maximum likelihood and solve for the rate `power`."""
    from scipy import optimize

    x, hits = (np.array(column, dtype=np.float64) for column in zip(*points, strict=True))
    centre, scale = x.mean(), max(float(np.ptp(x)), 1e-9)
    z = (x - centre) / scale

    def loss(coefficients: Floats) -> float:
        logit = coefficients[0] + coefficients[1] * z
        # A faint prior keeps the slope finite when the rate jumps from 0 to 1 between two points.
        return float((n * np.logaddexp(0, logit) - hits * logit).sum() + 1e-4 * (coefficients**2).sum())

    fit = optimize.minimize(loss, np.array([0.0, 5.0]), method="BFGS").x
    rate = 1 / (1 + np.exp(-(fit[0] + fit[1] * z)))
    weight = n * rate * (1 - rate)
    information = np.array([[weight.sum(), (weight * z).sum()], [(weight * z).sum(), (weight * z**2).sum()]])
    information += 2e-4 * np.eye(2)
    target = np.log(power / (1 - power))
    crossing = (target - fit[0]) / fit[1]
    gradient = np.array([-1.0, -crossing]) / fit[1]
    error = float(np.sqrt(gradient @ np.linalg.solve(information, gradient)))
    return float(centre + scale * crossing), scale * error
