"""Few clusters with many values: equal to Student's t and analysis of variance of one value, and its level."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats
from seeded import generator

from equivox.core.errors import UsageError
from equivox.statistics import association_scores, association_test, cramers_v, few_clusters_p


def test_yates_for_two_groups_only():
    # 20/10 against 10/20: |20·20 − 10·10| = 300; (300 − 30)² · 60 / 30⁴ = 5.4 with Yates.
    two = association_test([[20, 10], [10, 20]], rng=generator())
    assert two.chi2 == pytest.approx(5.4)
    assert two.p == pytest.approx(stats.chi2.sf(5.4, 1))
    assert (two.method, two.sparse, two.p_exact) == ("chi2", False, two.p)
    # Three groups 10/20, 15/15, 20/10: expected 15 everywhere, χ² = 4 · 25/15 = 6.667 without correction.
    three = association_test([[10, 20], [15, 15], [20, 10]], rng=generator())
    assert three.chi2 == pytest.approx(20 / 3)
    assert three.dof == 2


def test_sparse_two_by_two_is_fisher_s():
    # Tea tasting, 3 of 4 right: p = 34/70.
    found = association_test([[3, 1], [1, 3]], rng=generator())
    assert found.method == "Fisher"
    assert found.p_exact == pytest.approx(34 / 70)


def test_sparse_larger_table_against_enumeration():
    # Column total 3 over three groups of 4: enumerate all ways to place 3 marks in 12 places.
    table = [[3, 1], [0, 4], [0, 4]]
    found = association_test(table, n_resamples=40_000, rng=generator())
    null, weight = [], []
    for a in range(4):
        for b in range(4 - a):
            c = 3 - a - b
            counts = np.array([[a, 4 - a], [b, 4 - b], [c, 4 - c]])
            expected = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / 12
            null.append(((counts - expected) ** 2 / expected).sum())
            weight.append(math.comb(4, a) * math.comb(4, b) * math.comb(4, c) / math.comb(12, 3))
    exact = sum(w for value, w in zip(null, weight, strict=True) if value >= found.chi2 - 1e-9)
    assert found.method == "permutation"
    assert found.p_exact == pytest.approx(exact, abs=0.006)


def test_a_phrase_that_all_or_none_have_says_nothing():
    for table in ([[0, 5], [0, 7]], [[5, 0], [7, 0]], [[0, 0], [3, 4]]):
        found = association_test(table, rng=generator())
        assert found.undefined is not None
        assert math.isnan(found.p)
        assert math.isnan(found.p_exact)
        assert math.isnan(found.v)


def test_bias_corrected_v():
    assert cramers_v([[10, 0], [0, 10]]) == pytest.approx(1.0)
    assert cramers_v([[10, 10], [10, 10]]) == 0.0
    # 30/10 against 10/30: χ² = 20, n = 80. φ̃² = .25 − 1/79; r̃ − 1 = 1 − 1/79.
    assert cramers_v([[30, 10], [10, 30]]) == pytest.approx(math.sqrt((0.25 - 1 / 79) / (1 - 1 / 79)))
    assert math.isnan(cramers_v([[0, 5], [0, 7]]))
    assert math.isnan(cramers_v([[1, 0], [0, 1]]))  # of two answers, k̃ - 1 = 1 - 1/(n - 1) is 0


@pytest.mark.parametrize("transposed", [False, True])
def test_bias_corrected_v_of_four_by_three_is_bergsmas(transposed):
    table = np.array([[9, 2, 1], [3, 8, 2], [1, 2, 7], [4, 4, 3]])
    n = table.sum()
    phi2 = stats.chi2_contingency(table, correction=False).statistic / n - 3 * 2 / (n - 1)
    smaller = min(4 - 3**2 / (n - 1), 3 - 2**2 / (n - 1)) - 1
    assert cramers_v(table.T if transposed else table) == pytest.approx(math.sqrt(phi2 / smaller))


def test_few_clusters_whose_differences_are_not_known_have_no_p():
    def p(shares, group):
        return few_clusters_p(np.array(shares, dtype=float)[:, None], np.array(group), np.zeros(len(group), dtype=int))

    assert math.isnan(p([1, 2, 3, 4], [0, 0, 1, 1]))  # two degrees of freedom
    assert not math.isnan(p([1, 2, 3, 4, 9], [0, 0, 1, 1, 1]))
    assert math.isnan(p([1, 2, 3, 4, 9], [0] * 5))
    assert math.isnan(p([1, 1, 1, 2, 2, 2], [0, 0, 0, 1, 1, 1])) and p([1] * 6, [0, 0, 0, 1, 1, 1]) == 1
    assert p([0, 1e-4, 0, 1, 1, 1 + 1e-4], [0, 0, 0, 1, 1, 1]) == 1e-6


def test_scores_by_hand():
    assert association_scores([57, 37], [7338, 7000]) == pytest.approx((20 / 7338, -20 / 7000))
    assert association_scores([11, 8, 7, 5], [56, 67, 61, 50]) == pytest.approx((6 / 56, 3 / 67, 2 / 61, 0))
    assert math.isnan(association_scores([1, 0], [10, 0])[1])


@pytest.mark.parametrize(
    "table", [[[1, 2]], [[1], [2]], [[1.5, 2], [3, 4]], [[-1, 2], [3, 4]], [[math.nan, 1], [1, 1]]]
)
def test_tables_that_are_none(table):
    with pytest.raises(UsageError, match="`table`"):
        association_test(table, rng=generator())


def test_scores_need_two_identities_and_counts():
    with pytest.raises(UsageError, match="`with_phrase` has 1 entry"):
        association_scores([1], [2])
    with pytest.raises(UsageError, match="negative"):
        association_scores([1, -1], [2, 2])
    with pytest.raises(UsageError, match="`lengths` has 1 entries"):
        association_scores([1, 1], [2])


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


def test_few_clusters_of_several_values_have_half_of_the_values_that_are_independent():
    # The covariance of the clusters of a group, S, has 8 degrees of freedom. The trace of the square of the
    # population's is estimated by Bai & Saranadasa, 8² / (10 · 7) · (tr S² - (tr S)² / 8); (tr S)² over it is the
    # number of values that are independent, of which half are taken for the degrees of freedom of F.
    shares = generator(3).normal(size=(10, 6)) * [3, 2, 2, 1, 1, 1]
    group, one = np.repeat([0, 1], 5), np.zeros(10, dtype=int)
    apart, left = (
        shares[:5].mean(axis=0) - shares[5:].mean(axis=0),
        shares - np.repeat([shares[:5].mean(axis=0), shares[5:].mean(axis=0)], 5, axis=0),
    )
    covariance = left.T @ left / 8
    trace = np.trace(covariance)
    squared = 8**2 / (10 * 7) * (np.trace(covariance @ covariance) - trace**2 / 8)
    values = trace**2 / squared / 2
    assert values > 1
    expected = stats.f.sf(2.5 * apart @ apart / trace, values, 8 * values)
    assert few_clusters_p(shares, group, one) == pytest.approx(expected)
