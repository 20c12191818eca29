"""The variety of answers: pairs counted by hand, a level by simulation, and what changes nothing."""

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


def differing(values: list[str], clusters: list[str]) -> float:
    """Return the percentage of pairs of two clusters whose values differ, counted one by one."""
    pairs = [a != b for (a, k), (b, m) in itertools.combinations(zip(values, clusters, strict=True), 2) if k != m]
    return 100 * sum(pairs) / len(pairs)


def test_pairs_are_of_one_group_and_of_two_clusters() -> None:
    groups, clusters = ["f"] * 4 + ["m"] * 4, list("abcdefgh")
    # f: a a b c, of whose six pairs five differ; m: d d d d. What keeps the groups apart is no variety.
    found = varied([[v] for v in "aabcdddd"], [[v] for v in "ffffmmmm"], groups, clusters)
    assert found.first == pytest.approx(100 * (5 / 6 + 0) / 2) and found.second == 0.0
    assert found.difference == found.first and (found.n, found.n_clusters) == (8, 8)
    # Of the 2^8 exchanges all are counted, and p is never 0.
    assert 0 < found.p <= 1 and found.p_least == 2 / 2**8
    # Two answers of one cluster are no pair: of the five pairs that are left four differ.
    found = varied([[v] for v in "aabc"], [["f"]] * 4, ["f"] * 4, list("axya"))
    assert found.first == pytest.approx(differing(list("aabc"), list("axya"))) == pytest.approx(80)


@pytest.mark.parametrize("sizes", [[3] * 8, [1, 2, 3, 4, 5, 3, 2, 4]])
def test_the_interval_is_that_of_leaving_out_each_cluster(sizes: list[int]) -> None:
    rng = np.random.default_rng(9)
    first, second, cluster = rng.integers(0, 4, 24), rng.integers(0, 2, 24), np.repeat(np.arange(8), sizes)
    degrees = 1 / sum((size / 24) ** 2 for size in sizes) - 1  # 7, where all are of one size

    def percent(values: np.ndarray, cluster: np.ndarray) -> float:
        return differing([str(v) for v in values], [str(k) for k in cluster])

    others = [cluster != k for k in range(8)]
    without = np.array([percent(first[o], cluster[o]) - percent(second[o], cluster[o]) for o in others])
    half = stats.t.ppf(0.975, degrees) * math.sqrt(7 / 8 * ((without - without.mean()) ** 2).sum())
    found = varied([[str(v)] for v in first], [[str(v)] for v in second], ["f"] * 24, [str(k) for k in cluster])
    assert found.difference == pytest.approx(percent(first, cluster) - percent(second, cluster))
    assert (found.ci_low, found.ci_high) == pytest.approx((found.difference - half, found.difference + half))
    assert found.p_least == 2 / 2**8
    null = []
    for exchanged in itertools.product([False, True], repeat=8):
        here = np.array(exchanged)[cluster]
        null.append(percent(np.where(here, second, first), cluster) - percent(np.where(here, first, second), cluster))
    of_exchanges = np.mean(np.abs(null) >= abs(found.difference) - 1e-9)
    assert found.p == pytest.approx(
        max(of_exchanges, 2 * stats.t.sf(found.difference / half * stats.t.ppf(0.975, degrees), degrees))
    )
    assert varied([["a"]] * 24, [["b"]] * 24, ["f"] * 24, list("abcdefghijklmnopqrstuvwx"), n=99).p_least == 1 / 100


def test_answers_with_several_values_differ_by_what_they_do_not_share() -> None:
    # The same ones in another order: nothing. Nothing in common: all.
    groups, clusters = ["f"] * 4, list("abcd")
    same = [["yoga", "chess", "yoga"], ["chess", "yoga", "yoga"]] * 2
    other = [["a", "a", "b"], ["b", "a", "a"], ["c", "d"], ["c", "d"]]
    found = varied(other, same, groups, clusters)
    assert found.first == pytest.approx(100 * 4 / 6) and found.second == pytest.approx(0.0)
    # a and b against a alone: an angle of 45 degrees.
    found = varied([["a", "b"], ["a"]], [["x"], ["x"]], ["f"] * 2, list("ab"))
    assert found.first == pytest.approx(100 * (1 - math.sqrt(1 / 2)))


def test_attributes_are_averaged_and_only_what_both_answered_counts() -> None:
    one = EncodedValues.of([["a"], ["b"], [], ["a"]])
    other = EncodedValues.of([["x"], ["x"], ["y"], []])
    found = variety_difference([one, one], [other, one], ["f"] * 4, clusters=list("abcd"), rng=np.random.default_rng(1))
    # First attribute: rows 0 and 1, so all pairs against none; second: rows 0, 1 and 3, two pairs of three, both times.
    assert found.first == pytest.approx((100 + 200 / 3) / 2) and found.second == pytest.approx(100 / 3)
    assert found.n == 3


def test_rare_values_that_were_not_seen_are_no_lack_of_variety() -> None:
    # Four values, or one beside 199 rare ones: of each, three pairs of four differ. By their entropies, which a sample
    # misses most of, 61 to 96 of 100 samples with these answers seemed to say less.
    rng, rejected, held = np.random.default_rng(4), 0, 0
    common = (1 + math.sqrt(1 - 200 * (1 - 0.25 * 199))) / 200
    rare = np.array([common] + [(1 - common) / 199] * 199)
    assert 1 - (rare**2).sum() == pytest.approx(0.75)
    groups, clusters = [*"fm"] * 120, [str(n // 10) for n in range(240)]
    for _ in range(100):
        answers = [[[str(v)] for v in rng.choice(len(p), 240, p=p)] for p in (np.full(4, 0.25), rare)]
        found = varied(*answers, groups, clusters, n=199)
        rejected, held = rejected + (found.p <= 0.05), held + (found.ci_low <= 0 <= found.ci_high)
    # Binomial(100, 0.05): 99.9 % lie at 13 or below.
    assert rejected <= 13 and held >= 87


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
    assert math.isnan(alone.first) and "two clusters" in str(alone.undefined) and (alone.n, alone.n_clusters) == (2, 1)
    with pytest.raises(RequestError, match="groups"):
        varied([["a"]], [["a"]], ["f", "m"], ["1", "2"])
    with pytest.raises(RequestError, match="attributes"):
        variety_difference([], [EncodedValues.of([["a"]])], ["f"], clusters=["1"], rng=np.random.default_rng(1))


def test_a_condition_of_one_answer_supposes_one_more_cluster_that_answers_otherwise() -> None:
    # Nobody of 12 clusters was given anything but y. If 5 % are given another answer, that is seen in 54 % of samples,
    # and of the pairs 9.5 % differ, not none.
    rng, held = np.random.default_rng(2), 0
    truth = 100 * (2 * 0.05 * 0.95 - 0.5)
    for _ in range(40):
        second = [[str(v)] for v in rng.integers(0, 2, 12)]
        found = varied([["y"]] * 12, second, ["f"] * 12, list("abcdefghijkl"), n=99)
        held += found.ci_low <= truth <= found.ci_high
    assert held >= 38
    # By hand where both conditions have one answer: with one of 13 in each, 12 of 78 pairs would differ.
    found = varied([["y"]] * 12, [["y"]] * 12, ["f"] * 12, list("abcdefghijkl"), n=99)
    half = stats.t.ppf(0.975, 11) * math.sqrt(2) * 100 * 12 / 78
    assert (found.difference, found.ci_low, found.ci_high) == pytest.approx((0, -half, half))
    # The mean of two attributes has half of the sum of their squared errors.
    two = [EncodedValues.of([["y"]] * 12)] * 2
    found = variety_difference(two, two, ["f"] * 12, clusters=list("abcdefghijkl"), rng=np.random.default_rng(1))
    assert found.ci_high == pytest.approx(half / math.sqrt(2))
    # Five clusters of another group have one answer too: each group's error counts for half of the mean. A cluster is a
    # 24th or a 10th of it, so that they weigh as 1/(12/24² + 5/10²) clusters of one size.
    found = varied([["y"]] * 17, [["y"]] * 17, ["f"] * 12 + ["m"] * 5, list("abcdefghijklmnopq"), n=99)
    each = [100 * 2 / (n + 1) / 2 for n in (12, 5)]
    degrees = 1 / (12 / 24**2 + 5 / 10**2) - 1
    assert found.ci_high == pytest.approx(stats.t.ppf(0.975, degrees) * math.sqrt(2 * (each[0] ** 2 + each[1] ** 2)))


def test_an_interval_that_no_cluster_moves_is_none() -> None:
    # Each cluster is given both answers in both conditions: nothing is known of clusters that are not.
    both, clusters = [["a"], ["b"]] * 6, [str(n // 2) for n in range(12)]
    found = varied(both, both[::-1], ["f"] * 12, clusters, n=99)
    assert found.difference == 0 and math.isnan(found.ci_low) and math.isnan(found.ci_high)


def test_two_clusters_of_a_group_have_no_interval() -> None:
    # Both are given a and b first, and then a and a or a and b: of the four pairs two differ, and then two. Without one
    # of them there is no pair, so nothing is known of the noise.
    found = varied([["a"], ["b"]] * 2, [["a"], ["a"], ["a"], ["b"]], ["f"] * 4, list("1122"), n=99)
    assert (found.first, found.second, found.p) == (50, 50, 1) and math.isnan(found.ci_low)
    # Nor has one of another group beside many.
    clusters = [*"123456", *"78"]
    found = varied([["a"], ["b"]] * 4, [["a"]] * 8, ["f"] * 6 + ["m"] * 2, clusters, n=999)
    assert found.first == pytest.approx(100 * (9 / 15 + 1) / 2) and found.p == 1 and math.isnan(found.ci_high)
