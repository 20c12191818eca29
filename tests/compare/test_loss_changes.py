"""Whether losses grew unequally between two runs, on made rows: by hand, and what is not compared."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from equivox.compare.gate import _check_loss
from equivox.compare.loss_changes import LossChange, list_loss_changes
from equivox.compare.pairs import Asked, OpenedRun
from equivox.compare.runs import ComparedRun
from equivox.core.samples import Row, Samples
from equivox.core.scores import LargestShift
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
    found = {change.metric: change for change in list_loss_changes(now, before)}
    assert set(found) == {"refusal", "failure"}
    refusal, failure = found["refusal"], found["failure"]
    assert refusal.new == LargestShift(value="yes", high_group="f", high_share=75, low_group="m", low_share=0)
    assert refusal.old == LargestShift(value="yes", high_group="f", high_share=25, low_group="m", low_share=0)
    assert failure.new == LargestShift(value="yes", high_group="m", high_share=25, low_group="f", low_share=0)
    assert (refusal.growth, failure.growth, failure.undefined) == (50, 25, None)
    # Of 924 ways to deal twelve speakers to two groups two are as extreme.
    assert refusal.p == pytest.approx(2 / 924, rel=0.05) and refusal.p_least == pytest.approx(2 / 924)
    assert refusal.decide(0.005) == ("worse", "p 0.0022")
    # The other way round the gaps became narrower.
    back = list_loss_changes(before, now)
    assert [(change.growth, change.decide(0.005)[0]) for change in back] == [(-50, "pass"), (-25, "pass")]


def test_refusals_of_other_answers_in_the_same_number_are_no_change_of_the_gap() -> None:
    # One in four answers to each woman is refused, each time another one; the last woman loses one answer more.
    before = opened(lambda speaker, clip: "refused" if speaker < 6 and clip == 0 else "parsed")
    now = opened(
        lambda speaker, clip: "refused" if speaker < 6 and clip in ((1, 2) if speaker == 5 else (1,)) else "parsed"
    )
    (change,) = list_loss_changes(now, before)
    assert change.growth == pytest.approx(100 / 24) and change.decide(0.05)[0] == "pass"
    # Whichever six speakers are the women, the one of them who changed is in one group, and the groups lie 1/24 apart.
    assert change.p == 1


def test_what_did_not_change_has_a_p_of_one() -> None:
    run = opened(lambda speaker, clip: "refused" if speaker < 6 and clip == 0 else "parsed")
    (change,) = list_loss_changes(run, run)
    assert (change.p, change.growth, change.decide(0.05)) == (1, 0, ("pass", ""))
    assert list_loss_changes(opened(fair), opened(fair)) == []


@pytest.mark.parametrize(("per_group", "outcome"), [(2, "undecided"), (4, "undecided"), (5, "worse")])
def test_a_gap_that_so_few_clusters_cannot_tell_never_passes(per_group: int, outcome: str) -> None:
    # Every answer to women is refused now, none before. Of C(2n, n) permutations two are as extreme.
    def run(refused: int) -> OpenedRun:
        return opened(lambda speaker, clip: "refused" if speaker < refused else "parsed", each=per_group, clips=10)

    (change,) = list_loss_changes(run(per_group), run(0))
    assert change.growth == 100
    assert change.p == change.p_least == pytest.approx(2 / math.comb(2 * per_group, per_group))
    check = _check_loss(change, 0.015)
    assert check.outcome == outcome
    assert outcome == "worse" or f"no p below {change.p_least:.2g}" in check.reason


def test_what_was_not_asked_alike_is_not_compared() -> None:
    lost, alone = (opened(lambda speaker, clip: "failed", groups=groups) for groups in ("fm", "f"))
    assert len(list_loss_changes(lost, opened(fair))) == 1
    assert list_loss_changes(alone, opened(fair, groups="f")) == []
    assert list_loss_changes(lost, opened(fair, fingerprint="other")) == []
    assert list_loss_changes(lost, opened(fair, groups="mf")) == []
    assert list_loss_changes(lost, replace(opened(fair), asked={})) == []


@pytest.mark.parametrize(
    ("new", "p", "p_least", "outcome", "why"),
    [
        ((30, 10), 0.01, 0.001, "worse", "(p 0.01)"),
        ((30, 10), 0.011, 0.001, "pass", ""),
        ((30, 10), math.nan, math.nan, "undecided", "(too few clusters for a test)"),
        ((30, 10), 0.1, 0.1, "undecided", "(so few clusters give no p below 0.1; 0.01 is needed)"),
        ((12.9, 3), 0.1, 0.1, "pass", ""),  # 4.9 points more
        ((12.9, 3), math.nan, math.nan, "pass", ""),
        ((12.9, 3), 0.01, 0.001, "worse", "(p 0.01)"),
        ((10, 5), math.nan, math.nan, "pass", ""),
        ((10, 5), 0.001, 0.001, "pass", ""),
    ],
)
def test_a_gap_is_worse_where_it_grew_beyond_chance(
    new: tuple[float, float], p: float, p_least: float, outcome: str, why: str
) -> None:
    def shares(high: float, low: float) -> LargestShift:
        return LargestShift(value="yes", high_group="f", high_share=high, low_group="m", low_share=low)

    change = LossChange(
        dimension="gender", condition="audio", family="f", task="f:t", metric="refusal", unit="percentage points",
        new=shares(*new), old=shares(8, 3), p=p, p_least=p_least,
    )  # fmt: skip
    check = _check_loss(change, 0.01)
    assert (check.outcome, check.new, check.baseline) == (outcome, new[0] - new[1], 5)
    assert check.difference == new[0] - new[1] - 5 and math.isnan(check.margin)
    shares = f"group f loses {new[0]:g} % and group m {new[1]:g} %, in the baseline f 8 % and m 3 % "
    assert check.reason == (f"{shares}{why}" if why else "")


def test_refusals_about_single_women_that_are_new_are_found() -> None:
    """Both characters of a pair are asked about in one sample's name, so that no two runs of them were compared."""
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

    (change,) = list_loss_changes(of(True), of(False))
    # 15 of 60 women and no man; within pairs 15 signs that are all alike, p = 2 / 2^15.
    assert (change.metric, change.growth) == ("refusal", pytest.approx(25))
    assert change.p < 0.001
