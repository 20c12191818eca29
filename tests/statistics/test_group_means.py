"""Means and distributions of a number between groups: scipy's numbers, arithmetic by hand, and levels."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from equivox.core.errors import UsageError
from equivox.statistics import group_means
from equivox.statistics.encode import encode_design
from equivox.statistics.unit_means import units_of

RNG = np.random.default_rng(11)
ONE, OTHER = RNG.normal(0, 1, 12), RNG.normal(0.9, 2, 9)


def rng() -> np.random.Generator:
    return np.random.default_rng(5)


def test_independent_rows_are_scipys_welch_test_and_wasserstein_distance() -> None:
    found = group_means([*ONE, *OTHER], ["a"] * 12 + ["b"] * 9, clusters=range(21), n_resamples=20_000, rng=rng())
    welch = stats.ttest_ind(ONE, OTHER, equal_var=False)
    interval = welch.confidence_interval()
    assert found.difference == pytest.approx(ONE.mean() - OTHER.mean())
    assert (found.ci_low, found.ci_high) == pytest.approx((interval.low, interval.high))
    assert found.distance == pytest.approx(stats.wasserstein_distance(ONE, OTHER))
    drawn = {"n_resamples": 20_000, "alternative": "greater", "rng": np.random.default_rng(2)}
    gap = stats.permutation_test((ONE, OTHER), lambda a, b: abs(a.mean() - b.mean()), **drawn)
    # Two times 20,000 draws: the difference of two such shares has a standard error of at most .005.
    assert found.p == pytest.approx(max(gap.pvalue, welch.pvalue), abs=0.02)
    apart = stats.permutation_test((ONE, OTHER), stats.wasserstein_distance, **{**drawn, "n_resamples": 2_000})
    assert found.distance_p == pytest.approx(apart.pvalue, abs=0.05)


@pytest.mark.parametrize("n_few", [4, 7])
def test_p_is_never_below_welchs(n_few: int) -> None:
    few, many = np.linspace(1, 9, n_few), np.linspace(0.0, 1.0, 7)
    found = group_means([*few, *many], ["a"] * n_few + ["b"] * 7, clusters=range(n_few + 7), rng=rng())
    exact = stats.permutation_test((few, many), lambda a, b: a.mean() - b.mean(), permutation_type="independent")
    welch = stats.ttest_ind(few, many, equal_var=False).pvalue
    assert found.exact
    # Four against seven: 330 permutations, of which few are as far out, and Welch's p of 3.04 degrees of freedom.
    assert welch > 2 * exact.pvalue if n_few == 4 else welch > exact.pvalue
    assert found.p == pytest.approx(welch)


@pytest.mark.parametrize(
    ("sizes", "spreads", "answers"),
    [((6, 30), (3.0, 1.0), (1, 1)), ((6, 30), (0.3, 0.3), (1, 20)), ((5, 5, 25), (3.0, 1.0, 1.0), (1, 1, 1))],
)
def test_levels_where_the_fewer_clusters_vary_more(
    sizes: tuple[int, ...], spreads: tuple[float, ...], answers: tuple[int, ...]
) -> None:
    draw = np.random.default_rng(8)
    p, distance_p = [], []
    for _ in range(200):
        values, clusters = [], []
        for group, (size, spread, n) in enumerate(zip(sizes, spreads, answers, strict=True)):
            own = draw.normal(0, spread, size)
            values += (own[:, None] + (draw.normal(0, 1, (size, n)) if max(answers) > 1 else 0.0)).ravel().tolist()
            clusters += [f"{group}/{cluster}" for cluster in range(size) for _ in range(n)]
        groups = [name.partition("/")[0] for name in clusters]
        found = group_means(values, groups, clusters=clusters, n_resamples=199, rng=rng())
        p.append(found.p)
        distance_p.append(found.distance_p)
    # 5 % of 200 are 10; more than 19 have a probability of .003. Permutations alone reject in 23 to 50 %.
    assert sum(value <= 0.05 for value in p) <= 19
    if max(answers) > 1:
        # The answers of both groups have one distribution; a group has one answer of each cluster.
        assert sum(value <= 0.05 for value in distance_p) <= 19


def test_units_in_every_group_are_scipys_paired_test() -> None:
    one = ONE[:9]
    found = group_means([*one, *OTHER], ["a"] * 9 + ["b"] * 9, clusters=[*range(9)] * 2, rng=rng())
    interval = stats.ttest_rel(one, OTHER).confidence_interval()
    assert (found.ci_low, found.ci_high) == pytest.approx((interval.low, interval.high))
    exact = stats.permutation_test((one, OTHER), lambda a, b: a.mean() - b.mean(), permutation_type="samples")
    assert found.exact and found.p == pytest.approx(exact.pvalue)
    assert found.n_clusters == 9
    assert any("within units" in note for note in found.notes)
    alone = group_means([*one, *OTHER], ["a"] * 9 + ["b"] * 9, clusters=[*range(9)] * 2, distances=False, rng=rng())
    assert alone.p == found.p and math.isnan(alone.distance) and math.isnan(alone.distance_p)


def test_every_cluster_counts_once_by_hand() -> None:
    # a: the means of 10, 10, 10 and of 20 are 10 and 20, so 15; b: 1 and 3, so 2. Of the 6 permutations of four
    # clusters, 2 set the means 13 apart (this one, and the other way round).
    values = [10, 10, 10, 20, 1, 3]
    found = group_means(values, list("aaaabb"), clusters=["p", "p", "p", "q", "r", "s"], rng=rng())
    assert found.means.tolist() == [15, 2]
    assert (found.difference, found.p, found.exact) == (13, pytest.approx(2 / 6), True)
    # Values lie 75 (squared) about 12.5 and 2 about 2, and two means are taken from six.
    assert found.sd == pytest.approx(math.sqrt((75 + 2) / (6 - 2)))
    # Half of each group's mass moves from 1 to 10 and half from 3 to 20.
    assert found.distance == pytest.approx(0.5 * 9 + 0.5 * 17)
    # Welch: s² of the cluster means are 50 and 2; (50 + 2) / 2 is the squared error.
    degrees = (50 / 2 + 2 / 2) ** 2 / ((50 / 2) ** 2 + (2 / 2) ** 2)
    assert found.ci_high - 13 == pytest.approx(stats.t.ppf(0.975, degrees) * math.sqrt(26))


def test_strata_are_held_equal_in_the_means_the_interval_and_the_test() -> None:
    # Long texts give 100 more; group a has three of four there, group b one of four. Within strata nothing differs.
    values = [101, 102, 103, 1, 102, 1, 0, 2]
    strata = ["long"] * 3 + ["short"] + ["long"] + ["short"] * 3
    plain = group_means(values, list("aaaabbbb"), clusters=range(8), rng=rng())
    held = group_means(values, list("aaaabbbb"), clusters=range(8), strata=strata, rng=rng())
    assert plain.difference == pytest.approx(76.75 - 26.25)
    # (102 + 1) / 2 against (102 + 1) / 2, both strata with half of the weight.
    assert held.means.tolist() == pytest.approx([51.5, 51.5])
    assert held.p == 1 and abs(held.ci_high) < 10
    blocks = group_means(values, list("aaaabbbb"), clusters=range(8), blocks=strata, rng=rng())
    assert blocks.means.tolist() == held.means.tolist()


def test_a_stratum_without_some_group_is_left_out_and_told() -> None:
    found = group_means(
        [1, 2, 3, 4, 99, 98],
        list("ababaa"),
        clusters=range(6),
        strata=["x", "x", "x", "x", "y", "y"],
        rng=rng(),
    )
    assert found.means.tolist() == [2, 3]
    assert "1 of 2 strata or blocks lack a value of some group: they are left out" in found.notes


def test_a_unit_without_an_answer_in_one_group_is_left_out_and_told() -> None:
    values = [1.0, 2, 3, 5, math.nan, 90]
    found = group_means(values, list("ababab"), clusters=list("xxyyzz"), rng=rng())
    # (1 - 2 + 3 - 5) / 2; z has no answer of a.
    assert (found.difference, found.n_clusters, found.n_missing) == (-1.5, 2, 1)
    assert "1 of 3 units lack a value in some group: they are left out" in found.notes


def test_of_three_groups_it_is_the_largest_minus_the_smallest_mean() -> None:
    values = [1, 2, 3, 11, 12, 13, 5, 6, 7]
    found = group_means(values, np.repeat(list("abc"), 3), clusters=range(9), rng=rng())
    assert found.means.tolist() == [2, 12, 6]
    assert found.difference == 10
    # 9! / 3!³ = 1680 permutations, of which the 3! namings of these sets are as far apart.
    assert found.exact and found.p == pytest.approx(6 / 1680)
    # Tukey's range of three means, six degrees of freedom, a squared error of 1/3 each; 10,000 draws.
    half = stats.studentized_range.ppf(0.95, 3, 6) * math.sqrt(1 / 3)
    assert (found.ci_low, found.ci_high) == pytest.approx((10 - half, 10 + half), abs=0.08)
    assert found.distance == 10 and found.null_mean > 0
    # Of 1,000 draws none is beyond a level of .0001: the interval is wider than any other, not that of the nearest one.
    wide = group_means(
        values, np.repeat(list("abc"), 3), clusters=range(9), n_resamples=99, confidence=0.9999, rng=rng()
    )
    assert wide.ci_low == 0 and wide.ci_high > 10 + 1.5 * half


@pytest.mark.parametrize("n_groups", [2, 4])
@pytest.mark.parametrize("crossed", [False, True])
def test_the_interval_leaves_out_0_where_p_is_small_and_only_there(crossed: bool, n_groups: int) -> None:
    """Also of numbers of which a few are far from all others, where permutations and Student's t part."""
    draw = np.random.default_rng(3)
    group = np.tile(np.arange(n_groups), 12)
    unit = np.arange(len(group)) // n_groups if crossed else np.arange(len(group))
    starred = []
    for sample in range(60):
        values = np.exp(1.5 * draw.standard_normal(len(group))) + 5 * (group == sample % 2)
        found = group_means(values, group, clusters=unit, n_resamples=199, rng=np.random.default_rng(sample))
        starred.append(found.p <= 0.05)
        assert starred[-1] == (not found.ci_low <= 0 <= found.ci_high)
    assert 0 < sum(starred) < 60
    # The interval whose level is p ends at 0, or beyond it: p is not small enough for any wider one.
    at_p = group_means(values, group, clusters=unit, n_resamples=199, confidence=1 - found.p,
                       rng=np.random.default_rng(sample))  # fmt: skip
    assert (at_p.p <= 1 - (1 - found.p)) == (not at_p.ci_low <= 0 <= at_p.ci_high)


def test_of_three_groups_in_every_unit_the_interval_is_tukeys_in_blocks() -> None:
    # As much is left of each group, so that all have one variance.
    level, left = np.array([4.0, 9, 2, 6, 5, 3]), np.array([[1, -1, 0], [0, 1, -1], [-1, 0, 1]] * 2) * 1.5
    values = level[:, None] + left + [3, 0, 0]
    found = group_means(values.ravel(), list("abc") * 6, clusters=np.arange(6).repeat(3), n_resamples=20_000, rng=rng())
    residuals = values - values.mean(axis=0) - values.mean(axis=1, keepdims=True) + values.mean()
    half = stats.studentized_range.ppf(0.95, 3, 10) * math.sqrt((residuals**2).sum() / 10 / 6)
    assert found.ci_high - found.difference == pytest.approx(half, rel=0.03)


def test_a_group_that_varies_more_than_five_others_in_the_same_units_is_no_difference() -> None:
    # 400 samples without an effect: 5 % and three standard errors are 33. With one variance for all it were 47.
    draw, p = np.random.default_rng(7), []
    groups, units = list("abcdef") * 12, np.repeat(range(12), 6)
    for _ in range(400):
        values = draw.normal(0, 1, (12, 1)) + draw.normal(0, [10, 1, 1, 1, 1, 1], (12, 6))
        p.append(group_means(values.ravel(), groups, clusters=units, n_resamples=99, distances=False, rng=draw).p)
    assert np.sum(np.array(p) <= 0.05) <= 33


def test_the_variances_of_three_groups_in_every_unit_by_hand() -> None:
    # What is left of a, b and c has mean squares 1.5, 1.5 and 6 (a and b move alike, against c). Together they are 9,
    # so that the variances have a mean of 9 / 2; a third of it is all that is left of a and b, and c has the rest.
    left = np.array([[1.0, 1, -2], [-1, -1, 2]] * 2) * math.sqrt(9 / 8)
    values = np.array([4.0, 9, 2, 6])[:, None] + left
    design = encode_design(list("abc") * 4, np.arange(4).repeat(3), None)
    units, _ = units_of(values.reshape(-1, 1), design)
    drawn = units.noise_of_gap(40_000, rng())
    # Of 4 units: c's mean has an error of √(3 · 4.5 / 4), with a third of the 3 · 2 degrees of freedom.
    expected = stats.t.ppf(0.975, 2) * math.sqrt(13.5 / 4)
    assert drawn is not None and np.quantile(drawn, 0.95) == pytest.approx(expected, rel=0.03)


def test_nothing_to_compare_has_a_reason_and_no_zero() -> None:
    same = group_means([4, 4, 4, 4], list("aabb"), clusters=range(4), rng=rng())
    assert math.isnan(same.difference) and "all values are the same" in str(same.undefined)
    nothing = group_means([1, 2, math.nan, None], list("aabb"), clusters=range(4), rng=rng())
    assert nothing.undefined == "no known value in group 'b'"
    one = group_means([1, 2], list("aa"), clusters=range(2), rng=rng())
    assert "one group" in str(one.undefined)
    apart = group_means([1, 2, 3, 4], list("aabb"), clusters=range(4), strata=list("xxyy"), rng=rng())
    assert "no stratum, block or unit" in str(apart.undefined)
    told = r"units in several: of 4, 1 in 2, 3 in 1 of 2 groups \('w' in b\)"
    with pytest.raises(UsageError, match=told):
        group_means([1, 2, 3, 4, 5], list("abaab"), clusters=list("xxyzw"), rng=rng())


def test_what_rounding_leaves_is_no_difference_in_any_unit() -> None:
    # Each value is .3, as 0.1 + 0.2 or as 0.3, which differ in the last binary digit.
    values = [0.1 + 0.2] * 8 + [0.3] * 8
    for unit in (1.0, 1e-12):
        found = group_means(np.array(values) * unit, ["a"] * 8 + ["b"] * 8, clusters=range(16), rng=rng())
        assert (found.p, found.distance_p) == (1.0, 1.0)
        # Units in which three groups differ alike leave no noise to be seen.
        alike = (np.arange(8)[:, None] / 10 + [0.1, 0.2, 0.4]).ravel() * unit
        found = group_means(alike, list("abc") * 8, clusters=np.arange(8).repeat(3), rng=rng())
        assert math.isnan(found.ci_low) and found.difference == pytest.approx(0.3 * unit)


def test_order_and_names_change_nothing() -> None:
    values, groups = RNG.normal(0, 1, 60), RNG.choice(["a", "b"], 20).repeat(3)
    clusters = np.arange(20).repeat(3)
    found = group_means(values, groups, clusters=clusters, n_resamples=500, rng=rng())
    order = RNG.permutation(60)
    moved = group_means(values[order], groups[order], clusters=clusters[order] + 7, n_resamples=500, rng=rng())
    assert (found.p, found.distance_p) == pytest.approx((moved.p, moved.distance_p), rel=1e-12)
    swapped = group_means(values, np.where(groups == "a", "b", "a"), clusters=clusters, n_resamples=500, rng=rng())
    assert swapped.difference == pytest.approx(-found.difference)


@pytest.mark.parametrize("crossed", [True, False])
@pytest.mark.parametrize("n_groups", [2, 3])
def test_levels_with_clusters_that_differ(crossed: bool, n_groups: int) -> None:
    """Clusters differ as much as answers within them do; p must be uniform, the interval must hold 0."""
    n, draws = 12, np.random.default_rng(3)
    groups = np.tile(np.arange(n_groups), n).repeat(2)
    units = np.arange(n).repeat(n_groups) if crossed else np.arange(n * n_groups)
    low, apart, held = [], [], []
    for _ in range(400):
        effect = draws.normal(0, 1, n if crossed else n * n_groups)
        values = effect[units].repeat(2) + draws.normal(0, 1, 2 * n * n_groups)
        found = group_means(values, groups, clusters=units.repeat(2), n_resamples=199, rng=draws)
        low.append(found.p <= 0.05)
        apart.append(found.distance_p <= 0.05)
        held.append(found.ci_low <= 0 <= found.ci_high)
    # Three standard errors of 400 draws at 5 % are 3.3 points.
    assert np.mean(low) < 0.083 and np.mean(apart) < 0.083
    assert np.mean(held) > 0.917


EVEN, UNEVEN = [1] * 12, [1, 1, 1, 1, 1, 1, 1, 2, 3, 4, 6, 10]


def test_a_group_without_spread_supposes_one_more_cluster_that_is_like_the_others() -> None:
    # 12 clusters of group a all answer 5. If 5 % do as those of b, around 3, that is seen in .95^12 = 54 % of samples,
    # and the difference is 2 - .05 * 2 = 1.9.
    generator, held = rng(), 0
    for _ in range(40):
        of_b = generator.normal(3, 0.1, 12)
        found = group_means([5] * 12 + list(of_b), ["a"] * 12 + ["b"] * 12, clusters=range(24), n_resamples=99,
                            rng=generator)  # fmt: skip
        held += found.ci_low <= 1.9 <= found.ci_high
    assert held >= 38  # It was 4 without that cluster.
    # One more of 13 moves the mean of a by 1/13 of how far the clusters of b lie.
    squares = np.array([((of_b - 5) ** 2).mean() / 13**2, of_b.var(ddof=1) / 12])
    half = stats.t.ppf(0.975, squares.sum() ** 2 / (squares**2 / 11).sum()) * math.sqrt(squares.sum())
    assert (found.ci_low, found.ci_high) == pytest.approx((found.difference - half, found.difference + half))


def test_an_interval_of_tiny_numbers_is_that_of_large_ones() -> None:
    values = np.array([0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 3.0, 0.0])
    large, tiny = (
        group_means(scale * values, ["a", "b"] * 4, clusters=np.arange(4).repeat(2), rng=rng())
        for scale in (1.0, 1e-98)
    )
    assert (tiny.ci_low / 1e-98, tiny.ci_high / 1e-98) == pytest.approx((large.ci_low, large.ci_high))


def test_permutations_within_unequal_strata_by_hand() -> None:
    # Group a has one cluster of three in x and two of three in y. Each group's mean is half of x's and half of y's
    # mean, and each of the 3 · 3 permutations deals one cluster of x and two of y to group a.
    x, y = np.array([1.0, 9.0, 4.0]), np.array([50.0, 57.0, 52.0])
    gaps = [
        (x[i] - np.delete(x, i).mean() + np.delete(y, j).mean() - y[j]) / 2 for i in range(3) for j in range(3)
    ]  # fmt: skip
    found = group_means([*x, *y], list("abbaab"), clusters=range(6), strata=list("xxxyyy"), rng=rng())
    assert found.difference == pytest.approx((1.0 - 6.5 + 53.5 - 52.0) / 2)
    assert found.exact and found.null_mean == pytest.approx(np.abs(gaps).mean())


@pytest.mark.parametrize("unit", [1.0, 1e-12, 1e15])
def test_the_unit_of_the_numbers_changes_no_p(unit: float) -> None:
    values, groups = np.concatenate([ONE[:9], OTHER]), ["a"] * 9 + ["b"] * 9
    for clusters in ([*range(18)], [*range(9)] * 2):
        own = group_means(values, groups, clusters=clusters, n_resamples=999, rng=rng())
        other = group_means(values * unit, groups, clusters=clusters, n_resamples=999, rng=rng())
        assert (other.p, other.distance_p) == (own.p, own.distance_p)
        assert (other.ci_low, other.ci_high) == pytest.approx((own.ci_low * unit, own.ci_high * unit))
