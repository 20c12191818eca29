"""Few clusters with many values: equal to Student's t and analysis of variance of one value, and its level."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from equivox.statistics import few_clusters_p


def paired(first: np.ndarray, second: np.ndarray) -> float:
    """Pairs of clusters, one of each group: n x V arrays."""
    n = len(first)
    return few_clusters_p(np.concatenate([first, second]), np.repeat([0, 1], n), np.tile(np.arange(n), 2))


@pytest.mark.parametrize("seed", range(5))
def test_with_one_value_it_is_students_t(seed):
    draw = np.random.default_rng(seed)
    a, b = draw.normal(size=(5, 1)), draw.normal(1, 1, size=(5, 1))
    assert paired(a, b) == pytest.approx(stats.ttest_rel(a[:, 0], b[:, 0]).pvalue)
    apart = few_clusters_p(np.concatenate([a, b]), np.repeat([0, 1], 5), np.zeros(10, dtype=int))
    assert apart == pytest.approx(stats.ttest_ind(a[:, 0], b[:, 0]).pvalue)


def test_with_one_value_and_three_groups_it_is_analysis_of_variance():
    draw = np.random.default_rng(7)
    own = [draw.normal(mean, 1, size=4) for mean in (0, 1, 2)]
    found = few_clusters_p(np.concatenate(own)[:, None], np.repeat([0, 1, 2], 4), np.zeros(12, dtype=int))
    assert found == pytest.approx(stats.f_oneway(*own).pvalue)


@pytest.mark.parametrize(
    "variances",
    [[1.0], [1.0, 1.0], [1.0, *[0.2] * 5], 0.7 ** np.arange(20), [1.0] * 100],
    ids=["one", "two", "one large", "falling", "many"],
)
def test_clusters_that_differ_for_reasons_of_their_own_are_no_difference_of_groups(variances):
    """Five pairs, 1,500 samples: at most 5 % of p are .05 or less and 1 % are .01, and three standard errors."""
    draw, scale = np.random.default_rng(3), np.sqrt(variances)
    p = [paired(*draw.normal(size=(2, 5, len(scale))) * scale) for _ in range(1500)]
    assert np.mean(np.array(p) <= 0.05) <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 1500)
    assert np.mean(np.array(p) <= 0.01) <= 0.01 + 3 * math.sqrt(0.01 * 0.99 / 1500)


def test_a_difference_of_many_values_is_found_with_a_p_that_32_permutations_cannot_give():
    draw = np.random.default_rng(4)
    shift = draw.choice([-0.5, 0.5], size=200)
    p = [paired(draw.normal(size=(5, 200)) + shift, draw.normal(size=(5, 200)) - shift) for _ in range(50)]
    assert np.mean(np.array(p) <= 0.001) >= 0.95


def test_the_scale_and_the_order_of_clusters_and_values_change_nothing():
    draw = np.random.default_rng(5)
    shares, group, stratum = draw.normal(size=(10, 7)), np.repeat([0, 1], 5), np.tile(np.arange(5), 2)
    order, values = draw.permutation(10), draw.permutation(7)
    found = few_clusters_p(shares, group, stratum)
    assert few_clusters_p(30 * shares, group, stratum) == pytest.approx(found)
    assert few_clusters_p(shares[order][:, values], group[order], stratum[order]) == pytest.approx(found)


def test_too_few_clusters_or_clusters_that_are_alike_have_none():
    draw = np.random.default_rng(6)
    assert math.isnan(paired(draw.normal(size=(3, 4)), draw.normal(size=(3, 4))))
    assert not math.isnan(paired(draw.normal(size=(4, 4)), draw.normal(size=(4, 4))))
    assert math.isnan(paired(np.ones((5, 4)), np.zeros((5, 4))))
    # Pairs that differ from one another, and whose two clusters never do.
    alike = draw.normal(size=(5, 4))
    assert paired(alike, alike) == 1.0
    one_group = few_clusters_p(draw.normal(size=(6, 3)), np.zeros(6, dtype=int), np.zeros(6, dtype=int))
    assert math.isnan(one_group)
