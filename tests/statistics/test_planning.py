"""Planning: against the power of a t test, a folded normal, the test itself, and the inverse."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_answers import draw_answers
from scipy import stats

from equivox.statistics import compare_groups
from equivox.statistics.planning import Plan, compute_visible_gap, count_units


@pytest.mark.parametrize(("units", "answers", "correlation"), [(40, 1, 0.0), (20, 10, 0.1), (200, 3, 0.5)])
def test_a_difference_of_means_has_the_power_of_a_t_test(units: int, answers: int, correlation: float) -> None:
    gap = compute_visible_gap(Plan(units=units, answers=answers, groups=2, correlation=correlation))
    # The mean of a unit has the variance (1 + (m - 1) rho) / m, where that of an answer is 1.
    error = math.sqrt(2 * 2 / units * (1 + (answers - 1) * correlation) / answers)
    freedom = units - 2
    assert stats.nct.sf(stats.t.ppf(0.975, freedom), freedom, gap / error) == pytest.approx(0.8, abs=0.02)


def test_two_values_of_two_groups_are_a_difference_of_shares() -> None:
    # 400 pairs: the difference of two shares near one half has the standard error (.5 / 400)^.5, 3.54 points.
    gap = compute_visible_gap(Plan(units=400, answers=2, groups=2, values=2, correlation=0.0, crossed=True))
    assert gap == pytest.approx((1.96 + 0.84) * 100 * math.sqrt(0.5 / 400), rel=0.02)


def test_a_gap_that_can_be_shown_is_found_in_four_of_five_samples() -> None:
    plan = Plan(units=40, answers=20, groups=2, values=6, correlation=0.05)
    gap, rng = compute_visible_gap(plan), np.random.default_rng(3)
    favoured = np.where(np.arange(6) % 2 == np.arange(2)[:, None], 1 / 3, 0.0)
    # Half of the values are each group's: answers that move there move the nTVD by twice their share.
    truth = (1 - gap / 100) / 6 + gap / 100 * favoured
    found = 0
    for _ in range(60):
        values, group, unit = draw_answers(truth, (20, 20), 20, (0.05, 0.05), rng)
        found += compare_groups(values, group, clusters=unit, min_count=1, n_resamples=299, rng=rng).p <= 0.05
    assert 0.65 < found / 60 < 0.95


@given(st.integers(2, 6), st.integers(2, 30), st.floats(3, 40), st.booleans())
@settings(deadline=None, max_examples=25)
def test_the_units_that_a_gap_needs_show_it_and_no_fewer(groups: int, values: int, gap: float, crossed: bool) -> None:
    plan = Plan(units=2 * groups, answers=2 * groups, groups=groups, values=values, crossed=crossed)
    needed = count_units(plan, gap)
    step = 1 if crossed else groups
    assert compute_visible_gap(Plan(**vars(plan) | {"units": needed})) <= gap
    if needed > 2 * step:
        assert not compute_visible_gap(Plan(**vars(plan) | {"units": needed - step})) <= gap
