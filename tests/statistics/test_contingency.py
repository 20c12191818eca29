import math

import numpy as np
import pytest
from scipy import stats

from equivox.core.errors import RequestError
from equivox.statistics import association_scores, association_test, cramers_v


def generator(seed=1):
    return np.random.default_rng(seed)


def test_yates_for_two_groups_only():
    # 20/10 against 10/20: |20·20 − 10·10| = 300; (300 − 30)² · 60 / 30⁴ = 5.4 with Yates.
    two = association_test([[20, 10], [10, 20]], rng=generator())
    assert two.chi2 == pytest.approx(5.4)
    assert two.p == pytest.approx(stats.chi2.sf(5.4, 1))
    # Three groups 10/20, 15/15, 20/10: expected 15 everywhere, χ² = 4 · 25/15 = 6.667 without correction.
    three = association_test([[10, 20], [15, 15], [20, 10]], rng=generator())
    assert three.chi2 == pytest.approx(20 / 3)
    assert three.dof == 2


def test_dense_tables_keep_the_chi2_p():
    found = association_test([[20, 10], [10, 20]], rng=generator())
    assert (found.method, found.sparse, found.p_exact) == ("chi2", False, found.p)


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


def test_scores_by_hand():
    assert association_scores([57, 37], [7338, 7000]) == pytest.approx((20 / 7338, -20 / 7000))
    assert association_scores([11, 8, 7, 5], [56, 67, 61, 50]) == pytest.approx((6 / 56, 3 / 67, 2 / 61, 0))
    assert math.isnan(association_scores([1, 0], [10, 0])[1])


@pytest.mark.parametrize(
    "table", [[[1, 2]], [[1], [2]], [[1.5, 2], [3, 4]], [[-1, 2], [3, 4]], [[math.nan, 1], [1, 1]]]
)
def test_tables_that_are_none(table):
    with pytest.raises(RequestError, match="`table`"):
        association_test(table, rng=generator())


def test_scores_need_two_identities_and_counts():
    with pytest.raises(RequestError, match="`with_phrase` has 1 entry"):
        association_scores([1], [2])
    with pytest.raises(RequestError, match="negative"):
        association_scores([1, -1], [2, 2])
    with pytest.raises(RequestError, match="`lengths` has 1 entries"):
        association_scores([1, 1], [2])
