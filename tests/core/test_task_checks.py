"""Mistakes in tasks and engines that somebody wrote in Python: each ends in one line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from equivox import measure
from equivox.core.errors import UsageError
from equivox.core.task import IMAGE, AnnotationScheme, Attribute, DataSource, Sampling, Task
from equivox.core.task_checks import tasks_in
from equivox.tasks.registry import builtin_tasks

GOOD = builtin_tasks()["vibe_gender:advisory"]
CHOICE = Attribute(name="tone", asks="the tone", options=("warm", "cold"))


def with_attribute(**changes: Any) -> Task:
    return replace(GOOD, annotation=AnnotationScheme(attributes=(replace(CHOICE, **changes),)))


MISTAKES: list[tuple[Callable[[], Task], str]] = [
    (
        lambda: with_attribute(options="warm"),
        "Attribute 'tone': `options`: input should be a valid tuple, got 'warm'; a tuple of",
    ),
    (lambda: with_attribute(options=("warm",)), "`options` of tone has one, 'warm'"),
    (lambda: with_attribute(options=("warm", "warm")), "`options` of tone repeat one"),
    (lambda: with_attribute(options=("warm", "other")), "the option 'other' of tone is always there"),
    (lambda: with_attribute(name="the tone"), "the attribute 'the tone' is called by small letters"),
    (
        lambda: with_attribute(name="failure"),
        "the attribute 'failure' is called as what happens to an answer that is lost",
    ),
    (lambda: with_attribute(count="2"), "`count`: input should be a valid integer"),
    (lambda: with_attribute(count=0), "`count` of tone is 1 or more, got 0"),
    (lambda: with_attribute(role="results"), "`role`"),
    (lambda: replace(GOOD, name="advisory"), "`name` is family:task"),
    # Named like one, it would be taken for a control, and left out of the verdict.
    (
        lambda: replace(GOOD, name="vibe:advisory@work"),
        "`name` is family:task, such as greeting:address, without `@`, `,`",
    ),
    (lambda: replace(GOOD, name="vibe:one,two"), "without `@`, `,` and `|`"),
    (lambda: replace(GOOD, name="vibe:a/b"), "the task name 'vibe:a/b' cannot be a file name"),
    (lambda: replace(GOOD, version="1"), "`version`: input should be a valid integer, got '1'"),  # type: ignore[arg-type]
    (lambda: replace(GOOD, version=0), "`version` counts from 1, got 0"),
    (lambda: replace(GOOD, card=" "), "`card` is empty"),
    (lambda: replace(GOOD, group="gender"), "`group`: input should be a valid tuple, got 'gender'"),  # type: ignore[arg-type]
    (lambda: replace(GOOD, group=("gender", "gender")), "`group` names a column twice"),
    (lambda: replace(GOOD, strata=("gender",)), "`group` and `strata` name gender, which is compared or held equal"),
    (lambda: replace(GOOD, blocks=("gender",)), "`group` and `blocks` name gender, which is compared or held equal"),
    (lambda: replace(GOOD, group=()), "`group` names the compared columns"),
    (lambda: replace(GOOD, compares="gender"), "give one of them"),
    (lambda: replace(GOOD, cluster=("speaker",)), "`cluster`: input should be a valid string"),  # type: ignore[arg-type]
    (lambda: replace(GOOD, strata="sentence"), "`strata`: input should be a valid tuple"),  # type: ignore[arg-type]
    (lambda: replace(GOOD, metadata="text"), "`metadata`: input should be a valid tuple"),  # type: ignore[arg-type]
    (lambda: replace(GOOD, media="audio"), "`media`: input should be a valid tuple"),  # type: ignore[arg-type]
    (lambda: replace(GOOD, media=(IMAGE,)), "`condition` is 'audio', and what is sent is image"),
    (lambda: replace(GOOD, condition="video"), "`condition` is 'video'"),
    (lambda: replace(GOOD, conditions="audio"), "`conditions`: input should be a valid tuple"),  # type: ignore[arg-type]
    (lambda: replace(GOOD, metric="ntvd"), "`metric`"),  # type: ignore[arg-type]
    (lambda: replace(GOOD, data="crema_d"), "`data`"),  # type: ignore[arg-type]
    (lambda: replace(GOOD, data=DataSource(corpus="mine", table="x.csv")), "`table`"),  # type: ignore[arg-type]
    (lambda: replace(GOOD, prompt="Hello."), "`prompt`"),  # type: ignore[arg-type]
    (lambda: replace(GOOD, prompt=replace(GOOD.prompt, text=5)), "`text`: input should be a valid string, got 5"),
    (lambda: replace(GOOD, sampling={"temperature": 1}), "`sampling`"),  # type: ignore[arg-type]
    (lambda: replace(GOOD, sampling=Sampling(temperature=-1.0)), "`temperature`"),
    (lambda: replace(GOOD, sampling=Sampling(repeats=0)), "`repeats`"),
    (lambda: replace(GOOD, turns=("And now?",) * 50), "`turns` has 50; a dialogue has at most 50 with the first"),
    (lambda: replace(GOOD, turns=("And now?", " ")), "`turns`, turn 3"),
    (lambda: replace(GOOD, turns=("And now?",), turn_media=("a", "b")), "`turn_media` names 2 columns for 1 `turns`"),
    (
        lambda: replace(GOOD, media=(), condition="text", turns=("And now?",), turn_media=("again",)),
        "`turn_media` sends clips or images after a first turn without any",
    ),
    (
        lambda: replace(GOOD, turns=("And now?",), prompt=replace(GOOD.prompt, spoken=True)),
        "`turns` go on from a text; leave out `spoken`, or the turns",
    ),
    (lambda: replace(GOOD, title="t" * 41), "`title` has 't"),
    (lambda: replace(GOOD, unit_name="two\nlines"), "`unit_name` has 'two\\nlines'"),
    (lambda: replace(GOOD, group_labels={"a": "one", "b": "one"}), "`group_labels` names two groups alike"),
    (lambda: replace(GOOD, main_attribute="nothing"), "`main_attribute` is 'nothing'"),
    (lambda: replace(with_attribute(), says={"nothing": "is it"}), "`says` has 'nothing'"),
    (lambda: replace(GOOD, says="is it"), "`says`"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("task", "told"), MISTAKES, ids=[told for _, told in MISTAKES])
def test_a_mistake_in_a_task_is_one_line(task: Callable[[], Task], told: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as found:
        measure("simulated:biased", task(), data="sample", output=tmp_path / "run")
    assert told in str(found.value)
    assert not (tmp_path / "run").exists()


def test_every_shipped_task_can_be_meant() -> None:
    tasks = list(builtin_tasks().values())
    assert tasks_in(tasks, "TASKS") == tasks
