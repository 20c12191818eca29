"""The marks of a number: stars for q, a dagger for unequal losses, a question mark for too few data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from commands import Cli
from made_scores import made_score

from equivox.compare.runs import ComparedRun
from equivox.core.metric import Measure, Metric
from equivox.core.scores import Score, Scored
from equivox.report.figures import draw_forest
from equivox.report.frames import make_grid, make_score_frame
from equivox.run.scoring import with_q

LOST = replace(made_score().coverage, requested_by_group={"f": 10, "m": 10}, used_by_group={"f": 10, "m": 9})


def run(scores: list[Score]) -> ComparedRun:
    metric = Metric(name="m", score=lambda *_: Scored([]), measures=(Measure(name="nTVD"),))
    return ComparedRun("model", Path("x"), "rules", with_q(scores), {"f": metric})


def test_stars_follow_q_and_not_p() -> None:
    # Forty tasks with p .01: a star each by p, none by q.
    many = run([made_score(p=0.01, task=f"f:{n}") for n in range(40)])
    (row,) = make_grid(make_score_frame([many]), "").rows
    assert set(row[1:]) == {"40.00"}


def test_unequal_losses_are_marked_beside_the_star() -> None:
    table = make_grid(make_score_frame([run([made_score(p=0.0001, coverage=LOST)])]), "")
    assert table.rows[0][1] == "40.00**†"
    assert any("10 % of the answers of group m" in remark for remark in table.remarks)


def test_a_figure_marks_both() -> None:
    few = made_score(p=0.1, outcome="too_few_data")
    rows = [("a", few), ("b", made_score(p=0.5, coverage=LOST)), ("c", replace(few, coverage=LOST))]
    assert [text.get_text() for text in draw_forest(rows).axes[0].texts] == ["?", "†", "?†"]


def test_three_speakers_a_group_from_the_run_to_the_report(
    clip_corpus: Callable[..., Path], equivox: Cli, tmp_path: Path
) -> None:
    """The model that is biased in every answer: 20 permutations cannot show it, and nothing says that it is fair."""
    folder = tmp_path / "runs" / "few"
    run_it = ("run", "simulated:biased", clip_corpus(speakers_per_group=3), "--output", folder)
    for command in (run_it, ("compare", folder)):
        out = equivox.done(*command)
        assert "TOO FEW DATA" in out and "NO DIFFERENCE" not in out, command
    equivox.done("report", folder, "--output", tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text("utf-8")
    assert "too few data" in page.lower() and "20 permutations" in page
