"""`equivox power`: designs read from tasks, both directions, wrong requests."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

Cli = Callable[..., tuple[int, str, str]]
FAST = ("--design", "simulations=200")


def test_more_speakers_detect_less(equivox: Cli) -> None:
    def detected(clusters: int) -> float:
        code, out, err = equivox(
            "power", "--design", f"clusters={clusters},responses=20,groups=2,values=4,simulations=200"
        )
        assert code == 0, err
        (shift,) = re.findall(r"nTVD ([\d.]+)", out)
        return float(shift)

    few, many = detected(8), detected(64)
    # Detectable shifts shrink about with the root of the speakers: eight times as many, a third of the shift.
    assert 0.2 < many / few < 0.6


def test_the_reverse_question(equivox: Cli) -> None:
    code, out, _ = equivox("power", "--task", "vibe_accent:advisory", "--shift", 30, "--data", "sample", *FAST)
    assert code == 0
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
    code, _, err = equivox("power", *arguments)
    assert code == 2 and err.count("\n") == 1 and hint in err


def test_power_is_of_ntvd_and_means_alone(equivox: Cli) -> None:
    code, _, err = equivox("power", "--task", "spoken_stereoset:gender")
    assert code == 2
    assert "spoken_stereoset:gender is scored by neither" in err
