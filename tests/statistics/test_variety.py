"""The variety of answers: entropies by hand, a level by simulation, and what changes nothing."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from equivox.core.encoded import EncodedValues
from equivox.core.errors import RequestError
from equivox.statistics import variety_difference
from equivox.statistics.variety import VarietyDifference


def varied(
    first: list[list[str]], second: list[list[str]], groups: list[str], clusters: list[str], n: int = 999
) -> VarietyDifference:
    return variety_difference(
        [EncodedValues.of(first)], [EncodedValues.of(second)], groups, clusters=clusters, n_resamples=n,
        rng=np.random.default_rng(1),
    )  # fmt: skip


def test_the_entropy_is_within_groups_and_scipys() -> None:
    groups, clusters = ["f"] * 4 + ["m"] * 4, list("abcdefgh")
    # f: a a b c, so 1.5 bits; m: d d d d, so 0 bits. What keeps the groups apart is no variety.
    found = varied([[v] for v in "aabcdddd"], [[v] for v in "ffffmmmm"], groups, clusters)
    assert found.first == pytest.approx(np.mean([stats.entropy([2, 1, 1], base=2), 0.0])) == pytest.approx(0.75)
    assert found.second == 0.0 and found.difference == found.first
    assert (found.n, found.n_clusters) == (8, 8)
    # 3 clusters hold a, b or c beside others; of the 2^8 exchanges all are counted, and p is never 0.
    assert 0 < found.p <= 1 and found.p_least == 2 / 2**8


def test_the_interval_is_that_of_leaving_out_each_cluster() -> None:
    rng = np.random.default_rng(9)
    first, second, cluster = rng.integers(0, 4, 24), rng.integers(0, 2, 24), np.arange(24) // 3

    def bits(values: np.ndarray) -> float:
        return float(stats.entropy(np.bincount(values), base=2))

    without = np.array([bits(first[cluster != k]) - bits(second[cluster != k]) for k in range(8)])
    half = stats.t.ppf(0.975, 7) * math.sqrt(7 / 8 * ((without - without.mean()) ** 2).sum())
    found = varied([[str(v)] for v in first], [[str(v)] for v in second], ["f"] * 24, [str(k) for k in cluster])
    assert found.difference == pytest.approx(bits(first) - bits(second))
    assert (found.ci_low, found.ci_high) == pytest.approx((found.difference - half, found.difference + half))
    assert found.p_least == 2 / 2**8
    null = []
    for exchanged in itertools.product([False, True], repeat=8):
        here = np.array(exchanged)[cluster]
        null.append(bits(np.where(here, second, first)) - bits(np.where(here, first, second)))
    assert found.p == pytest.approx(np.mean(np.abs(null) >= abs(found.difference) - 1e-9))
    assert varied([["a"]] * 24, [["b"]] * 24, ["f"] * 24, list("abcdefghijklmnopqrstuvwx"), n=99).p_least == 1 / 100


def test_several_values_of_one_answer_are_no_variety() -> None:
    groups, clusters = ["f"] * 4, list("abcd")
    same = [["yoga", "chess", "yoga"]] * 4
    other = [["a", "a", "b"], ["b", "a", "a"], ["c", "d"], ["c", "d"]]
    found = varied(other, same, groups, clusters)
    # Of ten mentions a has 4, and within the six of a and b there is the entropy of 2 and 1.
    over, within = stats.entropy([4, 2, 2, 2], base=2), 0.6 * stats.entropy([2, 1], base=2) + 0.4
    assert found.first == pytest.approx(over - within) and found.second == pytest.approx(0.0)


def test_attributes_are_averaged_and_only_what_both_answered_counts() -> None:
    one = EncodedValues.of([["a"], ["b"], [], ["a"]])
    other = EncodedValues.of([["x"], ["x"], ["y"], []])
    found = variety_difference([one, one], [other, one], ["f"] * 4, clusters=list("abcd"), rng=np.random.default_rng(1))
    # First attribute: rows 0 and 1, so 1 bit against 0; second: rows 0, 1 and 3 against themselves.
    thirds = stats.entropy([2, 1], base=2)
    assert found.first == pytest.approx((1 + thirds) / 2) and found.second == pytest.approx(thirds / 2)
    assert found.n == 3


def test_names_order_and_sides_change_nothing() -> None:
    rng = np.random.default_rng(3)
    first = [[str(v)] for v in rng.integers(0, 6, 60)]
    second = [[str(v)] for v in rng.integers(0, 3, 60)]
    groups, clusters = [*"fm"] * 30, [str(n // 4) for n in range(60)]
    found = varied(first, second, groups, clusters)
    turned = varied(second, first, groups, clusters)
    assert turned.difference == pytest.approx(-found.difference)
    assert (turned.ci_low, turned.ci_high) == (pytest.approx(-found.ci_high), pytest.approx(-found.ci_low))
    renamed = varied([[f"v{v}" for v in row] for row in first], [[f"v{v}" for v in row] for row in second],
                     groups, clusters)  # fmt: skip
    assert renamed == found
    assert found.ci_low < found.difference < found.ci_high and found.p < 0.05


def test_two_alike_are_told_apart_in_five_of_a_hundred() -> None:
    rng = np.random.default_rng(5)
    groups, clusters = [*"ffmm"] * 24, [str(n // 4) for n in range(96)]
    p, covered = [], 0
    for _ in range(200):
        answers = [[[str(v)] for v in rng.integers(0, 5, 96)] for _ in range(2)]
        found = varied(*answers, groups, clusters, n=199)
        p.append(found.p)
        covered += found.ci_low <= 0 <= found.ci_high
    # Binomial(200, 0.05): 99.9 % lie at 21 or below.
    assert sum(value <= 0.05 for value in p) <= 21
    assert covered >= 180


@pytest.mark.parametrize("uneven", [False, True])
def test_other_words_of_the_same_variety_are_no_difference(uneven: bool) -> None:
    # Exchanges of the conditions alone told other words apart in 41 and 34 of these samples, and the interval of
    # clusters of unequal size held the truth in 88.
    rng, shares, rejected, held = np.random.default_rng(12), np.array([0.7, 0.2, 0.1]), 0, 0
    for _ in range(100):
        sizes = np.ceil(rng.lognormal(1.5, 2, size=12)).astype(int) if uneven else np.full(12, 12)
        clusters = np.repeat(np.arange(12), sizes)
        own = [rng.dirichlet(4 * (shares[::-1] if side else shares), size=12).cumsum(axis=1) for side in range(2)]
        words = [[[str(v)] for v in (rng.random(len(clusters))[:, None] > side[clusters]).sum(axis=1)] for side in own]
        found = varied(*words, ["f"] * len(clusters), [str(k) for k in clusters], n=199)
        rejected, held = rejected + (found.p <= 0.05), held + (found.ci_low <= 0 <= found.ci_high)
        assert (found.p <= 0.05) == (not found.ci_low <= 0 <= found.ci_high)
    assert rejected <= 11 and held >= 89


def test_nothing_in_common_has_a_reason_and_bad_input_raises() -> None:
    found = varied([["a"], []], [[], ["b"]], ["f", "m"], ["1", "2"])
    assert math.isnan(found.difference) and "both conditions" in str(found.undefined)
    alone = varied([["a"], ["b"]], [["a"], ["a"]], ["f", "f"], ["1", "1"])
    assert math.isnan(alone.ci_low) and alone.p == 1.0
    with pytest.raises(RequestError, match="groups"):
        varied([["a"]], [["a"]], ["f", "m"], ["1", "2"])
    with pytest.raises(RequestError, match="attributes"):
        variety_difference([], [EncodedValues.of([["a"]])], ["f"], clusters=["1"], rng=np.random.default_rng(1))


def test_a_condition_of_one_answer_supposes_one_more_cluster_that_answers_otherwise() -> None:
    # Nobody of 12 clusters was given anything but y. If 5 % are given another answer, that is seen in 54 % of samples,
    # and the variety is .29 bits, not 0.
    rng, held = np.random.default_rng(2), 0
    truth = float(stats.entropy([0.05, 0.95], base=2)) - 1
    for _ in range(40):
        second = [[str(v)] for v in rng.integers(0, 2, 12)]
        found = varied([["y"]] * 12, second, ["f"] * 12, list("abcdefghijkl"), n=99)
        held += found.ci_low <= truth <= found.ci_high
    assert held >= 38
    # By hand where both conditions have one answer: one of 13 in each, and Student's t of 11 degrees of freedom.
    found = varied([["y"]] * 12, [["y"]] * 12, ["f"] * 12, list("abcdefghijkl"), n=99)
    half = stats.t.ppf(0.975, 11) * math.sqrt(2) * stats.entropy([1, 12], base=2)
    assert (found.difference, found.ci_low, found.ci_high) == pytest.approx((0, -half, half))
    # Five clusters of another group have one answer too: each group's error counts for half of the mean. A cluster is a
    # 24th or a 10th of it, so that they weigh as 1/(12/24² + 5/10²) clusters of one size.
    found = varied([["y"]] * 17, [["y"]] * 17, ["f"] * 12 + ["m"] * 5, list("abcdefghijklmnopq"), n=99)
    each = [stats.entropy([1, n], base=2) / 2 for n in (12, 5)]
    degrees = 1 / (12 / 24**2 + 5 / 10**2) - 1
    assert found.ci_high == pytest.approx(stats.t.ppf(0.975, degrees) * math.sqrt(2 * (each[0] ** 2 + each[1] ** 2)))


def test_an_interval_that_no_cluster_moves_is_none() -> None:
    # Each cluster is given both answers in both conditions: nothing is known of clusters that are not.
    both, clusters = [["a"], ["b"]] * 6, [str(n // 2) for n in range(12)]
    found = varied(both, both[::-1], ["f"] * 12, clusters, n=99)
    assert found.difference == 0 and math.isnan(found.ci_low) and math.isnan(found.ci_high)


def test_two_clusters_have_the_interval_of_their_difference() -> None:
    # Both are given a and b first, and then a and a or a and b. Without the one the difference is 0, without the
    # other 1 bit: the jackknife's standard error is half of that, and Student's t has one degree of freedom.
    found = varied([["a"], ["b"]] * 2, [["a"], ["a"], ["a"], ["b"]], ["f"] * 4, list("1122"), n=99)
    difference = 1 - float(stats.entropy([3, 1], base=2))
    half = stats.t.ppf(0.975, 1) / 2
    assert (found.difference, found.ci_low, found.ci_high) == pytest.approx(
        (difference, difference - half, difference + half)
    )
