"""Whether losses grew unequally between two runs, on made rows: by hand, and what is not compared."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from equivox.compare.gate import _changed_loss
from equivox.compare.loss_changes import LossChange, loss_changes
from equivox.compare.pairs import Asked, OpenedRun
from equivox.compare.runs import ComparedRun
from equivox.core.samples import Row, Samples
from equivox.core.scores import Mover
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
    found = {change.metric: change for change in loss_changes(now, before)}
    assert set(found) == {"refusal", "failure"}
    refusal, failure = found["refusal"], found["failure"]
    assert refusal.new == Mover(value="yes", high_group="f", high_share=75, low_group="m", low_share=0)
    assert refusal.old == Mover(value="yes", high_group="f", high_share=25, low_group="m", low_share=0)
    assert refusal.growth == 50 and refusal.grew
    # Of 924 ways to deal twelve speakers to two groups two are as extreme; q of two p is 1.5 times the larger or more.
    assert refusal.p == pytest.approx(2 / 924, rel=0.05) and refusal.p < refusal.q < 0.05
    assert failure.new == Mover(value="yes", high_group="m", high_share=25, low_group="f", low_share=0)
    assert (failure.growth, failure.grew, failure.undefined) == (25, True, None)
    # The other way round the gaps became narrower.
    assert [(change.growth, change.grew) for change in loss_changes(before, now)] == [(-50, False), (-25, False)]
    # By Benjamini and Yekutieli the larger p of two has a q 1 + 1/2 times as large, and the smaller one no larger q.
    assert refusal.p_least == pytest.approx(2 / 924) and refusal.q_least == pytest.approx(1.5 * 2 / 924, rel=0.1)


def test_refusals_of_other_answers_in_the_same_number_are_no_change_of_the_gap() -> None:
    # One in four answers to each woman is refused, each time another one; the last woman loses one answer more.
    before = opened(lambda speaker, clip: "refused" if speaker < 6 and clip == 0 else "parsed")
    now = opened(
        lambda speaker, clip: "refused" if speaker < 6 and clip in ((1, 2) if speaker == 5 else (1,)) else "parsed"
    )
    (change,) = loss_changes(now, before)
    assert change.growth == pytest.approx(100 / 24) and not change.grew
    # Whichever six speakers are the women, the one of them who changed is in one group, and the groups lie 1/24 apart.
    assert change.p == 1


def test_what_did_not_change_has_a_p_of_one() -> None:
    run = opened(lambda speaker, clip: "refused" if speaker < 6 and clip == 0 else "parsed")
    (change,) = loss_changes(run, run)
    assert (change.p, change.q, change.growth, change.grew) == (1, 1, 0, False)
    assert loss_changes(opened(fair), opened(fair)) == []


@pytest.mark.parametrize(("per_group", "outcome"), [(2, "inconclusive"), (3, "inconclusive"), (4, "worse")])
def test_a_gap_that_so_few_clusters_cannot_tell_never_passes(per_group: int, outcome: str) -> None:
    # Every answer to women is refused now, none before. Of C(2n, n) permutations two are as extreme.
    def run(refused: int) -> OpenedRun:
        return opened(lambda speaker, clip: "refused" if speaker < refused else "parsed", each=per_group, clips=10)

    (change,) = loss_changes(run(per_group), run(0))
    assert change.growth == 100
    assert change.p == change.p_least == pytest.approx(2 / math.comb(2 * per_group, per_group))
    check = _changed_loss(change, "before")
    assert check.outcome == outcome
    assert outcome == "worse" or f"no q below {change.q_least:.2g}" in check.reason


def test_what_was_not_asked_alike_is_not_compared() -> None:
    lost, alone = (opened(lambda speaker, clip: "failed", groups=groups) for groups in ("fm", "f"))
    assert len(loss_changes(lost, opened(fair))) == 1
    assert loss_changes(alone, opened(fair, groups="f")) == []
    assert loss_changes(lost, opened(fair, fingerprint="other")) == []
    assert loss_changes(lost, opened(fair, groups="mf")) == []
    assert loss_changes(lost, replace(opened(fair), asked={})) == []


@pytest.mark.parametrize(
    ("new", "q", "undefined", "outcome", "why"),
    [
        ((30, 10), 0.049, None, "worse", "(q 0.049)"),
        ((30, 10), 0.05, None, "pass", ""),
        ((30, 10), math.nan, None, "inconclusive", "(too few clusters for a test)"),
        ((30, 10), math.nan, "no numbers", "inconclusive", "(no numbers)"),
        ((30, 10), 0.2, None, "inconclusive", "(p 0.1; so few clusters give no q below 0.2)"),
        ((30, 10), 0.06, None, "inconclusive", "(p 0.1; so few clusters give no q below 0.05)"),
        ((12.9, 3), 0.2, None, "pass", ""),  # 4.9 points more
        # By itself it would be worse: that many other tasks lost answers, too, is no reason to pass.
        ((30, 10), 0.3, None, "inconclusive", "(p 0.01, but among all changes q 0.3)"),
        ((12.9, 3), 0.3, None, "pass", ""),
        ((8.5, 3), math.nan, None, "inconclusive", "(too few clusters for a test)"),
        ((10, 5), math.nan, None, "pass", ""),
        ((10, 5), 0.001, None, "pass", ""),
    ],
)
def test_a_gap_is_worse_where_it_grew_beyond_chance(
    new: tuple[float, float], q: float, undefined: str | None, outcome: str, why: str
) -> None:
    def mover(high: float, low: float) -> Mover:
        return Mover(value="yes", high_group="f", high_share=high, low_group="m", low_share=low)

    # The smallest q that few clusters allow.
    few = {0.2: 0.2, 0.06: 0.05}.get(q)
    change = LossChange(
        dimension="gender", condition="audio", family="f", task="f:t", metric="refusal", unit="percentage points",
        new=mover(*new), old=mover(8, 3), q=q, p=0.1 if few else {0.3: 0.01}.get(q, q), p_least=0.1 if few else 0.001,
        q_least=few or 0.002, undefined=undefined,
    )  # fmt: skip
    check = _changed_loss(change, "before")
    assert (check.outcome, check.value, check.baseline) == (outcome, new[0] - new[1], 5)
    assert check.difference == new[0] - new[1] - 5 and check.limit == 0
    told = f"group f loses {new[0]:g} % and group m {new[1]:g} %, in the baseline f 8 % and m 3 % "
    assert check.reason == (f"{told}{why}" if why else "")


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

    (change,) = loss_changes(of(True), of(False))
    # 15 of 60 women and no man; within pairs 15 signs that are all alike, p = 2 / 2^15.
    assert (change.metric, change.growth, change.grew) == ("refusal", pytest.approx(25), True)
    assert change.p < 0.001
