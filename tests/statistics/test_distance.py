"""The estimate against normal noise of known size, and against populations of known nTVD."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from seeded import generator

from equivox.core.errors import UsageError
from equivox.statistics import attainable_shift, distribution_shift, ntvd
from equivox.statistics.distance import (
    _SPREADS,
    _STEP,
    _expected_length,
    _length,
    _log_likelihoods,
    estimate_shift,
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
    with pytest.raises(UsageError, match=words):
        ntvd(rows)


def test_ceiling_needs_two_groups_and_a_value():
    with pytest.raises(UsageError, match="`n_groups` is 1"):
        attainable_shift(4, 1)
    with pytest.raises(UsageError, match="`n_values` is 0"):
        attainable_shift(0, 2)


@given(values=st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30), share=st.floats(0, 1))
def test_a_quantile_is_that_of_numpy_bit_by_bit(values, share):
    assert quantile(np.array(values), share) == np.quantile(values, share)


def deviations_with_noise(true, error, runs, rng):
    """Yield what is observed of two groups whose half difference is `true`, with independent errors."""
    for _ in range(runs):
        half = true + rng.normal(0, error, size=len(true))
        yield np.stack([half, -half])


@pytest.mark.parametrize("size", [0.0, 0.5, 1.0, 2.0, 3.0, 6.0])
def test_bias_per_value_is_a_fraction_of_its_error(size):
    # 40 values, all of one true size in standard errors. The plain sum overshoots by .8 errors a value at size 0.
    error = 0.01
    true = np.full(40, size * error)
    found = [
        estimate_shift(d, np.full((2, 40), error), [slice(0, 40)])[0]
        for d in deviations_with_noise(true, error, 300, generator(2))
    ]
    truth = 100 * true.sum()
    assert np.mean(found) == pytest.approx(truth, abs=0.25 * 100 * error * 40)


def test_without_noise_it_is_the_ntvd():
    d = np.array([[0.3, -0.1, -0.2], [-0.3, 0.1, 0.2]])
    assert estimate_shift(d, np.zeros((2, 3)), [slice(0, 3)])[0] == pytest.approx(60.0)
    # Deviations of 6 standard errors or more are taken as they are.
    assert estimate_shift(d, np.full((2, 3), 0.1 / 6), [slice(0, 3)])[0] == pytest.approx(60.0)


def test_nothing_observed_is_at_most_zero():
    assert estimate_shift(np.zeros((3, 4)), np.full((3, 4), 0.1), [slice(0, 4)])[0] <= 0


@settings(deadline=None)
@given(st.lists(st.floats(-0.5, 0.5), min_size=2, max_size=12), st.floats(0.001, 0.2))
def test_signs_order_and_scale(halves, error):
    half = np.array(halves)
    d, errors, whole = np.stack([half, -half]), np.full((2, len(half)), error), [slice(0, len(half))]
    found = estimate_shift(d, errors, whole)[0]
    assert estimate_shift(-d, errors, whole)[0] == pytest.approx(found)
    assert estimate_shift(d[:, ::-1], errors, whole)[0] == pytest.approx(found)
    assert estimate_shift(3 * d, 3 * errors, whole)[0] == pytest.approx(3 * found, abs=1e-9)


def population(groups, values, zipf, shift, spread):
    """Return the groups' distributions: `shift` of each group's answers lies on values of its own."""
    common = 1 / np.arange(1, values + 1) if zipf else np.ones(values)
    common = common / common.sum()
    owner = np.arange(values) % groups
    moved = np.eye(groups, values) if spread == "sparse" else (owner == np.arange(groups)[:, None]) * common
    return (1 - shift) * common + shift * moved / moved.sum(axis=1, keepdims=True)


@pytest.mark.parametrize(
    ("zipf", "shift", "spread"),
    [(False, 0.0, "sparse"), (True, 0.2, "sparse"), (False, 0.1, "dense")],
    ids=["nothing", "sparse", "dense"],
)
def test_populations_of_known_ntvd(zipf, shift, spread):
    # 24 speakers of six groups, 60 answers each on 20 values; two answers of a speaker are correlated by .01.
    p, rng = population(6, 20, zipf, shift, spread), generator(7)
    truth, speaker = 100 * shift, np.arange(24).repeat(60)
    assert ntvd(p) == pytest.approx(truth, abs=1e-9)
    found = []
    for _ in range(30):
        drawn = rng.gamma(p[np.arange(24) % 6] * 99)
        drawn /= drawn.sum(axis=1, keepdims=True)
        codes = np.concatenate([rng.choice(20, size=60, p=own) for own in drawn])
        one = distribution_shift(codes, speaker % 6, clusters=speaker, min_count=1, n_resamples=199, rng=rng)
        found.append((one.estimate, one.ntvd, one.ci_low <= truth + 1e-9 and one.ci_high >= truth))
    estimate, plain, holds = (np.array(column) for column in zip(*found, strict=True))
    assert abs(estimate.mean() - truth) < 4
    assert np.abs(estimate - truth).mean() < np.abs(plain - truth).mean()
    assert holds.mean() >= 0.86


def test_few_clusters_do_not_shrink_a_certain_shift():
    # Four speakers in each of six groups, each group with one value of its own: nTVD 100, and 100 is the estimate,
    # while the mean of the permutations is above 50, since they keep most of the shift.
    speakers = [f"s{i:02}" for i in np.arange(24).repeat(10)]
    groups = [f"g{int(name[1:]) % 6}" for name in speakers]
    found = distribution_shift(list(groups), groups, clusters=speakers, min_count=1, n_resamples=500, rng=generator())
    assert found.estimate == pytest.approx(100)
    assert found.null_mean > 50
    assert 50 < found.ci_low < 100


def test_how_likely_a_deviation_is_adds_up_to_one_for_every_spread_of_true_sizes():
    density = np.exp(_log_likelihoods())
    assert len(density) == 17
    # |z| in steps of `_STEP`, by the trapezoid rule; no density is below 1e-8, so that the far tail adds a little.
    assert np.trapezoid(density, dx=_STEP, axis=1) == pytest.approx(np.ones(17), abs=0.02)


SIZES = np.arange(100) / 10
"""The true sizes over which the estimate is best, in standard errors."""


def sizes_spread(share, mean):
    """Return the probability of each size: 0, or exponential with this mean for `share` of the values."""
    falling = np.where(SIZES > 0, np.exp(-SIZES / mean), 0.0)
    return (1 - share) * (SIZES == 0) + share * falling / falling.sum()


@pytest.mark.parametrize("terms", [1.0, 20.0])
@pytest.mark.parametrize("spread", [0, 3, 16])
def test_no_other_function_of_a_deviation_has_less_bias_and_variance(spread, terms):
    """Squared bias, weighted by twice the terms, and variance are least: a step at any knot increases their mean."""
    y = np.arange(-20, 25, 0.01)
    density = stats.norm.pdf(y[:, None] - SIZES) * 0.01
    # A tenth of the weight is on sizes of which nothing is known.
    weights = 0.9 * sizes_spread(*_SPREADS[spread]) + 0.05 * (SIZES == 0) + 0.05 * sizes_spread(1, 2)

    def loss(at_knots):
        length = np.where(np.abs(y) > 6, np.abs(y), np.interp(np.abs(y), np.arange(61) / 10, at_knots))
        mean, square = length @ density, length**2 @ density
        rough = 1e-4 * (np.diff(at_knots, 2) ** 2).sum()
        return weights @ (2 * terms * (mean - SIZES) ** 2 + square - mean**2) + rough

    found = _length(terms, spread)
    assert found[60] == 6
    for knot in np.arange(0, 60, 7):
        less, same, more = (loss(found + step * (np.arange(61) == knot)) for step in (-0.01, 0.0, 0.01))
        # The lowest point of the parabola through these three.
        assert 0.005 * (less - more) / (less - 2 * same + more) == pytest.approx(0, abs=0.002)


def test_spreads_of_true_sizes_count_as_much_as_deviations_make_them_likely():
    # Two groups deviate alike, so that each says half of what an independent deviation says.
    z = np.array([[0.3, 1.5, 2.5, 0.8]] * 2)
    density = np.array([
        [(stats.norm.pdf(one - SIZES) + stats.norm.pdf(one + SIZES)) @ sizes_spread(*spread) for one in z[0]]
        for spread in _SPREADS
    ])  # fmt: skip
    likely = density.prod(axis=1) / density.prod(axis=1).sum()
    expected = sum(share * _length(2.0, spread) for spread, share in enumerate(likely))
    assert _expected_length(z, 2.0) == pytest.approx(expected, abs=0.002)
    # Of three groups, each deviation says two thirds: the likelihoods of nine are to the power of 2/3.
    three = density.prod(axis=1) ** (3 * 2 / 3)
    expected = sum(share * _length(2.0, spread) for spread, share in enumerate(three / three.sum()))
    assert _expected_length(np.concatenate([z, z[:1]]), 2.0) == pytest.approx(expected, abs=0.002)
