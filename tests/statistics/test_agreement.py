"""Agreement against the published example of Krippendorff, and correlations by hand and as printed for VIBE."""

import math
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from commands import csv_rows

from equivox.statistics import correlations, krippendorff_alpha

# Krippendorff 2011, example C: four observers, twelve units, values 1 to 5.
EXAMPLE = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, None, None, None], [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, None, 3],
    [None, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, None], [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, None],
]  # fmt: skip


@pytest.mark.parametrize(("ratings", "alpha", "pairable"), [
    ([*zip(*EXAMPLE, strict=True)], 0.743, 11), ([*zip(*EXAMPLE[::-1], strict=True)][::-1], 0.743, 11),
    # aa, bb, ab: D_o = 2/6, D_e = 2 · 3 · 3/(6 · 5): 1 - (1/3)/.6.
    ([["a", "a"], ["b", "b"], ["a", "b"]], 4 / 9, 3), ([["a", "a"], ["b", "b"]], 1.0, 2),
    # ab, ab: D_o = 1, D_e = 2 · 2 · 2/(4 · 3).
    ([["a", "b"], ["a", "b"]], -0.5, 2),
    ([["a", "a"], ["a", "a"]], math.nan, 2), ([["a", None], ["b", math.nan]], math.nan, 0), (["aa", "bb"], math.nan, 0),
])  # fmt: skip
def test_alpha_by_hand_and_as_published(ratings: Any, alpha: float, pairable: int) -> None:
    found = krippendorff_alpha(ratings)
    assert found.alpha == pytest.approx(alpha, abs=5e-4, nan_ok=True) and found.n_pairable_units == pairable
    assert (found.undefined is None) == (not math.isnan(alpha))
    table: Any = pd.DataFrame(ratings)
    assert krippendorff_alpha(table) == found or math.isnan(alpha)


def test_correlations_by_hand() -> None:
    columns: Any = {"a": [1.0, 2, 3, math.nan], "b": [1.0, 3, 2, 9], "c": [5.0, 5, 5, 5], "d": [None, None, 1.0, 2.0]}
    found = {pair.first + pair.second: pair for pair in correlations(columns)}
    # Deviations (-1, 0, 1) and (-1, 1, 0): 1 / (√2 · √2).
    assert (found["ab"].r, found["ab"].n) == pytest.approx((0.5, 3)) and len(found) == 6
    assert all(math.isnan(found[pair].r) and found[pair].undefined is not None for pair in ("ac", "ad", "bc", "cd"))


@pytest.mark.paper
def test_vibe_tasks_have_the_printed_correlations(reference_data: Path) -> None:
    models = [row for row in csv_rows(reference_data / "vibe/vibe_table1.csv") if row["dimension"] == "gender"]
    tasks = ("Adv", "Cast", "Shop", "Story", "Cand")
    pairs = correlations({task: [float(row[task]) for row in models] for task in tasks})
    found = {frozenset((pair.first, pair.second)): pair for pair in pairs}
    rows = csv_rows(reference_data / "vibe/fig3_gender_correlations.csv")
    printed = [row for row in rows if row["dimension"] == "gender"]
    assert len(printed) == len(found) == 10
    for row in printed:
        pair = found[frozenset((row["task1"], row["task2"]))]
        assert pair.n == 11 and pair.r == pytest.approx(float(row["r_printed"]), abs=0.005 + 1e-9)
