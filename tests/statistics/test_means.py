"""Differences of means against Welch's, Student's and Tukey's tests of scipy, blocks by hand, and simulated nulls."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from equivox.core.notes import NoteCode
from equivox.statistics import MeanDifference, compare_means

Numbers = Sequence[float | None]


def means(values: Numbers, groups: Sequence[Any] | NDArray[Any], **options: Any) -> MeanDifference:
    usual: dict[str, Any] = {"clusters": None, "n_resamples": 499, "rng": np.random.default_rng(1)}
    return compare_means(values, groups, **usual | options)


@pytest.mark.parametrize(("n", "m", "apart"), [(12, 12, 2.0), (6, 20, 2.0), (20, 5, 3.0), (8, 9, 0.0)])
@pytest.mark.parametrize("confidence", [0.95, 0.9])
def test_two_groups_have_welchs_interval(n: int, m: int, apart: float, confidence: float) -> None:
    rng = np.random.default_rng(n)
    a, b = rng.normal(apart, 1, n), rng.normal(0, 1.5, m)
    found, welch = means([*a, *b], [*"a" * n, *"b" * m], confidence=confidence), stats.ttest_ind(a, b, equal_var=False)
    assert found.means == pytest.approx([a.mean(), b.mean()]) and found.difference == pytest.approx(a.mean() - b.mean())
    assert (found.low, found.high) == pytest.approx(tuple(welch.confidence_interval(confidence)))
    assert found.p >= welch.pvalue - 1e-9
    assert (found.p <= 1 - confidence) == (welch.pvalue <= 1 - confidence) == (not found.low <= 0 <= found.high)
    assert found.sd**2 * (n + m - 2) == pytest.approx((n - 1) * a.var(ddof=1) + (m - 1) * b.var(ddof=1))
    assert (found.n, found.n_units, found.n_missing) == (
        n + m,
        n + m,
        0,
    )


@pytest.mark.parametrize(("spread", "n"), [(0.3, 4), (4.0, 12)])
def test_the_larger_p_of_welch_and_of_permutations_counts(spread: float, n: int) -> None:
    rng = np.random.default_rng(4)
    a, b = rng.normal(9 if n == 4 else 0, spread, 4), rng.normal(0, 0.5, n)
    welch = stats.ttest_ind(a, b, equal_var=False).pvalue
    permuted = stats.permutation_test((a, b), lambda x, y: x.mean() - y.mean(), n_resamples=2_000).pvalue
    assert (welch < permuted) == (n == 4)
    assert means([*a, *b], ["a"] * 4 + ["b"] * n, n_resamples=2_000).p == pytest.approx(max(welch, permuted))


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_units_in_both_groups_have_students_interval_of_pairs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    pairs = rng.normal(0, 5, (10, 1)) + rng.normal([0.0, 1.5], 1, (10, 2))
    found = means([*pairs.ravel()], ["a", "b"] * 10, clusters=np.arange(10).repeat(2), n_resamples=1_024)
    paired = stats.ttest_rel(pairs[:, 0], pairs[:, 1])
    flips = stats.permutation_test((pairs[:, 0] - pairs[:, 1],), np.mean, permutation_type="samples", n_resamples=2_000)
    assert (found.low, found.high) == pytest.approx(tuple(paired.confidence_interval()))
    assert found.p == pytest.approx(max(paired.pvalue, flips.pvalue)) and found.least.n_permutations == 1_024


def test_units_and_blocks_by_hand() -> None:
    # Units of a: means 1 and 4; of b: 10, 20, 30. A unit with three numbers counts once.
    values = [0.0, 1.0, 2.0, 4.0, 10.0, 20.0, 25.0, 35.0, None]
    found = means(values, [*"aaaabbbbb"], clusters=[*"ssstuvwwx"])
    assert found.means == pytest.approx([2.5, 20]) and (found.n, found.n_missing, found.n_units) == (8, 1, 5)
    assert found.low == pytest.approx(stats.ttest_ind([1, 4], [10, 20, 30], equal_var=False).confidence_interval().low)
    # Block p: a 1, 3 and b 5, 7, 9; q: a 20, 22, 24 and b 21, 23. Each block has half of the units.
    found = means([1, 3, 5, 7, 9, 20, 22, 24, 21, 23], [*"aabbbaaabb"], blocks=[*"pppppqqqqq"])
    assert found.means == pytest.approx([(2 + 22) / 2, (7 + 22) / 2])
    # Squared errors s²/4n with s² 2, 4, 4, 2 and n 2, 3, 3, 2: (1 + 4/3 + 4/3 + 1)/4, with at most 6 degrees.
    reach = (found.high - found.low) / 2 / math.sqrt(7 / 6)
    assert stats.t.ppf(0.975, 6) - 1e-9 <= reach < stats.t.ppf(0.975, 4)


@pytest.mark.parametrize("seed", [1, 2])
def test_more_groups_have_the_range_and_about_tukeys_interval(seed: int) -> None:
    rng = np.random.default_rng(seed)
    samples = [rng.normal(mean, 1, 15) for mean in (0, 1, 4)]
    found = means([*np.concatenate(samples)], [*np.repeat([*"abc"], 15)], n_resamples=2_000)
    tukey = stats.tukey_hsd(*samples).confidence_interval()
    assert found.difference == pytest.approx(np.ptp([sample.mean() for sample in samples]))
    assert found.high - found.difference == pytest.approx(np.asarray(tukey.high - tukey.low)[0, 2] / 2, rel=0.15)
    assert found.p < 0.01 and found.low > 0


@pytest.mark.parametrize("nested", [True, False])
@given(st.lists(st.tuples(st.integers(-5, 5), st.integers(0, 2), st.integers(0, 6)), min_size=2, max_size=24))
@settings(max_examples=60)
def test_p_and_interval_agree(nested: bool, rows: list[tuple[int, int, int]]) -> None:
    values, drawn, numbers = zip(*rows, strict=True)
    groups = drawn if nested else [code % 2 for code in drawn]
    units = [f"{g}{u}" if nested else u for g, u in zip(groups, numbers, strict=True)]
    found = means([*map(float, values)], groups, clusters=units, n_resamples=39)
    assert (found.undefined is None) == (0 < found.p <= 1) and math.isnan(found.low) == math.isnan(found.high)
    if not math.isnan(found.low):
        assert found.low - 1e-9 <= found.difference <= found.high + 1e-9
        assert (found.p > 0.05) == (found.low <= 0 <= found.high)


@pytest.mark.parametrize("silent", [0, 1])
def test_a_group_without_variation_is_not_without_noise(silent: int) -> None:
    # Six units of 0 against 40 around 5: a further unit of the first may be like those of the other group, so that the
    # squared error is (mean² + s²) 6/7² / 6 beside s²/40, with 5 and 39 degrees of freedom.
    varied = np.random.default_rng(5).normal(5, 1, 40)
    columns, groups = [[0.0] * 6, [*varied]], [["a"] * 6, ["b"] * 40]
    found = means(columns[silent] + columns[1 - silent], groups[silent] + groups[1 - silent])
    squares = np.array([(varied.mean() ** 2 + varied.var(ddof=1)) / 49, varied.var(ddof=1) / 40])
    degrees = squares.sum() ** 2 / (squares**2 / [5, 39]).sum()
    assert found.high - found.difference == pytest.approx(stats.t.ppf(0.975, degrees) * math.sqrt(squares.sum()))
    for few, p in ((means([0.0, *varied[:4]], [*"abbbb"]), 1 / 5), (means([1] * 4 + [2] * 4, [*"aaaabbbb"]), 2 / 70)):
        assert math.isnan(few.low) and math.isnan(few.high) and few.p == pytest.approx(p)


@pytest.mark.parametrize(("values", "groups", "options", "code"), [
    ([1, 2], "aa", {}, NoteCode.ONE_GROUP), ([1, 2, None], "aab", {}, NoteCode.EMPTY_GROUP),
    ([math.nan] * 3, "aab", {}, NoteCode.EMPTY_GROUP), ([3, 3, 3], "aab", {}, NoteCode.ONE_VALUE),
    ([1, 2, 3, 4], "aabb", {"blocks": [*"ppqq"]}, NoteCode.NOTHING_SHARED),
    ([3, 3, 4], "aba", {"strata": [*"ppq"]}, NoteCode.ONE_VALUE),
])  # fmt: skip
def test_no_difference_has_a_reason(values: Numbers, groups: str, options: dict[str, Any], code: NoteCode) -> None:
    found = means(values, [*groups], **options)
    assert found.undefined is not None and found.undefined.code == code
    assert all(map(math.isnan, (found.difference, found.low, found.high, found.p)))


@given(st.permutations(range(14)), st.sampled_from([1e-9, 1.0, 1e9]), st.sampled_from([0.0, 1e3]))
@settings(max_examples=20)
def test_order_names_unit_and_zero_of_the_numbers_change_no_p(order: list[int], unit: float, moved: float) -> None:
    values, group, units = np.random.default_rng(7).normal(0, 1, 14), np.repeat([0, 1], 7), np.arange(14)
    values += group
    plain = means([*values], group, clusters=units, n_resamples=99)
    same = means([*(unit * (values[order] + moved))], 1 - group[order], clusters=np.argsort(order), n_resamples=99)
    expected = (-plain.high, -plain.low, plain.p)
    assert (same.low / unit, same.high / unit, same.p) == pytest.approx(expected, rel=1e-6)


def test_sides_that_cancel_show_within_items_alone() -> None:
    rng = np.random.default_rng(8)
    rows = [(g, f"{g}{u}", item, (2 if (g == "a") == (item == "p") else -2) + rng.normal())
            for g in "ab" for u in range(6) for item in "pq" for _ in range(3)]  # fmt: skip
    groups, units, items, values = map(list, zip(*rows, strict=True))
    found = means(values, groups, clusters=units, items=items, n_resamples=999)
    assert found.p_items <= 0.01 and found.p > 0.1
    assert [note.code for note in found.remarks] == [NoteCode.WITHIN_ITEMS]


@pytest.mark.parametrize(("sizes", "spreads"), [([4, 4], [1, 1]), ([4, 16], [3, 1]), ([3] * 3, [1] * 3)])
def test_samples_without_a_difference_are_rejected_at_the_level(sizes: list[int], spreads: list[float]) -> None:
    rng, groups, small = np.random.default_rng(9), np.repeat(range(len(sizes)), sizes), 0
    for _ in range(200):
        small += means([*rng.normal(0, np.repeat(spreads, sizes))], groups, n_resamples=99, rng=rng).p <= 0.05
    assert small <= 14  # 10 and 1.3 standard errors
