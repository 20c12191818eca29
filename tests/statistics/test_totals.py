import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from seeded import generator

from equivox.core.errors import UsageError
from equivox.statistics import compare_totals
from equivox.statistics.totals import pseudo_values

ALL_SIGNS = list(itertools.product([1, -1], repeat=4))


def mean(sums):
    return sums[..., 0] / sums[..., 1]


def of(values):
    """Clusters that count alike, each with its own value."""
    return np.array([[value, 1.0] for value in values], dtype=float)


def test_means_by_hand():
    a, b = [3.0, 1.0, 4.0, 2.0], [1.0, 1.0, 0.0, 3.0]
    found = compare_totals(of(a), of(b), mean, target=0.0, rng=generator())
    # Differences 2 0 4 -1, mean 5/4; sums 4 2 4 5, mean 15/4.
    assert (found.value_a, found.value_b, found.difference) == (2.5, 1.25, 1.25)
    apart = [abs(sum(s * d for s, d in zip(sign, (2, 0, 4, -1), strict=True))) for sign in ALL_SIGNS]
    summed = [abs(sum(s * d for s, d in zip(sign, (4, 2, 4, 5), strict=True))) for sign in ALL_SIGNS]
    assert found.p == sum(x >= 5 for x in apart) / 16 == 8 / 16
    assert found.p_further == max(found.p, sum(x >= 15 for x in summed) / 16) == 8 / 16
    assert found.further == 1.25
    half = stats.t.ppf(0.975, 3) * np.std([2, 0, 4, -1], ddof=1) / 2
    assert (found.ci_low, found.ci_high) == pytest.approx((1.25 - half, 1.25 + half))
    assert (found.further_low, found.further_high) == pytest.approx((1.25 - half, 1.25 + half))


@pytest.mark.parametrize("unit", [1e-12, 1e12])
def test_the_unit_of_the_scores_changes_no_p(unit):
    a, b = of([3.0, 1.0, 4.0, 2.0, 5.0, 3.0]), of([1.0, 1.5, 0.0, 1.0, 2.0, 1.0])

    def of_unit(sums):
        return unit * mean(sums)

    plain = compare_totals(a, b, mean, target=1.0, rng=generator())
    found = compare_totals(a, b, of_unit, target=unit, rng=generator())
    assert (found.p, found.p_further) == (plain.p, plain.p_further)
    assert found.p < 0.1
    assert (found.ci_low, found.ci_high) == pytest.approx((unit * plain.ci_low, unit * plain.ci_high))


def test_opposite_sides_of_the_target_are_equally_far():
    a = [60.0, 80.0, 70.0, 65.0, 75.0, 72.0]
    b = [100 - value for value in reversed(a)]
    found = compare_totals(of(a), of(b), mean, target=50.0, rng=generator())
    assert found.difference > 30 and found.p <= 2 / 2**6
    assert found.further == pytest.approx(0, abs=1e-9)
    assert found.p_further == 1.0
    assert found.further_low <= 0 <= found.further_high


def test_a_model_that_is_further_on_the_other_side():
    a, b = of([-30.0 + i for i in range(8)]), of([3.0 + i / 10 for i in range(8)])
    found = compare_totals(a, b, mean, target=0.0, rng=generator())
    assert found.further == pytest.approx(26.5 - 3.35)
    assert found.p_further == 2 / 2**8
    assert 0 < found.further_low < found.further < found.further_high


def test_an_interval_reaches_as_far_as_the_side_is_unknown():
    # x = 1 lies near the target: it may as well be −1, and then b's 4 is 3 further rather than 5 less near.
    a, b = [3.0, -1.0, 2.5, -0.5], [4.0, 4.5, 3.5, 4.0]
    found = compare_totals(of(a), of(b), mean, target=0.0, rng=generator())
    ends = {}
    for sign in (-1, 1):
        pairs = [x + sign * y for x, y in zip(a, b, strict=True)]
        half = stats.t.ppf(0.975, 3) * np.std(pairs, ddof=1) / 2
        ends[sign] = np.mean(pairs) - half, np.mean(pairs) + half
    # |x| − |y| is −min(|x − y|, |x + y|) while x − y < 0 < x + y: every point of both intervals on a grid.
    grid = [np.linspace(*ends[sign], 400) for sign in (-1, 1)]
    u, v = np.meshgrid(*grid)
    held = np.abs((u + v) / 2) - np.abs((v - u) / 2)
    assert (found.further_low, found.further_high) == pytest.approx((held.min(), held.max()), abs=0.05)
    assert found.further == pytest.approx(-3)


@given(st.lists(st.tuples(st.integers(-9, 9), st.integers(-9, 9)), min_size=3, max_size=8))
def test_an_interval_of_distances_holds_what_was_found(pairs):
    a, b = (of(column) for column in zip(*pairs, strict=True))
    found = compare_totals(a, b, mean, target=0.0, n_resamples=9, rng=generator())
    if np.isnan(found.further_low):
        # The clusters differ alike, or their distances do: nothing is known of how others would.
        sides = [{round(abs(x) - abs(y), 9) for x, y in pairs}, {x - y for x, y in pairs}, {x + y for x, y in pairs}]
        assert min(map(len, sides)) == 1
    else:
        assert found.further_low - 1e-9 <= found.further <= found.further_high + 1e-9


def test_clusters_that_all_differ_alike_have_no_interval():
    found = compare_totals(of([5, 5, 5]), of([2, 2, 2]), mean, target=0.0, n_resamples=9, rng=generator())
    assert found.further == 3
    assert np.isnan([found.ci_low, found.ci_high, found.further_low, found.further_high]).all()


def test_pseudo_values_of_a_ratio():
    totals = np.array([[3.0, 4], [1, 4], [2, 2]])
    whole = 6 / 10
    by_hand = [3 * whole - 2 * (3 / 6), 3 * whole - 2 * (5 / 6), 3 * whole - 2 * (4 / 8)]
    assert pseudo_values(totals, mean) == pytest.approx(by_hand)


def test_level_with_unequal_clusters_and_power():
    rng = generator(3)
    rejected = further = found = 0
    for _ in range(200):
        sizes = rng.integers(2, 9, size=30)
        own = rng.beta(6, 4, size=30)  # contexts lean one way, for both models
        hits = rng.binomial(sizes, own), rng.binomial(sizes, own)
        a, b = (np.stack([hit, sizes], axis=1).astype(float) for hit in hits)
        one = compare_totals(a, b, mean, target=0.5, n_resamples=199, rng=rng)
        rejected, further = rejected + (one.p <= 0.05), further + (one.p_further <= 0.05)
        c = np.stack([rng.binomial(sizes, own / 2), sizes], axis=1).astype(float)
        found += compare_totals(a, c, mean, target=0.5, n_resamples=199, rng=rng).p <= 0.05
    assert 2 <= rejected <= 20  # 10 ± 3.1
    assert further <= rejected
    assert found >= 190


def test_a_large_cluster_counts_for_its_share_of_the_score():
    # Of 1, 1, 1 and 5 answers 1, 1, -1 and 3 more are hits, 4 of 8 in all. A flip exchanges the hits of a cluster.
    a, b = np.array([[1.0, 1], [1, 1], [0, 1], [4, 5]]), np.array([[0.0, 1], [0, 1], [1, 1], [1, 5]])
    found = compare_totals(a, b, mean, sizes=1, rng=generator())
    signs = [abs(sum(s * d for s, d in zip(sign, (1, 1, -1, 3), strict=True))) for sign in ALL_SIGNS]
    assert found.p == sum(x >= 4 for x in signs) / 16 == 8 / 16
    # A residual is over √(1 - n/8); (8²)/(1 + 1 + 1 + 25) clusters of one size weigh the same.
    sizes = np.array([1, 1, 1, 5])
    left = (np.array([1, 1, -1, 3]) - sizes / 2) / 8 / np.sqrt(1 - sizes / 8)
    half = stats.t.ppf(0.975, 64 / 28 - 1) * math.sqrt((left**2).sum())
    assert (found.ci_low, found.ci_high) == pytest.approx((0.5 - half, 0.5 + half))
    with pytest.raises(UsageError, match="`sizes` is 2: "):
        compare_totals(a, b, mean, sizes=2, rng=generator())


def test_a_mirrored_model_of_unequal_clusters_is_as_far():
    a, b = np.array([[1.0, 1], [3, 4], [0, 2], [7, 9]]), np.array([[0.0, 2], [3, 3], [1, 1], [2, 6]])
    mirrored = np.stack([b[:, 1] - b[:, 0], b[:, 1]], axis=1)
    found, other = (compare_totals(a, of_b, mean, target=0.5, sizes=1, rng=generator()) for of_b in (b, mirrored))
    assert found.p_further == other.p_further == max(found.p, other.p)
    assert (found.further_low, found.further_high) == pytest.approx((other.further_low, other.further_high))
    assert found.p < 1 and other.p < 1


def test_clusters_of_very_unequal_size_keep_the_level():
    rng, rejected, held = generator(4), 0, 0
    for _ in range(200):
        sizes = np.ceil(rng.lognormal(1.5, 1.5, size=(12, 1)))
        own = rng.beta(4, 4, size=(12, 1)) / 2
        a, b = (
            np.hstack([rng.binomial(sizes.astype(int), own + rng.beta(4, 4, size=(12, 1)) / 2), sizes]) for _ in "ab"
        )
        found = compare_totals(a, b, mean, sizes=1, n_resamples=199, rng=rng)
        rejected, held = rejected + (found.p <= 0.05), held + (found.ci_low <= 0 <= found.ci_high)
    assert rejected <= 19 and held >= 184  # 10 ± 3.1, where all clusters counted alike 30 were rejected and 181 held


@given(st.lists(st.tuples(st.integers(-20, 20), st.integers(-20, 20)), min_size=2, max_size=9))
def test_turning_the_models_turns_the_signs(pairs):
    a, b = (of(column) for column in zip(*pairs, strict=True))
    one = compare_totals(a, b, mean, target=0.0, rng=generator())
    two = compare_totals(b, a, mean, target=0.0, rng=generator())
    assert one.difference == pytest.approx(-two.difference)
    assert one.further == pytest.approx(-two.further, abs=1e-9)
    assert (one.p, one.p_further) == pytest.approx((two.p, two.p_further))
    assert one.p_further >= one.p
    shuffled = compare_totals(a[::-1], b[::-1], mean, target=0.0, rng=generator())
    assert (shuffled.p, shuffled.p_further) == pytest.approx((one.p, one.p_further))


def test_models_that_agree_everywhere():
    found = compare_totals(of([1, 2, 4]), of([1, 2, 4]), mean, target=0.0, rng=generator())
    assert (found.difference, found.p, found.further, found.p_further) == (0, 1, 0, 1)
    apart = compare_totals(of([2, 2, 2]), of([0, 0, 0]), mean, rng=generator())
    assert apart.p == 2 / 8 and math.isnan(apart.further) and math.isnan(apart.p_further)


def test_undefined_says_why():
    one = compare_totals(of([1]), of([2]), mean, rng=generator())
    assert one.undefined is not None and "one cluster" in one.undefined and math.isnan(one.p)
    nothing = np.array([[0.0, 0], [0, 0]])
    lost = compare_totals(of([1, 2]), nothing, mean, rng=generator())
    assert lost.undefined == "one of the two models has no score on what both answered"
    alone = compare_totals(of([1, 2]), np.array([[1.0, 1], [0, 0]]), mean, rng=generator())
    assert alone.undefined == "a score rests on one cluster alone"
    with pytest.raises(UsageError, match="`totals_b` has shape"):
        compare_totals(of([1, 2]), of([1]), mean, rng=generator())
    with pytest.raises(UsageError, match="not finite"):
        compare_totals(of([1, math.nan]), of([1, 2]), mean, rng=generator())
