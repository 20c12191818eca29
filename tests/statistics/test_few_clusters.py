"""What permutations of few clusters find: against an integral, and found as often as it says."""

import math
import tracemalloc

import numpy as np
import pytest
from scipy import integrate, optimize, stats

from equivox.statistics import distribution_shift
from equivox.statistics.few_clusters import MOST_CLUSTERS, MOST_VALUES, needed_by_permutations
from equivox.statistics.results import DistributionShift

FOUR_AND_FOUR = np.array([[4, 4]])


def noise_of(n_values: int, n_groups: int = 2) -> np.ndarray:
    """Lengths of the noise of a distance that adds up so many independent values."""
    drawn = np.random.default_rng(1).standard_normal((4_000, n_groups, n_values))
    return np.abs(drawn - drawn.mean(axis=1, keepdims=True)).sum(axis=(1, 2))


def test_four_against_four_must_be_apart_whole() -> None:
    """Only 2 of 70 permutations have a p up to .05: all of one group lie above all of the other."""

    def apart(shift: float) -> float:
        def density(x: float) -> float:
            return float(4 * stats.norm.pdf(x) * stats.norm.cdf(x) ** 3 * stats.norm.sf(x - shift) ** 4)

        return float(integrate.quad(density, -10, 10)[0])

    shift = optimize.brentq(lambda size: apart(size) - 0.8, 0, 10)
    # The difference of two means of four has the standard deviation √(2/4), and the mean length √(2/π) times that.
    in_lengths = shift / math.sqrt(0.5 * 2 / math.pi)
    lengths = noise_of(1)
    found = needed_by_permutations(lengths, FOUR_AND_FOUR) / lengths.mean()
    assert found == pytest.approx(in_lengths, rel=0.06)


def test_units_in_every_group_are_swapped() -> None:
    """Six units have 64 swaps, 2 of which are at most .05: every unit must differ to the same side."""
    shift = optimize.brentq(lambda size: stats.norm.cdf(size / math.sqrt(2)) ** 6 - 0.8, 0, 10)
    lengths = noise_of(1)
    found = needed_by_permutations(lengths, np.ones((6, 2), dtype=np.int64)) / lengths.mean()
    assert found == pytest.approx(shift / math.sqrt(2 / 6 * 2 / math.pi), rel=0.06)


@pytest.mark.parametrize(
    ("lengths", "sizes"),
    [
        pytest.param(noise_of(1), [[MOST_CLUSTERS + 1] * 2], id="many clusters"),
        pytest.param(noise_of(1), [[4, 100_000]], id="many clusters of one group"),
        pytest.param(noise_of(3 * MOST_VALUES), [[4, 4]], id="many values"),
        pytest.param(np.zeros(100), [[4, 4]], id="no noise"),
        pytest.param(noise_of(1), [[1, 1]] * 5, id="no p up to .05: 2 of 32 swaps"),
    ],
)
def test_nothing_is_added(lengths: np.ndarray, sizes: list[list[int]]) -> None:
    assert needed_by_permutations(lengths, np.array(sizes)) == 0.0


def test_more_values_need_less_and_more_clusters_too() -> None:
    one, several = noise_of(1), noise_of(6)
    few = needed_by_permutations(one, FOUR_AND_FOUR) / one.mean()
    assert few > needed_by_permutations(several, FOUR_AND_FOUR) / several.mean() > 1
    assert few > needed_by_permutations(one, np.array([[6, 6]])) / one.mean() > 2.8 / math.sqrt(2 / math.pi)


def test_many_groups_take_no_memory_to_speak_of() -> None:
    """Four names of each of sixty countries, on twelve values, took 1.8 GB."""
    lengths = noise_of(11, n_groups=60)
    tracemalloc.start()
    found = needed_by_permutations(lengths, np.full((1, 60), 4)) / lengths.mean()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert 0.5 < found < 1
    assert peak < 500e6


def test_what_is_told_is_found() -> None:
    """Four people against four who answer yes or no: the shift that is told is found in about 80 of 100 samples."""
    rng = np.random.default_rng(3)
    group = np.repeat([0, 1], 4)
    person = np.repeat(np.arange(8), 20)

    def sample(shift: float) -> DistributionShift:
        share = np.array([0.5 + shift / 200, 0.5 - shift / 200])[group]
        own = rng.beta(9 * share, 9 * (1 - share))
        answers = rng.random(160) < own[person]
        return distribution_shift(answers, group[person], clusters=person, min_count=1, n_resamples=99, rng=rng)

    told = [found.at_5_percent for found in (sample(0.0).detectable for _ in range(200)) if found is not None]
    n_found = sum(sample(float(np.mean(told))).p_cluster <= 0.05 for _ in range(400))
    assert 0.7 * 400 < n_found < 0.88 * 400
