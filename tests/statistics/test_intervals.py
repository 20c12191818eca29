import math

import numpy as np
import pytest

from equivox.statistics import distribution_shift
from equivox.statistics.intervals import draw_noise, invert, noise_of_clusters, noise_of_responses


def generator(seed=1):
    return np.random.default_rng(seed)


def test_response_noise_is_the_multinomial_covariance():
    # Group a: 50, 30, 20 of 100. Covariance of its shares: (diag p − p pᵀ) / 99.
    codes = np.repeat([0, 1, 2, 0, 1], [50, 30, 20, 10, 10])
    group = np.repeat([0, 1], [100, 20])
    factors = noise_of_responses(np.arange(120), codes, group, [slice(0, 3)], 2)
    p = np.array([0.5, 0.3, 0.2])
    assert factors[0].T @ factors[0] == pytest.approx((np.diag(p) - np.outer(p, p)) / 99, abs=1e-12)


def test_multi_valued_responses_carry_their_dependence():
    # Every response says x and y together, or z twice: P = (.25, .25, .5) from 4 responses, two of each kind.
    # Pulls: ±(1, 1, −2)/16 each, so Σ pull pullᵀ = 4 · vvᵀ/256 with v = (1, 1, −2); times 4/3.
    rows, codes = np.arange(4).repeat(2), np.array([0, 1, 0, 1, 2, 2, 2, 2])
    factors = noise_of_responses(rows, codes, np.zeros(4, dtype=int), [slice(0, 3)], 1)
    v = np.array([1, 1, -2])
    assert factors[0].T @ factors[0] == pytest.approx(np.outer(v, v) * 4 / 256 * 4 / 3, abs=1e-12)


def test_cluster_noise_against_resampled_clusters():
    rng = generator(2)
    counts = rng.multinomial(30, rng.dirichlet(np.full(4, 3.0), size=40))
    factors = noise_of_clusters(counts, np.zeros(40, dtype=int), [slice(0, 4)], 1)
    drawn = counts[rng.integers(0, 40, size=(20_000, 40))].sum(axis=1)
    shares = drawn / drawn.sum(axis=1, keepdims=True)
    # The plain bootstrap leaves out the factor 40/39.
    assert factors[0].T @ factors[0] == pytest.approx(np.cov(shares.T) * 40 / 39, rel=0.1, abs=2e-5)


def test_noise_has_the_spread_of_student_s_t():
    # One column, one group, factor 1: draws are t with 5 degrees, whose variance is 5/3.
    noise = draw_noise([np.ones((1, 1))], 400_000, 5.0, generator(3))
    assert noise.var() == pytest.approx(5 / 3, rel=0.03)
    assert draw_noise([np.ones((1, 1))], 400_000, math.inf, generator(3)).var() == pytest.approx(1, rel=0.02)


def test_clear_shift_of_two_values_is_the_difference_of_two_proportions():
    # 300 of 400 against 100 of 400: nTVD = 50 points, far from zero, so the interval is Wald's:
    # 50 ± 1.96 · 100 · √(.75 · .25 · 2 / 399) = 50 ± 6.01.
    values = [["x"]] * 300 + [["y"]] * 100 + [["x"]] * 100 + [["y"]] * 300
    found = distribution_shift(values, ["a"] * 400 + ["b"] * 400, clusters=None, n_resamples=1, rng=generator())
    half = 196 * math.sqrt(0.75 * 0.25 * 2 / 399)
    assert (found.ci_low, found.ci_high) == pytest.approx((50 - half, 50 + half), abs=0.7)


def test_confidence_is_heard():
    values = [["x"]] * 60 + [["y"]] * 40 + [["x"]] * 40 + [["y"]] * 60
    widths = []
    for confidence in (0.5, 0.8, 0.99):
        found = distribution_shift(
            values, ["a"] * 100 + ["b"] * 100, clusters=None, n_resamples=1, confidence=confidence, rng=generator()
        )
        widths.append(found.ci_high - found.ci_low)
    assert widths == sorted(widths)


def test_no_deviation_and_no_noise():
    nothing = np.zeros((2, 3))
    assert invert(nothing, np.zeros((50, 2, 3)), [slice(0, 3)], 0.95) == (0.0, 0.0)
    noise = generator(4).normal(0, 0.05, size=(500, 2, 3))
    low, high = invert(nothing, noise, [slice(0, 3)], 0.95)
    assert low == 0.0
    assert high >= 0.0
    certain = np.array([[0.5, -0.5, 0], [-0.5, 0.5, 0]])  # nTVD 100 without any noise
    assert invert(certain, np.zeros((50, 2, 3)), [slice(0, 3)], 0.95) == pytest.approx((100, 100), abs=0.01)


def test_the_interval_may_lie_below_the_plug_in():
    # 20 values, 6 groups of 50, no shift: the plug-in is about 27, all of it noise.
    rng = generator(5)
    found = []
    for _ in range(20):
        values = [[f"v{code}"] for code in rng.integers(0, 20, size=300)]
        groups = [f"g{group}" for group in range(6)] * 50
        found.append(distribution_shift(values, groups, clusters=None, min_count=1, n_resamples=1, rng=rng))
    assert sum(shift.ci_low > 0 for shift in found) <= 3
    assert np.mean([shift.ci_high for shift in found]) < np.mean([shift.ntvd for shift in found])
