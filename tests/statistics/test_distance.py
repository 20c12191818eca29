import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from equivox.core.errors import RequestError
from equivox.statistics import attainable_shift, ntvd


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


def test_ceiling_needs_two_groups_and_a_value():
    with pytest.raises(RequestError, match="`n_groups` is 1"):
        attainable_shift(4, 1)
    with pytest.raises(RequestError, match="`n_values` is 0"):
        attainable_shift(0, 2)
