"""Power for numbers, against Student's t, against the test itself, and in both directions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import optimize, stats
from seeded import generator

from equivox.core.errors import UsageError
from equivox.statistics import (
    clusters_for_difference,
    distribution_shift,
    group_means,
    minimum_detectable_difference,
    minimum_detectable_shift,
    required_clusters,
)
from equivox.statistics.power import _crossing, fewest_clusters, of_clusters, search

DESIGN = {"responses_per_cluster": 25, "n_values": 2, "n_groups": 2}


@pytest.fixture(scope="module")
def detectable():
    """The shift that 20 speakers detect; two tests look at it."""
    return minimum_detectable_shift(n_clusters=20, n_simulations=1_000, rng=generator(), **DESIGN)


def test_against_the_two_proportion_formula(detectable):
    # Two values, two groups, no speaker effect: nTVD is 100 · |p1 − p2|. With n = 10 · 25 answers per group the
    # normal approximation finds δ = (1.96 + .8416) · √(2 · .25 / 250) = 12.5 points with 80 % power (shares of
    # about one half); the planted shift goes from 1/2 ± s/2, so nTVD = 100 s = δ.
    expected = 100 * (stats.norm.ppf(0.975) + stats.norm.ppf(0.8)) * math.sqrt(2 * 0.25 / 250)
    assert detectable.undefined is None
    assert 0 < detectable.mc_error < 1.5
    # The permutation test has 499 permutations and about 18 degrees of freedom: a little less power than normal.
    slack = 3 * detectable.mc_error
    assert expected - slack <= detectable.size <= 1.15 * expected + slack


def test_a_small_level_is_decided_by_enough_permutations():
    # 499 permutations give no p below .002. At .001, as above: (3.29 + .84) · √(2 · .25 / 250), at 18 degrees.
    found = minimum_detectable_shift(n_clusters=20, n_simulations=200, alpha=0.001, rng=generator(), **DESIGN)
    expected = 100 * (stats.norm.ppf(0.9995) + stats.norm.ppf(0.8)) * math.sqrt(2 * 0.25 / 250)
    assert expected - 3 * found.mc_error <= found.size <= 1.3 * expected + 3 * found.mc_error
    number = minimum_detectable_difference(
        n_clusters=20, responses_per_cluster=1, n_groups=2, n_simulations=200, alpha=0.001, rng=generator()
    )
    expected = by_student(math.sqrt(2 / 10), 18, 0.001)
    assert expected - 3 * number.mc_error <= number.size <= 1.08 * expected + 3 * number.mc_error


def test_the_reverse_finds_the_design_again(detectable):
    # The search starts at `max_clusters`, whose simulations cost most.
    found = required_clusters(shift=detectable.size, max_clusters=200, n_simulations=600, rng=generator(2), **DESIGN)
    assert found.n_clusters is not None
    assert found.n_clusters % 2 == 0
    assert abs(found.n_clusters - 20) <= max(6, 4 * found.mc_error)


def test_speakers_who_differ_hide_a_shift():
    alike = minimum_detectable_shift(n_clusters=16, n_simulations=400, rng=generator(), **DESIGN)
    differ = minimum_detectable_shift(
        n_clusters=16, n_simulations=400, cluster_correlation=0.2, rng=generator(), **DESIGN
    )
    assert differ.size > 1.5 * alike.size


def test_too_few_clusters_are_told():
    # 2 + 2 speakers: 6 permutations, the most extreme pair has p = 1/3.
    found = minimum_detectable_shift(n_clusters=4, n_simulations=200, rng=generator(), **DESIGN)
    assert math.isnan(found.size)
    assert "less than 80%" in found.undefined
    few = required_clusters(shift=1.0, max_clusters=8, n_simulations=200, rng=generator(), **DESIGN)
    assert few.n_clusters is None
    assert few.undefined == "8 clusters find it in less than 80% of experiments"


def test_a_p_at_the_level_counts_as_found():
    # 3 + 3 speakers: the smallest p of 20 permutations is 2/20.
    found = [
        minimum_detectable_shift(n_clusters=6, n_simulations=200, alpha=alpha, rng=generator(), **DESIGN)
        for alpha in (0.1, 0.099)
    ]
    assert found[0].size < 100
    assert math.isnan(found[1].size)


def test_groups_without_a_common_answer_need_as_many_speakers_as_permutations_can_tell():
    # The smallest p of k + k speakers is 2 / (2k choose k): 2/20 of three, 2/70 of four. So four are needed, not 3.5.
    found = required_clusters(shift=100, max_clusters=60, n_simulations=200, rng=generator(), **DESIGN)
    assert found.n_clusters == 8


def test_the_crossing_of_a_fitted_curve_is_that_of_a_logistic_regression():
    # The maximum-likelihood fit by Newton's method, and the delta method on the inverse of its information.
    points = [(0.1, 11), (0.3, 38), (0.5, 90), (0.7, 151), (0.9, 188)]
    x, hits = (np.array(column, dtype=float) for column in zip(*points, strict=True))
    design, fit = np.stack([np.ones_like(x), x], axis=1), np.zeros(2)
    for _ in range(50):
        share = 1 / (1 + np.exp(-design @ fit))
        covariance = np.linalg.inv(design.T @ (200 * share * (1 - share) * design.T).T)
        fit = fit + covariance @ design.T @ (hits - 200 * share)
    for power in (0.8, 0.6):
        a, b = fit
        crossing = (math.log(power / (1 - power)) - a) / b
        gradient = np.array([-1 / b, -crossing / b])
        error = math.sqrt(gradient @ covariance @ gradient)
        assert _crossing(points, 200, power) == pytest.approx((crossing, error), rel=1e-3)


@pytest.mark.parametrize("power", [0.8, 0.5])
def test_a_search_finds_where_a_known_curve_crosses(power):
    def hits(place):
        return 100 / (1 + math.exp(-8 * (place - 3)))

    found, error = search(hits, 100, 0.0, 10.0, power)
    assert found == pytest.approx(3 + math.log(power / (1 - power)) / 8, abs=0.01) and 0 < error < 0.1
    # A rate that the end does not reach, and one that the beginning has already.
    assert all(map(math.isnan, search(hits, 100, 0.0, 2.9, power)))
    assert search(lambda place: power * 100, 100, 0.0, 1.0, power, rising_from=0.2) == (0.2, 0.0)


@pytest.mark.parametrize(("step", "most"), [(2, 400), (3, 399)])
def test_the_fewest_clusters_of_a_known_curve(step, most):
    # 80 of 100 are found with 20 · 4^(1/6) = 25.2 clusters, so that 26 or 27 are needed; steps round a little.
    found = fewest_clusters(lambda n: 100 / (1 + (20 / n) ** 6), step, most, 0.8, 100)
    assert found.n_clusters in ({26, 28} if step == 2 else {27}) and 0 < found.mc_error < 2
    assert fewest_clusters(lambda n: 100, step, most, 0.8, 100).n_clusters == 2 * step
    lost = fewest_clusters(lambda n: 79, step, most, 0.8, 100)
    assert lost.n_clusters is None and math.isnan(lost.mc_error)


@pytest.mark.parametrize(("needed", "most", "found"), [(8, 7, None), (6, 7, 6), (6, 5, None)])
def test_no_more_clusters_are_tried_than_may_be(needed, most, found):
    tried = []

    def rejections(n):
        tried.append(n)
        return 100 * (n >= needed)

    assert fewest_clusters(rejections, 2, most, 0.8, 100).n_clusters == found
    assert max(tried) <= most


def test_a_rate_that_is_just_enough_is_enough():
    # From 0.3 on exactly 80 of 100 are found: the search comes near to 0.3 instead of looking for more.
    tried = []

    def hits(place):
        tried.append(place)
        return 80 * (place >= 0.3)

    search(hits, 100, 0.0, 1.0, 0.8)
    assert min(abs(place - 0.3) for place in tried[:6]) < 0.05


def test_three_groups_with_a_value_each_are_found_by_nine_clusters():
    # The smallest p of 3 + 3 + 3 clusters is 6 of 1680 ways to deal them: what keeps the groups apart is found.
    found = minimum_detectable_shift(
        n_clusters=9, responses_per_cluster=25, n_values=3, n_groups=3, n_simulations=200, rng=generator()
    )
    assert found.undefined is None and 10 < found.size < 60


def test_answers_of_a_cluster_correlate_as_asked():
    # Of a Dirichlet distribution with the mean p, a share has the variance p (1 - p) · correlation.
    truth = np.tile([0.2, 0.3, 0.5], (20_000, 1))
    drawn = of_clusters(truth, 0.25, generator())
    assert drawn.sum(axis=1) == pytest.approx(np.ones(20_000))
    assert drawn.mean(axis=0) == pytest.approx([0.2, 0.3, 0.5], abs=0.01)
    assert drawn.var(axis=0) == pytest.approx([0.25 * p * (1 - p) for p in (0.2, 0.3, 0.5)], rel=0.05)
    assert of_clusters(truth, 0.0, generator()) is truth


def test_what_is_just_possible_is_accepted():
    least = {"n_clusters": 4, "responses_per_cluster": 1, "n_values": 2, "n_groups": 2, "n_simulations": 200}
    shares = {"value_shares": [0.0, 3.0]}
    assert minimum_detectable_shift(**least, **shares, rng=generator()).undefined is not None
    del least["n_clusters"]
    assert required_clusters(shift=100, max_clusters=4, **least, rng=generator()).n_clusters is None
    for change, words in (
        ({"max_clusters": 3}, "`max_clusters` is 3"),
        ({"shift": 0.0}, "`shift` is 0"),
        ({"shift": 100.1}, "`shift` is 100.1"),
        ({"n_simulations": 199}, "`n_simulations` is 199: use 200"),
        ({"value_shares": [0.0, 0.0]}, "`value_shares`"),
        ({"value_shares": [2.0, -1.0]}, "`value_shares`"),
        ({"cluster_correlation": -0.1}, "`cluster_correlation` is -0.1"),
    ):
        with pytest.raises(UsageError, match=words):
            required_clusters(**({"shift": 50.0, "max_clusters": 8, "rng": generator()} | least | change))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"n_clusters": 3}, "`n_clusters` is 3: this design needs at least 4"),
        ({"n_groups": 1}, "`n_groups` is 1"),
        ({"responses_per_cluster": 0}, "`responses_per_cluster` is 0"),
        (
            {"responses_per_cluster": 2, "n_groups": 3, "crossed": True},
            "a unit in every group has one or more in each of 3",
        ),
        ({"n_clusters": 1, "crossed": True}, "`n_clusters` is 1: this design needs at least 2"),
        ({"alpha": 0.0}, "`alpha` is 0.0"),
        ({"alpha": 0.00009}, "`alpha` is 9e-05: 10000 permutations give no p below 0.0001"),
        ({"power": 1.0}, "`power` is 1.0"),
        ({"cluster_correlation": 1.0}, "`cluster_correlation` is 1.0"),
        ({"n_simulations": 10}, "`n_simulations` is 10"),
        ({"n_values": 1}, "`n_values` is 1"),
        ({"value_shares": [1.0]}, "`value_shares` is not 2 shares"),
    ],
)
def test_designs_that_cannot_be_meant(change, words):
    asked = {"n_clusters": 20, "rng": generator()} | DESIGN | change
    with pytest.raises(UsageError, match=words):
        minimum_detectable_shift(**asked)
    if not change.keys() & {"n_values", "value_shares"}:
        del asked["n_values"]
        with pytest.raises(UsageError, match=words):
            minimum_detectable_difference(**asked)


@pytest.mark.parametrize(
    ("further", "words"), [({"difference": 0}, "`difference` is 0"), ({"max_clusters": 3}, "is 3")]
)
def test_clusters_for_a_difference_that_cannot_be_meant(further, words):
    asked = {"difference": 1.0, "responses_per_cluster": 2, "n_groups": 2, "rng": generator()} | further
    with pytest.raises(UsageError, match=words):
        clusters_for_difference(**asked)


def test_a_shift_out_of_reach_is_refused():
    with pytest.raises(UsageError, match="up to 80, the most that 3 values can show between 6 groups"):
        required_clusters(shift=90, responses_per_cluster=5, n_values=3, n_groups=6, rng=generator())


@pytest.mark.parametrize(("n_units", "n_groups", "n_values"), [(6, 2, 4), (20, 4, 4)])
def test_units_in_every_group_are_compared_within_units(n_units, n_groups, n_values):
    # Six items in both groups have 2⁶ swaps, so that p may be 2/64; six speakers of one group each have p ≥ 2/20.
    design = {"n_clusters": n_units, "responses_per_cluster": 2 * n_groups, "n_groups": n_groups, "n_values": n_values}
    found = minimum_detectable_shift(
        crossed=True, cluster_correlation=0.05, n_simulations=600, rng=generator(), **design
    )
    assert found.undefined is None
    # The test itself, on such samples: each item has its own answers in each group, 2 of them.
    rng, n_found = generator(2), 0
    moved = np.eye(n_values)[np.arange(n_groups)]
    full = 100 * np.abs(moved - moved.mean(axis=0)).sum() / 2 / (n_groups - 1)
    truth = (1 - found.size / full) / n_values + found.size / full * moved
    for _ in range(150):
        shares = of_clusters(np.tile(truth, (n_units, 1)), 0.05, rng)
        answers = [value for own in shares for value in rng.choice(n_values, 2, p=own)]
        shift = distribution_shift(
            [str(value) for value in answers],
            np.tile(np.arange(n_groups).repeat(2), n_units).astype(str),
            clusters=np.arange(n_units).repeat(2 * n_groups),
            min_count=1,
            n_resamples=499,
            rng=rng,
        )
        n_found += shift.p_cluster <= 0.05
    assert 0.68 < n_found / 150 < 0.92


def by_student(error: float, freedom: float, level: float = 0.05) -> float:
    """The difference that Student's t finds in 80 of 100 samples."""
    critical = stats.t.isf(level / 2, freedom)
    return error * float(optimize.brentq(lambda size: stats.nct.sf(critical, freedom, size) - 0.8, 0, 20))


DESIGNS: list[tuple[dict[str, Any], float, float]] = [
    # 20 speakers with 5 answers: each mean has a variance of 0.5 + 0.5 / 5.
    ({"n_clusters": 20, "responses_per_cluster": 5, "cluster_correlation": 0.5}, math.sqrt(0.6 * 2 / 10), 18),
    # 16 texts in both groups, 3 answers in each.
    (
        {"n_clusters": 16, "responses_per_cluster": 6, "crossed": True, "cluster_correlation": 0.4},
        math.sqrt((0.4 + 0.6 / 3) * 2 / 16),
        15,
    ),
]


@pytest.mark.parametrize(("design", "error", "freedom"), DESIGNS)
def test_two_groups_are_students_t(design: dict[str, Any], error: float, freedom: float) -> None:
    found = minimum_detectable_difference(n_groups=2, n_simulations=2_000, rng=generator(), **design)
    assert found.undefined is None and 0 < found.mc_error < 0.05
    # 499 permutations find a little less than the formula.
    expected = by_student(error, freedom)
    assert expected - 3 * found.mc_error <= found.size <= 1.08 * expected + 3 * found.mc_error


@pytest.mark.parametrize("crossed", [True, False])
@pytest.mark.parametrize("n_groups", [2, pytest.param(4, marks=pytest.mark.long)])
def test_the_test_itself_finds_what_is_said_to_be_found(crossed: bool, n_groups: int) -> None:
    k, m, correlation = 10, 3, 0.2
    found = minimum_detectable_difference(
        n_clusters=k if crossed else k * n_groups, responses_per_cluster=m * n_groups if crossed else m,
        n_groups=n_groups, crossed=crossed, cluster_correlation=correlation, n_simulations=2_000, rng=generator(),
    )  # fmt: skip
    draws = generator(2)
    group = np.tile(np.arange(n_groups), k)
    unit = np.arange(k).repeat(n_groups) if crossed else np.arange(k * n_groups)
    means = np.zeros(n_groups)
    means[1], means[0] = found.size / 2, -found.size / 2
    low = 0
    for _ in range(600):
        speakers = means[group] + math.sqrt(correlation) * draws.normal(0, 1, len(group))
        values = speakers.repeat(m) + math.sqrt(1 - correlation) * draws.normal(0, 1, len(group) * m)
        own = group_means(values, group.repeat(m), clusters=unit.repeat(m), n_resamples=499, rng=draws)
        low += own.p <= 0.05
    # 5 points: three standard errors of 600 samples.
    assert low / 600 == pytest.approx(0.8, abs=0.05)


@pytest.mark.parametrize("crossed", [True, False])
def test_the_reverse_of_a_difference_finds_the_design_again(crossed: bool) -> None:
    design = {"responses_per_cluster": 4, "n_groups": 2, "crossed": crossed, "cluster_correlation": 0.05}
    there = minimum_detectable_difference(n_clusters=24, n_simulations=1_000, rng=generator(), **design)
    back = clusters_for_difference(
        difference=there.size, max_clusters=200, n_simulations=1_000, rng=generator(2), **design
    )
    assert back.n_clusters is not None and abs(back.n_clusters - 24) <= max(4, 4 * back.mc_error)
    assert crossed or back.n_clusters % 2 == 0


def test_what_cannot_be_found_is_told() -> None:
    design = {"responses_per_cluster": 1, "n_groups": 2, "n_simulations": 200}
    few = minimum_detectable_difference(n_clusters=4, rng=generator(), **design)
    # 2 + 2 speakers: 6 permutations, so that p is 1/3 or more whatever the answers.
    assert math.isnan(few.size) and "less than 80%" in str(few.undefined)
    small = clusters_for_difference(difference=0.01, max_clusters=40, rng=generator(), **design)
    assert small.n_clusters is None and small.undefined == "40 clusters find it in less than 80% of experiments"


def test_the_least_possible_designs_are_accepted() -> None:
    crossed = {"responses_per_cluster": 2, "n_groups": 2, "crossed": True, "n_simulations": 200}
    assert minimum_detectable_difference(n_clusters=2, rng=generator(), **crossed).undefined is not None
    assert clusters_for_difference(difference=0.1, max_clusters=2, rng=generator(), **crossed).n_clusters is None
