import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from equivox.core.errors import UsageError
from equivox.statistics import differences_of_intervals, rank_models, total_bias_score


def test_holm_by_hand():
    # Sorted: .01 ≤ .05/3, .02 ≤ .05/2, .04 ≤ .05: all three are rejected.
    every = rank_models(
        {"a": 1.0, "b": 2.0, "c": 3.0}, {("a", "b"): (-1, 0.04), ("a", "c"): (-2, 0.01), ("b", "c"): (-1, 0.02)}
    )
    assert [(r.low, r.high, r.letters) for r in every.values()] == [(1, 1, "a"), (2, 2, "b"), (3, 3, "c")]
    assert every["b"].nearer_than == ("c",) and every["b"].further_than == ("a",)
    # .03 > .05/2 stops the descent: what comes after is not rejected, though .04 is below .05.
    part = rank_models(
        {"a": 1.0, "b": 2.0, "c": 3.0}, {("a", "b"): (-1, 0.04), ("a", "c"): (-2, 0.01), ("b", "c"): (-1, 0.03)}
    )
    assert [(r.low, r.high, r.letters) for r in part.values()] == [(1, 2, "a"), (1, 3, "ab"), (2, 3, "b")]


def test_untested_pairs_leave_everything_open():
    found = rank_models({"a": 1.0, "b": 50.0, "c": 50.0}, {("a", "b"): (-49, float("nan"))})
    assert [(r.rank, r.low, r.high, r.letters) for r in found.values()] == [
        (1, 1, 3, "a"),
        (2, 1, 3, "a"),
        (2, 1, 3, "a"),
    ]
    assert rank_models({"alone": 3.0}, {})["alone"].high == 1


def test_a_p_at_its_limit_is_a_difference_and_letters_go_on_behind_z():
    for p, letters in ((0.05, ["a", "b"]), (0.0501, ["a", "a"])):
        found = rank_models({"x": 1.0, "y": 2.0}, {("x", "y"): (-1.0, p)})
        assert [rank.letters for rank in found.values()] == letters
    place = {f"m{number:02}": float(number) for number in range(28)}
    found = rank_models(place, {(a, b): (place[a] - place[b], 1e-9) for a, b in itertools.combinations(place, 2)})
    assert [found[f"m{number:02}"].letters for number in (0, 25, 26, 27)] == ["a", "z", "a2", "b2"]
    assert [found[f"m{number:02}"].rank for number in (0, 25, 26, 27)] == [1, 26, 27, 28]


def test_the_direction_is_that_of_the_test():
    found = rank_models({"a": 1.0, "b": 2.0}, {("b", "a"): (5.0, 0.001)})
    assert (found["a"].high, found["b"].low) == (1, 2)


def test_a_test_that_points_the_other_way_tells_nothing():
    # The distances come from all that a model answered, the test from what both did.
    found = rank_models({"a": 1.0, "b": 2.0}, {("a", "b"): (3.0, 0.001)})
    assert [(r.rank, r.low, r.high, r.letters) for r in found.values()] == [(1, 1, 2, "a"), (2, 1, 2, "a")]
    even = rank_models({"a": 0.0, "b": 0.0}, {("a", "b"): (3.0, 0.001)})
    assert [(r.rank, r.low, r.high) for r in even.values()] == [(1, 1, 2), (1, 1, 2)]


def test_a_pair_without_any_difference_counts_among_those_tested():
    # Two tests: .03 > .05/2. Left out, the pair that came out even would have made room for the other.
    found = rank_models({"a": 1.0, "b": 2.0, "c": 2.0}, {("a", "b"): (-1.0, 0.03), ("b", "c"): (0.0, 1.0)})
    assert {(r.low, r.high) for r in found.values()} == {(1, 3)}
    assert (found["a"].untested, found["b"].untested, found["c"].untested) == (("c",), (), ("a",))


MODELS = "abcdef"
PAIRS = list(itertools.combinations(MODELS, 2))


@given(st.lists(st.floats(0.0001, 1), min_size=len(PAIRS), max_size=len(PAIRS)), st.permutations(range(len(MODELS))))
def test_letters_say_what_the_tests_say(p_values, distances):
    place = dict(zip(MODELS, map(float, distances), strict=True))
    tests = {pair: (place[pair[0]] - place[pair[1]], p) for pair, p in zip(PAIRS, p_values, strict=True)}
    found = rank_models(place, tests)
    reject = dict(zip(PAIRS, stats.false_discovery_control(p_values) <= 0.05, strict=True))
    for a, b in PAIRS:
        apart = b in found[a].nearer_than or a in found[b].nearer_than
        assert apart == (not set(found[a].letters) & set(found[b].letters))
        assert not apart or reject[a, b]  # what Holm rejects, the less strict procedure of Benjamini and Hochberg does
    for rank in found.values():
        assert rank.low <= rank.rank <= rank.high
        assert rank.letters
    swapped = rank_models(place, {(b, a): (-difference, p) for (a, b), (difference, p) in tests.items()})
    assert swapped == found


def test_the_true_ranks_are_held_together():
    rng = np.random.default_rng(5)
    truth = np.array([0.0, 0.0, 0.4, 1.0])
    held = sharp = 0
    for _ in range(200):
        samples = np.abs(truth)[:, None] + rng.standard_normal((4, 40)) + rng.standard_normal(40)
        means = samples.mean(axis=1)
        tests = {
            (str(i), str(j)): (means[i] - means[j], stats.ttest_rel(samples[i], samples[j]).pvalue)
            for i, j in itertools.combinations(range(4), 2)
        }
        found = rank_models({str(i): float(mean) for i, mean in enumerate(means)}, tests)
        # The first two share the places 1 and 2: an interval must reach from 1 + those truly nearer, n − those further.
        right = [(1, 2), (1, 2), (3, 3), (4, 4)]
        held += all(found[str(i)].low <= low and found[str(i)].high >= high for i, (low, high) in enumerate(right))
        sharp += found["3"].low == 4
    assert held >= 181  # 95 % or more; 190 − 3 · 3.1
    assert sharp >= 60


def test_requests_that_cannot_be_meant():
    with pytest.raises(UsageError, match="`distances` is empty"):
        rank_models({}, {})
    with pytest.raises(UsageError, match="leave out what has no score"):
        rank_models({"a": float("nan")}, {})
    with pytest.raises(UsageError, match="name two of a, b"):
        rank_models({"a": 1.0, "b": 2.0}, {("a", "c"): (1.0, 0.5)})
    with pytest.raises(UsageError, match="`level` is 5"):
        rank_models({"a": 1.0}, {}, level=5)


def test_differences_from_intervals_by_hand() -> None:
    # Facing ends: x may be 1 further (upper end), y 2 nearer (lower end); 5 apart is 5 / (√(1 + 4) / 1.96).
    found = differences_of_intervals({"x": 1.0, "y": 6.0}, {"x": (-9.0, 2.0), "y": (4.0, 99.0)})
    z = 5 / (math.hypot(1, 2) / stats.norm.ppf(0.975))
    assert found["x", "y"] == (-5.0, pytest.approx(2 * stats.norm.sf(z)))
    # Without an interval there is no test, and no order is claimed.
    unknown = differences_of_intervals({"x": 1.0, "y": 6.0}, {"x": (0.0, 2.0)})
    assert math.isnan(unknown["x", "y"][1])
    assert rank_models({"x": 1.0, "y": 6.0}, unknown)["x"].high == 2
    exact = differences_of_intervals({"x": 1.0, "y": 6.0}, {"x": (1.0, 1.0), "y": (6.0, 6.0)})
    assert math.isnan(exact["x", "y"][1])


def test_rank_intervals_from_intervals_hold_the_true_ranks() -> None:
    rng = np.random.default_rng(5)
    held = told = 0
    for _ in range(200):
        true, error = np.sort(rng.uniform(0, 20, 8)), rng.uniform(1, 3, 8)
        seen = true + error * rng.normal(size=8)
        low, high = np.maximum(seen - 1.96 * error, 0), np.maximum(seen + 1.96 * error, 0)
        distances = {str(n): max(0.0, float(value)) for n, value in enumerate(seen)}
        intervals = {str(n): (float(low[n]), float(high[n])) for n in range(8)}
        found = rank_models(distances, differences_of_intervals(distances, intervals))
        held += all(found[str(n)].low <= n + 1 <= found[str(n)].high for n in range(8))
        told += any(one.low > 1 for one in found.values())
    assert held >= 190 and told >= 150


def test_total_bias_scores_by_hand():
    # M1: 1, 2, 3 has mean 2 and population sd √(2/3); M2: 0, 0, 3 has mean 1 and sd √2.
    models = {"a": {"M1": 1, "M2": 0}, "b": {"M1": 2, "M2": 0}, "c": {"M1": 3, "M2": 3}}
    found = total_bias_score(models, cohort=models, cohort_name="three")
    assert found.total["a"] == pytest.approx(1 / math.sqrt(2 / 3) + 1 / math.sqrt(2))
    assert found.parts["b"] == pytest.approx({"M1": 0.0, "M2": -1 / math.sqrt(2)})
    assert (found.cohort, found.members, found.metrics) == ("three", ("a", "b", "c"), ("M1", "M2"))
    assert found.undefined == {}


def test_a_model_outside_the_cohort():
    cohort = {"a": {"M1": 1}, "b": {"M1": 3}}
    assert total_bias_score({"new": {"M1": 6}}, cohort=cohort, cohort_name="two").total["new"] == pytest.approx(4.0)


@pytest.mark.parametrize(
    ("cohort", "reason"),
    [
        ({}, "the cohort has 0 model"),
        ({"a": {"M1": 1.0}}, "the cohort has 1 model"),
        ({"a": {"M1": 1.0}, "b": {"M1": 1.0}}, "does not vary in M1"),
        ({"a": {"M1": 0.3}, "b": {"M1": 0.1 + 0.2}}, "does not vary in M1"),
        ({"a": {"M1": 1.0}, "b": {"M1": math.nan}}, "cohort member b has no value for M1"),
    ],
)
def test_undefined_cohorts(cohort, reason):
    found = total_bias_score({"x": {"M1": 2.0}}, cohort=cohort, cohort_name="c")
    assert math.isnan(found.total["x"])
    assert reason in found.undefined["x"]


def test_a_model_that_lacks_a_metric_is_undefined_and_the_others_are_not():
    cohort = {"a": {"M1": 1.0, "M2": 1.0}, "b": {"M1": 3.0, "M2": 2.0}}
    found = total_bias_score({"x": {"M1": 2.0}, **cohort}, cohort=cohort, cohort_name="c")
    assert math.isnan(found.total["x"])
    assert found.undefined == {"x": "no value for M2"}
    assert found.total["a"] == pytest.approx(2.0)


def test_scores_and_cohorts_that_cannot_be_meant():
    with pytest.raises(UsageError, match="`scores` is empty"):
        total_bias_score({}, cohort={}, cohort_name="c")
    with pytest.raises(UsageError, match="`cohort` has no metrics"):
        total_bias_score({"a": {}}, cohort={"a": {}, "b": {}}, cohort_name="c")
