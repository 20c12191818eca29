"""Comparison of two models by a number on the same samples: do the means of one lie further apart between groups?"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import partial

import numpy as np

from equivox.statistics import inputs
from equivox.statistics.comparison import bracketed, least_p_distance
from equivox.statistics.encode import encode_design
from equivox.statistics.inputs import Floats, LabelColumn, NumberColumn
from equivox.statistics.intervals import student_half, student_p
from equivox.statistics.noise import N_NOISE
from equivox.statistics.permutation import least_p, p_value, sizes_and_order
from equivox.statistics.totals import further_interval, with_width
from equivox.statistics.unit_means import NO_SUPPORT, Units, gap, interval_at, units_of

_A, _B, _APART, _SUM = range(4)
"""The columns of numbers: of each model, a - b, and a + b."""

ROUNDED = 1e-9
"""Numbers that part by less than this share of their size are equal, whatever their unit; see `unit_means.size_of`."""

ONE_CLUSTER = "a group has one cluster with numbers of both models: how far chance alone goes is not known"


@dataclass(frozen=True, kw_only=True)
class MeansComparison:
    """Two models' differences of means on the same samples, in the number's unit; NaN when `undefined` says why.

    Attributes
    ----------
    value_a, value_b, difference
        Each model's difference of means, as `group_means` has it, and value_a - value_b.
    further
        |value_a| - |value_b|. Zero: the means of both lie equally far apart, to the same side or to opposite ones.
    ci_low, ci_high
        Interval of `further`. Two models that differ alike in every cluster have none: NaN.
    p
        Two-sided p of equal distances.
    p_least
        The smallest p that the design allows.
    n_used, n_dropped, n_clusters
        Rows with a number of both models that are compared, all other rows, and units compared.
    """

    value_a: float = math.nan
    value_b: float = math.nan
    difference: float = math.nan
    further: float = math.nan
    ci_low: float = math.nan
    ci_high: float = math.nan
    p: float = math.nan
    p_least: float = math.nan
    n_used: int = 0
    n_dropped: int
    n_clusters: int = 0
    notes: tuple[str, ...] = ()
    undefined: str | None = None


def compare_group_means(
    values_a: NumberColumn,
    values_b: NumberColumn,
    groups: LabelColumn,
    *,
    clusters: LabelColumn,
    strata: LabelColumn | None = None,
    blocks: LabelColumn | None = None,
    n_resamples: int = 10_000,
    confidence: float = 0.95,
    rng: np.random.Generator,
) -> MeansComparison:
    """Return how much further apart the groups' means are for one model than for another, with test and interval.

    Parameters
    ----------
    values_a, values_b
        One number per row of each model, in the same order. A row without a number (None, NaN) of either is left out
        for both, and counted.
    groups, clusters, strata, blocks
        The design, as in `group_means`. What is held equal there is held equal here.
    n_resamples, confidence, rng
        As in `equivox.statistics`.

    Returns
    -------
    MeansComparison
        Zero means equal distances between the groups' means, not equal answers. NaN with a reason when a group has no
        row that both models answered with a number, when no stratum holds all groups, and when a group has one cluster.

    Raises
    ------
    UsageError
        As `group_means`.

    Notes
    -----
    The difference of two models' differences is the difference between groups of a - b, and their sum that of a + b.
    Two groups: the distances are equal where either is zero. Each is tested by the larger p of permutations and
    Student's t, and p is the larger of both (an intersection-union test, Berger 1982,
    doi:10.1080/00401706.1982.10487790); the interval holds all distances that the intervals of both allow. So neither
    the level of a model's numbers nor the side of its bias matters. More groups: noise adds to the largest difference
    of each model, between nothing and what it adds with half of the groups at each end; the interval allows
    for all of that, with normal noise of the clusters' covariance over √(χ²/df), whose longer tail counts to both
    sides, and p is twice that tail.

    Examples
    --------
    Model a says 2 more to f, model b nothing:

    >>> found = compare_group_means([3, 5, 4, 1, 2, 3], [3, 4, 5, 4, 3, 5], list("fffmmm"), clusters=range(6),
    ...                             rng=np.random.default_rng(1))
    >>> [round(abs(number), 6) for number in (found.value_a, found.value_b, found.further)]
    [2.0, 0.0, 2.0]
    """
    inputs.check_resamples(n_resamples)
    inputs.check_share(confidence, "confidence")
    a, b = inputs.numbers(values_a, "values_a"), inputs.numbers(values_b, "values_b")
    design = encode_design(groups, clusters, strata, blocks)
    n = len(design.group_of_row)
    inputs.same_length("groups", n, {"values_a": len(a), "values_b": len(b)})
    undefined = partial(MeansComparison, n_dropped=n)
    known = ~(np.isnan(a) | np.isnan(b))
    heard = np.bincount(design.group_of_row[known], minlength=len(design.groups))
    if len(design.groups) < 2:
        return undefined(undefined=f"only one group, {design.groups[0]!r}: a difference needs two")
    if (heard == 0).any():
        empty = design.groups[int(heard.argmin())]
        return undefined(undefined=f"no row with a number of both models in group {empty!r}")
    units, notes = units_of(np.stack([a, b, a - b, a + b], axis=1), design)
    if units is None:
        return undefined(undefined=NO_SUPPORT, notes=notes)
    if min(min(units.error(code, other)[1]) for code, other in itertools.pairwise(range(len(design.groups)))) < 1:
        return undefined(undefined=ONE_CLUSTER, notes=notes)
    value_a, value_b = gap(units.of_groups().T[: _B + 1]).tolist()
    tested = _two_groups if len(design.groups) == 2 else _several_groups
    p, p_least, (low, high) = tested(units, n_resamples, confidence, rng)
    return MeansComparison(
        value_a=value_a,
        value_b=value_b,
        difference=value_a - value_b,
        further=abs(value_a) - abs(value_b),
        ci_low=low,
        ci_high=high,
        p=p,
        p_least=p_least,
        n_used=len(units.values),
        n_dropped=n - len(units.values),
        n_clusters=len(np.unique(units.stratum)) if design.crossed else len(units.means),
        notes=notes,
    )


Tested = tuple[float, float, tuple[float, float]]
"""p, the smallest p, and the interval of how much further a lies from 0 than b."""


def _two_groups(units: Units, n_resamples: int, confidence: float, rng: np.random.Generator) -> Tested:
    """Test a - b and a + b between the two groups."""
    found = gap(units.of_groups().T)
    columns = (_APART, _SUM)
    labellings, exact = units.permuted(n_resamples, rng)
    nulls: dict[int, list[Floats]] = {column: [] for column in columns}
    for labels in labellings:
        for column, own in nulls.items():
            own.append(units.permuted_gaps(labels, column))
    p, ends = 0.0, []
    for column in columns:
        value = float(found[column])
        error = units.error(0, 1, column)
        null = np.abs(np.concatenate(nulls[column]))
        permuted = p_value(null, abs(value), exact=exact, size=units.size(column))
        p_here = max(permuted, student_p(*error, value))
        ends.append(interval_at(value, student_half(*error, confidence), p_here, confidence))
        p = max(p, p_here)
    least = least_p(sizes_and_order(units.group, units.stratum, 2)[0], n_resamples=n_resamples).p
    return p, least, further_interval(*ends)


def _several_groups(units: Units, n_resamples: int, confidence: float, rng: np.random.Generator) -> Tested:
    """Test the difference of the two largest differences, with what noise adds to each bracketed."""
    factors, degrees = _noise(units)
    n_draws = max(n_resamples, N_NOISE)
    noise = np.stack([rng.standard_normal((n_draws, len(own))) @ own for own in factors], axis=1)
    if units.paired:
        noise = noise.reshape(n_draws, -1, 2)
    noise *= np.sqrt(degrees / rng.chisquare(degrees, n_draws))[:, None, None]
    means = units.of_groups()[:, : _B + 1]
    change = np.subtract(*(np.ptp(means[:, model] + noise[:, :, model], axis=1) for model in (_A, _B)))
    most_a, most_b = (_most_added(means[:, model], noise[:N_NOISE, :, model]) for model in (_A, _B))
    difference = float(np.subtract(*np.ptp(means, axis=0)))
    tie = ROUNDED * max(units.size(_A), units.size(_B))
    p, *ends = bracketed(change, difference - most_a, difference + most_b, confidence, degrees=degrees, tie=tie)
    return p, least_p_distance(n_resamples), with_width(*ends)


def _noise(units: Units) -> tuple[list[Floats], float]:
    """Return factors of the covariance of the groups' means of a and b, one R x 2 per group, and degrees of freedom.

    Where strata pair the clusters of all groups, it is one R x 2G for all groups together.
    """
    n_groups = units.deals.shape[1]
    if units.paired:
        order = np.lexsort([units.group, units.stratum])
        own = units.means[order, : _B + 1].reshape(-1, n_groups * 2)
        n_strata = len(own)
        return [(own - own.mean(axis=0)) / math.sqrt(n_strata * (n_strata - 1))], float(n_strata - 1)
    factors, degrees = [], []
    for code in range(n_groups):
        mine = units.group == code
        left = np.stack([units.apart(mine, model) for model in (_A, _B)], axis=1)
        degrees.append(len(left) - len(np.unique(units.stratum[mine])))
        factors.append(left * math.sqrt(float((units.deals[mine, code] ** 2).sum()) / degrees[-1]))
    return factors, float(min(degrees))


def _most_added(means: Floats, noise: Floats) -> float:
    """Return the most that noise may have added to the largest difference of a model's means.

    It is most where half of the groups share each end, so that noise picks the furthest of them. A group far from all
    others keeps its place, and noise adds nothing.
    """
    from scipy.optimize import brentq

    upper = np.where(2 * np.argsort(np.argsort(means, kind="stable"), kind="stable") >= len(means), 0.5, -0.5)
    observed = float(np.ptp(means))

    def beyond(true: float) -> float:
        return float(np.ptp(true * upper + noise, axis=1).mean()) - observed

    if beyond(0.0) >= 0.0:
        return observed
    # On average noise increases the distance, so what it adds is not negative.
    if beyond(observed) <= 0.0:
        return 0.0
    return observed - float(brentq(beyond, 0.0, observed, xtol=min(2e-12, ROUNDED * observed)))
