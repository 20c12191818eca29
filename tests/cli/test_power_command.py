"""`equivox power`: designs read from tasks, both directions, wrong requests."""

from __future__ import annotations

import re

import pytest
from commands import Cli

FAST = ("--design", "simulations=200")


def test_more_speakers_detect_less(equivox: Cli) -> None:
    def detected(clusters: int) -> float:
        out = equivox.done("power", "--design", f"clusters={clusters},responses=20,groups=2,values=4,simulations=200")
        (shift,) = re.findall(r"nTVD ([\d.]+)", out)
        return float(shift)

    few, many = detected(8), detected(64)
    # Detectable shifts shrink about with the root of the speakers: eight times as many, a third of the shift.
    assert 0.2 < many / few < 0.6


def test_the_reverse_question(equivox: Cli) -> None:
    out = equivox.done("power", "--task", "vibe_accent:advisory", "--shift", 30, "--data", "sample", *FAST)
    assert re.search(r"20 values: \d+ clusters \(± [\d.]+ Monte Carlo\) detect nTVD 30 +hobby", out)


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        ([], "--task"),
        (["--task", "vibe_gender"], "name one"),
        (["--task", "vibe_accent:candidate", "--shift", "95", *FAST], "80"),
        (["--design", "clusters=4,responses=5,groups=3,simulations=200"], "6"),
        (["--design", "cluster=4"], "clusters"),
        (["--design", "clusters=1,responses=5,groups=3"], "clusters"),
    ],
)
def test_wrong_requests_are_one_line(arguments: list[str], hint: str, equivox: Cli) -> None:
    assert hint in equivox.refused("power", *arguments)


def test_power_is_of_ntvd_and_means_alone(equivox: Cli) -> None:
    err = equivox.refused("power", "--task", "spoken_stereoset:gender")
    assert "spoken_stereoset:gender is scored by neither" in err
