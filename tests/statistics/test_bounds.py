import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from equivox.core.errors import RequestError
from equivox.statistics import ntvd, ntvd_bounds, share_bounds


def test_share_by_hand():
    # 30 of 50, 50 missing: from 30/100 to 80/100.
    assert share_bounds(30, 50, 50).low == 30.0
    assert share_bounds(30, 50, 50).high == 80.0
    nothing = share_bounds(0, 0, 4)
    assert math.isnan(nothing.observed)
    assert (nothing.low, nothing.high) == (0.0, 100.0)


def fillings(counts, missing, extra):
    """Every way to give the missing answers a value, with `extra` values nobody gave."""
    width = len(counts[0]) + extra
    padded = [[*row, *[0] * extra] for row in counts]
    per_group = [list(itertools.combinations_with_replacement(range(width), m)) for m in missing]
    for chosen in itertools.product(*per_group):
        filled = np.array(padded, dtype=float)
        for group, codes in enumerate(chosen):
            for code in codes:
                filled[group, code] += 1
        yield ntvd(filled)


@pytest.mark.parametrize(
    ("counts", "missing"),
    [([[3, 1], [1, 2]], [1, 2]), ([[2, 2, 1], [1, 0, 4]], [2, 1]), ([[2, 1], [1, 1], [0, 3]], [1, 1, 1])],
)
def test_bounds_against_every_filling(counts, missing):
    found = ntvd_bounds(counts, missing)
    every = list(fillings(counts, missing, extra=len(counts)))
    assert found.high == pytest.approx(max(every))
    assert found.low <= min(every) + 1e-9
    assert found.observed == pytest.approx(ntvd(counts))


def test_low_is_reached_when_fractions_are_whole():
    # b misses ten answers; as the second value they make both groups (10, 10).
    found = ntvd_bounds([[10, 10], [10, 0]], [0, 10])
    assert found.low == pytest.approx(0.0, abs=1e-9)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.lists(st.integers(0, 9), min_size=3, max_size=3), min_size=2, max_size=4),
    st.lists(st.integers(0, 9), min_size=4, max_size=4),
)
def test_any_truth_lies_within(rows, missing):
    counts = np.array([[row[0] + 1, *row[1:]] for row in rows])
    absent = np.array(missing[: len(counts)])
    found = ntvd_bounds(counts, absent.tolist())
    assert found.low - 1e-7 <= found.observed <= found.high + 1e-7
    rng = np.random.default_rng(1)
    for _ in range(5):
        filled = counts + np.stack([rng.multinomial(m, np.full(3, 1 / 3)) for m in absent])
        assert found.low - 1e-7 <= ntvd(filled) <= found.high + 1e-7


def test_nothing_missing_leaves_no_room():
    found = ntvd_bounds([[7, 2, 1], [5, 2, 3]], [0, 0])
    assert (found.low, found.high) == pytest.approx((20.0, 20.0))
    assert found.n_missing == 0


def test_a_group_without_answers_may_have_said_anything():
    found = ntvd_bounds([[5, 5], [0, 0]], [0, 10])
    assert math.isnan(found.observed)
    assert (found.low, found.high) == pytest.approx((0.0, 100.0), abs=1e-9)


def test_requests_that_cannot_be_meant():
    with pytest.raises(RequestError, match="`hits` is 3"):
        share_bounds(3, 2, 0)
    with pytest.raises(RequestError, match="both 0"):
        share_bounds(0, 0, 0)
    with pytest.raises(RequestError, match="`counts` has shape"):
        ntvd_bounds([[1, 2]], [0])
    with pytest.raises(RequestError, match="`missing` has 1 entries"):
        ntvd_bounds([[1, 2], [2, 1]], [0])
    with pytest.raises(RequestError, match="no count"):
        ntvd_bounds([[1, 2], [2, 1]], [0, -1])
    with pytest.raises(RequestError, match="without known or missing"):
        ntvd_bounds([[1, 2], [0, 0]], [0, 0])
