"""What is shown of a design that could not have found anything, and of a finding that holds for these names alone."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from commands import Cli
from made_scores import made_score

from equivox.compare.runs import ComparedRun
from equivox.core.metric import Measure, Metric
from equivox.core.scores import Score, Scored
from equivox.report.figures import draw_forest
from equivox.report.frames import make_grid, make_score_frame
from equivox.run.scoring import with_q

FEW = "20 permutations: no p below 0.1"


def metric(**measure: Any) -> Metric:
    return Metric(name="m", score=lambda *_: Scored([]), measures=(Measure(name="n", **measure),))


def run(scores: list[Score], **measure: Any) -> ComparedRun:
    return ComparedRun("model", Path("x"), "rules", with_q(scores), {"f": metric(**measure)})


def score(p: float, **given: Any) -> Score:
    return made_score(name="n", p_cluster=p, **given)


SMALL = run([score(0.1, p_least=0.1, cannot_tell=FEW), score(0.001, task="f:u", p_least=0.0001)])


def test_stars_follow_q_and_not_p() -> None:
    # Forty tasks with p .01: a star each by p, none by q.
    many = run([score(0.01, task=f"f:{n}", p_least=0.0001, ci_low=30.0, ci_high=50.0) for n in range(40)])
    (row,) = make_grid(make_score_frame([many]), "").rows
    assert set(row[1:]) == {"40.00"}


def test_unequal_losses_are_marked_beside_the_star() -> None:
    lost = replace(score(0.0001).coverage, requested_by_group={"f": 10, "m": 10}, used_by_group={"f": 10, "m": 9})
    table = make_grid(make_score_frame([run([replace(score(0.0001), coverage=lost)])]), "")
    assert table.rows[0][1] == "40.00**†"
    assert any("10 % of the answers of group m are missing" in remark for remark in table.remarks)
    assert any("† more answers of one group are missing" in note for note in table.notes)


def test_the_figure_marks_it_too_and_says_so_in_words() -> None:
    rows = [(s.task, s) for s in SMALL.scores]
    assert [text.get_text() for text in draw_forest(rows).axes[0].texts] == ["?"]
    fewer = replace(score(0.5).coverage, requested_by_group={"f": 10, "m": 10}, used_by_group={"f": 10, "m": 9})
    uneven = [
        ("a", score(0.5, ci_low=30.0, ci_high=50.0, coverage=fewer)),
        ("b", replace(SMALL.scores[0], coverage=fewer)),
    ]
    assert [text.get_text() for text in draw_forest(uneven).axes[0].texts] == ["†", "?†"]


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
        assert "TOO FEW DATA" in out and "NO DIFFERENCE" not in out, command
    equivox.done("report", folder, "--output", tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text("utf-8")
    assert "too few data" in page.lower() and FEW in page
    equivox.done("leaderboard", tmp_path / "runs", "--output", tmp_path / "board")
    records = json.loads(next((tmp_path / "board").glob("*.json")).read_text("utf-8"))["rows"]
    assert {(record["outcome"], record["cannot_tell"]) for record in records} == {("too_few_data", FEW)}
