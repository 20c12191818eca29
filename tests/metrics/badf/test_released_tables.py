"""Intervals of means, and clusters against labels, by hand and by scipy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from equivox.metrics.badf.released import compute_mean_interval, measure_clusters


def test_the_interval_of_a_mean() -> None:
    values = np.random.default_rng(1).exponential(size=400)
    found = compute_mean_interval([*values], rng=np.random.default_rng(2))
    normal = stats.norm.interval(0.95, values.mean(), values.std(ddof=1) / 20)
    assert found == pytest.approx(normal, abs=0.02)
    assert all(map(math.isnan, compute_mean_interval([3.0, 3.0], rng=np.random.default_rng(2))))


def test_clusters_by_hand() -> None:
    # Labels aabb in clusters 1112: H(label) = ln 2, H(cluster) = 2 ln 2 - .75 ln 3, H(both) = 1.5 ln 2.
    label, cluster = math.log(2), 2 * math.log(2) - 0.75 * math.log(3)
    common = label + cluster - 1.5 * math.log(2)
    v = 2 * common / (label + cluster)
    assert measure_clusters("aabb", "1112") == pytest.approx((common / label, common / cluster, v))
    assert measure_clusters("1112", "aabb") == pytest.approx((common / cluster, common / label, v))
    assert measure_clusters("aaaa", "1122") == (1.0, 0.0, 0.0) and measure_clusters("aa", "11") == (1.0, 1.0, 1.0)
    assert measure_clusters("abab", "1122") == pytest.approx((0, 0, 0))
