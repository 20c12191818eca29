"""The test within strata against McNemar's, Cochran's, the Cochran–Mantel–Haenszel test, and simulated nulls."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from equivox.core.errors import UsageError
from equivox.metrics.badf import within_stories as module
from equivox.metrics.badf.contingency import association_test
from equivox.metrics.badf.within_stories import association_within_strata


def pairs(first: int, second: int) -> float:
    """Return p where the phrase is the first character's alone in `first` stories, the second's alone in `second`."""
    table, of = [[1, 0], [0, 1]], [[1, 1], [1, 1]]
    return association_within_strata(table, of, times=[first, second], rng=np.random.default_rng(0)).p


@pytest.mark.parametrize(("first", "second"), [(9, 1), (5, 5), (0, 4), (30, 12), (400, 330)])
def test_two_characters_a_story_are_mcnemars_exact_test(first: int, second: int) -> None:
    assert pairs(first, second) == pytest.approx(stats.binomtest(first, first + second).pvalue, rel=1e-9)


def test_with_very_many_stories_chi2_is_mcnemars() -> None:
    found = association_within_strata(
        [[1, 0], [0, 1]], [[1, 1], [1, 1]], times=[2100, 1900], rng=np.random.default_rng(0)
    )
    assert found.method == "chi2" and found.n_informative == 4000
    # (b - c)² / (b + c) = 200² / 4000 = 10
    assert found.chi2 == pytest.approx(10.0)
    assert found.p == pytest.approx(stats.chi2.sf(10.0, 1))


def test_two_by_two_strata_are_the_cochran_mantel_haenszel_test() -> None:
    rng = np.random.default_rng(3)
    members = rng.integers(1, 9, size=(12, 2))
    have = rng.binomial(members, 0.4)
    found = association_within_strata(have, members, rng=np.random.default_rng(0))
    # (Σ a - E)² / Σ V with E = n₁ m / n and V = n₁ n₂ m (n - m) / (n² (n - 1)), m of n of a stratum having it.
    n, m, first = members.sum(axis=1), have.sum(axis=1), members[:, 0]
    variance = first * members[:, 1] * m * (n - m) / (n**2 * (n - 1))
    assert found.chi2 == pytest.approx((have[:, 0] - first * m / n).sum() ** 2 / variance.sum())


def test_one_member_of_each_group_in_every_stratum_is_cochrans_q() -> None:
    have = np.random.default_rng(5).integers(0, 2, size=(40, 3))
    found = association_within_strata(have, np.ones_like(have), rng=np.random.default_rng(0))
    # Cochran 1950: k (k - 1) Σ (column - mean)² / Σ row (k - row), of k = 3 columns.
    columns, rows = have.sum(axis=0), have.sum(axis=1)
    q = 6 * ((columns - columns.mean()) ** 2).sum() / (rows * (3 - rows)).sum()
    assert found.chi2 == pytest.approx(q) and found.dof == 2


def test_one_stratum_of_two_groups_orders_tables_as_a_permutation_test_does() -> None:
    # 3 of 4 against 0 of 4: 4 of the C(8, 3) = 56 choices are as far to this side, and 4 to the other.
    found = association_within_strata([[3, 0]], [[4, 4]], rng=np.random.default_rng(0))
    assert found.p == pytest.approx(8 / 56) and found.method == "exact"


def test_pairs_of_four_groups_against_all_swaps_counted_one_by_one() -> None:
    """Eight stories about two of four identities: all 2⁸ swaps, each with its χ² by the textbook formula."""
    who = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3), (0, 1), (0, 2)]
    have, members = np.zeros((8, 4)), np.zeros((8, 4))
    for row, (first, second) in enumerate(who):
        have[row, first] = 1
        members[row, [first, second]] = 1
    variance = np.zeros((4, 4))
    for first, second in who:
        variance[[first, second], [first, second]] += 0.25
        variance[[first, second], [second, first]] -= 0.25
    inverse = np.linalg.pinv(variance)
    null = []
    for swaps in itertools.product((0, 1), repeat=8):
        counts = np.zeros(4)
        for pair, swap in zip(who, swaps, strict=True):
            counts[pair[swap]] += 1
        off = counts - members.sum(axis=0) / 2
        null.append(off @ inverse @ off)
    found = association_within_strata(have, members, rng=np.random.default_rng(0))
    assert found.p == pytest.approx(np.mean(np.array(null) >= null[0] - 1e-9))
    assert found.chi2 == pytest.approx(null[0]) and (found.dof, found.n_informative) == (3, 8)


def test_a_null_of_two_characters_is_rejected_at_its_rate_and_by_independent_draws_too_often() -> None:
    """Each story gives the phrase to one of its two characters, by a coin: exact rejection rates."""
    apart, within = [], []
    for n in (20, 40, 60, 87, 200):
        chance = stats.binom.pmf(np.arange(n + 1), n, 0.5)
        p = [
            association_test([[x, n - x], [n - x, x]], n_resamples=1, rng=np.random.default_rng(0)).p_exact
            for x in range(n + 1)
        ]
        apart.append(float(chance[np.array(p) <= 0.05].sum()))
        within.append(float(chance[np.array([pairs(x, n - x) for x in range(n + 1)]) <= 0.05].sum()))
    assert max(within) <= 0.05
    # The published test takes the two characters for independent draws: 11 to 16 % instead of 5 %.
    assert min(apart) > 0.10 and max(apart) < 0.17


@pytest.mark.parametrize("n_stories", [24, 240])
def test_a_null_of_four_identities_in_pairs_is_rejected_at_its_rate(n_stories: int) -> None:
    """Phrases are of the first character, the second or neither; identities have no part in it."""
    rng = np.random.default_rng(11)
    all_pairs = np.array(list(itertools.combinations(range(4), 2)))
    rejected, n = 0, 300
    for _ in range(n):
        who = all_pairs[rng.integers(0, 6, size=n_stories)]
        said = rng.integers(0, 3, size=n_stories)  # of the first, of the second, of nobody
        have, members = np.zeros((n_stories, 4)), np.zeros((n_stories, 4))
        rows = np.arange(n_stories)
        members[rows[:, None], who] = 1
        of_one = said < 2
        have[rows[of_one], who[of_one, said[of_one]]] = 1
        rejected += association_within_strata(have, members, rng=rng).p <= 0.05
    assert rejected <= stats.binom.ppf(0.999, n, 0.05)
    assert rejected >= stats.binom.ppf(0.001, n, 0.03)


def test_where_the_distribution_is_too_large_permutations_agree_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    have, members = [[2, 0, 1], [1, 1, 0], [2, 1, 0]], [[3, 2, 2], [1, 2, 1], [2, 2, 2]]
    exact = association_within_strata(have, members, rng=np.random.default_rng(0))
    monkeypatch.setattr(module, "MOST_STEPS", 0)
    drawn = association_within_strata(have, members, n_resamples=4000, rng=np.random.default_rng(2))
    assert (exact.method, drawn.method) == ("exact", "permutation")
    assert abs(drawn.p - exact.p) < 4 * math.sqrt(exact.p * (1 - exact.p) / 4000)


def test_strata_without_a_difference_change_nothing() -> None:
    said, of = [[1, 0], [0, 1], [1, 0]], [[1, 1]] * 3
    more = association_within_strata(
        [*said, [1, 1], [0, 0], [4, 0]], [*of, [1, 1], [1, 1], [9, 0]], rng=np.random.default_rng(0)
    )
    assert more == association_within_strata(said, of, rng=np.random.default_rng(0))
    only = association_within_strata([[1, 1], [0, 0]], [[1, 1], [1, 1]], rng=np.random.default_rng(0))
    assert (only.p, only.chi2, only.n_informative, only.undefined) == (1.0, 0.0, 0, None)
    nobody = association_within_strata([[0, 0]], [[1, 1]], rng=np.random.default_rng(0))
    assert math.isnan(nobody.p) and nobody.undefined is not None


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.tuples(*[st.tuples(st.integers(0, 3), st.integers(0, 3))] * 3), min_size=1, max_size=5), st.randoms()
)
def test_neither_names_nor_order_matter_and_p_is_a_probability(
    strata: list[tuple[tuple[int, int], ...]], shuffled: object
) -> None:
    have = np.array([[min(a, n) for a, n in row] for row in strata])
    members = np.array([[max(a, n) for a, n in row] for row in strata])
    found = association_within_strata(have, members, rng=np.random.default_rng(0))
    order = np.random.default_rng(1).permutation(3)
    again = association_within_strata(have[::-1][:, order], members[::-1][:, order], rng=np.random.default_rng(0))
    if found.undefined:
        assert again.undefined and math.isnan(found.p)
        return
    assert 0 < found.p <= 1 and found.p == pytest.approx(again.p) and found.chi2 == pytest.approx(again.chi2, abs=1e-9)


@pytest.mark.parametrize(
    ("have", "members", "times", "argument"),
    [
        ([[2, 0]], [[1, 1]], None, "with_attribute"),
        ([[1, 0]], [[1, 1, 1]], None, "members"),
        ([[1]], [[1]], None, "with_attribute"),
        ([[0.5, 0]], [[1, 1]], None, "with_attribute"),
        ([[1, 0]], [[1, 1]], [1, 2], "times"),
        ([[1, 0]], [[1, 1]], [-1], "times"),
    ],
)
def test_tables_of_other_forms_are_refused(
    have: list[list[float]], members: list[list[int]], times: list[int] | None, argument: str
) -> None:
    with pytest.raises(UsageError, match=f"`{argument}`"):
        association_within_strata(have, members, times=times, rng=np.random.default_rng(0))
