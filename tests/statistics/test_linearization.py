"""Influence values against the standard errors of textbooks, and draws of noise against their variance."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from equivox.statistics.design import build_design
from equivox.statistics.linearization import MOST_UNITS, Influence, compute_influence

numbers = st.lists(st.integers(-9, 9), min_size=2, max_size=6)


def measure(values: list[float], groups: str, **design: list[str] | list[int]) -> Influence:
    """Return the influence of numbers, one for each cell in the order of units and groups."""
    column = np.array(values)[:, None]
    built = build_design([*groups], design.get("clusters"), blocks=design.get("blocks"))
    return compute_influence(column, [slice(0, 1)], built, sizes=np.ones_like(column))


@given(numbers, numbers)
@settings(max_examples=40)
def test_two_groups_have_welchs_variance_and_degrees(a: list[int], b: list[int]) -> None:
    found = measure([*map(float, a + b)], "a" * len(a) + "b" * len(b))
    squares = [np.var(values, ddof=1) / len(values) for values in (a, b)]
    half = (np.mean(a) - np.mean(b)) / 2  # Both deviations are half of the difference.
    assert found.errors[:, 0] == pytest.approx(math.sqrt(sum(squares)) / 2)
    assert found.theta[:, 0] == pytest.approx([half, -half], abs=1e-12)
    assert found.variances == pytest.approx([np.var(a, ddof=1), np.var(b, ddof=1)])
    if sum(squares) > 0:
        each = zip(squares, (a, b), strict=True)
        welch = sum(squares) ** 2 / sum(square**2 / (len(values) - 1) for square, values in each)
        assert found.degrees == pytest.approx(welch)


@given(st.lists(st.tuples(st.integers(-9, 9), st.integers(-9, 9)), min_size=2, max_size=8))
@settings(max_examples=40)
def test_units_in_both_groups_have_the_variance_of_pairs(pairs: list[tuple[int, int]]) -> None:
    units = np.arange(len(pairs)).repeat(2).tolist()
    found = measure([float(v) for pair in pairs for v in pair], "ab" * len(pairs), clusters=units)
    between = found.values[:, 0, 0] - found.values[:, 1, 0]
    assert between @ between == pytest.approx(np.var([a - b for a, b in pairs], ddof=1) / len(pairs), abs=1e-12)


def test_many_single_answers_have_the_noise_of_a_multinomial() -> None:
    # 400 answers of a: .5, .3, .2; 600 of b: .2, .2, .6. The variance of a share is p (1 - p) / n.
    codes, p = (
        np.repeat([0, 1, 2, 0, 1, 2], [200, 120, 80, 120, 120, 360]),
        np.array([[0.5, 0.3, 0.2], [0.2, 0.2, 0.6]]),
    )
    found = compute_influence(np.eye(3)[codes], [slice(0, 3)], build_design([*"a" * 400, *"b" * 600], None))
    error = np.sqrt((p * (1 - p) / [[400], [600]]).sum(axis=0) / 4)
    assert found.levels == pytest.approx(p) and found.errors == pytest.approx(np.array([error, error]), rel=0.01)


@pytest.mark.parametrize(("a", "b"), [(1, 3), (2, 3), (5, 3), (5, 1), (1, 1)])
def test_units_that_agree_or_are_alone_are_not_without_noise(a: int, b: int) -> None:
    counts = np.array([[10.0, 0.0]] * a + [[4.0, 6.0], [6.0, 4.0], [5.0, 5.0]][:b])
    found = compute_influence(counts, [slice(0, 2)], build_design(["a"] * a + ["b"] * b, None))
    assert (found.errors > 0.01).all()


@pytest.mark.parametrize(("n_units", "degrees"), [(6, math.inf), (6, 8.0), (3 * MOST_UNITS, math.inf)])
def test_draws_have_the_spread_of_students_t(n_units: int, degrees: float) -> None:
    rng = np.random.default_rng(2)
    counts = rng.multinomial(20, [0.5, 0.3, 0.2], size=2 * n_units).astype(np.float64)
    influence = compute_influence(counts, [slice(0, 3)], build_design([*"ab"] * n_units, None))
    drawn = replace(influence, degrees=degrees).draw_noise(8_000, rng)
    variance = influence.errors**2 * (1.0 if math.isinf(degrees) else degrees / (degrees - 2))
    # Many units are drawn in heaps of about three, which adds chance.
    assert drawn.var(axis=0) == pytest.approx(variance, rel=0.1 if n_units == 6 else 0.25)
    for axis in (1, 2):
        assert np.abs(drawn.sum(axis=axis)).max() < 1e-12


def test_large_units_and_lone_units_by_hand() -> None:
    # Sizes 1, 1, 6 of group a: residuals n (y - mean) are over √(1 - n/8) and 8; group b does not vary.
    means, sizes = np.array([1.0, 3.0, 2.0, 5.0, 5.0, 5.0]), np.array([1.0, 1.0, 6.0, 1.0, 1.0, 1.0])
    design = build_design([*"aaabbb"], None)
    found = compute_influence((means * sizes)[:, None], [slice(0, 1)], design, sizes=sizes[:, None])
    left = np.array([-1.0, 1.0, 0.0]) / 8 / np.sqrt(1 - sizes[:3] / 8)
    assert found.errors[:, 0] == pytest.approx(math.sqrt((left**2).sum()) / 2)
    assert found.degrees == 1.0  # 8²/(1 + 1 + 36) - 1, but never below 1
    # Block p has two units of each group, with variances 2 and 8; q has one of each, which borrows their noise.
    alone = measure([1.0, 3.0, 9.0, 2.0, 6.0, 7.0], "aaabbb", blocks=[*"ppqppq"])
    assert 4 * alone.errors[0, 0] ** 2 == pytest.approx((2 + 8) * 2 / 9 * 1.5)
