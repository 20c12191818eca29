"""Few clusters with many values: Student's t and analysis of variance for one value, and the level for many."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from equivox.metrics.badf.few_names import few_clusters_p

Floats = NDArray[np.float64]


def paired(first: Floats, second: Floats) -> float:
    """Return the p of pairs of clusters, one of each group: n x V arrays."""
    n = len(first)
    return few_clusters_p(np.concatenate([first, second]), np.repeat([0, 1], n), np.tile(np.arange(n), 2))


def apart(shares: Floats | Sequence[float], group: Sequence[int] | NDArray[np.int64]) -> float:
    values = np.asarray(shares, dtype=float)
    return few_clusters_p(values.reshape(len(values), -1), np.asarray(group), np.zeros(len(values), dtype=np.int64))


@pytest.mark.parametrize("seed", range(3))
def test_one_value_has_the_p_of_scipy(seed: int) -> None:
    draw = np.random.default_rng(seed)
    a, b, c = (draw.normal(mean, 1, 5) for mean in (0, 1, 2))
    assert paired(a[:, None], b[:, None]) == pytest.approx(stats.ttest_rel(a, b).pvalue)
    assert apart([*a, *b], np.repeat([0, 1], 5)) == pytest.approx(stats.ttest_ind(a, b).pvalue)
    assert apart([*a, *b, *c], np.repeat([0, 1, 2], 5)) == pytest.approx(stats.f_oneway(a, b, c).pvalue)


def test_several_values_have_half_of_the_degrees_of_independent_ones() -> None:
    # S, the covariance within groups, has 8 degrees of freedom; Bai & Saranadasa 1996: tr(population²) is about
    # 8²/(10 · 7) (tr S² - (tr S)²/8).
    shares = np.random.default_rng(3).normal(size=(10, 6)) * [3, 2, 2, 1, 1, 1]
    means = shares[:5].mean(axis=0), shares[5:].mean(axis=0)
    left = shares - np.repeat(means, 5, axis=0)
    covariance, between = left.T @ left / 8, means[0] - means[1]
    trace = np.trace(covariance)
    values = trace**2 / (8**2 / (10 * 7) * (np.trace(covariance @ covariance) - trace**2 / 8)) / 2
    expected = stats.f.sf(2.5 * between @ between / trace, values, 8 * values)
    assert values > 1 and apart(shares, np.repeat([0, 1], 5)) == pytest.approx(expected)


@pytest.mark.parametrize("variances", [[1.0], [1.0, *[0.2] * 5], [*0.7 ** np.arange(20)], [1.0] * 100])
def test_clusters_that_differ_anyway_are_no_difference_of_groups(variances: list[float]) -> None:
    draw, scale = np.random.default_rng(3), np.sqrt(variances)
    p = np.array([paired(*draw.normal(size=(2, 5, len(scale))) * scale) for _ in range(500)])
    for level in (0.05, 0.01):
        assert (p <= level).sum() <= stats.binom.ppf(0.998, 500, level)


def test_a_difference_of_many_values_has_a_smaller_p_than_32_permutations_can_give() -> None:
    draw = np.random.default_rng(4)
    shift = draw.choice([-0.5, 0.5], size=200)
    p = [paired(draw.normal(size=(5, 200)) + shift, draw.normal(size=(5, 200)) - shift) for _ in range(40)]
    assert np.mean(np.array(p) <= 0.001) >= 0.95


def test_scale_and_order_change_nothing() -> None:
    draw = np.random.default_rng(5)
    shares, group, stratum = draw.normal(size=(10, 7)), np.repeat([0, 1], 5), np.tile(np.arange(5), 2)
    order, values = draw.permutation(10), draw.permutation(7)
    found = few_clusters_p(shares, group, stratum)
    assert few_clusters_p(30 * shares[order][:, values], group[order], stratum[order]) == pytest.approx(found)


@pytest.mark.parametrize(
    ("shares", "group", "p"),
    [
        ([1, 2, 3, 4], [0, 0, 1, 1], math.nan),  # two degrees of freedom
        ([1, 2, 3, 4, 9], [0] * 5, math.nan),
        ([1, 1, 1, 2, 2, 2], [0, 0, 0, 1, 1, 1], math.nan),  # no cluster differs from another of its group
        ([1] * 6, [0, 0, 0, 1, 1, 1], 1.0),
        ([0, 1e-4, 0, 1, 1, 1 + 1e-4], [0, 0, 0, 1, 1, 1], 1e-6),
    ],
)
def test_few_or_equal_clusters_have_a_limit(shares: list[float], group: list[int], p: float) -> None:
    assert apart(shares, group) == pytest.approx(p, nan_ok=True)
