import math

import numpy as np
import pytest
from scipy import stats

from equivox.core.errors import RequestError
from equivox.statistics import minimum_detectable_shift, required_clusters


def generator(seed=1):
    return np.random.default_rng(seed)


DESIGN = {"responses_per_cluster": 25, "n_values": 2, "n_groups": 2}


@pytest.fixture(scope="module")
def detectable():
    """The shift that 20 speakers detect; two tests look at it."""
    return minimum_detectable_shift(n_clusters=20, n_simulations=1_000, rng=generator(), **DESIGN)


def test_against_the_two_proportion_formula(detectable):
    # Two values, two groups, no speaker effect: nTVD is 100 · |p1 − p2|. With n = 10 · 25 answers per group the
    # normal approximation finds δ = (1.96 + .8416) · √(2 · .25 / 250) = 12.5 points with 80 % power (shares of
    # about one half); the planted shift goes from 1/2 ± s/2, so nTVD = 100 s = δ.
    expected = 100 * (stats.norm.ppf(0.975) + stats.norm.ppf(0.8)) * math.sqrt(2 * 0.25 / 250)
    assert detectable.undefined is None
    assert 0 < detectable.mc_error < 1.5
    # The permutation test has 499 permutations and about 18 degrees of freedom: a little less power than normal.
    slack = 3 * detectable.mc_error
    assert expected - slack <= detectable.size <= 1.15 * expected + slack


def test_the_reverse_finds_the_design_again(detectable):
    # The search starts at `max_clusters`, whose simulations cost most.
    found = required_clusters(shift=detectable.size, max_clusters=200, n_simulations=600, rng=generator(2), **DESIGN)
    assert found.n_clusters is not None
    assert found.n_clusters % 2 == 0
    assert abs(found.n_clusters - 20) <= max(6, 4 * found.mc_error)


def test_speakers_who_differ_hide_a_shift():
    alike = minimum_detectable_shift(n_clusters=16, n_simulations=400, rng=generator(), **DESIGN)
    differ = minimum_detectable_shift(
        n_clusters=16, n_simulations=400, cluster_correlation=0.2, rng=generator(), **DESIGN
    )
    assert differ.size > 1.5 * alike.size


def test_too_few_clusters_are_told():
    # 2 + 2 speakers: 6 permutations, the most extreme pair has p = 1/3.
    found = minimum_detectable_shift(n_clusters=4, n_simulations=200, rng=generator(), **DESIGN)
    assert math.isnan(found.size)
    assert found.undefined is not None
    assert "less than 80%" in found.undefined
    few = required_clusters(shift=1.0, max_clusters=8, n_simulations=200, rng=generator(), **DESIGN)
    assert few.n_clusters is None
    assert few.undefined == "8 clusters find it in less than 80% of experiments"


def test_a_p_at_the_level_counts_as_found():
    # 3 + 3 speakers: the smallest p of 20 permutations is 2/20.
    found = [
        minimum_detectable_shift(n_clusters=6, n_simulations=200, alpha=alpha, rng=generator(), **DESIGN)
        for alpha in (0.1, 0.099)
    ]
    assert found[0].size < 100
    assert math.isnan(found[1].size)


def test_groups_without_a_common_answer_need_as_many_speakers_as_permutations_can_tell():
    # The smallest p of k + k speakers is 2 / (2k choose k): 2/20 of three, 2/70 of four. So four are needed, not 3.5.
    found = required_clusters(shift=100, max_clusters=60, n_simulations=200, rng=generator(), **DESIGN)
    assert found.n_clusters == 8


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"n_clusters": 3}, "`n_clusters` is 3"),
        ({"n_values": 1}, "`n_values` is 1"),
        ({"n_groups": 1}, "`n_groups` is 1"),
        ({"responses_per_cluster": 0}, "`responses_per_cluster` is 0"),
        ({"alpha": 0.0}, "`alpha` is 0.0"),
        ({"power": 1.0}, "`power` is 1.0"),
        ({"cluster_correlation": 1.0}, "`cluster_correlation` is 1.0"),
        ({"value_shares": [1.0]}, "`value_shares` is not 2 shares"),
        ({"n_simulations": 10}, "`n_simulations` is 10"),
    ],
)
def test_requests_that_cannot_be_meant(change, words):
    with pytest.raises(RequestError, match=words):
        minimum_detectable_shift(**({"n_clusters": 20, "rng": generator()} | DESIGN | change))


def test_a_shift_out_of_reach_is_refused():
    with pytest.raises(RequestError, match="up to 80, the most that 3 values can show between 6 groups"):
        required_clusters(shift=90, responses_per_cluster=5, n_values=3, n_groups=6, rng=generator())
