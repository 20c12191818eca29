"""Mistakes in tasks and engines that somebody wrote in Python: each ends in one line."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from equivox import measure
from equivox.core.errors import UsageError
from equivox.core.task import IMAGE, AnnotationScheme, Attribute, DataSource, Sampling, Task
from equivox.core.task_checks import check_task, tasks_in
from equivox.tasks.registry import builtin_tasks

GOOD = builtin_tasks()["vibe_gender:advisory"]
CHOICE = Attribute(name="tone", asks="the tone", options=("warm", "cold"))


def with_attribute(**changes: Any) -> Task:
    return replace(GOOD, annotation=AnnotationScheme(attributes=(replace(CHOICE, **changes),)))


MISTAKES: list[tuple[Task, str]] = [
    (
        with_attribute(options="warm"),
        "Attribute 'tone': `options`: input should be a valid tuple, got 'warm'; a tuple of",
    ),
    (with_attribute(options=("warm",)), "`options` of tone has one, 'warm'"),
    (with_attribute(options=("warm", "warm")), "`options` of tone repeat one"),
    (with_attribute(options=("warm", "other")), "the option 'other' of tone is always there"),
    (with_attribute(name="the tone"), "the attribute 'the tone' is called by small letters"),
    (with_attribute(name="failure"), "the attribute 'failure' is called as what happens to an answer that is lost"),
    (with_attribute(count="2"), "`count`: input should be a valid integer"),
    (with_attribute(count=0), "`count` of tone is 1 or more, got 0"),
    (with_attribute(role="results"), "`role`"),
    (replace(GOOD, name="advisory"), "`name` is family:task"),
    # Named like one, it would be taken for a control, and left out of the verdict.
    (replace(GOOD, name="vibe:advisory@work"), "`name` is family:task, such as greeting:address, without `@`, `,`"),
    (replace(GOOD, name="vibe:one,two"), "without `@`, `,` and `|`"),
    (replace(GOOD, name="vibe:a/b"), "the task name 'vibe:a/b' cannot be a file name"),
    (replace(GOOD, version="1"), "`version`: input should be a valid integer, got '1'"),  # type: ignore[arg-type]
    (replace(GOOD, version=0), "`version` counts from 1, got 0"),
    (replace(GOOD, card=" "), "`card` is empty"),
    (replace(GOOD, group="gender"), "`group`: input should be a valid tuple, got 'gender'"),  # type: ignore[arg-type]
    (replace(GOOD, group=("gender", "gender")), "`group` names a column twice"),
    (replace(GOOD, strata=("gender",)), "`group` and `strata` name gender, which is compared or held equal"),
    (replace(GOOD, blocks=("gender",)), "`group` and `blocks` name gender, which is compared or held equal"),
    (replace(GOOD, group=()), "`group` names the compared columns"),
    (replace(GOOD, compares="gender"), "give one of them"),
    (replace(GOOD, cluster=("speaker",)), "`cluster`: input should be a valid string"),  # type: ignore[arg-type]
    (replace(GOOD, strata="sentence"), "`strata`: input should be a valid tuple"),  # type: ignore[arg-type]
    (replace(GOOD, metadata="text"), "`metadata`: input should be a valid tuple"),  # type: ignore[arg-type]
    (replace(GOOD, media="audio"), "`media`: input should be a valid tuple"),  # type: ignore[arg-type]
    (replace(GOOD, media=(IMAGE,)), "`condition` is 'audio', and what is sent is image"),
    (replace(GOOD, condition="video"), "`condition` is 'video'"),
    (replace(GOOD, conditions="audio"), "`conditions`: input should be a valid tuple"),  # type: ignore[arg-type]
    (replace(GOOD, metric="ntvd"), "`metric`"),  # type: ignore[arg-type]
    (replace(GOOD, data="crema_d"), "`data`"),  # type: ignore[arg-type]
    (replace(GOOD, data=DataSource(corpus="mine", table="x.csv")), "`table`"),  # type: ignore[arg-type]
    (replace(GOOD, prompt="Hello."), "`prompt`"),  # type: ignore[arg-type]
    (replace(GOOD, prompt=replace(GOOD.prompt, text=5)), "`text`: input should be a valid string, got 5"),
    (replace(GOOD, sampling={"temperature": 1}), "`sampling`"),  # type: ignore[arg-type]
    (replace(GOOD, sampling=Sampling(temperature=-1.0)), "`temperature`"),
    (replace(GOOD, sampling=Sampling(repeats=0)), "`repeats`"),
    (replace(GOOD, turns=("And now?",) * 50), "`turns` has 50; a dialogue has at most 50 with the first"),
    (replace(GOOD, turns=("And now?", " ")), "`turns`, turn 3"),
    (replace(GOOD, turns=("And now?",), turn_media=("a", "b")), "`turn_media` names 2 columns for 1 `turns`"),
    (
        replace(GOOD, media=(), condition="text", turns=("And now?",), turn_media=("again",)),
        "`turn_media` sends clips or images after a first turn without any",
    ),
    (
        replace(GOOD, turns=("And now?",), prompt=replace(GOOD.prompt, spoken=True)),
        "`turns` go on from a text; leave out `spoken`, or the turns",
    ),
    (replace(GOOD, title="t" * 41), "`title` has 't"),
    (replace(GOOD, unit_name="two\nlines"), "`unit_name` has 'two\\nlines'"),
    (replace(GOOD, group_labels={"a": "one", "b": "one"}), "`group_labels` names two groups alike"),
    (replace(GOOD, main_attribute="nothing"), "`main_attribute` is 'nothing'"),
    (replace(with_attribute(), says={"nothing": "is it"}), "`says` has 'nothing'"),
    (replace(GOOD, says="is it"), "`says`"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("task", "told"), MISTAKES, ids=[told for _, told in MISTAKES])
def test_a_mistake_in_a_task_is_one_line(task: Task, told: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as found:
        measure("simulated:biased", task, data="sample", output=tmp_path / "run")
    assert told in str(found.value)
    assert not (tmp_path / "run").exists()


def test_every_shipped_task_can_be_meant() -> None:
    tasks = list(builtin_tasks().values())
    assert tasks_in(tasks, "TASKS") == tasks


def test_the_types_of_a_class_are_worked_out_once(monkeypatch: pytest.MonkeyPatch) -> None:
    import pydantic

    check_task(GOOD, "here")

    def again(*_: object, **__: object) -> None:
        raise AssertionError("the form of a class that was seen before was made again")

    monkeypatch.setattr(pydantic, "create_model", again)
    check_task(GOOD, "here")
