"""Shares and sign flips: hand arithmetic, scipy, and published counts."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import csv_rows
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from equivox.core.notes import NoteCode
from equivox.statistics import cluster_share, parity_deviation, share_bounds, sign_flip_test
from equivox.statistics.shares import Parity, SignFlip, compute_least_flip_p

Numbers = Sequence[float | None]


def parity(choices: Numbers, clusters: Any = None, n_resamples: int = 499) -> Parity:
    return parity_deviation(choices, clusters=clusters, n_resamples=n_resamples, rng=np.random.default_rng(1))


def flip(values: Numbers, clusters: Any = None, n_resamples: int = 10_000) -> SignFlip:
    return sign_flip_test(values, clusters=clusters, n_resamples=n_resamples, rng=np.random.default_rng(1))


@pytest.mark.parametrize(("hits", "clusters", "confidence", "share", "error", "degrees"), [
    # Residuals (-1, -1, 2)/18: √(3/2 · 6)/18 = 1/6.
    ([1, 0, 0, 1, 1, 1], "aabbcc", 0.95, 2 / 3, 1 / 6, 2), ([1, 0, 0, 1, 1, 1], "aabbcc", 0.8, 2 / 3, 1 / 6, 2),
    # Clusters of 2, 2, 4 with 1, 2, 1 hits: residuals (0, 1, -1)/8 over √(3/4) and √(1/2); 64/24 of equal size.
    ([1, 0, 1, 1, 1, 0, 0, 0], "aabbcccc", 0.95, 1 / 2, math.sqrt(10 / 3) / 8, 8 / 3 - 1),
    # Single answers: √(p (1 - p)/(n - 1)).
    ([1, 1, 1, 0, None, 0], None, 0.95, 3 / 5, math.sqrt(0.24 / 4), 4),
])  # fmt: skip
def test_the_interval_of_a_share_by_hand(
    hits: Numbers, clusters: str | None, confidence: float, share: float, error: float, degrees: float
) -> None:
    found = cluster_share(hits, clusters=None if clusters is None else [*clusters], confidence=confidence)
    reach = stats.t.ppf(0.5 + confidence / 2, degrees) * error / share / (1 - share)
    expected = 100 / (1 + np.exp([reach, -reach]) * (1 - share) / share)
    assert (found.share, found.error, found.degrees) == pytest.approx((100 * share, 100 * error, degrees))
    assert (found.low, found.high) == pytest.approx(tuple(expected))


def test_limits_of_the_interval() -> None:
    many = cluster_share([1] * 300 + [0] * 700, clusters=None)
    wilson = stats.binomtest(300, 1000).proportion_ci(method="wilson")
    assert (many.low, many.high) == pytest.approx((100 * wilson.low, 100 * wilson.high), abs=0.4)
    # Ten equal answers of a cluster are like a single answer.
    hits: Numbers = ([1] * 10 + [0] * 10) * 6
    apart, together = cluster_share(hits, clusters=None), cluster_share(hits, clusters=np.arange(120) // 10)
    assert (together.high - together.low) / (apart.high - apart.low) == pytest.approx(math.sqrt(10), rel=0.15)
    for known, clusters in (([1, 0, 1], "aaa"), ([1, 1, 1], "abc"), ([1, 0, 1, 1, 0, 0], "aabbbb")):
        found = cluster_share(known, clusters=[*clusters])
        assert math.isnan(found.low) and [note.code for note in found.notes] == [NoteCode.NO_NOISE] and found.share > 0


def test_flips_by_hand() -> None:
    # Sums 2, 1 and -1: of 8 patterns |±2 ±1 ±1| is 4 twice, 2 four times, 0 twice. A missing value is left out.
    found = flip([1, 1, 1, -1, None], [*"aabcc"])
    assert (found.mean, found.p, found.exact, found.n, found.n_missing, found.n_clusters) == (0.5, 6 / 8, True, 4, 1, 3)
    assert compute_least_flip_p(40, 999) == 1e-3 and compute_least_flip_p(3, 99) == 1 / 4 == flip([1.0] * 3).p
    assert flip([1, 1, 1, 1, -1] * 10, [*"abcde"] * 10).p == flip([1, 1, 1, 1, -1]).p
    none: Numbers = [None, None]
    reasons = (flip([1.0, -1.0], [*"aa"]).undefined, flip(none).undefined, parity(none).undefined,
               cluster_share(none, clusters=None).undefined)  # fmt: skip
    assert [reason and reason.code for reason in reasons] == [NoteCode.NO_NOISE] + 3 * [NoteCode.NOTHING_USABLE]


@pytest.mark.parametrize("unit", [1e-12, 1.0, 1e12])
def test_flips_are_those_of_scipy_in_any_unit(unit: float) -> None:
    values = np.random.default_rng(2).normal(0.4, 1.0, size=10)
    theirs = stats.permutation_test((values,), np.mean, permutation_type="samples", n_resamples=2_000).pvalue
    found, drawn = flip([*(unit * values)]), flip([*(unit * values)], n_resamples=1_000)
    assert found.exact and found.p == pytest.approx(theirs)
    assert not drawn.exact and drawn.p == pytest.approx(theirs, abs=0.05) and round(drawn.p * 1_001, 6) % 1 == 0
    # 0.1 + 0.2 - 0.3 is not 0 in binary.
    even = flip([0.1 * unit, 0.2 * unit, -0.3 * unit] * 8, np.repeat(range(8), 3))
    assert even.undefined is not None or even.p == 1.0


@pytest.mark.parametrize(("choices", "share", "deviation", "p"), [
    ([1] * 8, 100, 100, 2 / 2**8), ([1, 0] * 4, 50, 0, 1.0), ([1, 1, 1, 0], 75, 50, 10 / 16), ([0] * 3, 0, 100, 1 / 4),
])  # fmt: skip
def test_parity_by_hand(choices: list[float], share: float, deviation: float, p: float) -> None:
    found = parity([*choices, None])
    assert (found.share, found.deviation, found.p, found.n_missing) == (share, deviation, p, 1)


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=2, max_size=14))
@settings(max_examples=40)
def test_the_interval_of_parity_agrees_with_its_test_and_with_the_opposite(clusters: list[tuple[int, int]]) -> None:
    choices = np.concatenate([np.repeat([1.0, 0.0], counts) for counts in clusters])
    if not len(choices):
        return
    names = np.repeat(range(len(clusters)), [sum(counts) for counts in clusters])
    found, other = (parity([*column], names, 20_000) for column in (choices, 1 - choices))
    assert (other.p, other.deviation) == pytest.approx((found.p, found.deviation))
    if not math.isnan(found.ci_low):
        assert (not found.share_low <= 50 <= found.share_high) == (found.p <= 0.05) == (found.ci_low > 0)
        assert (other.share_low, other.share_high) == pytest.approx((100 - found.share_high, 100 - found.share_low))
        assert found.ci_high == pytest.approx(2 * max(50 - found.share_low, found.share_high - 50))


@pytest.mark.paper
def test_spoken_stereoset_has_the_published_shares(reference_data: Path) -> None:
    rows = csv_rows(reference_data / "spoken_stereoset/table3_counts.csv")
    assert len(rows) == 8
    for row in rows:
        n, meaningful, stereotypical, anti = (int(row[name]) for name in ("N", "meaningful", "stereotypical", "anti"))
        found = parity([1.0] * stereotypical + [0.0] * anti + [None] * (n - meaningful), n_resamples=100)
        shares = (share_bounds(int(row["valid"]), n, 0).observed, share_bounds(meaningful, n, 0).observed, found.share)
        assert shares == pytest.approx([float(row[name]) for name in ("slifs", "slms", "slbs")], abs=0.00501)
