import math

import numpy as np
import pytest
from scipy import stats

from equivox.core.errors import RequestError
from equivox.statistics import cluster_share


def rng(seed=0):
    return np.random.default_rng(seed)


def test_by_hand_and_what_is_missing_is_left_out():
    found = cluster_share([1, 1, 0, math.nan, 1, 0], clusters=["a", "a", "b", "b", "c", "c"])
    assert (found.share, found.n, found.n_clusters, found.undefined) == (60.0, 5, 3, None)
    assert found.low <= 60 <= found.high


def test_many_single_answers_have_the_interval_of_a_binomial_share():
    hits = [1] * 300 + [0] * 700
    found = cluster_share(hits, clusters=None)
    exact = stats.binomtest(300, 1000).proportion_ci(method="wilson")
    assert found.low == pytest.approx(100 * exact.low, abs=0.4)
    assert found.high == pytest.approx(100 * exact.high, abs=0.4)


def test_answers_of_one_cluster_are_not_evidence_of_each_other():
    hits = [1] * 10 + [0] * 10
    apart = cluster_share(hits * 6, clusters=None)
    together = cluster_share(hits * 6, clusters=[f"c{n // 10}" for n in range(120)])
    # Ten like answers per cluster: the standard error is √10 times as large.
    assert (together.high - together.low) / (apart.high - apart.low) == pytest.approx(math.sqrt(10), rel=0.15)


@pytest.mark.parametrize(("n_clusters", "a", "b"), [(3, 2, 2), (8, 2, 2), (8, 1.5, 0.5), (30, 3, 2)])
def test_intervals_hold_the_true_share_as_often_as_they_say(n_clusters, a, b):
    """Clusters whose own shares vary widely, few of them too: 95 % intervals of 600 samples, three standard errors."""
    held = 0
    draw = rng(n_clusters)
    for _ in range(600):
        hits = draw.random((n_clusters, 8)) < draw.beta(a, b, size=n_clusters)[:, None]
        found = cluster_share(hits.ravel().astype(float), clusters=[f"c{n // 8}" for n in range(8 * n_clusters)])
        # Clusters that are all alike have no interval; they are rare here.
        held += math.isnan(found.low) or found.low <= 100 * a / (a + b) <= found.high
    assert 0.95 - 3 * math.sqrt(0.95 * 0.05 / 600) < held / 600


@pytest.mark.parametrize(
    ("hits", "clusters", "note"),
    [
        ([1, 0, 1], ["a", "a", "a"], "one cluster only"),
        ([1, 1, 1], ["a", "b", "c"], "the same share"),
    ],
)
def test_what_an_interval_cannot_say_is_noted(hits, clusters, note):
    found = cluster_share(hits, clusters=clusters)
    assert note in found.notes[0]
    assert math.isnan(found.low) and math.isnan(found.high)


def test_clusters_have_one_share_whatever_their_sizes_and_not_by_equal_counts_of_ones():
    # One of two and two of four are the same share; one of two and one of four are not.
    alike = cluster_share([1, 0, 1, 1, 0, 0], clusters=[*"aabbbb"])
    assert alike.share == 50 and "the same share" in alike.notes[0]
    unlike = cluster_share([1, 0, 1, 0, 0, 0], clusters=[*"aabbbb"])
    assert unlike.low < unlike.share < unlike.high


def test_nothing_known_is_undefined_and_bad_input_raises():
    found = cluster_share([math.nan, math.nan], clusters=None)
    assert math.isnan(found.share) and found.undefined == "every value is missing"
    with pytest.raises(RequestError, match="`hits` holds a number other than 0 and 1"):
        cluster_share([0.5], clusters=None)
    with pytest.raises(RequestError, match="`hits` has shape"):
        cluster_share([], clusters=None)
    with pytest.raises(RequestError, match="`clusters` has 1 entries"):
        cluster_share([1, 0], clusters=["a"])
    with pytest.raises(RequestError, match="`confidence`"):
        cluster_share([1, 0], clusters=None, confidence=2)
