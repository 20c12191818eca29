"""What is shown of a design that could not have found anything, and of a finding that holds for these names alone."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from commands import Cli
from made_scores import made_score

from equivox.compare.runs import ComparedRun
from equivox.core.detectable import Detectable
from equivox.core.metric import Measure, Metric
from equivox.core.scores import Score, Scored, verdict
from equivox.report.figures import draw_forest
from equivox.report.opening import family_summary
from equivox.report.picture import picture
from equivox.report.score_tables import grid, task_tables
from equivox.run.scoring import with_q

FEW = "20 permutations: no p below 0.1"


def metric(**measure: Any) -> Metric:
    return Metric(name="m", score=lambda *_: Scored([]), measures=(Measure(name="n", **measure),))


def run(scores: list[Score], **measure: Any) -> ComparedRun:
    return ComparedRun("model", Path("x"), "rules", with_q(scores), {"f": metric(**measure)})


def score(p: float, **given: Any) -> Score:
    return made_score(name="n", p_cluster=p, **given)


SMALL = run([score(0.1, p_least=0.1, cannot_tell=FEW), score(0.001, task="f:u", p_least=0.0001)])


def test_a_score_table_marks_what_it_cannot_tell_and_says_why() -> None:
    (table,) = task_tables([SMALL])[1]
    cells = [str(row[3]) for row in table.rows]
    assert cells == ["40.00?", "40.00*"]
    assert f"? 1 of 2 scores: this design cannot tell: {FEW}" in table.remarks
    assert any("? this design cannot tell" in note for note in table.notes)
    table = grid("", [("model", s) for s in SMALL.scores])
    assert [str(cell) for cell in table.rows[0]] == ["model", "40.00?", "40.00*"]
    assert any(FEW in remark for remark in table.remarks)


def test_one_reason_in_several_units_is_one_line() -> None:
    design = Detectable(at_5_percent=30.0, at_5_of_10000=45.0, answers=1.0, correlation=0.0, shift=25.0, sd=100.0)
    wide = {"detectable": design, "ci_low": -40.0, "ci_high": 40.0, "target": 0.0, "n_clusters": 50}
    scores = [
        score(0.6, unit="words", **wide),
        score(0.7, task="f:u", unit="percent", **wide | {"detectable": design.times(0.01), "ci_high": 0.4}),
    ]
    assert (design.times(0.01).sd, design.times(0.01).per_ntvd) == (1.0, 1.0)  # an nTVD is no part of such a design
    lines = [line for line in task_tables([run(scores)])[1][0].remarks if line.startswith("?")]
    assert len(lines) == 1 and "2 of 2 scores: this design cannot tell: a difference of 0.25 SD can stay" in lines[0]
    (alone,) = (line for line in task_tables([run(scores[:1])])[1][0].remarks if line.startswith("?"))
    assert "a difference of 25 words (0.25 SD) can stay" in alone


def test_unequal_losses_are_marked_beside_the_star() -> None:
    lost = replace(score(0.0001).coverage, requested_by_group={"f": 10, "m": 10}, used_by_group={"f": 10, "m": 9})
    (table,) = task_tables([run([replace(score(0.0001), coverage=lost)])])[1]
    assert any(str(cell) == "40.00**†" for cell in table.rows[0])
    assert any("† more answers of one group are missing" in note for note in table.notes)


def test_stars_follow_q_and_not_p() -> None:
    # Forty tasks with p .01: a star each by p, none by q.
    many = run([score(0.01, task=f"f:{n}", p_least=0.0001, ci_low=30.0, ci_high=50.0) for n in range(40)])
    (table,) = task_tables([many])[1]
    assert {str(row[3]) for row in table.rows} == {"40.00"}


def test_the_summary_never_says_no_difference_of_a_design_that_cannot_tell() -> None:
    alone = replace(SMALL, scores=SMALL.scores[:1])
    assert family_summary(alone, "f") == ("cannot tell", f"This design cannot tell. {FEW}.")
    known, text = family_summary(SMALL, "f")
    assert (
        known == "found" and text.startswith("Yes, in 1 of 2 tasks.") and f"t: this design cannot tell: {FEW}." in text
    )
    fair = run(
        [score(0.1, p_least=0.1, cannot_tell=FEW), score(0.4, task="f:u", p_least=0.0001, ci_low=30.0, ci_high=50.0)]
    )
    known, text = family_summary(fair, "f")
    # What could be told is told apart from what could not, and the verdict is not that nothing differs.
    assert known == "cannot tell" and "No difference shown: u" in text and FEW in text


@pytest.mark.parametrize(
    ("scores", "known"),
    [
        ([], "undefined"),
        ([score(math.nan)], "undefined"),
        ([score(0.5, ci_low=30.0, ci_high=50.0)], "not shown"),
        ([score(0.5)], "cannot tell"),
        ([score(0.5), score(math.nan, undefined="no answer")], "undefined"),
        ([score(0.5), score(0.5, cannot_tell=FEW)], "cannot tell"),
        ([score(0.001), score(math.nan, undefined="no answer")], "found"),
        ([score(0.5, cannot_tell=FEW), score(math.nan, undefined="no answer")], "undefined"),
    ],
)
def test_one_function_decides(scores: list[Score], known: str) -> None:
    assert verdict(run(scores).scores if scores else []) == known


def test_the_figure_marks_it_too_and_says_so_in_words() -> None:
    rows = [(s.task, s) for s in SMALL.scores]
    (mark,) = picture([SMALL])[0].marks
    assert mark is not None and (mark.sign, mark.verdict) == ("?", "cannot tell")
    assert "cannot tell 40.00" in mark.told and FEW in mark.told
    assert [text.get_text() for text in draw_forest(rows).axes[0].texts] == ["?"]
    fewer = replace(score(0.5).coverage, requested_by_group={"f": 10, "m": 10}, used_by_group={"f": 10, "m": 9})
    uneven = [
        ("a", score(0.5, ci_low=30.0, ci_high=50.0, coverage=fewer)),
        ("b", replace(SMALL.scores[0], coverage=fewer)),
    ]
    assert [text.get_text() for text in draw_forest(uneven).axes[0].texts] == ["†", "?†"]


def test_two_p_values_stand_beside_each_other_and_say_what_they_speak_of() -> None:
    names = score(0.02, p_these=0.0001, notes=("32 permutations",))
    labels = {"p_cluster": "p names (new names)", "p_these": "p stories (these names)", "p_help": "p names: …"}
    (table,) = task_tables([run([names], **labels)])[1]
    row = dict(zip(map(str, table.columns), map(str, table.rows[0]), strict=True))
    assert (row["p stories (these names)"], row["p names (new names)"]) == ("<0.001", "0.020")
    # The p over names decides, however small that over stories is.
    assert row["value"] == "40.00*" and "p names: …" in table.notes


def test_a_submission_says_it_in_its_notes() -> None:
    from equivox.integrations.hub.submission import notes_of
    from equivox.tasks.registry import builtin_tasks

    task = builtin_tasks()["vibe_gender:story"]
    manifest = {
        "identity": {
            "model": {"engine": "vllm", "model": "m", "revision": "1"},
            "corpora": {"crema_d": "0" * 64},
            "seed": 0,
        },
        "command": {"model": "m", "annotator": "rules"},
        "equivox": "0",
    }
    few = replace(SMALL.scores[0], name="nTVD", task=task.name)
    assert f"THIS DESIGN CANNOT TELL: {FEW}" in notes_of(few, task, manifest, {}, compared=True)


def test_three_speakers_a_group_from_the_run_to_the_report(
    clip_corpus: Callable[..., Path], equivox: Cli, tmp_path: Path
) -> None:
    """The model that is biased in every answer: 20 permutations cannot show it, and nothing says that it is fair."""
    task_file = clip_corpus(speakers_per_group=3)
    folder = tmp_path / "runs" / "few"
    for command in (("run", "simulated:biased", task_file, "--output", folder), ("compare", folder)):
        out = equivox.done(*command)
        assert re.search(r"[89]\d\.\d\d\?|100\.00\?", out), command
        assert f"this design cannot tell: {FEW}" in " ".join(out.split()), command
    equivox.done("report", folder, "--output", tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text("utf-8")
    assert f"this design cannot tell: {FEW}" in page and 'class="cannot-tell"' in page
    assert "Not shown" not in page and "No difference shown" not in page
    equivox.done("leaderboard", tmp_path / "runs", "--output", tmp_path / "board")
    board = (tmp_path / "board" / "scores.html").read_text("utf-8")
    assert "100.00?" in board and f"cannot tell: {FEW}" in board
    records = json.loads(next((tmp_path / "board").glob("*.json")).read_text("utf-8"))["rows"]
    assert {record["cannot_tell"] for record in records} == {FEW}
