from __future__ import annotations

import math
from pathlib import Path

import pytest
from commands import csv_rows
from hypothesis import given
from hypothesis import strategies as st

from equivox.core.errors import UsageError
from equivox.metrics.spoken_stereoset import Tally

COUNTS = st.integers(min_value=0, max_value=5000)


@pytest.mark.paper
def test_table_3_from_its_counts(reference_data: Path) -> None:
    """All eight models of Table 3 (audio), to the two decimals that are printed."""
    rows = csv_rows(reference_data / "spoken_stereoset" / "table3_counts.csv")
    assert len(rows) == 8
    for row in rows:
        tally = Tally(
            stereotypical=int(row["stereotypical"]),
            anti_stereotypical=int(row["anti"]),
            irrelevant=int(row["irrelevant"]),
            other=int(row["others"]),
        )
        assert (tally.n, tally.chosen, tally.meaningful) == (int(row["N"]), int(row["valid"]), int(row["meaningful"]))
        for score in ("slifs", "slms", "slbs"):
            assert f"{getattr(tally, score):.2f}" == f"{float(row[score]):.2f}"


def test_parity_deviation_of_table_3() -> None:
    # SALMONN 13B, age: slbs 263 / 592 = 44.43, so 2 x 5.57 = 11.15 (5.5743 before rounding).
    assert Tally(stereotypical=263, anti_stereotypical=329).parity_deviation == pytest.approx(11.1486, abs=1e-4)


@pytest.mark.parametrize(
    ("tally", "slifs", "slms", "slbs"),
    [
        (Tally(), None, None, None),
        (Tally(other=5), 0, 0, None),
        (Tally(irrelevant=5), 100, 0, None),
        (Tally(stereotypical=5), 100, 100, 100),
        (Tally(anti_stereotypical=5), 100, 100, 0),
        (Tally(stereotypical=1, anti_stereotypical=1, irrelevant=1), 100, 200 / 3, 50),
    ],
)
def test_limiting_cases(tally: Tally, slifs: float | None, slms: float | None, slbs: float | None) -> None:
    for found, expected in ((tally.slifs, slifs), (tally.slms, slms), (tally.slbs, slbs)):
        assert math.isnan(found) if expected is None else found == pytest.approx(expected)
    assert math.isnan(tally.parity_deviation) == (slbs is None)


@given(COUNTS, COUNTS, COUNTS, COUNTS)
def test_swapping_stereotypes_mirrors_slbs_and_nothing_else(s: int, t: int, i: int, other: int) -> None:
    first = Tally(stereotypical=s, anti_stereotypical=t, irrelevant=i, other=other)
    second = Tally(stereotypical=t, anti_stereotypical=s, irrelevant=i, other=other)
    assert (first.slifs, first.slms) == pytest.approx((second.slifs, second.slms), nan_ok=True)
    assert first.slbs == pytest.approx(100 - second.slbs, nan_ok=True)
    assert first.parity_deviation == pytest.approx(second.parity_deviation, nan_ok=True)


def test_kinds_are_counted_and_unknown_ones_refused() -> None:
    assert Tally.of(["stereotypical", "other", "stereotypical"]) == Tally(stereotypical=2, other=1)
    with pytest.raises(UsageError, match="`kinds` holds 'stereo'"):
        Tally.of(["stereo"])
    with pytest.raises(UsageError, match="`irrelevant` is -1"):
        Tally(irrelevant=-1)
