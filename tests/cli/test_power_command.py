"""`equivox power`: designs read from tasks, both directions, wrong requests."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from equivox.core.errors import RequestError
from equivox.run.design import task_design
from equivox.tasks.registry import builtin_tasks, resolve_tasks

Cli = Callable[..., tuple[int, str, str]]
FAST = ("--design", "simulations=200")


@pytest.mark.parametrize(
    ("task", "data", "expected"),
    [
        # CREMA-D: 7,442 clips of 91 actors are 81 each; L2-ARCTIC: 24 speakers read 600 sentences.
        ("vibe_gender:story", None, (91, 81, 2)),
        ("vibe_accent:story", None, (24, 600, 6)),
        ("vibe_gender:story", "sample", (24, 12, 2)),
        ("vibe_accent:story", "sample", (24, 12, 6)),
    ],
)
def test_the_design_of_a_task(task: str, data: str | None, expected: tuple[int, int, int]) -> None:
    design = task_design(builtin_tasks()[task], data)
    assert (design.n_clusters, design.responses_per_cluster, design.n_groups) == expected


def test_a_design_about_which_nothing_is_published(clip_corpus: Callable[..., object]) -> None:
    (task, *_) = resolve_tasks(str(clip_corpus()))
    design = task_design(task)
    assert (design.n_clusters, design.responses_per_cluster, design.n_groups) == (8, 6, 2)
    import dataclasses

    with pytest.raises(RequestError, match="nothing is published about race"):
        task_design(dataclasses.replace(builtin_tasks()["vibe_gender:story"], group=("race",)))


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
