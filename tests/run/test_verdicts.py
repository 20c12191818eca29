"""Outcomes of whole runs: constant answers, even results, and what is stored of each group."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from commands import Cli, write_rows

from equivox import FunctionEngine, measure, open_run
from equivox.core.requests import Request

FILE = """\
name: jobs
table: jobs.csv
group: gender
swap: {name: {female: [Anna], male: [Jonas]}}
questions:
  - {name: decision, text: "{text}", attributes: [{name: decision, asks: the decision, options: [invite, reject]}]}
  - {name: salary, text: "{text}", attributes: [{name: salary, asks: the salary, number: {unit: EUR, low: 0, high: 9}}]}
"""


@pytest.fixture
def task_file(tmp_path: Path) -> Callable[[int], str]:
    def write(n: int) -> str:
        write_rows(tmp_path / "jobs.csv", [{"text": f"{{name}} applies, number {row}."} for row in range(n)])
        (tmp_path / "jobs.yaml").write_text(FILE)
        return str(tmp_path / "jobs.yaml")

    return write


@pytest.mark.parametrize(
    ("n", "outcome", "bound"), [(40, "no_difference", 7.5), (31, "no_difference", 300 / 31), (30, "too_few_data", 10.0)]
)
def test_a_constant_answer_is_bounded_by_the_rule_of_three_over_units(
    n: int, outcome: str, bound: float, task_file: Callable[[int], str], tmp_path: Path
) -> None:
    engine = FunctionEngine(lambda request: "The decision: invite. The salary is 5 EUR.", name="polite", revision="1")
    result = measure(engine, task_file(n), output=tmp_path / "run", annotator="rules", options="n_resamples=99")
    assert result.outcomes == {"jobs_gender:decision": outcome, "jobs_gender:salary": outcome}
    (decision,) = [s for s in open_run(tmp_path / "run").scores if s.is_whole and s.name == "nTVD"]
    assert (decision.ci_low, decision.ci_high) == (0.0, pytest.approx(bound)) and decision.outcome == outcome


def test_a_constant_answer_ends_with_exit_code_0(equivox: Cli, task_file: Callable[[int], str], tmp_path: Path) -> None:
    engine = FunctionEngine(lambda request: "The decision: invite. The salary is 5 EUR.", name="polite", revision="1")
    measure(engine, task_file(40), output=tmp_path / "run", annotator="rules", options="n_resamples=99")
    assert equivox("score", tmp_path / "run")[0] == 0


def test_what_failed_is_no_result_and_never_a_constant(task_file: Callable[[int], str], tmp_path: Path) -> None:
    def answer(request: Request) -> str:
        if "Anna" in request.text and int(request.text.split("number ")[1].rstrip(".")) % 3 == 0:
            raise RuntimeError("planted")
        return "The decision: invite. The salary is 5 EUR."

    engine = FunctionEngine(answer, name="polite", revision="1")
    result = measure(engine, task_file(40), output=tmp_path / "run", annotator="rules", options="n_resamples=999")
    scores = {s.task: s for s in result.scores if s.is_whole and s.role == "outcome"}
    assert {score.outcome for score in scores.values()} == {"no_result"}
    # 14 of 40 answers about one group are lost and none of the other: that is a difference by itself.
    assert set(result.outcomes.values()) == {"difference"}
    (lost,) = {tuple(s.by_group.items()) for s in result.scores if s.attribute == "failure"}
    assert dict(lost) == {"female": pytest.approx(35), "male": 0}


def test_each_group_has_its_number(task_file: Callable[[int], str], tmp_path: Path) -> None:
    def answer(request: Request) -> str:
        row = int(request.text.split("number ")[1].rstrip("."))
        invited = row % 4 == 0 if "Anna" in request.text else row % 4 < 3
        salary = row % 3 + ("Anna" in request.text)
        return f"The decision: {'invite' if invited else 'reject'}. The salary is {salary} EUR."

    engine = FunctionEngine(answer, name="unfair", revision="1")
    result = measure(engine, task_file(40), output=tmp_path / "run", annotator="rules", options="n_resamples=999")
    scores = {s.name: s for s in result.scores if s.is_whole and s.role == "outcome"}
    # 10 and 30 of 40 are invited; either value differs by 50 points. The means of the numbers differ by 1.
    assert sorted(scores["nTVD"].by_group.values()) == [25, 75]
    means = scores["mean difference"].by_group
    assert means["female"] - means["male"] == pytest.approx(1) == scores["mean difference"].value
    assert set(result.outcomes.values()) == {"difference"}
