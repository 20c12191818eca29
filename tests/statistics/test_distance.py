import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from equivox.core.errors import RequestError
from equivox.statistics import attainable_shift, ntvd
from equivox.statistics.distance import (
    _critical,
    _crossing,
    _hidden,
    detectable,
    euclidean_of_shares,
    ntvd_of_shares,
    quantile,
)


def test_hand_worked_two_groups():
    # P_a = (.7, .2, .1), P_b = (.5, .2, .3); mean (.6, .2, .2).
    # |P_a − mean| = .1 + 0 + .1, half of it .1; the same for b. TVD = .1, divided by 1 − 1/2: 20 %.
    assert ntvd([[7, 2, 1], [5, 2, 3]]) == pytest.approx(20.0)


def test_hand_worked_three_groups():
    # P = (1, 0), (0, 1), (.5, .5); mean (.5, .5). Half-distances .5, .5, 0: TVD = 1/3, over 2/3: 50 %.
    assert ntvd([[4, 0], [0, 9], [3, 3]]) == pytest.approx(50.0)


def test_groups_weigh_alike_whatever_their_size():
    assert ntvd([[1, 1], [1, 0]]) == pytest.approx(ntvd([[500, 500], [3, 0]]))


@pytest.mark.parametrize(("n_values", "n_groups"), list(itertools.product([1, 2, 3, 4, 5], [2, 3, 4])))
def test_ceiling_is_the_largest_over_all_point_masses(n_values, n_groups):
    # The distance is convex, so its maximum over distributions is at point masses: try every one.
    largest = max(ntvd(np.eye(n_values)[list(where)]) for where in itertools.product(range(n_values), repeat=n_groups))
    assert attainable_shift(n_values, n_groups) == pytest.approx(largest)


def test_planted_shift_is_its_own_distance():
    # (1 − s) · uniform + s · own value: every deviation is s times that of point masses.
    shares = 0.8 / 8 + 0.2 * np.eye(8)[:6]
    assert ntvd(shares) == pytest.approx(20.0)


@given(st.lists(st.lists(st.integers(0, 50), min_size=4, max_size=4), min_size=2, max_size=5))
def test_properties(rows):
    rows = [[first + 1, *rest] for first, *rest in rows]
    value = ntvd(rows)
    assert 0.0 <= value <= 100.0 + 1e-9
    assert ntvd(rows[::-1]) == pytest.approx(value)
    assert ntvd([row[::-1] for row in rows]) == pytest.approx(value)
    assert ntvd([[*row, 0] for row in rows]) == pytest.approx(value), "a value nobody gave changes nothing"
    assert ntvd([[2 * count for count in row] for row in rows]) == pytest.approx(value), "merging equal shards"


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([[1, 2]], "two or more"),
        ([1, 2], "two or more"),
        ([[1, 2], [0, 0]], "empty row"),
        ([[1, 2], [1, -1]], "negative"),
        ([[1, 2], [1, float("nan")]], "gap"),
    ],
)
def test_what_cannot_be_compared_raises(rows, words):
    with pytest.raises(RequestError, match=words):
        ntvd(rows)


@pytest.mark.parametrize("n_groups", [2, 3, 5])
def test_the_euclidean_distance_is_100_for_groups_with_a_value_each(n_groups):
    assert euclidean_of_shares(np.eye(n_groups)[None]) == pytest.approx([100])
    assert euclidean_of_shares(np.full((1, n_groups, 4), 0.25)) == pytest.approx([0])


def test_the_euclidean_distance_by_hand():
    # Deviations of ±1/4 on two values of two groups: √(4 / 16) is 1/2. Of half the size on four: √(8 / 64).
    two, four = (np.array([[[0.75, 0.25], [0.25, 0.75]]]), np.array([[[0.375, 0.125] * 2, [0.125, 0.375] * 2]]))
    assert euclidean_of_shares(two) == pytest.approx([50])
    assert euclidean_of_shares(four) == pytest.approx([50 / 2**0.5])
    assert [float(ntvd_of_shares(shares)[0]) for shares in (two, four)] == pytest.approx([50, 50])


@pytest.mark.parametrize("shape", [(2, 2), (2, 7), (3, 5), (6, 4)])
def test_what_is_hidden_in_the_noise_moves_values_by_their_errors_and_has_the_length_one(shape):
    errors = np.random.default_rng(3).uniform(0.5, 1.5, shape)
    found = _hidden(errors)
    assert ntvd_of_shares(found[None]) == pytest.approx([1])
    assert found.sum(axis=1) == pytest.approx(np.zeros(shape[0]))
    assert found.sum(axis=0) == pytest.approx(np.zeros(shape[1]))
    # Half of the groups move to each side, as nearly as can be.
    assert abs((found[:, 0] > 0).sum() - (found[:, 0] < 0).sum()) <= 1
    # Values that move to one side move by as many errors; the sides have half of the errors each, as nearly as can be.
    size = errors.mean(axis=0)
    for side in (found[0] > 0, found[0] < 0):
        assert np.ptp(np.abs(found[0][side]) / size[side]) == pytest.approx(0, abs=1e-12)
        assert size[side].sum() == pytest.approx(size.sum() / 2, abs=size.max() / 2)


def test_what_noise_alone_exceeds_once_in_twenty_and_five_times_in_ten_thousand():
    # Lengths whose logarithm is normal: their quantiles are known beyond what is drawn.
    of = stats.lognorm(0.3, scale=7)
    lengths = of.ppf((np.arange(100_000) + 0.5) / 100_000)
    assert _critical(lengths) == pytest.approx([of.isf(0.05), of.isf(0.0005)], rel=1e-3)
    assert _critical(np.zeros(10)) == [0, 0]


def test_a_crossing_lies_between_what_was_tried_or_beyond_at_the_last_slope():
    tried, reached = np.array([0.0, 1.0, 2.0, 4.0]), np.array([3.0, 4.0, 6.0, 9.0])
    found = [_crossing(tried, reached, critical) for critical in (5.0, 7.5, 12.0, 9.0, 2.0)]
    # Beyond 4 it grows by 3 each 2.
    assert found == pytest.approx([1.5, 3.0, 6.0, 4.0, 0.0])


@pytest.mark.parametrize(
    ("answers", "effect", "correlation"), [(11.0, 2.0, 0.1), (11.0, 0.5, 0.0), (3.0, 9.0, 1.0), (1.0, 2.0, 0.0)]
)
def test_the_smallest_shift_that_is_found_in_80_of_100_samples_of_normal_noise(answers, effect, correlation):
    # Two values of two groups: |shift + noise| is a folded normal. 5 of 100 exceed 1.96 errors without a shift, and 80
    # of 100 with one of 2.80.
    rng = np.random.default_rng(5)
    half = rng.normal(0, 0.01, 4_000)
    noise = np.stack([np.stack([half, -half], axis=1), np.stack([-half, half], axis=1)], axis=1)
    lengths = ntvd_of_shares(noise)
    found = detectable(noise, lengths, np.full((2, 2), 0.01), [slice(0, 2)], answers, effect)
    error = 200 * 0.01  # the distance is 100 times the difference of shares, twice a deviation
    assert found.at_5_percent == pytest.approx((1.96 + 0.84) * error, rel=0.1)
    # The tail of a folded normal is shorter than that of the lognormal which is taken for it.
    assert found.at_5_of_10000 > found.at_5_percent
    assert (found.answers, found.correlation) == (answers, pytest.approx(correlation))


def test_ceiling_needs_two_groups_and_a_value():
    with pytest.raises(RequestError, match="`n_groups` is 1"):
        attainable_shift(4, 1)
    with pytest.raises(RequestError, match="`n_values` is 0"):
        attainable_shift(0, 2)


@given(values=st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30), share=st.floats(0, 1))
def test_a_quantile_is_that_of_numpy_bit_by_bit(values, share):
    assert quantile(np.array(values), share) == np.quantile(values, share)
