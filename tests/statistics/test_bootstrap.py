"""The bootstrap interval of a mean against the normal one, where they agree, and where there is none."""

from __future__ import annotations

import math

import numpy as np
import pytest

from equivox.statistics.bootstrap import mean_interval


def test_many_symmetric_values_give_the_normal_interval() -> None:
    values = [place / 400 for place in range(401)]
    # n evenly spaced values on [0, 1]: mean 1/2, variance (n + 1) / (12 (n − 1)) = 402 / 4800.
    half = 1.96 * math.sqrt(402 / 4800 / 401)
    low, high = mean_interval(values, rng=np.random.default_rng(0))
    assert (low, high) == pytest.approx((0.5 - half, 0.5 + half), abs=0.001)


def test_equal_values_have_no_interval() -> None:
    assert all(math.isnan(end) for end in mean_interval([1.0, 1.0, 1.0], rng=np.random.default_rng(0)))
