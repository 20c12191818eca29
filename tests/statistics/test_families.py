"""The hierarchy of tests: Holm's method by its formula and by hand, and how often nulls show anything."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from equivox.core.errors import UsageError
from equivox.statistics import adjust, adjust_hierarchy

unit = st.floats(0, 1)


def holm(p: list[float]) -> list[float]:
    """The largest p times the number of tests from there on, up to the place of each (Holm 1979)."""
    return [max(min(1.0, one * sum(other >= one for other in p)) for one in p if one <= own) for own in p]


@given(st.lists(unit, min_size=1, max_size=12))
@settings(deadline=None, max_examples=40)
def test_without_families_it_is_holms_method(p: list[float]) -> None:
    found = adjust_hierarchy({str(i): value for i, value in enumerate(p)})
    assert list(found.values()) == pytest.approx(holm(p))


def test_three_tasks_and_their_attributes_by_hand() -> None:
    p = {"a": 0.001, "b": 0.01, "c": 0.4, "a1": 0.002, "a2": 0.03, "b1": 0.01, "c1": 0.0001, "none": math.nan}
    found = adjust_hierarchy(p, [("a", ("a1", "a2", "none")), ("b", ("b1",)), ("c", ("c1",))])
    # Holm over three tasks: .001 · 3, .01 · 2, .4 · 1; two of three are found, so families cost 3/2.
    assert [found[name] for name in "abc"] == pytest.approx([0.003, 0.02, 0.4])
    # .002 · 2 · 3/2 and .03 · 3/2; .01 · 3/2 is below its task's .02.
    assert [found[name] for name in ("a1", "a2", "b1")] == pytest.approx([0.006, 0.045, 0.02])
    # Nothing below a task without a finding is one, however small its p.
    assert found["c1"] == 0.4
    assert math.isnan(found["none"])


def test_below_an_undefined_task_an_attribute_is_a_first_test() -> None:
    found = adjust_hierarchy({"a": math.nan, "a1": 0.02, "b": 0.5}, [("a", ("a1",))])
    assert found["a1"] == pytest.approx(0.04)


def test_a_q_at_the_level_is_no_finding() -> None:
    at, below = (adjust_hierarchy({"a": p, "a1": 0.01}, [("a", ("a1",))], level=0.25) for p in (0.25, 0.125))
    assert (at["a"] < 0.25, below["a"] < 0.25) == (False, True)


@given(st.lists(st.tuples(unit, st.lists(unit, max_size=4)), min_size=1, max_size=6), st.randoms())
@settings(deadline=None)
def test_nothing_is_found_below_a_task_that_is_not(tasks: list[tuple[float, list[float]]], random: object) -> None:
    p = {f"{i}": value for i, (value, _) in enumerate(tasks)}
    below = [(f"{i}", [f"{i}/{k}" for k in range(len(own))]) for i, (_, own) in enumerate(tasks)]
    p |= {f"{i}/{k}": value for i, (_, own) in enumerate(tasks) for k, value in enumerate(own)}
    found = adjust_hierarchy(p, below)
    for first, family in below:
        for name in family:
            assert p[name] <= found[name] + 1e-12 and found[first] <= found[name] <= 1
    names = list(p)
    backwards = adjust_hierarchy({name: p[name] for name in reversed(names)}, below[::-1])
    assert backwards == pytest.approx(found)


def test_suites_without_a_difference_show_a_finding_at_most_at_the_level() -> None:
    """11 models × 10 tasks × 4 attributes that share noise (correlation .5), 400 suites; task means are tested."""
    rng = np.random.default_rng(8)
    shown = apart = 0
    below = [(f"{t}", [f"{t}/{a}" for a in range(4)]) for t in range(110)]
    for _ in range(400):
        z = np.sqrt(0.5) * rng.normal(size=(110, 1)) + np.sqrt(0.5) * rng.normal(size=(110, 4))
        # The variance of the mean of four normals with correlation .5: (1 + 3 · .5) / 4.
        whole = 2 * stats.norm.sf(np.abs(z.mean(axis=1)) / np.sqrt(2.5 / 4))
        p = {f"{t}": float(value) for t, value in enumerate(whole)}
        each = 2 * stats.norm.sf(np.abs(z))
        p |= {f"{t}/{a}": float(each[t, a]) for t in range(110) for a in range(4)}
        shown += min(adjust_hierarchy(p, below).values()) < 0.05
        # What was done before: Benjamini and Hochberg in each model's family of attributes, and of tasks.
        per_model = [own.ravel() for own in each.reshape(11, 40)] + list(whole.reshape(11, 10))
        apart += min(stats.false_discovery_control(own).min() for own in per_model) < 0.05
    assert shown <= stats.binom.ppf(0.999, 400, 0.05)
    assert apart > 200


def test_of_the_attributes_below_a_found_task_few_are_false() -> None:
    """Each of 20 tasks has one attribute with an effect and three without: families with a false finding are few."""
    rng = np.random.default_rng(9)
    below = [(f"{t}", [f"{t}/{a}" for a in range(4)]) for t in range(20)]
    for effect in (2.5, 5.0):
        share = []
        for _ in range(200):
            z = rng.normal(size=(20, 4))
            z[:, 0] += effect
            p = {f"{t}": float(stats.chi2.sf((z[t] ** 2).sum(), 4)) for t in range(20)}
            p |= {f"{t}/{a}": float(2 * stats.norm.sf(abs(z[t, a]))) for t in range(20) for a in range(4)}
            q = adjust_hierarchy(p, below)
            opened = [t for t in range(20) if q[f"{t}"] < 0.05]
            false = sum(min(q[f"{t}/{a}"] for a in (1, 2, 3)) < 0.05 for t in opened)
            share.append(false / max(1, len(opened)))
        assert np.mean(share) <= 0.05 + 3 * np.std(share) / math.sqrt(200)


@pytest.mark.parametrize(
    ("p", "below", "hint"),
    [
        ({"a": 1.5}, [], "probability"),
        ({"a": 0.1, "b": 0.1}, [("a", ("b", "b"))], "twice"),
        ({"a": 0.1}, [("a", ("b",))], "no p"),
        ({"a": 0.1, "b": 0.1, "c": 0.1}, [("a", ("b",)), ("b", ("c",))], "two levels"),
    ],
)
def test_what_is_no_hierarchy_is_refused(
    p: dict[str, float], below: list[tuple[str, tuple[str, ...]]], hint: str
) -> None:
    with pytest.raises(UsageError, match=hint):
        adjust_hierarchy(p, below)


def test_a_family_by_hand():
    # p sorted .01, .02, .04, .5 of 4: .01·4/1, .02·4/2, .04·4/3, .5 → .04, .04, .0533, .5.
    p = [0.5, 0.01, 0.04, 0.02]
    assert adjust(p) == pytest.approx([0.5, 0.04, 0.16 / 3, 0.04])
    assert adjust(p, method="by")[1] == pytest.approx(0.04 * (1 + 1 / 2 + 1 / 3 + 1 / 4))


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30), st.sampled_from(["bh", "by"]))
def test_against_scipy(p, method):
    assert adjust(p, method=method) == pytest.approx(stats.false_discovery_control(p, method=method))


def test_undefined_tests_stay_nan_and_do_not_count():
    assert adjust([0.01, math.nan, 0.03]) == pytest.approx([0.02, math.nan, 0.03], nan_ok=True)
    assert math.isnan(adjust([math.nan])[0])
    assert adjust([]) == []


def test_families_that_cannot_be_meant():
    with pytest.raises(UsageError, match="`p` holds a number that is no probability"):
        adjust([0.2, 1.5])
    with pytest.raises(UsageError, match="`method` is 'holm'"):
        adjust([0.5], method="holm")
