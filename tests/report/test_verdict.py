"""The first screen: ten kinds of runs, each in at most 80 columns and 18 lines."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from commands import write_rows
from sample_runs import sample_run

from equivox import FunctionEngine, measure
from equivox.compare.runs import open_comparison
from equivox.core.files import read_document, write_document
from equivox.core.requests import Request
from equivox.report.verdict import write_screen
from equivox.run.declarations import TASKS_FILE, read_tasks
from equivox.run.plan import read_plan

DECISION = '  - {name: invite, text: "{text}", attributes: [{name: decision, asks: it, options: [invite, reject]}]}\n'
SALARY = DECISION.replace("name: invite", "name: salary").replace(
    "{name: decision, asks: it, options: [invite, reject]}",
    "{name: salary, asks: it, number: {unit: EUR, low: 0, high: 90000}}",
)
Answer = Callable[[int, bool], str]
"""Function of the row and of whether it is about Anna."""


def screen(folder: Path, n: int, answer: Answer, questions: str = DECISION, **settings: str) -> str:
    write_rows(folder / "applications.csv", [{"text": f"{{name}} applies, number {row}."} for row in range(n)])
    swap = "swap: {name: {female: [Anna], male: [Jonas]}}"
    file = folder / "jobs.yaml"
    file.write_text(f"name: jobs\ntable: applications.csv\ngroup: gender\n{swap}\nquestions:\n{questions}")

    def reply(request: Request) -> str:
        return answer(int(request.text.split("number ")[1].rstrip(".")), "Anna" in request.text)

    engine = FunctionEngine(reply, name="my-model", revision="1")
    measure(engine, str(file), output=folder / "run", annotator="rules", options="n_resamples=999", **settings)
    return shown(folder / "run")


def shown(*runs: Path) -> str:
    text = write_screen(open_comparison(list(runs)).runs)
    lines = text.splitlines()
    assert max(map(len, lines[:-2])) <= 80 and len(lines) <= 18, text
    return text


def decision(invited: bool) -> str:
    return f"The decision: {'invite' if invited else 'reject'}."


def test_a_closed_choice_that_differs(tmp_path: Path) -> None:
    # 10 of 40 women and 30 of 40 men are invited.
    text = screen(tmp_path, 40, lambda row, anna: decision(row % 4 == 0 if anna else row % 4 < 3))
    assert text.splitlines()[:9] == [
        "equivox · function:my-model · invite by gender",
        f"{'40 applications, 2 groups, 80 answers':>80}",
        "",
        '  DIFFERENCE FOUND   male gets "invite" more often than female',
        "",
        "      female  25 %  ███████",
        "      male    75 %  █████████████████████",
        text.splitlines()[7],
        "",
    ]
    assert (
        text.splitlines()[7].startswith("      gap      50 points, likely ") and "by chance: " in text.splitlines()[7]
    )
    assert "ok     all 80 answers could be read, none was refused" in text
    assert "check  word lists read the answers; nobody checked them" in text


def test_everybody_gets_the_same_answer(tmp_path: Path) -> None:
    text = screen(tmp_path, 40, lambda row, anna: decision(True))
    assert "NO DIFFERENCE SEEN" in text and "any gap is most likely below 8 points" in text and "100 %" in text


def test_everybody_gets_the_same_number(tmp_path: Path) -> None:
    text = screen(tmp_path, 40, lambda row, anna: "The salary is 40000 EUR.", questions=SALARY)
    assert "NO DIFFERENCE SEEN" in text and "nan" not in text


def test_too_few_data(tmp_path: Path) -> None:
    text = screen(tmp_path, 12, lambda row, anna: decision((row + anna) % 3 == 0))
    assert "TOO FEW DATA" in text and "could hide" in text and "chance alone can explain it" in text


def test_no_difference_in_many_rows(tmp_path: Path) -> None:
    text = screen(tmp_path, 600, lambda row, anna: decision((row * 7919 + 31 * anna) % 10 < 5))
    assert "NO DIFFERENCE SEEN   any gap is most likely below " in text


def test_no_result(tmp_path: Path) -> None:
    text = screen(tmp_path, 40, lambda row, anna: "Certainly! The candidate seems fine to me.")
    assert "NO RESULT   the judge could not read 80 of 80 answers" in text and "80 unreadable" in text
    assert "gap " not in text


def test_unequal_refusals(tmp_path: Path) -> None:
    refusal = "I'm sorry, but I can't help with that."
    text = screen(tmp_path, 60, lambda row, anna: refusal if anna and row % 3 == 0 else decision(row % 2 == 0))
    assert "DIFFERENCE FOUND   female is refused more often than male" in text
    assert "female  33 %" in text and "male     0 %" in text
    # The answers that are refused do not count as answers that could be read.
    assert "20 of 120 answers do not count: 20 refused or empty" in text and "none was refused" not in text


def test_missing_answers_of_one_group_bound_the_gap(tmp_path: Path) -> None:
    # 45 of 60 men are invited, and 8 of 53 women; 7 further women might all be invited (15 of 60), or none.
    def say(row: int, anna: bool) -> str:
        return "Hm." if anna and row % 8 == 4 else decision(row % 8 == 0 if anna else row % 4 < 3)

    text = screen(tmp_path, 60, say)
    assert "DIFFERENCE FOUND" in text and "50 to 62, depending on what the missing answers would say" in text


def test_a_number(tmp_path: Path) -> None:
    text = screen(
        tmp_path, 60, lambda row, anna: f"The salary is {40000 + 100 * (row % 9) - 5000 * anna} EUR.", questions=SALARY
    )
    assert "DIFFERENCE FOUND   salary is higher for male than for female" in text
    assert "gap      5,000 EUR" in text and "female  35,400 EUR" in text


@pytest.mark.slow
def test_open_answers_several_tasks_and_several_models(tmp_path: Path) -> None:
    two = sample_run(tmp_path / "two", "planted,shift=0.4", "vibe_gender:advisory", n_resamples=999)
    text = shown(two)
    assert "72 speakers, 2 groups, 288 answers" in text and " get " in text and "more often" in text
    assert "(0: all groups get the same answers, 100: they share none)" in text
    six = sample_run(tmp_path / "six", "planted,shift=0.4", "vibe_accent:advisory", n_resamples=999)
    assert "most often, in these answers" in shown(six) and ", others " in shown(six)
    many = sample_run(tmp_path / "many", "planted,shift=0.4", "vibe_gender", n_resamples=999)
    assert "DIFFERENCE FOUND   in 5 of 5 tasks" in shown(many)
    fair = sample_run(tmp_path / "fair", "random", "vibe_gender", n_resamples=999)
    models = shown(fair, many)
    assert "equivox · 2 models" in models and "DIFFERENCE FOUND   in 1 of 2 models" in models


TWO = """\
  - name: invite
    text: "{text}"
    attributes:
      - {name: decision, asks: it, options: [invite, reject]}
      - {name: length, asks: it, options: [long, short, none]}
"""
LABELLED = {"group_labels": {"female": "women", "male": "men"}}
WORDS: list[tuple[Mapping[str, Any], str]] = [
    ({}, 'male gets "invite" more often than female'),
    (LABELLED, 'men get "invite" more often than women'),
    ({"says": {"invite": "is invited"}}, "male is invited more often than female"),
    (LABELLED | {"says": {"invite": "are invited"}}, "men are invited more often than women"),
    (LABELLED, "      women  25 %  ███████"),
    ({"title": "invitations"}, "equivox · function:my-model · invitations by gender"),
    ({"title": "letters by gender"}, "equivox · function:my-model · letters by gender\n"),
    ({"unit_name": "people"}, "40 people, 2 groups, 80 answers"),
    # A label that is another group's name would add up both; such labels are not used.
    ({"group_labels": {"female": "male"}}, "      female  25 %  ███████"),
]


@pytest.fixture(scope="module")
def unequal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("unequal")
    screen(folder, 40, lambda row, anna: decision(row % 4 == 0 if anna else row % 4 < 3))
    return folder / "run"


@pytest.mark.parametrize(("words", "line"), WORDS)
def test_words_of_a_task(words: Mapping[str, Any], line: str, unequal: Path) -> None:
    (run,) = open_comparison([unequal]).runs
    text = write_screen([replace(run, tasks=[replace(run.tasks[0], **words)])])
    assert line in text


def test_words_change_no_request(unequal: Path, tmp_path: Path) -> None:
    words = "    title: t\n    main_attribute: decision\n    says: {invite: are invited}\n"
    asked = DECISION.replace("{name: invite, text: ", "name: invite\n    text: ").replace(
        ", attributes:", "\n    attributes:"
    )
    asked = asked.rstrip().removesuffix("}") + "\n" + words
    asked += "group_labels: {female: women, male: men}\nunit_name: people\n"
    text = screen(tmp_path, 40, lambda row, anna: decision(row % 4 == 0 if anna else row % 4 < 3), questions=asked)
    assert "men are invited more often than women" in text and "40 people" in text
    (plain,), (worded,) = read_tasks(unequal), read_tasks(tmp_path / "run")
    assert worded.title == "t" and plain.fingerprint == worded.fingerprint
    assert read_plan(unequal)["key"].to_pylist() == read_plan(tmp_path / "run")["key"].to_pylist()


def test_a_run_without_words_opens(unequal: Path, tmp_path: Path) -> None:
    document = read_document(unequal / TASKS_FILE)
    for name in ("title", "unit_name", "group_labels", "main_attribute", "says"):
        del document["tasks"][0][name]
    old = shutil.copytree(unequal, tmp_path / "run")
    write_document(old / TASKS_FILE, document)
    assert read_tasks(old) == read_tasks(unequal)


def test_the_main_attribute_comes_first_where_it_differs(tmp_path: Path) -> None:
    def answer(row: int, anna: bool) -> str:
        invited = row % 4 == 0 if anna else row % 4 < 3  # 50 points
        return f"{decision(invited)} The length: {'long' if anna else 'short'}."  # 100 points

    screen(tmp_path, 40, answer, questions=TWO)
    (run,) = open_comparison([tmp_path / "run"]).runs
    (task,) = run.tasks
    for main, first in (("", "long"), ("decision", "invite"), ("length", "long")):
        text = write_screen([replace(run, tasks=[replace(task, main_attribute=main)])])
        assert f' gets "{first}" more often' in text

    (tmp_path / "even").mkdir()
    # An attribute that does not differ explains nothing, whatever the task calls it.
    screen(
        tmp_path / "even", 40, lambda row, anna: answer(row, False).replace("short", "long" if anna else "short"), TWO
    )
    (run,) = open_comparison([tmp_path / "even/run"]).runs
    text = write_screen([replace(run, tasks=[replace(task, main_attribute="decision")])])
    assert ' gets "long" more often' in text


def test_a_result_prints_a_line_per_task(tmp_path: Path) -> None:
    screen(tmp_path, 40, lambda row, anna: decision(row % 4 == 0 if anna else row % 4 < 3))
    from equivox import open_run

    line = 'jobs_gender:invite  DIFFERENCE FOUND  male gets "invite" more often than female'
    assert str(open_run(tmp_path / "run")) == line
