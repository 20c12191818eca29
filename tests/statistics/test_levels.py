"""Simulated nulls and coverage, small; `python -m validity.levels` runs the same questions at full size."""

import numpy as np
import pytest

from equivox.statistics import compare_joint_shift, distribution_shift, joint_shift, ntvd


def population(rng, *, n_clusters, responses, n_values, n_groups, correlation, shift=0.0):
    """Values, groups and clusters of speakers whose groups lie exactly 100 · shift apart, as columns of integers."""
    values = []
    for cluster in range(n_clusters):
        p = np.full(n_values, (1 - shift) / n_values)
        p[cluster % n_groups] += shift
        if correlation:
            p = rng.dirichlet(p * (1 - correlation) / correlation)
        values.append(rng.choice(n_values, size=responses, p=p))
    clusters = np.arange(n_clusters).repeat(responses)
    return np.concatenate(values), clusters % n_groups, clusters


@pytest.mark.parametrize("correlation", [pytest.param(0.0, marks=pytest.mark.long), 0.03])
def test_cluster_level_p_keeps_its_level_and_response_level_p_does_not(correlation):
    # 200 runs: a valid 5 % test rejects 10 ± 3.1 times; 1 to 20 lie within 3.3 standard deviations.
    rng = np.random.default_rng(11)
    rejected = np.zeros(2, dtype=int)
    for _ in range(200):
        values, groups, clusters = population(
            rng, n_clusters=18, responses=40, n_values=8, n_groups=3, correlation=correlation
        )
        found = distribution_shift(values, groups, clusters=clusters, n_resamples=199, rng=rng)
        rejected += np.array([found.p_cluster, found.p_response]) <= 0.05 + 1e-12
    assert 1 <= rejected[0] <= 20
    if correlation:
        assert rejected[1] > 100
    else:
        assert 1 <= rejected[1] <= 20


def test_p_values_of_a_true_null_are_uniform():
    rng = np.random.default_rng(12)
    p = []
    for _ in range(150):
        values, groups, clusters = population(
            rng, n_clusters=12, responses=20, n_values=5, n_groups=2, correlation=0.02
        )
        p.append(distribution_shift(values, groups, clusters=clusters, n_resamples=99, rng=rng).p_cluster)
    # Kolmogorov: 1.95/√150 = .159 is exceeded by chance once in a thousand.
    assert np.abs(np.sort(p) - np.arange(1, 151) / 150).max() < 0.159


def test_joint_p_keeps_its_level_when_attributes_depend_on_each_other():
    rng = np.random.default_rng(13)
    rejected = 0
    for _ in range(150):
        values, groups, clusters = population(
            rng, n_clusters=12, responses=20, n_values=5, n_groups=2, correlation=0.05
        )
        task = joint_shift({"a": values, "b": values < 2}, groups, clusters=clusters, n_resamples=99, rng=rng)
        rejected += task.p_cluster <= 0.05 + 1e-12
    assert 1 <= rejected <= 16  # 7.5 ± 2.7, 3.2 standard deviations


@pytest.mark.parametrize("n_groups", [2, 6])
@pytest.mark.parametrize("correlation", [pytest.param(0.0, marks=pytest.mark.long), 0.02])
def test_interval_holds_the_planted_reference(n_groups, correlation):
    # 24 speakers × 12 responses, 8 values, a fifth moved: truth 20 by construction. Of 100 intervals 95 ± 2.2 should
    # hold it; 88 are 3.2 standard deviations fewer.
    p = 0.8 / 8 + 0.2 * np.eye(8)[:n_groups]
    assert ntvd(p) == pytest.approx(20)
    rng = np.random.default_rng(14)
    held = 0
    for _ in range(100):
        values, groups, clusters = population(
            rng, n_clusters=24, responses=12, n_values=8, n_groups=n_groups, correlation=correlation, shift=0.2
        )
        found = distribution_shift(values, groups, clusters=clusters, min_count=1, n_resamples=1, rng=rng)
        held += found.ci_low <= 20 <= found.ci_high
    assert held >= 88


def test_interval_of_a_task_mean_holds_the_truth():
    # Attributes with shifts of 20, 0 and 40 points: the mean is 20 by construction.
    rng = np.random.default_rng(18)
    held = 0
    for _ in range(80):
        drawn = [
            population(rng, n_clusters=24, responses=20, n_values=6, n_groups=2, correlation=0.02, shift=shift)
            for shift in (0.2, 0.0, 0.4)
        ]
        _, groups, clusters = drawn[0]
        task = {str(index): values for index, (values, _, _) in enumerate(drawn)}
        found = joint_shift(task, groups, clusters=clusters, min_count=1, n_resamples=1, rng=rng)
        held += found.ci_low <= 20 <= found.ci_high
    assert held >= 70  # 95 % of 80 is 76 ± 1.9


def test_interval_of_independent_responses_holds_the_planted_reference():
    rng = np.random.default_rng(15)
    held = 0
    for _ in range(100):
        values, groups, _ = population(
            rng, n_clusters=24, responses=12, n_values=8, n_groups=2, correlation=0, shift=0.2
        )
        found = distribution_shift(values, groups, clusters=None, min_count=1, n_resamples=1, rng=rng)
        held += found.ci_low <= 20 <= found.ci_high
    assert held >= 88


def test_interval_narrows_around_the_truth():
    rng = np.random.default_rng(16)
    widths = []
    for n_clusters in (12, 48, 192):
        values, groups, clusters = population(
            rng, n_clusters=n_clusters, responses=30, n_values=6, n_groups=2, correlation=0.02, shift=0.4
        )
        found = distribution_shift(values, groups, clusters=clusters, n_resamples=1, rng=rng)
        widths.append(found.ci_high - found.ci_low)
    assert widths[0] > 1.5 * widths[1] > 2.25 * widths[2]  # by theory each is half the one before


def test_models_without_bias_are_not_told_apart_by_two_uneven_clusters_a_group() -> None:
    """12 speakers in six groups, 5 to 80 answers each, one model with 4 values and one with 30: neither is biased."""
    rng = np.random.default_rng(8)
    rejected = 0
    for _ in range(60):
        cluster = np.arange(12).repeat(rng.integers(5, 81, 12))
        concentration = rng.choice([4.0, 20.0, 99.0], 12)
        models = []
        for n_values in (4, 30):
            shares = np.stack([rng.dirichlet(np.full(n_values, own / n_values)) for own in concentration])
            columns = {name: [[str(rng.choice(n_values, p=shares[own]))] for own in cluster.tolist()] for name in "xy"}
            models.append(columns)
        found = compare_joint_shift(
            *models, [f"g{own % 6}" for own in cluster], clusters=[f"s{own:02}" for own in cluster], min_count=5,
            n_resamples=199, rng=rng,
        )  # fmt: skip
        rejected += found.p_both <= 0.05
    # 3 of 60 at the level; chance alone exceeds 8 in less than one of 200 such tests.
    assert rejected <= 8
