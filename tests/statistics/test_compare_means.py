"""Two models' differences of means on the same rows: scipy, arithmetic by hand, levels and a planted change."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from equivox.core.errors import UsageError
from equivox.statistics import compare_group_means, group_means
from equivox.statistics.compare_means import _most_added

RNG = np.random.default_rng(23)


def rng() -> np.random.Generator:
    return np.random.default_rng(5)


def test_two_groups_by_hand_and_by_scipy() -> None:
    a, b = RNG.normal(5, 1, 21) + np.repeat([2.0, 0], [12, 9]), RNG.normal(-3, 1, 21)
    found = compare_group_means(a, b, ["f"] * 12 + ["m"] * 9, clusters=range(21), n_resamples=20_000, rng=rng())
    x, y = a[:12].mean() - a[12:].mean(), b[:12].mean() - b[12:].mean()
    assert (found.value_a, found.value_b, found.further) == pytest.approx((x, y, abs(x) - abs(y)))
    # The distances are equal where x - y or x + y is zero: Welch's test of a - b, and of a + b, between the groups.
    apart = stats.ttest_ind((a - b)[:12], (a - b)[12:], equal_var=False)
    summed = stats.ttest_ind((a + b)[:12], (a + b)[12:], equal_var=False)
    exchanged = [
        stats.permutation_test(
            (own[:12], own[12:]),
            lambda one, other, axis: one.mean(axis=axis) - other.mean(axis=axis),
            n_resamples=20_000,
            vectorized=True,
            rng=np.random.default_rng(2),
        ).pvalue
        for own in (a - b, a + b)
    ]
    assert found.p == pytest.approx(max(apart.pvalue, summed.pvalue, *exchanged), abs=0.01)
    # Here x is above zero and beyond y for sure, so that the interval is within those of x - y and x + y.
    ends = [test.confidence_interval() for test in (apart, summed)]
    assert found.ci_low == pytest.approx(min(end.low for end in ends))
    assert found.ci_high == pytest.approx(min(end.high for end in ends))
    assert (found.n_used, found.n_dropped, found.n_clusters) == (21, 0, 21)


def test_units_in_every_group_are_the_paired_tests_of_scipy() -> None:
    a, b = RNG.normal(0, 1, (9, 2)), RNG.normal(0, 1, (9, 2))
    a[:, 0] += 3
    found = compare_group_means(
        a.ravel(), b.ravel(), ["f", "m"] * 9, clusters=np.arange(9).repeat(2), n_resamples=2_000, rng=rng()
    )
    p = []
    for own in (a - b, a + b):
        pairs = (own[:, 0], own[:, 1])
        mean = {"statistic": lambda one, other: one.mean() - other.mean(), "permutation_type": "samples"}
        p += [stats.permutation_test(pairs, **mean).pvalue, stats.ttest_rel(*pairs).pvalue]
    assert found.p == pytest.approx(max(p))
    # 2^9 exchanges within units, and every one has its opposite.
    assert found.p_least == pytest.approx(2 / 2**9) and found.n_clusters == 9


def test_the_level_of_a_models_numbers_and_the_side_of_its_bias_do_not_matter() -> None:
    a = np.array([5.0, 6, 7, 1, 2, 3.5])
    groups, clusters = list("fffmmm"), range(6)
    turned = compare_group_means(a, 100 - a, groups, clusters=clusters, rng=rng())
    # The same bias to opposite sides: x + y is zero in every cluster.
    assert turned.further == pytest.approx(0) and turned.p == 1
    assert turned.value_a == pytest.approx(-turned.value_b)
    same = compare_group_means(a, a + 40, groups, clusters=clusters, rng=rng())
    # Alike in every cluster: no difference is seen, and how much there may be elsewhere is not known.
    assert same.further == pytest.approx(0) and same.p == 1 and math.isnan(same.ci_low)


def test_what_is_held_equal_in_one_estimate_is_held_equal_in_two() -> None:
    # Long texts give model a 100 more; group f has three of four there. Within strata no model differs.
    a = np.array([101, 102, 103, 1, 102, 1, 0, 2.0])
    b = np.array([2, 1, 3, 2.5, 2, 2, 3, 1.0])
    strata = ["long"] * 3 + ["short"] + ["long"] + ["short"] * 3
    plain = compare_group_means(a, b, list("ffffmmmm"), clusters=range(8), rng=rng())
    assert plain.value_a == pytest.approx(50.5)
    for name in ("strata", "blocks"):
        held = compare_group_means(a, b, list("ffffmmmm"), clusters=range(8), rng=rng(), **{name: strata})
        for value, own in ((held.value_a, a), (held.value_b, b)):
            alone = group_means(own, list("ffffmmmm"), clusters=range(8), rng=rng(), **{name: strata})
            assert value == pytest.approx(alone.difference)
        assert held.value_a == pytest.approx(0) and held.p > 0.5


def test_a_row_without_a_number_of_either_counts_for_neither() -> None:
    a = [1.0, 2, 3, None, 4, 5, 6, 90]
    b = [1.0, 1, 2, 70, 1, 2, 2, math.nan]
    found = compare_group_means(a, b, list("ffffmmmm"), clusters=range(8), rng=rng())
    assert (found.value_a, found.n_used, found.n_dropped) == (2 - 5, 6, 2)
    assert found.value_b == pytest.approx(4 / 3 - 5 / 3)


def test_nothing_to_compare_has_a_reason_and_no_zero() -> None:
    def reason(a: Any, groups: str, **design: Any) -> str:
        found = compare_group_means(a, [1.0, 2, 3, 4], list(groups), rng=rng(), **{"clusters": range(4), **design})
        assert math.isnan(found.further) and math.isnan(found.p) and found.n_dropped == 4
        return str(found.undefined)

    assert "in group 'm'" in reason([1, 2, None, math.nan], "ffmm")
    assert "only one group" in reason([1, 2, 3, 4], "ffff")
    assert "one cluster" in reason([1, 2, 3, 4], "fffm")
    two = compare_group_means([1, 2, 3, 5], [1, 2, 3, 4], list("ffmm"), clusters=range(4), rng=rng())
    assert two.undefined is None and two.ci_low < two.further < two.ci_high
    assert "nothing can be compared" in reason([1, 2, 3, 4], "ffmm", strata=list("xxyy"))
    with pytest.raises(UsageError, match="`values_a`"):
        compare_group_means([1.0], [1.0, 2], ["f", "m"], clusters=range(2), rng=rng())


def test_two_clusters_of_several_groups_have_an_interval_around_the_difference() -> None:
    # Draws of Student's t with one degree of freedom have no mean from which changes could be counted.
    a, b = np.random.default_rng(13).normal(size=(2, 18))
    found = compare_group_means(
        a, b, list("fgh") * 6, clusters=np.repeat(list("xy"), 9), n_resamples=99, rng=np.random.default_rng(13)
    )
    assert found.ci_low <= found.further <= found.ci_high and found.p > 0.05


def test_several_groups_have_the_largest_difference_of_each() -> None:
    a, b = [1, 2, 3, 11, 12, 13, 5, 6, 7.0], [1, 2, 3, 2, 3, 4, 3, 4, 5.0]
    found = compare_group_means(a, b, np.repeat(list("fgh"), 3), clusters=range(9), rng=rng())
    assert (found.value_a, found.value_b, found.further) == pytest.approx((10, 2, 8))
    assert 0 < found.ci_low < 8 < found.ci_high and found.p < 0.05
    # No draw of so little noise is as far out.
    sure = compare_group_means(
        np.array(a) + 10_000 * np.repeat([0, 1, 2], 3), b, np.repeat(list("fgh"), 3), clusters=range(9), rng=rng()
    )
    assert sure.p == sure.p_least == 2 / 10_001
    other = compare_group_means(b, a, np.repeat(list("fgh"), 3), clusters=range(9), rng=rng())
    assert other.further == pytest.approx(-8) and other.ci_high < 0


@pytest.mark.parametrize("crossed", [True, False])
def test_the_interval_of_a_largest_difference_that_is_clear_is_student_s(crossed: bool) -> None:
    # Groups that lie far apart keep their places, and b hardly varies: the upper end is that of a's furthest groups.
    draws, group = np.random.default_rng(3), np.tile(np.arange(3), 6)
    a, b = 100 * group + draws.normal(size=18), 10 * group + 1e-6 * draws.normal(size=18)
    clusters = np.arange(18) // 3 if crossed else range(18)
    found = compare_group_means(a, b, group, clusters=clusters, n_resamples=100_000, rng=rng())
    high, low = a[group == 2], a[group == 0]
    error = stats.sem(high - low) if crossed else math.hypot(stats.sem(high), stats.sem(low))
    assert found.ci_high - found.further == pytest.approx(stats.t.isf(0.025, 5) * error, rel=0.03)


def test_a_model_against_itself_has_a_p_of_one() -> None:
    same = RNG.normal(size=24)
    found = compare_group_means(same, same, np.repeat(list("fgh"), 8), clusters=range(24), n_resamples=999, rng=rng())
    assert (found.further, found.p) == (0.0, 1.0)


@pytest.mark.parametrize("unit", [1e-12, 1e12])
@pytest.mark.parametrize("n_groups", [2, 3])
def test_the_unit_of_the_numbers_changes_nothing_else(n_groups: int, unit: float) -> None:
    groups, draws = np.arange(n_groups).repeat(12), np.random.default_rng(2)
    a, b = draws.normal(size=(2, len(groups)))
    a += np.array([0, 3, 1])[groups]
    design = {"clusters": range(len(groups)), "n_resamples": 999}
    own = compare_group_means(a, b, groups, rng=rng(), **design)
    other = compare_group_means(a * unit, b * unit, groups, rng=rng(), **design)
    assert other.p == pytest.approx(own.p) and own.p < 0.05
    assert (other.ci_low / unit, other.ci_high / unit) == pytest.approx((own.ci_low, own.ci_high), rel=1e-6)


@pytest.mark.parametrize("unit", [1e-9, 1.0, 1e5])
@pytest.mark.parametrize("n_groups", [2, 3])
def test_a_model_that_adds_one_number_to_all_of_anothers_is_no_further_from_no_bias(n_groups: int, unit: float) -> None:
    # b differs from a by .1 units in every answer, and by what rounding leaves. Answers vary within groups, or not.
    groups = np.tile(np.arange(n_groups), 6)
    for seed, spread, crossed in itertools.product(range(6), (0, 1), (True, False)):
        draws = np.random.default_rng(seed)
        a = (spread * draws.normal(size=len(groups)) + draws.normal(size=n_groups)[groups]) * unit
        clusters = np.arange(len(a)) // (n_groups if crossed else 1)
        found = compare_group_means(a, a + 0.1 * unit, groups, clusters=clusters, n_resamples=999, rng=rng())
        assert found.p == 1.0


@pytest.mark.parametrize("n_groups", [2, 3])
def test_p_is_where_the_interval_ends_at_zero(n_groups: int) -> None:
    draws = np.random.default_rng(4)
    groups = np.repeat(np.arange(n_groups), 15)
    a, b = draws.normal(0, 1, (2, len(groups)))
    a[:15] += 1.8
    design = {"clusters": range(len(groups)), "n_resamples": 20_000}
    found = compare_group_means(a, b, groups, rng=rng(), **design)
    assert 0.001 < found.p < 0.2
    again = compare_group_means(a, b, groups, rng=rng(), confidence=1 - found.p, **design)
    # For two groups p is the larger one of permutations and Student's t, which may lie a little beyond the interval's.
    assert again.ci_low == pytest.approx(0, abs=0.05 if n_groups == 2 else 0.01)


def test_what_noise_adds_is_most_where_half_of_the_groups_share_each_end() -> None:
    # Each draw moves one of four groups up by 1. Where two lie at the upper end, s above the two others, the largest
    # difference is s + 1 in two draws and s in two: s + 1/2 on average, which is what was observed, 3.
    assert _most_added(np.array([0.0, 1.0, 2.0, 3.0]), np.eye(4)) == pytest.approx(0.5)
    # Groups that are far apart keep their places: noise adds nothing, also where it happens to bring them closer.
    for noise in ([[1.0, -1.0], [-1.0, 1.0]], [[1.0, -1.0]]):
        assert _most_added(np.array([0.0, 10.0]), np.array(noise)) == 0


def test_order_and_names_change_nothing() -> None:
    for n_groups in (2, 3):
        groups = np.repeat(np.arange(n_groups), 6).repeat(2)
        clusters = np.arange(6 * n_groups).repeat(2)
        a, b = RNG.normal(0, 1, (2, len(groups)))
        found = compare_group_means(a, b, groups, clusters=clusters, n_resamples=500, rng=rng())
        order = RNG.permutation(len(groups))
        moved = compare_group_means(
            a[order], b[order], groups[order], clusters=clusters[order] + 7, n_resamples=500, rng=rng()
        )
        assert (moved.p, moved.ci_low, moved.ci_high) == pytest.approx((found.p, found.ci_low, found.ci_high))


# Both models have clusters that differ, in part alike, and b speaks on a scale three times as wide.
WORLDS: list[tuple[bool, list[float], list[float], float]] = [
    (False, [0, 0], [0, 0], 1),
    (False, [1, 0], [0, 1], 1),
    (False, [1, 0], [1, 0], 3),
    (True, [1, 0], [0, 1], 1),
    (False, [1, 0, 0], [0, 0, 1], 1),
    (True, [1, 0, 0], [0, 1, 0], 1),
    (False, [1, 1, 1, 0, 0, 0], [1, 0, 0.5, 0.5, 0.5, 0.5], 1),
]


def drawn_tests(
    crossed: bool, a: list[float], b: list[float], scale: float, n: int, k: int
) -> list[tuple[float, float, float]]:
    """Return p and interval of `n` samples with `k` units of each group and three answers of each."""
    draws, n_groups = np.random.default_rng(9), len(a)
    group = np.tile(np.arange(n_groups), k) if crossed else np.arange(n_groups).repeat(k)
    unit = np.arange(k).repeat(n_groups) if crossed else np.arange(k * n_groups)
    row = np.arange(len(group)).repeat(3)
    found = []
    for _ in range(n):
        shared = draws.normal(0, 0.5, len(group))
        numbers = [
            (np.array(means)[group] + shared + wide * draws.normal(0, 0.5, len(group)))[row]
            + wide * draws.normal(0, 1, len(row))
            for means, wide in ((a, 1.0), (b, scale))
        ]
        own = compare_group_means(
            numbers[0], numbers[1] + 3, group[row], clusters=unit[row], n_resamples=399, rng=draws
        )
        found.append((own.p, own.ci_low, own.ci_high))
    return found


@pytest.mark.parametrize(("crossed", "a", "b", "scale"), WORLDS)
def test_models_of_equal_bias_are_told_apart_in_their_level(
    crossed: bool, a: list[float], b: list[float], scale: float
) -> None:
    found = drawn_tests(crossed, a, b, scale, 400, 10)
    # The true difference of distances is 0; at 5 %, and up to the noise of 400 samples, 7 %.
    assert np.mean([p <= 0.05 for p, _, _ in found]) <= 0.07
    assert np.mean([low <= 0 <= high for _, low, high in found]) >= 0.93


@pytest.mark.parametrize("crossed", [True, False])
def test_a_group_that_varies_more_than_the_others_does_not_set_models_of_equal_bias_apart(crossed: bool) -> None:
    # It brings the one model's means together where it pulls the other's apart: seen apart, they may be nearer than
    # any noise around what is seen tells, and the reverse.
    draws, group, held, n = np.random.default_rng(11), np.tile(np.arange(3), 12), 0, 200
    clusters = np.arange(36) // 3 if crossed else range(36)
    for _ in range(n):
        shared = np.array([5.0, 1, 1])[group] * draws.normal(size=36)
        a, b = (np.array(means)[group] + shared for means in ([2.0, 0, 0], [0, 2.0, 0]))
        found = compare_group_means(a, b, group, clusters=clusters, n_resamples=99, rng=draws)
        assert (found.p <= 0.05) == (not found.ci_low <= 0 <= found.ci_high)
        held += found.ci_low <= 0 <= found.ci_high
    assert held >= 0.92 * n  # 95 %, up to two errors of 200 samples


@pytest.mark.parametrize("crossed", [True, False])
@pytest.mark.parametrize("means", [[2.0, 0], [2.0, 0, 0]])
def test_a_planted_change_is_found_and_has_its_size(crossed: bool, means: list[float]) -> None:
    found = drawn_tests(crossed, means, [0.0] * len(means), 1, 100, 20)
    assert np.mean([p <= 0.05 for p, _, _ in found]) >= 0.9
    assert np.mean([low <= 2 <= high for _, low, high in found]) >= 0.9


@pytest.mark.parametrize("n_groups", [2, 3])
def test_a_group_without_spread_in_both_models_leaves_the_interval_a_width(n_groups: int) -> None:
    # Model a tells group a 5 and the others about 3, model b about 3 and 3: a is further, by 2 less what was not seen.
    generator, held, n = np.random.default_rng(4), 0, 12
    for _ in range(30):
        rest = generator.normal(3, 0.1, (2, (n_groups - 1) * n))
        found = compare_group_means(
            [5.0] * n + list(rest[0]), [3.0] * n + list(rest[1]), np.repeat(list("abc"[:n_groups]), n),
            clusters=range(n * n_groups), n_resamples=99, rng=generator,
        )  # fmt: skip
        held += found.ci_low <= 1.9 <= found.ci_high
        assert found.ci_low <= found.further <= found.ci_high
    assert held >= 28


def test_the_interval_leaves_out_0_where_p_is_small_and_only_there() -> None:
    draw, told = np.random.default_rng(6), []
    groups = np.arange(8) % 2  # 70 permutations: p is a multiple of 2/70, which Student's is not
    for _ in range(60):
        one, other = draw.standard_normal((2, 8)) * [[1], [0.2]] + [2 * groups, 0 * groups]
        found = compare_group_means(one, other, groups, clusters=range(8), n_resamples=199, rng=draw)
        told.append(found.p <= 0.05)
        assert told[-1] == (not found.ci_low <= 0 <= found.ci_high)
    assert 0 < sum(told) < 60
