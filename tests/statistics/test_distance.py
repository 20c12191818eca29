"""The distance and its bounds by hand and by brute force, and the estimate against noise of known size."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from equivox.statistics import attainable_shift, ntvd, ntvd_bounds, share_bounds
from equivox.statistics.distance import compute_ntvd, estimate_ntvd, invert_interval

Floats = NDArray[np.float64]
Rows = list[list[float]]
three = st.tuples(*[st.integers(0, 3)] * 3)


@pytest.mark.parametrize(("rows", "expected"), [
    # P_a = (.7, .2, .1), P_b = (.5, .2, .3), mean (.6, .2, .2): half of .1 + 0 + .1, over 1 - 1/2.
    ([[7, 2, 1], [5, 2, 3]], 20.0),
    # (1, 0), (0, 1), (.5, .5): halves .5, .5, 0, mean 1/3, over 2/3.
    ([[4, 0], [0, 9], [3, 3]], 50.0),
    ([[1, 1], [5, 5]], 0.0), ([[1, 0], [0, 3]], 100.0), ([[1, 0, 0], [0, 1, 0], [0, 0, 1]], 100.0),
])  # fmt: skip
def test_ntvd_by_hand(rows: Rows, expected: float) -> None:
    assert ntvd(rows) == pytest.approx(expected)


@given(st.lists(st.lists(st.integers(0, 50), min_size=4, max_size=4), min_size=2, max_size=5), st.integers(2, 9))
@settings(max_examples=40)
def test_order_empty_values_and_sizes_of_groups_do_not_matter(counts: list[list[int]], times: int) -> None:
    rows = [[first + 1, *rest] for first, *rest in counts]
    value = ntvd(rows)
    larger = [[n * times for n in rows[0]], *rows[1:]]
    same = (rows[::-1], [row[::-1] for row in rows], [[*row, 0] for row in rows], larger)
    assert 0 <= value <= 100 + 1e-9 and [ntvd(other) for other in same] == pytest.approx([value] * 4)
    # To put two values together brings groups no further apart.
    assert ntvd([[a + b, *rest] for a, b, *rest in rows]) <= value + 1e-9


@pytest.mark.parametrize(("n_values", "n_groups"), [*itertools.product([1, 2, 3, 5], [2, 3, 4])])
def test_the_largest_distance_is_that_of_groups_with_a_value_each(n_values: int, n_groups: int) -> None:
    each = itertools.product(range(n_values), repeat=n_groups)
    assert attainable_shift(n_values, n_groups) == pytest.approx(max(ntvd(np.eye(n_values)[list(v)]) for v in each))


@pytest.mark.parametrize(("counts", "missing", "expected"), [
    ([[10, 10], [10, 0]], [0, 10], (50, 0, 50)), ([[4, 0], [0, 4]], [0, 0], (100, 100, 100)),
    ([[1, 1], [0, 0]], [0, 2], (math.nan, 0, 100)),
    # a: 3/4 and a quarter missing; b: 1/4, 3/4. Missing ones as b's larger value: (3/4, 1/4) against (1/4, 3/4).
    ([[3, 0], [1, 3]], [1, 0], (75, 50, 75)),
])  # fmt: skip
def test_bounds_by_hand(counts: Rows, missing: list[float], expected: tuple[float, ...]) -> None:
    found = ntvd_bounds(counts, missing)
    assert (found.observed, found.low, found.high) == pytest.approx(expected, abs=1e-6, nan_ok=True)
    share = share_bounds(3, 4, 4)  # 3/4, and 3 or 7 of 8
    assert (share.observed, share.low, share.high) == (75, 37.5, 87.5)


@given(st.lists(three, min_size=2, max_size=3), st.lists(st.integers(0, 2), min_size=3, max_size=3))
@settings(max_examples=40)
def test_no_way_to_fill_the_gaps_leaves_the_bounds(rows: list[tuple[int, ...]], missing: list[int]) -> None:
    counts, absent = np.array(rows, dtype=float), missing[: len(rows)]
    if (counts.sum(axis=1) + absent == 0).any():
        return
    found, distances = ntvd_bounds(counts, absent), []
    wide = np.hstack([counts, np.zeros((len(counts), len(counts)))])  # with a new value for each group
    fillings = [itertools.combinations_with_replacement(range(wide.shape[1]), n) for n in absent]
    for filling in itertools.product(*fillings):
        whole = wide.copy()
        for row, columns in enumerate(filling):
            np.add.at(whole[row], list(columns), 1)
        distances.append(ntvd(whole))
    assert found.low <= min(distances) + 1e-6 and max(distances) == pytest.approx(found.high, abs=1e-6)


def of_two(half: Floats) -> Floats:
    return np.stack([half, -half], axis=-2)


@pytest.mark.parametrize("size", [0.0, 1.0, 3.0, 8.0])
def test_the_estimate_is_off_by_a_fraction_of_the_error_of_a_value(size: float) -> None:
    # 40 values of one true size in standard errors; the plain distance is .8 errors too large at size 0.
    rng, error, parts = np.random.default_rng(2), np.full((2, 40), 0.01), [slice(0, 40)]
    drawn = rng.normal(size * 0.01, 0.01, (100, 40))
    found = [estimate_ntvd(of_two(half), error, parts) for half in drawn]
    assert np.mean(found) == pytest.approx(40 * size, abs=0.4 * 40)


@given(st.lists(st.floats(-0.5, 0.5), min_size=2, max_size=8), st.floats(0.001, 0.2))
@settings(max_examples=40)
def test_signs_order_and_scale_of_deviations(halves: list[float], error: float) -> None:
    theta, errors, parts = of_two(np.array(halves)), np.full((2, len(halves)), error), [slice(0, len(halves))]
    found = estimate_ntvd(theta, errors, parts)
    others = [(-theta, errors, 1), (theta[:, ::-1], errors, 1), (3 * theta, 3 * errors, 3)]
    scaled = [estimate_ntvd(moved, by, parts) / times for moved, by, times in others]
    assert found >= 0 and scaled == pytest.approx([found] * 3, rel=1e-6, abs=1e-9)
    assert estimate_ntvd(theta, 0 * errors, parts) == pytest.approx(float(compute_ntvd(theta, parts)))


@pytest.mark.parametrize("confidence", [0.9, 0.95])
def test_the_interval_far_from_zero_is_the_normal_one(confidence: float) -> None:
    theta, parts = of_two(np.array([0.1, -0.1])), [slice(0, 2)]
    noise = of_two(np.random.default_rng(3).normal(0, 0.01, (20_000, 1)) * [1, -1])
    low, high = invert_interval(theta, noise, [theta], parts, confidence)
    reach = 200 * 0.01 * stats.norm.ppf(0.5 + confidence / 2)  # The distance is 200 times the first deviation.
    assert (low, high) == pytest.approx((20 - reach, 20 + reach), abs=0.15)
    assert invert_interval(theta, noise, [theta], parts, confidence, most=19.0)[1] == 19.0
    nothing = invert_interval(0 * theta, noise, [theta, theta], parts, confidence)
    assert nothing[0] == 0 < nothing[1] < 2 * reach
