import math

import numpy as np
import pytest
from scipy import stats

from equivox.core.errors import RequestError
from equivox.statistics import mean_difference


def generator(seed=1):
    return np.random.default_rng(seed)


def compare(values, groups, clusters, **asked):
    asked = {"first": "m", "second": "f", "paired": True, "rng": generator()} | asked
    return mean_difference(values, groups, clusters=clusters, **asked)


def test_each_cluster_has_one_vote():
    # Pair a read once, gap 2; pair b read three times, gap 0: the mean over pairs is 1, over readings 0.5.
    values = [3, 1, 5, 5, 5, 5, 5, 5]
    found = compare(values, ["m", "f"] * 4, ["a", "a"] + ["b"] * 6)
    assert found.difference == pytest.approx(1.0)
    assert found.n_clusters == 2


def test_incomplete_pairs_are_counted_out():
    found = compare([3, 1, 4, math.nan, 6, 3], ["m", "f"] * 3, list("aabbcc"))
    assert found.difference == pytest.approx((2 + 3) / 2)
    assert (found.n_clusters, found.n_unpaired, found.n_missing) == (2, 1, 1)


def test_more_permutations_than_are_drawn_are_those_of_scipy():
    rng = generator(3)
    a, b = rng.normal(0.6, 1, 15), rng.normal(0, 1, 12)
    found = compare([*a, *b], ["m"] * 15 + ["f"] * 12, range(27), paired=False, n_resamples=9_999)
    drawn = stats.permutation_test(
        (a, b), lambda one, other, axis: one.mean(axis=axis) - other.mean(axis=axis), n_resamples=9_999,
        vectorized=True, rng=np.random.default_rng(2),
    )  # fmt: skip
    # 17 million ways to deal: both draw, with an error of half a point.
    assert not found.exact and found.p == pytest.approx(drawn.pvalue, abs=0.02)
    assert found.difference == pytest.approx(a.mean() - b.mean())
    welch = stats.ttest_ind(a, b, equal_var=False).confidence_interval()
    assert (found.ci_low, found.ci_high) == pytest.approx((welch.low, welch.high))


def test_undefined_says_why():
    same = compare([2, 2, 2, 2], ["m", "f"] * 2, list("aabb"))
    assert same.undefined is not None
    assert "all values are the same" in same.undefined
    assert math.isnan(same.difference)
    nobody = compare([2, math.nan], ["m", "f"], list("aa"))
    assert nobody.undefined == "no known value in group 'f'"
    apart = compare([2, 1], ["m", "f"], ["a", "b"])
    assert apart.undefined == "no cluster is known in both groups"


def test_requests_that_cannot_be_meant():
    with pytest.raises(RequestError, match=r"`first` is 'x', which is no group: use one of \['f', 'm'\]"):
        compare([1, 2], ["m", "f"], list("aa"), first="x")
    with pytest.raises(RequestError, match="are both 'm'"):
        compare([1, 2], ["m", "f"], list("aa"), second="m")
    with pytest.raises(RequestError, match="holds both groups"):
        compare([1, 2, 3, 4], ["m", "f", "m", "f"], list("aabb"), paired=False)


def test_an_interval_of_tiny_numbers_is_that_of_large_ones():
    gaps = [0.0, 0.0, 1.0, 3.0]
    values = [value for gap in gaps for value in (gap, 0.0)]
    groups, clusters = ["m", "f"] * 4, [f"n{i}" for i in np.arange(4).repeat(2)]
    large, tiny = (compare([scale * v for v in values], groups, clusters) for scale in (1.0, 1e-98))
    assert (tiny.ci_low / 1e-98, tiny.ci_high / 1e-98) == pytest.approx((large.ci_low, large.ci_high))
