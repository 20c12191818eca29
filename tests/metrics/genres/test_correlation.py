"""Correlations of outcome and gender against scipy and every exchange of the two characters of a pair."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import stats

from equivox.metrics.genres.measures import METRIC_OF, Measured, Pair, measure


def correlate(male: list[float], female: list[float]) -> Measured:
    pairs = [Pair(nep=f"n{place}", male=m, female=f) for place, (m, f) in enumerate(zip(male, female, strict=True))]
    return measure(METRIC_OF["M7"], pairs, rng=np.random.default_rng(1))


@pytest.mark.parametrize("seed", [2, 3, 4])
def test_r_and_p_are_those_of_every_exchange(seed: int) -> None:
    male, female = np.random.default_rng(seed).integers(0, 4, (2, 7)).astype(float)
    found = correlate(male.tolist(), female.tolist())
    label = np.repeat([1.0, 0.0], 7)
    observed = stats.pearsonr(label, [*male, *female]).statistic
    null = [
        np.corrcoef(label, [*np.where(flips, female, male), *np.where(flips, male, female)])[0, 1]
        for flips in itertools.product([False, True], repeat=7)
    ]
    assert found.value == pytest.approx(observed)
    assert found.p == pytest.approx(np.mean(np.abs(null) >= abs(observed) - 1e-9))


def test_equal_characters_do_not_differ() -> None:
    found = correlate([0, 1, 2], [0, 1, 2])
    assert found.value == pytest.approx(0) and found.p == 1
