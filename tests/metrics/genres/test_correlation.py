"""Correlations of outcome and label against scipy and every exchange or swap of labels."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from equivox.core.errors import UsageError
from equivox.metrics.genres.correlation import correlate_within_neps


def generator(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_r_against_scipy() -> None:
    rng = generator(2)
    x, y = rng.normal(size=30), rng.normal(size=30)
    found = correlate_within_neps(x.tolist(), y.tolist(), clusters=None, rng=rng)
    theirs = stats.pearsonr(x, y)
    assert found.r == pytest.approx(theirs.statistic)
    assert found.p == pytest.approx(theirs.pvalue, abs=0.03)


def test_swaps_within_pairs_against_every_swap() -> None:
    # Three pairs with two repeated readings each; the two labels of a pair change places together.
    rng = generator(3)
    label = np.array([0, 1, 0, 1] * 3, dtype=float)
    outcome = rng.integers(0, 2, size=12).astype(float)
    clusters = [f"n{i}" for i in np.arange(3).repeat(4)]
    found = correlate_within_neps(label.tolist(), outcome.tolist(), clusters=clusters, rng=rng)
    null = []
    for flips in itertools.product([False, True], repeat=3):
        moved = np.where(np.repeat(flips, 4), 1 - label, label)
        null.append(np.corrcoef(moved, outcome)[0, 1])
    assert found.exact
    assert sorted(found.null) == pytest.approx(sorted(null))
    assert found.p == pytest.approx(np.mean(np.abs(null) >= abs(found.r) - 1e-9))


def test_unbalanced_swaps_keep_r_right() -> None:
    # One reading is missing, so a swap also changes the share of labels.
    label, outcome = [0.0, 1, 0, 1, 1], [1.0, 0, 1, 1, 0]
    clusters = ["a", "a", "b", "b", "c"]
    found = correlate_within_neps(label, outcome, clusters=clusters, rng=generator())
    null = []
    for flips in itertools.product([False, True], repeat=3):
        flip = np.array([flips["abc".index(c)] for c in clusters])
        null.append(np.corrcoef(np.where(flip, 1 - np.array(label), label), outcome)[0, 1])
    assert sorted(found.null) == pytest.approx(sorted(null))


def test_clusters_exchange_labels_whole() -> None:
    # Two readings per speaker: the null has the values of all 4! / (2! 2!) = 6 dealings of labels to speakers.
    label = np.array([0.0, 0, 0, 0, 1, 1, 1, 1])
    outcome = np.array([1.0, 2, 2, 1, 5, 3, 4, 6])
    found = correlate_within_neps(label.tolist(), outcome.tolist(), clusters=list("aabbccdd"), rng=generator())
    null = {
        round(float(np.corrcoef(np.isin(np.arange(4).repeat(2), list(ones)).astype(float), outcome)[0, 1]), 9)
        for ones in itertools.combinations(range(4), 2)
    }
    assert set(np.round(found.null, 9)) == null
    assert found.p == pytest.approx(1 / 3, abs=0.03)


@pytest.mark.parametrize(
    ("label", "outcome", "n", "n_missing"),
    [
        ([0, 1, 0, 1], [0.3, 0.1 + 0.2, 0.3, 0.1 + 0.2], 4, 0),  # equal but for rounding
        ([0, 1, 0, 1], [1, 1, 1, 1], 4, 0),
        ([1, 1, 1, 1], [1, 2, 3, 4], 4, 0),
        ([0, 1, math.nan], [1, 2, 3], 2, 1),
    ],
)
def test_nothing_to_correlate_has_a_reason(label: list[float], outcome: list[float], n: int, n_missing: int) -> None:
    found = correlate_within_neps(label, outcome, clusters=None, rng=generator())
    assert found.undefined is not None and math.isnan(found.r) and math.isnan(found.p)
    assert (found.n, found.n_missing) == (n, n_missing)


def test_three_labels_within_a_cluster_cannot_swap() -> None:
    with pytest.raises(UsageError, match="`y`"):
        correlate_within_neps([0, 1, 2], [1, 2], clusters=list("abc"), rng=generator())
    with pytest.raises(UsageError, match="`x`"):
        correlate_within_neps([0, 1, 2, 0], [1, 2, 3, 4], clusters=list("aabb"), rng=generator())


@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1e150])
def test_the_size_of_the_numbers_does_not_matter(scale: float) -> None:
    x, y = [0.0, 1.0, 0.0, 1.0, 0.0, 1.0], np.array([1.0, 3.0, 2.0, 3.0, 0.0, 4.0]) * scale
    found = correlate_within_neps(x, y, clusters=list("aabbcc"), rng=np.random.default_rng(1))
    assert found.r == pytest.approx(np.corrcoef(x, [1, 3, 2, 3, 0, 4])[0, 1])
