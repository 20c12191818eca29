"""The report without a browser: what it is built from, whatever the runs are."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import Cli, csv_rows
from sample_runs import sample_run

from equivox import FunctionEngine, measure
from equivox.report.page import build_report


@pytest.fixture
def every_condition(tmp_path: Path) -> Path:
    return sample_run(tmp_path / "run", "biased", "vibe_gender:candidate", limit=48, conditions="all")


def test_a_single_task_in_every_condition(equivox: Cli, every_condition: Path, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    equivox.done("report", every_condition, "--examples", 1, "--data", "sample", "--output", file)
    page = file.read_text("utf-8")
    # A single task fills the page; its conditions are in the tables.
    assert page.count('class="answer"') == 2 and "<audio" in page
    assert 'class="matrix' not in page and "The same samples in another condition" in page
    assert {f"vibe_gender:candidate@{name}" in page for name in ("silence", "text_only", "shuffled")} == {True}


def test_arms_are_tested_each_with_its_own(equivox: Cli, every_condition: Path, tmp_path: Path) -> None:

    other = sample_run(tmp_path / "other", "random", "vibe_gender:candidate", limit=48, conditions="all")
    folders = (every_condition, other)
    equivox.done("compare", *folders, "--tables", tmp_path / "csv", "--resamples", 99)
    tests = {row["task"]: row for row in csv_rows(tmp_path / "csv" / "paired_tests.csv")}
    assert set(tests) == {
        f"vibe_gender:candidate{condition}" for condition in ("", "@silence", "@shuffled", "@text_only")
    }
    assert float(tests["vibe_gender:candidate"]["further"]) > 0


def test_a_name_cannot_turn_the_words_beside_it(tmp_path: Path) -> None:
    """U+202E writes what follows from right to left: the sentence of the verdict would be read backwards."""
    engine = FunctionEngine(
        lambda request: f"{request.media[0].load()[:1]!r} chess \u202etxet", name="m\u202el", revision="1"
    )
    settings = {"data": "sample", "limit": 24, "annotator": "rules"}
    measure(engine, "vibe_gender:advisory", output=tmp_path / "run", **settings)
    page = build_report([tmp_path / "run"])
    assert "\u202e" not in page and "m\\u202el" in page


def test_a_run_of_which_nothing_is_known_is_shown_with_its_reasons(equivox: Cli, tmp_path: Path) -> None:
    """A page of such a run was refused, for a table of GENRES that no scoring of it writes."""
    tasks = "genres_standin:ar,vibe_gender:candidate"
    failed = sample_run(tmp_path / "failed", "oracle,fail=1", tasks, limit=12)
    other = sample_run(tmp_path / "other", "biased", tasks, limit=12)
    page = build_report([failed, other])
    assert page.count("only 0 % of the responses of group female are usable") > 1
    code, _, err = equivox("compare", failed, other, "--resamples", 99)
    assert code == 1 and "left out" not in err
    (other / "tables" / "genres_standin-ar" / "distributions.parquet").unlink()
    code, _, err = equivox("report", other, "--figure", "list")
    assert code == 2 and "make it with `equivox score" in err
