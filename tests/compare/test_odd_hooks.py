"""Hooks of a metric that break are told in one line, wherever they are called: they are somebody's code."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

import pytest
from commands import Cli
from sample_runs import sample_run

from equivox.compare import ranking
from equivox.core.errors import RunError
from equivox.core.metric import Cohort, FollowUp, Measure, Metric
from equivox.core.scores import Scored, ScoringOptions
from equivox.run import scoring
from equivox.tasks.registry import builtin_tasks


def broken(*_: object) -> NoReturn:
    raise ValueError("broken\nin two lines")


def metric(**hooks: Any) -> Metric:
    return Metric(name="odd", score=lambda *_: Scored([]), measures=(Measure(name="M1"),), **hooks)


def test_an_overlap(equivox: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = sample_run(tmp_path / "run", "random", "vibe_gender:advisory", limit=8)
    own = builtin_tasks()["vibe_gender:advisory"].metric
    monkeypatch.setitem(vars(own), "overlap", broken)
    code, out, err = equivox("compare", run)
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert f"the overlap of the metric {own.name} failed (ValueError: broken in two lines)" in err


def test_the_totals_of_a_cohort(monkeypatch: pytest.MonkeyPatch) -> None:
    cohort = Cohort(title="t", legend="", needs="", stand_ins="", scores=broken, totals=broken)
    run: Any = SimpleNamespace(model="m", metrics={"f": metric(cohort=cohort)}, scores=())
    monkeypatch.setattr(ranking, "_signed", lambda run, family: {"M1": 1.0})
    with pytest.raises(RunError, match="the cohort of the metric odd failed"):
        ranking.published_totals([run], "paper", fixed=False)


def test_the_questions_of_a_follow_up(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    task: Any = SimpleNamespace(name="f:t", family="f", metric=metric(follow_up=FollowUp(questions=broken)))
    annotator: Any = SimpleNamespace(identity=SimpleNamespace(name="judge"))
    monkeypatch.setattr(scoring, "scoring_samples", lambda *_: ({"f:t": None}, None))
    with pytest.raises(RunError, match="the follow-up of the metric odd failed"):
        scoring.follow_up(tmp_path, [task], annotator, ScoringOptions())
