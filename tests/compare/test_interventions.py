"""System prompts against the plain condition: one that works, one that does not, and those that decline."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from commands import Cli, csv_rows
from made_requests import APPLICATIONS
from sample_runs import sample_runs

from equivox.compare.conditions import REFUSED, USED, answer_tests, condition_tests
from equivox.compare.pairs import Asked, OpenedRun, PairedTest, open_runs
from equivox.compare.runs import ComparedRun, open_comparison
from equivox.core.samples import Row, Samples
from equivox.core.scores import ScoringOptions
from equivox.report.details import name_more_biased
from equivox.run.pipeline import rescore
from equivox.tasks.files import load_task_file

TASKS = "vibe_gender:candidate,vibe_gender:advisory"
MODELS = {
    "obeys": "planted,shift=0.4,obeys=1",
    "ignores": "planted,shift=0.4",
    "constant": "planted,shift=0.4,bland=1",
    "declines": "planted,shift=0.4,declines=1",
    "declines some": "planted,shift=0.4,obeys=1,declines=0.12",
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("interventions")
    return sample_runs(folder, MODELS, TASKS, 499, system={"fair": "Treat all alike."})


def found_in(folder: Path) -> dict[tuple[str, str], PairedTest]:
    found = condition_tests(open_runs(open_comparison([folder])), n_resamples=999)
    return {(test.task, test.metric): test for _, test in found}


def names_in(folder: Path) -> set[str]:
    """Return which condition is more biased by nTVD, over all tasks."""
    tests = found_in(folder)
    return {name_more_biased(test, list(tests.values())) for (_, metric), test in tests.items() if metric == "nTVD"}


def scores_of(folder: Path) -> dict[str, dict[str, object]]:
    scores = json.loads((folder / "scores.json").read_text())["scores"]
    return {s["task"]: s for s in scores if not s["attribute"] and s["metric"] == "nTVD"}


def test_one_that_is_obeyed(runs: dict[str, Path]) -> None:
    scores = scores_of(runs["obeys"])
    for task in TASKS.split(","):
        # Planted: 40 without the system prompt, 0 with it.
        assert scores[task]["q"] < 0.05 and scores[task]["ci"][0] < 40 < scores[task]["ci"][1]  # type: ignore[index, operator]
        assert scores[f"{task}@system=fair"]["q"] > 0.05  # type: ignore[operator]
    tests = found_in(runs["obeys"])
    for task in (*TASKS.split(","), "vibe_gender: all tasks"):
        test = tests[task, "nTVD"]
        assert (test.model_a, test.model_b) == ("audio", "system=fair")
        assert test.q < 0.05 and test.ci_low < 40 < test.ci_high and test.n_clusters == 72
    assert names_in(runs["obeys"]) == {"audio"}


def test_one_that_is_ignored(runs: dict[str, Path]) -> None:
    tests = found_in(runs["ignores"])
    assert all(not test.q < 0.05 and test.undefined is None for test in tests.values())
    names = names_in(runs["ignores"])
    assert names and names <= {"no difference shown", "too few data"}


def test_the_same_answer_to_everybody_has_no_score_and_says_why(runs: dict[str, Path]) -> None:
    tests = found_in(runs["constant"])
    assert "has no score" in str(tests["vibe_gender:candidate", "nTVD"].undefined)
    assert "no result" in names_in(runs["constant"])


def test_a_refusal_to_everybody_is_no_improvement(runs: dict[str, Path]) -> None:
    tests = found_in(runs["declines"])
    for task in TASKS.split(","):
        assert (tests[task, REFUSED].value_a, tests[task, REFUSED].value_b) == (0, 100)
        assert tests[task, REFUSED].q < 0.05 and tests[task, USED].difference == 100


def test_less_bias_and_more_refusals_are_both_told(runs: dict[str, Path]) -> None:
    assert names_in(runs["declines some"]) == {"audio"}
    tests = found_in(runs["declines some"])
    # 12 % decline by construction: 288 answers, so 4 points are two standard errors.
    for task in TASKS.split(","):
        assert tests[task, REFUSED].value_b == pytest.approx(12, abs=6)
        assert tests[task, REFUSED].ci_low - 1 < -12 < tests[task, REFUSED].ci_high + 1


def test_numbers_out_of_the_range_are_no_answers_that_can_be_used() -> None:
    # With a system prompt every fourth salary is 900,000, out of 0 to 200,000.
    plain = load_task_file(Path(APPLICATIONS))[1]
    told = {"": ["50000", "60000", "70000", "80000"], "system=kind": ["50000", "60000", "70000", "900000"]}
    asked = {}
    for condition, salaries in told.items():
        rows = [
            Row(group=group, cluster=f"{group}{unit}", stratum="", sample_id=f"{group}{unit}/{n}", status="parsed",
                values={"salary": (salary,)})
            for group in ("black", "white") for unit in range(6) for n, salary in enumerate(salaries)
        ]  # fmt: skip
        name = f"{plain.name}@{condition}" if condition else plain.name
        task = replace(plain, name=name, condition=condition or plain.condition)
        asked[name] = Asked(task, "", "c", Samples.from_rows(rows))
    opened = OpenedRun(ComparedRun("m", Path(), "rules", []), "", asked)
    (used,) = [test for test in answer_tests(opened, 99) if test.metric == USED]
    assert (used.value_a, used.value_b, used.difference) == (100, 75, 25)


def test_run_compare_and_report_show_them(equivox: Cli, runs: dict[str, Path], tmp_path: Path) -> None:
    out = equivox.done("score", runs["declines some"], "--scoring", "n_resamples=499")
    assert "system=fair" in out and "no improvement where fewer answers are used" in out
    out = equivox.done("compare", runs["declines some"], "--resamples", 199, "--tables", tmp_path / "csv")
    rows = csv_rows(tmp_path / "csv" / "conditions.csv")
    assert {USED, REFUSED, "nTVD"} == {row["metric"] for row in rows}


def test_a_run_is_resumed_only_with_the_same_text(equivox: Cli, tmp_path: Path) -> None:
    (tmp_path / "fair.txt").write_text("Be fair.\n")
    command = (
        *("run", "simulated:random", "vibe_gender:advisory", "--data", "sample", "--limit", 24, "-q"),
        *("--system", tmp_path / "fair.txt", "--scoring", "n_resamples=99", "-o", tmp_path / "run"),
    )
    out = equivox.done(*command)
    again = equivox.done(*command)
    assert again.startswith(out) and again[len(out) :].startswith("All ")
    assert json.loads((tmp_path / "run" / "manifest.json").read_text())["command"]["system"] == {"fair": "Be fair."}
    equivox.done("verify", tmp_path / "run")
    (tmp_path / "fair.txt").write_text("Be just.\n")
    assert "holds another run" in equivox.refused(*command)


@pytest.mark.parametrize(
    ("model", "told"),
    [("random,obeys=1", "has no option 'obeys'"), ("planted,shift=0.2,bland=2", "less than or equal to 1, got 2")],
)
def test_wrong_options_of_simulated_models(model: str, told: str, equivox: Cli, tmp_path: Path) -> None:
    err = equivox.refused(
        "run", f"simulated:{model}", "vibe_gender:advisory", "--data", "sample", "-o", tmp_path / "run"
    )
    assert told in err


def test_answers_compared_by_further_columns_are_held_to_the_same(runs: dict[str, Path], tmp_path: Path) -> None:
    copied = Path(shutil.copytree(runs["declines some"], tmp_path / "run"))
    rescore(copied, compare=(("race",),), options=ScoringOptions(n_resamples=99))
    tests = found_in(copied)
    assert tests["vibe_gender_by_race:candidate", REFUSED].q < 0.05
