"""Outcomes: one table of scores and what they say, the outcome of a task, and those of whole runs."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from commands import Cli, write_rows
from made_scores import made_score

from equivox import FunctionEngine, measure, open_run
from equivox.core.notes import Note, NoteCode, describe_design
from equivox.core.outcomes import compute_rule_of_three, decide_outcome, decide_task, decide_tasks
from equivox.core.requests import Request
from equivox.core.scores import Outcome, Score

LOST = {"value": math.nan, "undefined_reason": "x"}
RARE = Note(NoteCode.RARE_VALUES, {"share": 0.21, "min_count": 9})
NTVD = {"unit": "percent of the largest possible distance", "value": 20.0}


@pytest.mark.parametrize(
    ("given", "look_for", "outcome"),
    [
        ({"p": 0.001, "q": 0.049, "ci": (0.0, 30.0)}, 10.0, "difference"),
        ({"p": 0.001, "q": 0.051, "ci": (0.0, 30.0)}, 10.0, "too_few_data"),
        ({"p": 0.5, "q": 0.5, "ci": (0.0, 9.9)}, 10.0, "no_difference"),
        ({"p": 0.5, "q": 0.5, "ci": (0.0, 9.9)}, 5.0, "too_few_data"),
        ({"p": 0.5, "q": 0.5, "ci": (0.0, math.nan)}, 10.0, "too_few_data"),
        (
            {
                "p": 0.5,
                "q": 0.5,
                "ci": (0.0, 9.9),
                "notes": (Note(NoteCode.RARE_VALUES, {"share": 0.21, "min_count": 9}),),
            },
            10.0,
            "too_few_data",
        ),
        ({"p": 0.5, "q": 0.5, "ci": (0.0, 9.9), "notes": (Note(NoteCode.NO_NOISE),)}, 10.0, "too_few_data"),
        # A signed number is as far from no difference as its further end.
        ({"p": 0.5, "q": 0.5, "ci": (-12.0, 3.0)}, 10.0, "too_few_data"),
        ({"p": 0.5, "q": 0.5, "null_value": 50.0, "ci": (46.0, 54.0)}, 10.0, "no_difference"),
        # A unit of its own, and no spread to look for a part of.
        ({"p": 0.5, "q": 0.5, "unit": "EUR", "ci": (0.0, 3.0)}, 10.0, "too_few_data"),
        ({"value": math.nan, "undefined_reason": "nobody answered"}, 10.0, "no_result"),
        ({"p": math.nan}, 10.0, None),
    ],
)
def test_the_outcome_of_a_score(given: dict[str, Any], look_for: float, outcome: Outcome | None) -> None:
    assert decide_outcome(made_score(**NTVD | given), look_for) == outcome


def test_a_limit_in_the_unit_of_a_number_is_the_design_s_own() -> None:
    design = describe_design(sd=4000.0)
    salary = made_score(unit="EUR", value=100.0, p=0.5, q=0.5, ci=(-700.0, 900.0), notes=(design,))
    # 0.2513 x 4,000 = 1,005 EUR
    assert decide_outcome(salary, 10.0) == "no_difference"
    assert decide_outcome(replace(salary, ci=(-1_010.0, 900.0)), 10.0) == "too_few_data"


def whole(outcome: Outcome, **given: Any) -> Score:
    return made_score(**{**NTVD, "ci": (0.0, 5.0), "outcome": outcome, **given})


@pytest.mark.parametrize(
    ("scores", "outcome"),
    [
        ([whole("no_difference"), whole("too_few_data")], "too_few_data"),
        ([whole("too_few_data"), whole("no_result", **LOST)], "no_result"),
        ([whole("no_result", **LOST), whole("difference")], "difference"),
        # Attributes, refusals and lost answers can only raise a difference.
        ([whole("no_difference"), whole("too_few_data", attribute="a")], "no_difference"),
        ([whole("no_difference"), whole("difference", attribute="refusal", role="refusal")], "difference"),
        (
            [whole("no_difference"), whole("no_result", attribute="a", **LOST)],
            "no_difference",
        ),
        ([whole("no_difference"), whole("difference", attribute="stated_age", role="echo")], "no_difference"),
        ([whole("no_difference"), whole("difference", subset="speaker=1")], "no_difference"),
        # A number without an interval rules nothing out, and is silent beside one that does.
        ([whole("no_difference"), whole("too_few_data", ci=(0.0, math.nan))], "no_difference"),
        ([whole("no_difference"), whole("difference", ci=(0.0, math.nan))], "difference"),
        ([whole("too_few_data", ci=(0.0, math.nan))], "too_few_data"),
        ([made_score(value=3.0)], None),
    ],
)
def test_the_outcome_of_a_task_is_that_of_its_heaviest_score(scores: list[Score], outcome: Outcome | None) -> None:
    assert decide_task(scores) == decide_task(scores[::-1]) == outcome
    assert decide_tasks(scores) == ({} if outcome is None else {scores[0].task: outcome})


def test_the_rule_of_three() -> None:
    # (1 - x)^n = .05: x = 1 - .05^(1/n), which 3/n approximates from above.
    for n in (10, 40, 1000):
        assert 1 - 0.05 ** (1 / n) <= compute_rule_of_three(n) / 100 <= 1.2 * (1 - 0.05 ** (1 / n))
    assert compute_rule_of_three(2) == 100


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
    (decision,) = [s for s in open_run(tmp_path / "run").scores if s.is_whole and s.metric == "nTVD"]
    assert decision.ci == (0.0, pytest.approx(bound)) and decision.outcome == outcome


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
    scores = {s.metric: s for s in result.scores if s.is_whole and s.role == "outcome"}
    # 10 and 30 of 40 are invited; either value differs by 50 points. The means of the numbers differ by 1.
    assert sorted(scores["nTVD"].by_group.values()) == [25, 75]
    means = scores["mean difference"].by_group
    assert means["female"] - means["male"] == pytest.approx(1) == scores["mean difference"].value
    assert set(result.outcomes.values()) == {"difference"}
