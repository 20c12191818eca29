"""Power for numbers, against Student's t, against the test itself, and in both directions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import optimize, stats

from equivox.core.errors import RequestError
from equivox.statistics import clusters_for_difference, group_means, minimum_detectable_difference


def generator(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)


def by_student(error: float, freedom: float) -> float:
    """The difference that Student's t finds in 80 of 100 samples."""
    critical = stats.t.ppf(0.975, freedom)
    return error * float(optimize.brentq(lambda size: stats.nct.sf(critical, freedom, size) - 0.8, 0, 20))


DESIGNS: list[tuple[dict[str, Any], float, float]] = [
    # 20 speakers with 5 answers: each mean has a variance of 0.5 + 0.5 / 5.
    ({"n_clusters": 20, "responses_per_cluster": 5, "cluster_correlation": 0.5}, math.sqrt(0.6 * 2 / 10), 18),
    # 16 texts in both groups, 3 answers in each.
    (
        {"n_clusters": 16, "responses_per_cluster": 6, "crossed": True, "cluster_correlation": 0.4},
        math.sqrt((0.4 + 0.6 / 3) * 2 / 16),
        15,
    ),
]


@pytest.mark.parametrize(("design", "error", "freedom"), DESIGNS)
def test_two_groups_are_students_t(design: dict[str, Any], error: float, freedom: float) -> None:
    found = minimum_detectable_difference(n_groups=2, n_simulations=2_000, rng=generator(), **design)
    assert found.undefined is None and 0 < found.mc_error < 0.05
    # 499 permutations find a little less than the formula.
    expected = by_student(error, freedom)
    assert expected - 3 * found.mc_error <= found.size <= 1.08 * expected + 3 * found.mc_error


@pytest.mark.parametrize("crossed", [True, False])
@pytest.mark.parametrize("n_groups", [2, pytest.param(4, marks=pytest.mark.long)])
def test_the_test_itself_finds_what_is_said_to_be_found(crossed: bool, n_groups: int) -> None:
    k, m, correlation = 10, 3, 0.2
    found = minimum_detectable_difference(
        n_clusters=k if crossed else k * n_groups, responses_per_cluster=m * n_groups if crossed else m,
        n_groups=n_groups, crossed=crossed, cluster_correlation=correlation, n_simulations=2_000, rng=generator(),
    )  # fmt: skip
    draws = generator(2)
    group = np.tile(np.arange(n_groups), k)
    unit = np.arange(k).repeat(n_groups) if crossed else np.arange(k * n_groups)
    means = np.zeros(n_groups)
    means[1], means[0] = found.size / 2, -found.size / 2
    low = 0
    for _ in range(600):
        speakers = means[group] + math.sqrt(correlation) * draws.normal(0, 1, len(group))
        values = speakers.repeat(m) + math.sqrt(1 - correlation) * draws.normal(0, 1, len(group) * m)
        own = group_means(values, group.repeat(m), clusters=unit.repeat(m), n_resamples=499, rng=draws)
        low += own.p <= 0.05
    # 5 points: three standard errors of 600 samples.
    assert low / 600 == pytest.approx(0.8, abs=0.05)


@pytest.mark.parametrize("crossed", [True, False])
def test_the_reverse_finds_the_design_again(crossed: bool) -> None:
    design = {"responses_per_cluster": 4, "n_groups": 2, "crossed": crossed, "cluster_correlation": 0.05}
    there = minimum_detectable_difference(n_clusters=24, n_simulations=1_000, rng=generator(), **design)
    back = clusters_for_difference(
        difference=there.size, max_clusters=200, n_simulations=1_000, rng=generator(2), **design
    )
    assert back.n_clusters is not None and abs(back.n_clusters - 24) <= max(4, 4 * back.mc_error)
    assert crossed or back.n_clusters % 2 == 0


def test_what_cannot_be_found_is_told() -> None:
    design = {"responses_per_cluster": 1, "n_groups": 2, "n_simulations": 200}
    few = minimum_detectable_difference(n_clusters=4, rng=generator(), **design)
    # 2 + 2 speakers: 6 permutations, so that p is 1/3 or more whatever the answers.
    assert math.isnan(few.size) and "less than 80%" in str(few.undefined)
    small = clusters_for_difference(difference=0.01, max_clusters=40, rng=generator(), **design)
    assert small.n_clusters is None and small.undefined == "40 clusters find it in less than 80% of experiments"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"n_clusters": 3}, "`n_clusters` is 3: this design needs at least 4"),
        ({"n_groups": 1}, "`n_groups` is 1"),
        ({"responses_per_cluster": 0}, "`responses_per_cluster` is 0"),
        ({"responses_per_cluster": 1, "crossed": True}, "a unit in every group has one or more in each of 2"),
        ({"n_clusters": 1, "crossed": True}, "`n_clusters` is 1: this design needs at least 2"),
        ({"cluster_correlation": 1.0}, "`cluster_correlation` is 1.0"),
        ({"alpha": 0.0}, "`alpha` is 0.0"),
        ({"n_simulations": 10}, "`n_simulations` is 10"),
    ],
)
def test_impossible_designs_are_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(RequestError, match=message):
        minimum_detectable_difference(
            rng=generator(), **{"n_clusters": 10, "responses_per_cluster": 2, "n_groups": 2, **given}
        )
    for further, words in (({"difference": 0}, "`difference` is 0"), ({"max_clusters": 3}, "`max_clusters` is 3")):
        with pytest.raises(RequestError, match=words):
            clusters_for_difference(
                **{"difference": 1.0, "responses_per_cluster": 2, "n_groups": 2, "rng": generator()} | further
            )


def test_the_least_possible_designs_are_accepted() -> None:
    crossed = {"responses_per_cluster": 2, "n_groups": 2, "crossed": True, "n_simulations": 200}
    assert minimum_detectable_difference(n_clusters=2, rng=generator(), **crossed).undefined is not None
    assert clusters_for_difference(difference=0.1, max_clusters=2, rng=generator(), **crossed).n_clusters is None
