"""Whether losses grew unequally between two runs, on made rows: by hand, and what is not compared."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from equivox.compare.gate import _check_losses, decide_loss
from equivox.compare.pairs import Asked, OpenedRun
from equivox.compare.runs import ComparedRun
from equivox.core.metric import PairedValues
from equivox.core.samples import Row, Samples
from equivox.tasks.registry import builtin_tasks

TASK = builtin_tasks()["vibe_gender:advisory"]


def opened(
    status: Callable[[int, int], str], groups: str = "fm", fingerprint: str = "", each: int = 6, clips: int = 4
) -> OpenedRun:
    """A run of `each` speakers of each group and their recordings; `status(speaker, clip)`, the first are the f."""
    rows = [
        Row(group=groups[speaker // each % len(groups)], cluster=f"s{speaker:02}", stratum="",
            status=status(speaker, clip), sample_id=f"s{speaker}c{clip}", key=f"s{speaker}c{clip}")
        for speaker in range(2 * each) for clip in range(clips)
    ]  # fmt: skip
    return OpenedRun(
        ComparedRun("m", Path(), "rules", []), "", {TASK.name: Asked(TASK, fingerprint, "c", Samples.from_rows(rows))}
    )


def fair(speaker: int, clip: int) -> str:
    return "parsed"


def test_a_gap_by_hand() -> None:
    # One in four answers to women is refused before, three in four now; of men's one in four fails now.
    before = opened(lambda speaker, clip: "refused" if speaker < 6 and clip == 0 else "parsed")
    now = opened(
        lambda speaker, clip: "parsed" if clip == 3 else "refused" if speaker < 6 else ("failed", "parsed")[clip > 0]
    )
    found = {check.metric: check for check in _check_losses(now, before)}
    numbers = {way: (check.new, check.baseline, check.difference, check.outcome) for way, check in found.items()}
    assert numbers == {"refusal": (75, 25, 50, "worse"), "failure": (25, 0, 25, "worse")}
    assert {check.outcome for check in _check_losses(before, now)} == {"pass"}


def test_refusals_of_other_answers_in_the_same_number_are_no_change_of_the_gap() -> None:
    # One in four answers to each woman is refused, each time another one; the last woman loses one answer more.
    before = opened(lambda speaker, clip: "refused" if speaker < 6 and clip == 0 else "parsed")
    now = opened(
        lambda speaker, clip: "refused" if speaker < 6 and clip in ((1, 2) if speaker == 5 else (1,)) else "parsed"
    )
    (check,) = _check_losses(now, before)
    assert check.difference == pytest.approx(100 / 24) and check.outcome == "pass"


def test_unchanged_losses_pass_and_no_loss_is_no_check() -> None:
    run = opened(lambda speaker, clip: "refused" if speaker < 6 and clip == 0 else "parsed")
    (check,) = _check_losses(run, run)
    assert (check.difference, check.outcome) == (0, "pass")
    assert _check_losses(opened(fair), opened(fair)) == []


@pytest.mark.parametrize(("per_group", "outcome"), [(2, "undecided"), (4, "undecided"), (5, "worse")])
def test_a_gap_that_so_few_units_cannot_show_never_passes(per_group: int, outcome: str) -> None:
    # Every answer to women is refused now, none before: 2 of C(2n, n) permutations are as extreme, and .015 is needed.
    def run(refused: int) -> OpenedRun:
        return opened(lambda speaker, clip: "refused" if speaker < refused else "parsed", each=per_group, clips=10)

    (check,) = _check_losses(run(per_group), run(0))
    assert check.difference == 100 and check.outcome == outcome
    assert (2 / math.comb(2 * per_group, per_group) > 0.015) == (outcome == "undecided")


def test_unlike_requests_are_not_compared() -> None:
    lost, alone = (opened(lambda speaker, clip: "failed", groups=groups) for groups in ("fm", "f"))
    assert len(_check_losses(lost, opened(fair))) == 1
    for new, old in (
        (alone, opened(fair, groups="f")), (lost, opened(fair, fingerprint="other")), (lost, opened(fair, groups="mf")),
        (lost, replace(opened(fair), asked={})),
    ):  # fmt: skip
        assert _check_losses(new, old) == []


@pytest.mark.parametrize(
    ("growth", "p", "p_least", "outcome"),
    [
        (15, 0.01, 0.001, "worse"),
        (15, 0.011, 0.001, "pass"),
        (15, math.nan, math.nan, "undecided"),
        (15, 0.1, 0.1, "undecided"),
        (4.9, 0.1, 0.1, "pass"),
        (4.9, math.nan, math.nan, "pass"),
        (4.9, 0.01, 0.001, "worse"),
        (0, 0.001, 0.001, "pass"),
    ],
)
def test_a_gap_is_worse_where_it_grew_beyond_chance(growth: float, p: float, p_least: float, outcome: str) -> None:
    assert decide_loss(growth, PairedValues(p=p, p_least=p_least), 0.01)[0] == outcome


def test_new_refusals_about_single_women_are_worse() -> None:
    """Both characters of a pair have one sample's name, so that samples are matched by the character as well."""
    task = builtin_tasks()["genres_single:cs"]

    def of(refused: bool) -> OpenedRun:
        rows = [
            Row(
                group="", cluster=f"pair {pair}", stratum="", sample_id=f"n{pair}",
                metadata={"character": name, "gender": gender},
                status="refused" if refused and gender == "female" and pair % 4 == 0 else "parsed",
            )
            for pair in range(60)
            for name, gender in (("Ana", "female"), ("Ben", "male"))
        ]  # fmt: skip
        asked = Asked(task, "", "c", Samples.from_rows(rows[:: -1 if refused else 1]))
        return OpenedRun(ComparedRun("m", Path(), "rules", []), "", {task.name: asked})

    # 15 of 60 women and no man; within pairs 15 signs that all point one way, p = 2 / 2^15.
    (check,) = _check_losses(of(True), of(False))
    assert (check.metric, check.difference, check.outcome) == ("refusal", pytest.approx(25), "worse")
