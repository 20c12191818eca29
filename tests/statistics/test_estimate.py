"""The estimate against normal noise of known size, and against populations of known nTVD."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from equivox.statistics import distribution_shift, ntvd
from equivox.statistics.distance import _STEP, _log_likelihoods, estimate_shift


def generator(seed=1):
    return np.random.default_rng(seed)


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
