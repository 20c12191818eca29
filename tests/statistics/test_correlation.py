import itertools
import math

import numpy as np
import pytest
from scipy import stats
from seeded import generator

from equivox.core.errors import UsageError
from equivox.statistics import cluster_correlation, correlations


def test_r_against_scipy():
    rng = generator(2)
    x, y = rng.normal(size=30), rng.normal(size=30)
    found = cluster_correlation(x.tolist(), y.tolist(), clusters=None, rng=rng)
    theirs = stats.pearsonr(x, y)
    assert found.r == pytest.approx(theirs.statistic)
    assert found.p == pytest.approx(theirs.pvalue, abs=0.03)
    assert found.moved == "labels exchanged between clusters"


def test_swaps_within_pairs_against_every_swap():
    # Three pairs with two repeated readings each; the two labels of a pair change places together.
    rng = generator(3)
    label = np.array([0, 1, 0, 1] * 3, dtype=float)
    outcome = rng.integers(0, 2, size=12).astype(float)
    clusters = [f"n{i}" for i in np.arange(3).repeat(4)]
    found = cluster_correlation(label.tolist(), outcome.tolist(), clusters=clusters, rng=rng)
    null = []
    for flips in itertools.product([False, True], repeat=3):
        moved = np.where(np.repeat(flips, 4), 1 - label, label)
        null.append(np.corrcoef(moved, outcome)[0, 1])
    assert found.exact
    assert sorted(found.null) == pytest.approx(sorted(null))
    assert found.p == pytest.approx(np.mean(np.abs(null) >= abs(found.r) - 1e-9))


def test_unbalanced_swaps_keep_r_right():
    # One reading is missing, so a swap also changes the share of labels.
    label, outcome = [0.0, 1, 0, 1, 1], [1.0, 0, 1, 1, 0]
    clusters = ["a", "a", "b", "b", "c"]
    found = cluster_correlation(label, outcome, clusters=clusters, rng=generator())
    null = []
    for flips in itertools.product([False, True], repeat=3):
        flip = np.array([flips["abc".index(c)] for c in clusters])
        null.append(np.corrcoef(np.where(flip, 1 - np.array(label), label), outcome)[0, 1])
    assert sorted(found.null) == pytest.approx(sorted(null))


def test_clusters_exchange_labels_whole():
    # Two readings per speaker: the null has the values of all 4! / (2! 2!) = 6 dealings of labels to speakers.
    label = np.array([0.0, 0, 0, 0, 1, 1, 1, 1])
    outcome = np.array([1.0, 2, 2, 1, 5, 3, 4, 6])
    found = cluster_correlation(label.tolist(), outcome.tolist(), clusters=list("aabbccdd"), rng=generator())
    null = {
        round(float(np.corrcoef(np.isin(np.arange(4).repeat(2), list(ones)).astype(float), outcome)[0, 1]), 9)
        for ones in itertools.combinations(range(4), 2)
    }
    assert set(np.round(found.null, 9)) == null
    assert found.p == pytest.approx(1 / 3, abs=0.03)


def test_undefined_says_why():
    # 0.1 + 0.2 is not 0.3 in binary.
    rounded = cluster_correlation(
        [0, 1, 0, 1], [0.3, 0.1 + 0.2, 0.3, 0.1 + 0.2], clusters=list("abcd"), rng=generator()
    )
    assert rounded.undefined is not None and math.isnan(rounded.r)
    constant = cluster_correlation([0, 1, 0, 1], [1, 1, 1, 1], clusters=list("aabb"), rng=generator())
    assert "`y` is constant" in constant.undefined
    assert math.isnan(constant.r)
    assert math.isnan(constant.p)
    few = cluster_correlation([0, 1, math.nan], [1, 2, 3], clusters=None, rng=generator())
    assert few.undefined == "2 known pairs: a correlation needs three"
    assert few.n_missing == 1


def test_three_labels_within_a_cluster_cannot_swap():
    with pytest.raises(UsageError, match="`y` has 2 entries, `x` has 3"):
        cluster_correlation([0, 1, 2], [1, 2], clusters=list("abc"), rng=generator())
    with pytest.raises(UsageError, match="`x` varies within clusters"):
        cluster_correlation([0, 1, 2, 0], [1, 2, 3, 4], clusters=list("aabb"), rng=generator())


def test_table_of_correlations():
    columns = {"a": [1.0, 2, 3, math.nan], "b": [1.0, 3, 2, 9], "c": [5.0, 5, 5, 5]}
    ab, ac, bc = correlations(columns)
    assert (ab.first, ab.second, ab.n) == ("a", "b", 3)
    assert ab.r == pytest.approx(0.5)  # deviations (−1, 0, 1) and (−1, 1, 0): 1 / (√2 · √2)
    assert ac.undefined.startswith("c is constant")
    assert math.isnan(bc.r)
    with pytest.raises(UsageError, match="`columns` has 1 column"):
        correlations({"a": [1.0]})


@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1e150])
def test_the_size_of_the_numbers_does_not_matter(scale: float) -> None:
    x, y = [0.0, 1.0, 0.0, 1.0, 0.0, 1.0], np.array([1.0, 3.0, 2.0, 3.0, 0.0, 4.0]) * scale
    found = cluster_correlation(x, y, clusters=list("aabbcc"), rng=np.random.default_rng(1))
    assert found.r == pytest.approx(np.corrcoef(x, [1, 3, 2, 3, 0, 4])[0, 1])


def test_columns_of_different_lengths_are_refused():
    with pytest.raises(UsageError, match="casting"):
        correlations({"story": [1, 2, 3], "casting": [2, 4, 6, 8]})
