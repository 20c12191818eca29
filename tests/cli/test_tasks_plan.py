"""`equivox tasks plan`: designs read from tasks, both directions, wrong requests."""

from __future__ import annotations

import re

import pytest
from commands import Cli


def test_more_units_show_less(equivox: Cli) -> None:
    def show(units: int) -> float:
        out = equivox.done("tasks", "plan", "--design", f"units={units},answers=20,groups=2,values=4")
        (gap,) = re.findall(r"gap of ([\d.]+)", out)
        return float(gap)

    # The gap shrinks with the root of the units: eight times as many, about a third of the gap.
    assert 0.2 < show(64) / show(8) < 0.4


def test_the_units_of_a_gap(equivox: Cli) -> None:
    out = equivox.done("tasks", "plan", "vibe_accent:advisory", "--gap", 30, "--data", "sample")
    assert re.search(r"20 values: \d+ units show a gap of 30 points +hobby", out)


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["plan"], "units, answers and groups"),
        (["plan", "vibe_gender"], "name one"),
        (["plan", "vibe_gender:story", "--gap", "100"], "--gap"),
        (["plan", "--design", "units=4,answers=5,groups=3"], "6"),
        (["plan", "--design", "unit=4"], "units"),
        (["plan", "--design", "units=1,answers=5,groups=3"], "units"),
        (["plan", "spoken_stereoset:gender"], "neither"),
        (["--gap", "10"], "tasks plan"),
    ],
)
def test_a_wrong_request_is_one_line(arguments: list[str], hint: str, equivox: Cli) -> None:
    assert hint in equivox.refused("tasks", *arguments)
