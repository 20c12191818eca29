"""Two runs of the same samples: hand sums, exact exchanges, signs that turn, and runs of equal and of unequal bias."""

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_answers import Column, draw_answers
from numpy.typing import NDArray
from scipy import stats

from equivox.core.metric import PairedValues
from equivox.core.notes import Note, NoteCode
from equivox.statistics import compare_run_means, compare_runs, compare_totals

Floats = NDArray[np.float64]
Numbers = Sequence[float | None]
SIGNS = np.array(list(itertools.product([1, -1], repeat=4)))
EVEN, APART = np.full((2, 4), 0.25), np.array([[0.4, 0.4, 0.1, 0.1], [0.1, 0.1, 0.4, 0.4]])


def code_of(found: PairedValues) -> NoteCode | None:
    return found.undefined.code if isinstance(found.undefined, Note) else None


def compare(a: Any, b: Any, groups: Any, **options: Any) -> PairedValues:
    return compare_all({"x": a}, {"x": b}, groups, **options)


def compare_all(a: Any, b: Any, groups: Any, **options: Any) -> PairedValues:
    usual: dict[str, Any] = {"clusters": range(len(groups)), "min_count": 1, "n_resamples": 199}
    return compare_runs(a, b, groups, **usual | {"rng": np.random.default_rng(1), **options})


def draw_runs(a: Floats, b: Floats, rng: np.random.Generator, units: int = 8) -> tuple[Column, ...]:
    """Return the answers of both runs, the groups and the units."""
    of_a, group, unit = draw_answers(a, (units, units), 12, (0.05, 0.05), rng)
    return of_a, draw_answers(b, (units, units), 12, (0.05, 0.05), rng)[0], group, unit


@pytest.mark.parametrize("n_values", [4, 2])
def test_a_planted_difference_is_seen_and_exchanged_runs_turn_its_sign(n_values: int) -> None:
    shares = [shares if n_values == 4 else shares[:, ::2] * 2 for shares in (APART, EVEN)]
    a, b, group, unit = draw_runs(shares[0], shares[1], np.random.default_rng(3))
    found, turned = compare(a, b, group, clusters=unit), compare(b, a, group, clusters=unit)
    assert 0 < found.ci_low < found.further < found.ci_high and found.p_exchange <= found.p < 0.05
    assert found.value_a == pytest.approx(60, abs=12) and found.further == found.distance_a - found.distance_b
    expected = (-found.difference, -found.further, -found.ci_high, -found.ci_low)
    assert (turned.difference, turned.further, turned.ci_low, turned.ci_high) == pytest.approx(expected, abs=3)
    assert turned.p < 0.05
    same, rows = compare(a, a, group, clusters=unit), np.random.default_rng(4).permutation(len(a))
    assert (same.p, same.p_exchange, same.difference, same.further) == (1.0, 1.0, 0.0, 0.0)
    assert math.isnan(same.ci_low) and (same.n_samples, same.n_clusters, same.parts) == (192, 16, ("x",))
    moved = compare(a[rows], b[rows], group[rows], clusters=unit[rows])
    assert (moved.p, moved.ci_low, moved.ci_high) == pytest.approx((found.p, found.ci_low, found.ci_high))


def test_the_exchange_of_runs_is_that_of_brute_force() -> None:
    # Six units with an answer in each run; an exchange turns both answers of a unit.
    a, b, groups, null = np.array([0, 0, 0, 1, 1, 0]), np.array([0, 1, 0, 0, 1, 0]), np.array([0, 0, 0, 1, 1, 1]), []
    for pattern in itertools.product([False, True], repeat=6):
        turned = np.where(pattern, b, a), np.where(pattern, a, b)
        gaps = [abs(values[:3].mean() - values[3:].mean()) for values in turned]
        null.append(gaps[0] - gaps[1])
    found = compare(a, b, groups)
    assert found.difference == pytest.approx(100 * null[0])
    assert found.p_exchange == pytest.approx(np.mean(np.abs(null) >= abs(null[0]) - 1e-9))


def test_weights_and_missing_values_by_hand() -> None:
    # x differs by 100 in run a and by 0 in run b; y is the same in both. A row that one run lost counts for neither.
    groups, x_a, x_b, y = [*"aaaabbbb"], [*"ppppqqqq"], [*"pqpqpqpq"], [*"rrrsrsss"]
    for weights, expected in ((None, 50.0), ({"x": 3.0}, 75.0), ({"x": 1.0, "y": 4.0}, 20.0)):
        found = compare_all({"x": x_a, "y": y}, {"x": x_b, "y": y}, groups, weights=weights)
        assert found.difference == pytest.approx(expected) and found.parts == ("x", "y")
    lost = compare([None, *x_a[1:]], x_b, groups)
    assert (lost.n_samples, lost.n_clusters) == (7, 7) and lost.value_b == pytest.approx(100 * (2 / 3 - 1 / 2))
    assert compare_all({"x": x_a, "y": [*"r" * 8]}, {"x": x_b, "y": [*"r" * 8]}, groups).parts == ("x",)


@pytest.mark.parametrize(("a", "b", "groups", "options", "code"), [
    ("xyxy", "xyxy", "aaaa", {}, NoteCode.ONE_GROUP), ("xxxx", "xxxx", "aabb", {}, NoteCode.ONE_VALUE),
    ("xyxy", "xyxx", "aabb", {"clusters": [*"stuu"]}, NoteCode.NO_NOISE),
    (["x", "y", None, None], "xyxy", "aabb", {}, NoteCode.EMPTY_GROUP),
    ("xyxy", "xyxx", "aabb", {"blocks": [*"ppqq"]}, NoteCode.NOTHING_SHARED),
])  # fmt: skip
def test_no_comparison_has_a_reason(a: Any, b: str, groups: str, options: dict[str, Any], code: NoteCode) -> None:
    found = compare([*a], [*b], [*groups], **options)
    assert code_of(found) == code and math.isnan(found.p) and math.isnan(found.ci_low)
    same = {"x": [*"pppp"], "y": [*"qqqq"]}
    assert code_of(compare_all(same, same, [*"aabb"])) == NoteCode.NO_ATTRIBUTE


@pytest.mark.parametrize(("a", "b"), [(EVEN, EVEN), (APART, APART), (APART, APART[::-1])])
def test_runs_of_equal_bias_are_seldom_apart(a: Floats, b: Floats) -> None:
    rng, small, held = np.random.default_rng(4), 0, 0
    for _ in range(40):
        of_a, of_b, group, unit = draw_runs(a, b, rng)
        found = compare(of_a, of_b, group, clusters=unit, rng=rng)
        small, held = small + (found.p <= 0.05), held + (found.ci_low <= 0 <= found.ci_high)
    assert small <= stats.binom.ppf(0.99, 40, 0.05) and held >= stats.binom.ppf(0.01, 40, 0.95)


def compare_two_means(a: Numbers, b: Numbers, groups: Sequence[Any], **options: Any) -> PairedValues:
    usual: dict[str, Any] = {"clusters": range(len(a)), "n_resamples": 999, "rng": np.random.default_rng(1)}
    return compare_run_means(a, b, groups, **usual | options)


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("side", [-1, 1])
def test_sums_and_differences_of_run_means_are_two_tests(seed: int, side: int) -> None:
    rng, group = np.random.default_rng(seed), np.repeat([0, 1], 9)
    a, b = rng.normal(0, 1, 18) + 3 * (1 - group), rng.normal(0, 1, 18) + side * (1 - group)
    found, turned = compare_two_means([*a], [*b], [*group]), compare_two_means([*b], [*a], [*group])
    gap_a, gap_b = a[:9].mean() - a[9:].mean(), b[:9].mean() - b[9:].mean()
    assert (found.value_a, found.value_b, found.further) == pytest.approx((gap_a, gap_b, abs(gap_a) - abs(gap_b)))
    tests = [stats.ttest_ind(column[:9], column[9:], equal_var=False) for column in (a - b, a + b)]
    p = max(test.pvalue for test in tests)
    assert p - 1e-9 <= found.p == pytest.approx(p, abs=0.02)
    # |x| - |y| on a grid of both intervals.
    u, v = np.meshgrid(*(np.linspace(*test.confidence_interval(), 300) for test in tests))
    further = np.abs((u + v) / 2) - np.abs((v - u) / 2)
    assert (found.ci_low, found.ci_high) == pytest.approx((further.min(), further.max()), abs=0.05)
    assert (turned.further, turned.ci_low) == pytest.approx((-found.further, -found.ci_high))


def test_run_means_of_equal_runs_lone_units_and_three_groups() -> None:
    values, groups = [1.0, 2.0, 4.0, 3.0, 7.0, 5.0], [*"aaabbb"]
    same = compare_two_means(values, [v + 1 for v in values], groups)
    assert (same.p, same.further) == (1.0, 0.0) and not same.ci_low > 0 and not same.ci_high < 0
    assert code_of(compare_two_means(values, values[::-1], groups, clusters=[*"sssbcd"])) == NoteCode.NO_NOISE
    assert code_of(compare_two_means([None, None, None, *values[3:]], values, groups)) == NoteCode.EMPTY_GROUP
    rng, group = np.random.default_rng(6), np.repeat([0, 1, 2], 10)
    a, b = rng.normal(0, 1, 30) + 2 * group, rng.normal(0, 1, 30)
    found = compare_two_means([*a], [*b], [*group])
    ranges = [np.ptp([column[group == code].mean() for code in range(3)]) for column in (a, b)]
    assert (found.value_a, found.value_b, found.further) == pytest.approx((*ranges, ranges[0] - ranges[1]))
    assert found.p <= 0.05 and 0 < found.ci_low < found.ci_high
    equal = compare_two_means([*a], [*(rng.normal(0, 1, 30) - 2 * group)], [*group])
    assert equal.p > 0.05 and equal.ci_low <= 0 <= equal.ci_high


def share(sums: Floats) -> Floats:
    return np.asarray(sums[..., 0] / sums[..., 1])


def of(values: Sequence[float]) -> Floats:
    """Return units of equal size, each with a value."""
    return np.array([[value, 1.0] for value in values], dtype=float)


def total(a: Floats, b: Floats, **options: Any) -> PairedValues:
    return compare_totals(a, b, share, rng=np.random.default_rng(1), **options)


def test_totals_by_hand() -> None:
    # Differences 2 0 4 -1, mean 5/4; sums 4 2 4 5, mean 15/4: all 16 signs.
    found, free = total(of([3, 1, 4, 2]), of([1, 1, 0, 3]), target=0.0), total(of([3, 1, 4, 2]), of([1, 1, 0, 3]))
    p_apart, p_sum = (np.abs(SIGNS @ [2, 0, 4, -1]) >= 5).mean(), (np.abs(SIGNS @ [4, 2, 4, 5]) >= 15).mean()
    assert (found.value_a, found.value_b, found.difference, found.further) == (2.5, 1.25, 1.25, 1.25)
    assert (found.p, found.p_least, free.p) == (max(p_apart, p_sum), 2 / 16, p_apart) and math.isnan(free.further)
    half = stats.t.ppf(0.975, 3) * np.std([2, 0, 4, -1], ddof=1) / 2
    assert (found.ci_low, found.ci_high) == pytest.approx((1.25 - half, 1.25 + half))


def test_totals_of_large_units_by_hand() -> None:
    # 1, 1, -1 and 3 more hits in 1, 1, 1, 5 answers. A residual is over √(1 - n/8); (8²)/28 units of equal size.
    found = total(np.array([[1.0, 1], [1, 1], [0, 1], [4, 5]]), np.array([[0.0, 1], [0, 1], [1, 1], [1, 5]]), sizes=1)
    sizes = np.array([1, 1, 1, 5])
    left = (np.array([1, 1, -1, 3]) - sizes / 2) / 8 / np.sqrt(1 - sizes / 8)
    half = stats.t.ppf(0.975, 64 / 28 - 1) * math.sqrt((left**2).sum())
    assert found.p == (np.abs(SIGNS @ [1, 1, -1, 3]) >= 4).mean()
    assert (found.ci_low, found.ci_high) == pytest.approx((0.5 - half, 0.5 + half))


def test_opposite_sides_of_the_target() -> None:
    a = [60.0, 80.0, 70.0, 65.0, 75.0, 72.0]
    equal = total(of(a), of([100 - value for value in reversed(a)]), target=50.0)
    assert equal.difference > 30 and equal.further == pytest.approx(0, abs=1e-9) and equal.p == 1.0
    further = total(of([-30.0 + i for i in range(8)]), of([3.0 + i / 10 for i in range(8)]), target=0.0)
    assert further.further == pytest.approx(26.5 - 3.35) and further.p == 2 / 2**8
    assert equal.ci_low <= 0 <= equal.ci_high and 0 < further.ci_low < further.further < further.ci_high


@given(st.lists(st.tuples(st.integers(-20, 20), st.integers(-20, 20)), min_size=2, max_size=8))
@settings(max_examples=40)
def test_exchanged_runs_turn_the_signs_of_totals(pairs: list[tuple[int, int]]) -> None:
    a, b = (of(column) for column in zip(*pairs, strict=True))
    one, two = total(a, b, target=0.0, n_resamples=999), total(b[::-1], a[::-1], target=0.0, n_resamples=999)
    assert (two.difference, two.further, two.p) == pytest.approx((-one.difference, -one.further, one.p), abs=1e-9)
    assert math.isnan(one.ci_low) or one.ci_low - 1e-9 <= one.further <= one.ci_high + 1e-9


def test_totals_without_a_score_have_a_reason() -> None:
    cases = [(of([1]), of([2])), (of([1, 2]), np.zeros((2, 2))), (of([1, 2]), np.array([[1.0, 1], [0, 0]]))]
    codes = [code_of(total(a, b)) for a, b in cases]
    assert codes == [NoteCode.NO_NOISE, NoteCode.NOTHING_USABLE, NoteCode.NO_NOISE]
    same = total(of([1, 2, 4]), of([1, 2, 4]), target=0.0)
    assert (same.p, same.further) == (1.0, 0.0) and math.isnan(same.ci_low)
