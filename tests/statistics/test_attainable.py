"""The smallest p of a design: against the smallest p that the tests themselves ever give."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from equivox.core.errors import UsageError
from equivox.statistics import (
    association_test,
    distribution_shift,
    group_means,
    least_p,
    least_p_over_clusters,
    sign_flip_test,
)
from equivox.statistics.evidence import _rejects
from equivox.statistics.permutation import all_labellings, random_labellings, random_row_labellings

RNG = np.random.default_rng(0)


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ([[2, 2]], 2 / 6),  # both names of the groups
        ([[3, 3]], 2 / 20),
        ([[2, 4]], 1 / 15),  # groups of two sizes cannot be renamed
        ([[2, 2, 2]], 6 / 90),
        ([[1, 1]] * 5, 2 / 32),  # five pairs of names
        ([[1, 1], [1, 2]], 1 / 6),
        ([[1, 1, 1, 1]] * 2, 24 / 576),
        ([[4, 0]], 1.0),  # one group: nothing to permute
    ],
)
def test_by_hand(sizes: list[list[int]], expected: float) -> None:
    assert least_p(np.array(sizes), n_resamples=10_000).p == pytest.approx(expected)


def test_few_permutations_are_told() -> None:
    told = [least_p(np.array([sizes]), n_resamples=99).too_few for sizes in ([1, 1], [4, 0], [2, 2])]
    assert [(note.values["permutations"], round(note.values["p"], 2)) for note in told] == [(2, 1), (1, 1), (6, 0.33)]


@pytest.mark.parametrize("sizes", [[[1, 1], [1, 1], [2, 1]], [[1, 2], [1, 2]], [[1, 1, 1], [2, 1, 0]]])
def test_every_permutation_is_drawn_equally_often(sizes: list[list[int]]) -> None:
    every = all_labellings(np.array(sizes)).tolist()
    drawn, often = np.unique(random_labellings(np.array(sizes), 3_000, RNG), axis=0, return_counts=True)
    assert drawn.tolist() == sorted(every)
    assert stats.chisquare(often).pvalue > 0.001


def test_every_row_is_dealt_to_each_group_equally_often() -> None:
    share = random_row_labellings(np.array([100, 100]), 10_000, np.random.default_rng(1)).mean(axis=0)
    # Each of 200 rows is in the second group in half of the draws, up to chance.
    assert stats.chi2.sf(((share - 0.5) ** 2).sum() / (0.25 / 10_000), 199) > 0.001


def test_drawn_permutations_never_give_less_than_one_of_them() -> None:
    found = least_p(np.array([[12, 12]]), n_resamples=999)
    assert (found.p, found.n_permutations, found.too_few) == (1 / 1000, 2_704_156, None)


def test_two_groups_that_differ_completely_have_the_smallest_p() -> None:
    for n, m in ((2, 2), (3, 3), (2, 5)):
        clusters = [f"c{i}" for i in range(n + m) for _ in range(4)]
        groups = ["f"] * (4 * n) + ["m"] * (4 * m)
        found = distribution_shift(groups, groups, clusters=clusters, min_count=1, rng=RNG)
        assert least_p_over_clusters(groups, clusters).p == pytest.approx(found.p_cluster)
    for n in (3, 6):
        flipped = sign_flip_test([1.0] * n, clusters=None, rng=RNG)
        assert least_p(np.ones((n, 2), dtype=np.int64), n_resamples=10_000).p == pytest.approx(flipped.p)


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=2))
@settings(deadline=None, max_examples=60)
def test_any_statistic_that_does_not_know_names_has_at_least_so_many_ties(rows: list[tuple[int, ...]]) -> None:
    sizes = np.array([row for row in rows if sum(row)], dtype=np.int64).reshape(-1, 3)
    if not len(sizes):
        return
    labels = all_labellings(sizes)
    scores = np.random.default_rng(3).normal(size=(sizes.sum(), 3))
    # The largest sum of scores over all ways to name the groups; distinct but for renaming.
    named = [np.sum(scores[np.arange(sizes.sum()), np.array(order)[labels]], axis=1)
             for order in itertools.permutations(range(3))]  # fmt: skip
    null = np.max(named, axis=0)
    p = np.array([(null >= value - 1e-9).mean() for value in null])
    assert p.min() >= least_p(sizes, n_resamples=10_000).p - 1e-9


def test_strata_that_clusters_span_restrict_nothing() -> None:
    groups, clusters = list("ffmm") * 2, list("abcd") * 2
    assert least_p_over_clusters(groups, clusters, list("xxxxyyyy")).p == pytest.approx(2 / 6)
    assert least_p_over_clusters(groups, clusters, list("xyxyxyxy")).p == pytest.approx(2 / 4)


def test_a_unit_in_every_group_is_permuted_within_itself() -> None:
    # Five items, each in both groups: 2 to the power of 5 labellings, and the mirror of the most extreme one.
    units = list("abcde") * 2
    assert least_p_over_clusters(["f"] * 5 + ["m"] * 5, units).p == pytest.approx(2 / 32)
    # One that lost a group is left out; more of them than whole ones are another design.
    assert least_p_over_clusters(["f", "m"] * 5 + ["m"], [*"aabbccddee", "g"]).p == pytest.approx(2 / 32)
    with pytest.raises(UsageError, match="1 in 2, 2 in 1 of 2 groups"):
        least_p_over_clusters(["f", "m", "m", "m"], ["a", "a", "b", "c"])


@pytest.mark.parametrize(("n", "rejects"), [(19, False), (18, True)])
def test_so_few_permutations_that_no_p_is_at_the_level_leave_the_interval_alone(n, rejects):
    # The smallest p of 19 draws is 1/20, which is the level; of 18 it is 1/19, and a p of 1/2 says nothing then.
    drawn = SimpleNamespace(cluster=np.zeros((n, 2)), response=np.zeros((0, 1)), exact=False, confidence=0.95)
    assert _rejects(drawn, {"p_cluster": 0.5, "p_response": 0.5}) is rejects


def is_whole(number: float) -> bool:
    return number == pytest.approx(round(number), abs=1e-6) and number >= 1 - 1e-6


@pytest.mark.parametrize("seed", range(3))
def test_what_was_seen_counts_as_one_of_the_draws(seed: int) -> None:
    # (1 + b) / (1 + B), wherever B draws are made: of permutations, of tables, or of the groups' own noise.
    rng = np.random.default_rng(seed)
    sizes, spreads = (4, 9, 7), (3.0, 1.0, 1.0)
    values = np.concatenate([rng.normal(0, by, n) for n, by in zip(sizes, spreads, strict=True)])
    groups = np.repeat([*"abc"], sizes)
    two = group_means(values[:13], groups[:13], clusters=range(13), n_resamples=9, rng=rng)
    assert is_whole(10 * two.distance_p) and not two.exact
    three = group_means(values, groups, clusters=range(20), n_resamples=9, distances=False, rng=rng)
    assert is_whole(10 * three.p) or is_whole(1_001 * three.p)
    table = association_test([[1, 3], [2, 2], [3, 1]], n_resamples=19, rng=rng)
    assert table.method == "permutation" and is_whole(20 * table.p_exact)
    codes = np.concatenate([rng.choice(3, 5, p=row) for row in rng.dirichlet(np.ones(3), 13)])
    shift = distribution_shift(codes, groups[:13].repeat(5), clusters=np.arange(13).repeat(5), min_count=1,
                               n_resamples=9, rng=rng)  # fmt: skip
    assert is_whole(10 * shift.p_response) and (is_whole(1_001 * shift.p_noise) or is_whole(1_010 * shift.p_noise))


def test_a_rare_distance_counts_as_one_of_all_draws_that_were_made() -> None:
    # Nothing that noise or 2,000 permutations make is as far apart: 1 of the 1,000 draws of noise, the 2,000 further
    # ones, and what was seen.
    values = np.concatenate(
        [np.repeat([0, 1], [20 - n, n]) for n in (1, 2, 3, 0, 2, 1, 1, 2, 18, 19, 17, 20, 18, 19, 18, 19)]
    )
    found = distribution_shift(values, np.repeat([*"ab"], 160), clusters=np.repeat(range(16), 20), min_count=1,
                               n_resamples=2_000, rng=np.random.default_rng(1))  # fmt: skip
    assert (found.p_noise, found.p_response) == (pytest.approx(1 / 3_001), pytest.approx(1 / 2_001))
