"""Impact ratios against hand arithmetic, scipy, and clusters simulated with known shares."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from equivox.core.errors import RequestError
from equivox.statistics import impact_ratios


def answers(*favourable_of: tuple[int, int]) -> tuple[list[float], list[str]]:
    """Return favourable answers and groups a, b, …, given (favourable, all) of each group."""
    column = [float(n < hits) for hits, total in favourable_of for n in range(total)]
    return column, [chr(97 + code) for code, (_, total) in enumerate(favourable_of) for _ in range(total)]


def test_shares_ratios_and_marks_by_hand():
    # Shares 60/100, 45/100, 57/100; ratios 45/60 = 0.75 and 57/60 = 0.95.
    column, groups = answers((60, 100), (45, 100), (57, 100))
    a, b, c = impact_ratios(column, groups=groups, clusters=None).groups
    assert [one.share for one in (a, b, c)] == pytest.approx([60, 45, 57])
    assert [one.ratio for one in (a, b, c)] == pytest.approx([1, 0.75, 0.95])
    assert (a.mark, b.mark, c.mark) == ("", "below, not certain", "not below, not certain")
    assert math.isnan(a.low)
    assert (b.least, b.most) == pytest.approx((0.75, 0.75))


@pytest.mark.parametrize(("known", "is_defined"), [(8, True), (7, False)])
def test_four_of_five_answers_are_to_be_known(known, is_defined):
    column = [1.0] * 5 + [0.0] * 5 + [1.0] * 4 + [0.0] * (known - 4) + [math.nan] * (10 - known)
    found = impact_ratios(column, groups=["a"] * 10 + ["b"] * 10, clusters=None)
    assert (found.undefined is None) == is_defined


def test_exactly_four_fifths_is_not_below():
    column, groups = answers((50, 100), (40, 100))
    assert impact_ratios(column, groups=groups, clusters=None).groups[1].mark == "not below, not certain"


def test_many_answers_make_the_mark_certain():
    column, groups = answers((600, 1000), (300, 1000))
    assert impact_ratios(column, groups=groups, clusters=None).groups[1].mark == "below"
    column, groups = answers((6000, 10_000), (5900, 10_000))
    assert impact_ratios(column, groups=groups, clusters=None).groups[1].mark == "not below"


def test_independent_responses_agree_with_scipy():
    # scipy's Katz interval of a relative risk: the same but for n - 1 in the variance and t with many degrees.
    column, groups = answers((700, 2000), (500, 2000))
    found = impact_ratios(column, groups=groups, clusters=None).groups[1]
    expected = stats.contingency.relative_risk(500, 2000, 700, 2000).confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), rel=2e-3)


def test_clusters_that_agree_count_once():
    # 10 clusters of 20 equal answers per group: as wide as 10 answers per group, up to K / (K - 1) and t.
    hits = [1.0] * 7 + [0.0] * 3 + [1.0] * 4 + [0.0] * 6
    column = np.repeat(hits, 20)
    groups = ["a"] * 200 + ["b"] * 200
    found = impact_ratios(column, groups=groups, clusters=np.repeat(np.arange(20), 20)).groups[1]
    variance = 10 / 9 * (0.3 / 0.7 / 10 + 0.6 / 0.4 / 10)
    parts = [10 / 9 * 0.3 / 0.7 / 10, 10 / 9 * 0.6 / 0.4 / 10]
    degrees = sum(parts) ** 2 / sum(part**2 / 9 for part in parts)
    half = stats.t.ppf(0.975, degrees) * math.sqrt(variance)
    assert (found.low, found.high) == pytest.approx((4 / 7 * math.exp(-half), 4 / 7 * math.exp(half)))


def test_unknown_answers_bound_the_ratio():
    # a: 8 of 10 favourable; b: 5 favourable, 3 not, 2 unknown. Of the known 5/8; bounds 0.5/0.8 and 0.7/0.8.
    column = [1.0] * 8 + [0.0] * 2 + [1.0] * 5 + [0.0] * 3 + [math.nan] * 2
    b = impact_ratios(column, groups=["a"] * 10 + ["b"] * 10, clusters=None).groups[1]
    assert (b.requested, b.known, b.favourable, b.unknown) == (10, 8, 5, 2)
    assert b.ratio == pytest.approx(0.625 / 0.8)
    assert (b.least, b.most) == pytest.approx((0.625, 0.875))


@pytest.mark.parametrize(
    ("favourable", "known", "marks"),
    [
        # 0.96 of the known (0.94 to 0.98); if none of the 380 is favourable, 1,400 / 2,000 over 0.9, which is 0.78.
        (1400, 1620, ("not below", "not below, not certain")),
        # 0.69 (to 0.72), and 1,380 / 1,800 = 0.77 if all 380 are.
        (1000, 1620, ("below", "below")),
        # 0.75 (to 0.78), and 1,480 / 1,800 = 0.82 with all 380.
        (1100, 1620, ("below", "below, not certain")),
    ],
)
def test_unknown_answers_of_one_group_leave_no_mark_certain(favourable, known, marks):
    # a: 1,800 of 2,000 favourable. b: of as many some are known, and none or 380 were refused.
    column, groups = answers((1800, 2000), (favourable, known))
    found = [
        impact_ratios([*column, *[math.nan] * n], groups=[*groups, *"b" * n], clusters=None).groups[1] for n in (0, 380)
    ]
    assert tuple(b.mark for b in found) == marks
    if favourable == 1400:
        assert found[1].low > 0.93 and found[1].least == pytest.approx(7 / 9)


@pytest.mark.parametrize(
    ("favourable", "mark"),
    [(16_000, "not below"), (15_999, "not below, not certain"), (15_000, "below, not certain"), (14_999, "below")],
)
def test_a_bound_of_four_fifths_is_not_below_them(favourable, mark):
    # All of 20,000 of group a; of b's 20,000 a thousand are unknown: at least 16,000/20,000, at most 15,000 + 1,000.
    column = [1.0] * (20_000 + favourable) + [0.0] * (19_000 - favourable) + [math.nan] * 1_000
    b = impact_ratios(column, groups=["a"] * 20_000 + ["b"] * 20_000, clusters=None).groups[1]
    assert b.mark == mark


def test_what_is_undefined_has_a_reason_and_is_never_one():
    column, groups = answers((0, 10), (0, 10))
    none = impact_ratios(column, groups=groups, clusters=None)
    assert none.undefined == "no group has a favourable answer"
    assert all(math.isnan(one.ratio) and one.mark == "" for one in none.groups)
    assert none.favoured == ()
    column, groups = answers((5, 10))
    assert "one group only" in str(impact_ratios(column, groups=groups, clusters=None).undefined)
    failed = impact_ratios([math.nan] * 20, groups=["a"] * 10 + ["b"] * 10, clusters=None)
    assert failed.undefined == "no answer of a is known"
    assert all(math.isnan(one.share) and math.isnan(one.ratio) and one.unknown == 10 for one in failed.groups)
    half = impact_ratios([1.0] * 10 + [1.0] * 5 + [math.nan] * 5, groups=["a"] * 10 + ["b"] * 10, clusters=None)
    assert half.undefined == "only 50 % of the answers of b are known, 80 % are needed"
    # The group of which the least is known is named, not the one with the fewest answers.
    column = [1.0] * 70 + [math.nan] * 30 + [1.0] * 9 + [math.nan]
    large = impact_ratios(column, groups=["a"] * 100 + ["b"] * 10, clusters=None, min_known=0.95)
    assert large.undefined == "only 70 % of the answers of a are known, 95 % are needed"
    # 23 of 29 are 79.3 %: they are said to be fewer than the 80 % that are needed.
    most = impact_ratios([1.0] * 29 + [1, 0, *[1] * 21, *[math.nan] * 6], groups=["a"] * 29 + ["b"] * 29, clusters=None)
    assert most.undefined == "only 79 % of the answers of b are known, 80 % are needed"


def test_one_cluster_has_a_ratio_without_interval():
    column, groups = answers((8, 10), (4, 10))
    clusters = ["one"] * 10 + [f"b{n}" for n in range(10)]
    b = impact_ratios(column, groups=groups, clusters=clusters).groups[1]
    assert (b.ratio, b.mark) == (pytest.approx(0.5), "below, no interval")
    assert math.isnan(b.low)
    assert b.undefined == "no interval: a has one cluster only"


def test_no_favourable_answer_is_a_ratio_of_zero_with_an_upper_end():
    # 0 of 10: the share is at most 1 - 0.0125^(1/10), Clopper and Pearson's limit. 8 of 10: the variance of the
    # logarithm is 10/9 of 0.2 / 0.8 / 10, with 9 degrees of freedom.
    column, groups = answers((8, 10), (0, 10))
    b = impact_ratios(column, groups=groups, clusters=None).groups[1]
    highest = stats.binomtest(0, 10).proportion_ci(0.975).high
    lowest = 0.8 * math.exp(-stats.t.ppf(0.9875, 9) * math.sqrt(10 / 9 * 0.2 / 0.8 / 10))
    assert (b.ratio, b.low, b.mark, b.undefined) == (0, 0, "below", None)
    assert b.high == pytest.approx(highest / lowest)
    # With three answers each, nothing is certain.
    column, groups = answers((2, 3), (0, 3))
    assert impact_ratios(column, groups=groups, clusters=None).groups[1].mark == "below, not certain"


def test_groups_that_always_succeed_still_have_an_interval():
    column, groups = answers((12, 12), (12, 12))
    found = impact_ratios(column, groups=groups, clusters=None)
    assert found.favoured == ("a", "b")
    # As if half a favourable and half another answer were added to 12: 12.5 of 13. Both groups have this variance.
    variance = (0.5 / 13) / (12.5 / 13 * 12)
    half = stats.t.ppf(0.975, 22) * math.sqrt(2 * variance)
    assert (found.groups[1].low, found.groups[1].high) == pytest.approx((math.exp(-half), math.exp(half)))
    assert math.isnan(found.groups[0].low) and found.notes == ()


@pytest.mark.parametrize(("n", "is_few"), [(2, True), (9, True), (10, False)])
def test_fewer_than_ten_clusters_are_noted(n, is_few):
    column, groups = answers((n - 1, n), (n // 2, n))
    notes = impact_ratios(column, groups=groups, clusters=None).notes
    assert any(f"a group has {n} clusters" in note for note in notes) == is_few


def test_one_known_answer_is_a_share():
    found = impact_ratios([1, 0, 1], groups=list("aab"), clusters=None)
    assert [group.share for group in found.groups] == [50, 100] and found.groups[0].ratio == 0.5


def test_a_cluster_in_both_groups_adds_its_covariance():
    # Five clusters give four answers in each group: Rao and Scott's ratio estimates, clusters as pairs.
    hits = np.array([[4, 3], [3, 1], [2, 2], [4, 2], [1, 0]], dtype=float)
    column = [float(n < hits[k, g]) for k in range(5) for g in range(2) for n in range(4)]
    groups = [name for _ in range(5) for name in "ab" for _ in range(4)]
    found = impact_ratios(column, groups=groups, clusters=np.repeat(np.arange(5), 8)).groups[1]
    shares = hits.sum(axis=0) / 20
    # The logarithm of a share moves by (hits / (n share)) of each cluster; all clusters are of one size.
    pulls = (hits - 4 * shares) / (20 * shares)
    variance = 5 / 4 * ((pulls[:, 1] - pulls[:, 0]) ** 2).sum()
    independent = sum((1 - share) / (share * 20) for share in shares)
    half = stats.t.ppf(0.975, 4) * math.sqrt(max(variance, independent))
    ratio = shares[1] / shares[0]
    assert (found.low, found.high) == pytest.approx((ratio * math.exp(-half), ratio * math.exp(half)))


def test_renamed_and_permuted_input_changes_nothing():
    column, groups = answers((60, 100), (45, 100), (57, 100))
    clusters = [n // 5 for n in range(300)]
    order = np.random.default_rng(3).permutation(300)
    one = impact_ratios(column, groups=groups, clusters=clusters)
    two = impact_ratios(np.array(column)[order], groups=np.array(groups)[order], clusters=np.array(clusters)[order])
    for before, after in zip(one.groups, two.groups, strict=True):
        numbers = [
            [value for value in vars(group).values() if isinstance(value, int | float)] for group in (before, after)
        ]
        assert numbers[0] == pytest.approx(numbers[1], nan_ok=True)
        assert (before.group, before.mark) == (after.group, after.mark)


def test_wrong_input_is_one_line():
    for given, match in (
        ({"favourable": [0.5, 1]}, "other than 0 and 1"),
        ({"groups": ["a"]}, "`groups` has 1 entries"),
        ({"min_known": 2}, "`min_known` is 2"),
        ({"confidence": 1.5}, "`confidence` is 1.5"),
    ):
        with pytest.raises(RequestError, match=match):
            impact_ratios(**{"favourable": [0, 1], "groups": ["a", "b"], "clusters": None, **given})


@pytest.mark.parametrize(
    ("shares", "sizes", "within"),
    [
        ((0.5, 0.5), [12] * 12, 0.0),
        ((0.5, 0.35), [12] * 24, 0.1),
        ((0.4, 0.4, 0.4, 0.4), [12] * 12, 0.1),
        ((0.6, 0.45), [1, 2, 2, 3, 4, 6, 8, 12, 18, 40, 70, 160], 0.2),
    ],
)
def test_the_interval_holds_the_true_ratio(shares, sizes, within):
    # Beta-binomial clusters; every group's true ratio to the group that looks most favoured is covered in at least 95 %
    # of data sets, within three standard errors of 400 draws (3.3 %).
    rng = np.random.default_rng(11)
    n_clusters = len(sizes)
    groups = np.repeat([chr(97 + code) for code in range(len(shares))], sum(sizes))
    clusters = np.repeat(np.arange(len(shares) * n_clusters), sizes * len(shares))
    held = 0
    for _ in range(400):
        p = np.concatenate(
            [
                rng.beta(share / within, (1 - share) / within, n_clusters) if within else np.full(n_clusters, share)
                for share in shares
            ]
        )
        found = impact_ratios((rng.random(len(groups)) < p[clusters]).astype(float), groups=groups, clusters=clusters)
        top = next(code for code, one in enumerate(found.groups) if math.isnan(one.low))
        held += all(
            one.low <= share / shares[top] <= one.high
            for one, share in zip(found.groups, shares, strict=True)
            if not math.isnan(one.low)
        )
    assert held / 400 >= 0.95 - 0.033


def test_units_with_one_answer_in_each_group_are_compared_within_themselves():
    # Where one of a pair is favoured the other mostly is not: the variance of the log ratio is that of the pairs'
    # linearised differences, larger than that of independent answers.
    a = np.array([1.0] * 9 + [0.0] * 3)
    b = np.array([0.0] * 6 + [1.0] * 6)
    pairs = [f"p{pair}" for pair in range(12)]
    found = impact_ratios([*a, *b], groups=["a"] * 12 + ["b"] * 12, clusters=pairs * 2).groups[1]
    apart = (b - b.mean()) / b.mean() - (a - a.mean()) / a.mean()
    half = stats.t.ppf(0.975, 11) * apart.std(ddof=1) / math.sqrt(12)
    ratio = b.mean() / a.mean()
    assert (found.low, found.high) == pytest.approx((ratio * math.exp(-half), ratio * math.exp(half)))


def test_a_group_of_which_nothing_is_known_is_not_as_favoured_as_any() -> None:
    # All answers of a are unknown, and none of b is favourable: with none of a's favourable either, 0 is divided by 0.
    found = impact_ratios([math.nan] * 4 + [0.0] * 4, groups=list("aaaabbbb"), clusters=list("11223344"))
    a, b = found.groups
    assert math.isnan(a.least) and math.isnan(a.most)
    assert (b.least, b.most) == (0.0, 0.0)
    # One of a's answers is known to be favourable: then a is the most favoured whatever the others are.
    found = impact_ratios([1.0] + [math.nan] * 3 + [0.0] * 4, groups=list("aaaabbbb"), clusters=list("11223344"))
    assert [(one.least, one.most) for one in found.groups] == [(1.0, 1.0), (0.0, 0.0)]
