"""Adjusted p-values and ranks: by hand, by Holm's formula, by scipy, and in samples of known ranks."""

import itertools
import math
from typing import Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from equivox.statistics import adjust, adjust_hierarchy, rank_models
from equivox.statistics.multiplicity import differences_of_intervals

unit = st.floats(0, 1)
AB, ABC = {"a": 1.0, "b": 2.0}, {"a": 1.0, "b": 2.0, "c": 3.0}
PAIRS = list(itertools.combinations("abcdef", 2))


def holm(p: list[float]) -> list[float]:
    """Return the largest p times the number of tests from there on, up to each test (Holm 1979)."""
    return [max(min(1.0, one * sum(other >= one for other in p)) for one in p if one <= mine) for mine in p]


@given(st.lists(unit, min_size=1, max_size=15), st.sampled_from(["bh", "by"]))
@settings(max_examples=40)
def test_families_are_adjusted_as_scipy_and_holm_do(p: list[float], method: Literal["bh", "by"]) -> None:
    expected = stats.false_discovery_control(p, method=method)
    assert adjust([*p, math.nan], method=method) == pytest.approx([*expected, math.nan], nan_ok=True)
    found = adjust_hierarchy({str(i): value for i, value in enumerate([*p, math.nan])})
    assert list(found.values()) == pytest.approx([*holm(p), math.nan], nan_ok=True)


def test_a_family_and_a_hierarchy_by_hand() -> None:
    # Sorted .01, .02, .04, .5 of 4: .01 · 4, .02 · 4/2, .04 · 4/3, .5.
    family = [0.5, 0.01, 0.04, 0.02]
    assert adjust(family) == pytest.approx([0.5, 0.04, 0.16 / 3, 0.04]) and adjust([]) == []
    assert adjust(family, method="by")[1] == pytest.approx(0.04 * (1 + 1 / 2 + 1 / 3 + 1 / 4))
    p = {"a": 0.001, "b": 0.01, "c": 0.4, "a1": 0.002, "a2": 0.03, "b1": 0.01, "c1": 0.0001, "none": math.nan}
    found = adjust_hierarchy(p, [("a", ("a1", "a2", "none")), ("b", ("b1",)), ("c", ("c1",))])
    # Over three tasks .001 · 3, .01 · 2, .4; two of three are below .05, so that families cost 3/2: .002 · 2 · 3/2,
    # .03 · 3/2; .01 · 3/2 is below its task's .02. Nothing below c is smaller than c.
    expected = {"a": 0.003, "b": 0.02, "c": 0.4, "a1": 0.006, "a2": 0.045, "b1": 0.02, "c1": 0.4, "none": math.nan}
    assert found == pytest.approx(expected, nan_ok=True)
    # Below an undefined task an attribute is a first test.
    assert adjust_hierarchy({"a": math.nan, "a1": 0.02, "b": 0.5}, [("a", ("a1",))])["a1"] == pytest.approx(0.04)


@pytest.mark.parametrize(("distances", "tests", "expected"), [
    # .01 ≤ .05/3, .02 ≤ .05/2, .04 ≤ .05.
    (ABC, {"ab": (-1, 0.04), "ac": (-2, 0.01), "bc": (-1, 0.02)}, [(1, 1, 1), (2, 2, 2), (3, 3, 3)]),
    # .03 > .05/2 ends the descent, though .04 is below .05.
    (ABC, {"ab": (-1, 0.04), "ac": (-2, 0.01), "bc": (-1, 0.03)}, [(1, 1, 2), (2, 1, 3), (3, 2, 3)]),
    # Pairs that were not tested leave everything open; equal distances have one rank.
    ({"a": 1.0, "b": 50.0, "c": 50.0}, {"ab": (-49, math.nan)}, [(1, 1, 3), (2, 1, 3), (2, 1, 3)]),
    # A test that points to the other side than the distances says nothing; a pair may be given in either order.
    (AB, {"ab": (3, 0.001)}, [(1, 1, 2), (2, 1, 2)]), ({"a": 3.0}, {}, [(1, 1, 1)]),
    (AB, {"ba": (5, 0.001)}, [(1, 1, 1), (2, 2, 2)]),
    # A p at the level is a difference. A pair that came out even counts among the tests: .03 > .05/2.
    (AB, {"ab": (-1, 0.05)}, [(1, 1, 1), (2, 2, 2)]),
    (ABC, {"ab": (-1, 0.03), "bc": (0, 1.0)}, [(1, 1, 3), (2, 1, 3), (3, 1, 3)]),
])  # fmt: skip
def test_ranks_by_hand(distances: dict[str, float], tests: dict[str, tuple[float, float]], expected: object) -> None:
    found = rank_models(distances, {(pair[0], pair[1]): test for pair, test in tests.items()})
    assert [(r.rank, r.low, r.high) for r in found.values()] == expected


@given(st.lists(st.floats(0.0001, 1), min_size=15, max_size=15), st.permutations(range(6)))
@settings(max_examples=40)
def test_rank_intervals_agree_with_the_tests(p_values: list[float], distances: list[int]) -> None:
    at = dict(zip("abcdef", map(float, distances), strict=True))
    tests = {pair: (at[pair[0]] - at[pair[1]], p) for pair, p in zip(PAIRS, p_values, strict=True)}
    found = rank_models(at, tests)
    rejected = [sorted(pair, key=at.get) for pair, q in zip(PAIRS, holm(p_values), strict=True) if q <= 0.05]  # type: ignore[arg-type]
    for model, rank in found.items():
        assert rank.low == 1 + sum(far == model for _, far in rejected)
        assert rank.high == 6 - sum(near == model for near, _ in rejected)
        assert rank.low <= rank.rank <= rank.high


def test_differences_and_ranks_from_intervals() -> None:
    # x may be 1 further (its upper end), y 2 nearer (its lower end); they are 5 apart.
    found = differences_of_intervals({"x": 1.0, "y": 6.0}, {"x": (-9.0, 2.0), "y": (4.0, 99.0)})
    z = 5 / (math.hypot(1, 2) / stats.norm.ppf(0.975))
    assert found["x", "y"] == pytest.approx((-5.0, 2 * stats.norm.sf(z)))
    for intervals in ({"x": (0.0, 2.0)}, {"x": (1.0, 1.0), "y": (6.0, 6.0)}):
        assert math.isnan(differences_of_intervals({"x": 1.0, "y": 6.0}, intervals)["x", "y"][1])
    rng, held, sharp = np.random.default_rng(5), 0, 0
    for _ in range(100):
        true, error = np.sort(rng.uniform(0, 20, 6)), rng.uniform(1, 3, 6)
        distances = {str(n): float(value) for n, value in enumerate(true + error * rng.normal(size=6))}
        intervals = {n: (value - 1.96 * error[int(n)], value + 1.96 * error[int(n)]) for n, value in distances.items()}
        ranks = rank_models(distances, differences_of_intervals(distances, intervals))
        held += all(ranks[str(n)].low <= n + 1 <= ranks[str(n)].high for n in range(6))
        sharp += any(rank.low > 1 for rank in ranks.values())
    assert held >= 94 and sharp >= 70
