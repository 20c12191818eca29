"""Mistakes in tasks and engines that somebody wrote in Python: each ends in one line."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from equivox import measure
from equivox.core.errors import UsageError
from equivox.core.task import IMAGE, AnnotationScheme, Attribute, DataSource, Sampling
from equivox.core.task_checks import tasks_in
from equivox.tasks.registry import builtin_tasks

GOOD = builtin_tasks()["vibe_gender:advisory"]
CHOICE = Attribute(name="tone", asks="the tone", options=("warm", "cold"))

MISTAKES: dict[str, list[tuple[dict[str, Any], str]]] = {
    "task": [
        ({"name": "advisory"}, "`name` is family:task"), ({"name": "vibe:a/b"}, "cannot be a file name"),
        # Named like one, it would be taken for a control, and left out of the verdict.
        ({"name": "vibe:advisory@work"}, "without `@`, `,`"), ({"name": "vibe:one,two"}, "without `@`, `,` and `|`"),
        ({"version": "1"}, "`version`: input should be a valid integer, got '1'"),
        ({"version": 0}, "`version` counts from 1, got 0"), ({"card": " "}, "`card` is empty"),
        ({"group": "gender"}, "`group`: input should be a valid tuple, got 'gender'; a tuple of one text has a comma"),
        ({"group": ("gender", "gender")}, "`group` names a column twice"), ({"group": ()}, "`group` names the"),
        ({"strata": ("gender",)}, "`group` and `strata` name gender"), ({"strata": "sentence"}, "`strata`: input"),
        ({"blocks": ("gender",)}, "`group` and `blocks` name gender"), ({"compares": "gender"}, "give one of them"),
        ({"cluster": ("speaker",)}, "`cluster`: input should be a valid string"), ({"metadata": "text"}, "`metadata`"),
        ({"media": "audio"}, "`media`: input"), ({"media": (IMAGE,)}, "`condition` is 'audio', and what is sent is im"),
        ({"condition": "video"}, "`condition` is 'video'"), ({"conditions": "audio"}, "`conditions`: input"),
        ({"metric": "ntvd"}, "`metric`"), ({"data": "crema_d"}, "`data`"), ({"prompt": "Hello."}, "`prompt`"),
        ({"sampling": {"temperature": 1}}, "`sampling`"), ({"turns": ("And?",) * 50}, "`turns` has 50; a dialogue has"),
        ({"turns": ("And now?", " ")}, "`turns`, turn 3"), ({"says": "is it"}, "`says`"),
        ({"turns": ("And?",), "turn_media": ("a", "b")}, "`turn_media` names 2 columns for 1 `turns`"),
        ({"media": (), "condition": "text", "turns": ("And?",), "turn_media": ("again",)},
         "`turn_media` sends clips or images after a first turn without any"),
        ({"turns": ("And?",), "prompt": replace(GOOD.prompt, spoken=True)}, "`turns` go on from a text; leave out"),
        ({"title": "t" * 41}, "`title` has 't"), ({"unit_name": "two\nlines"}, "`unit_name` has 'two\\nlines'"),
        ({"group_labels": {"a": "one", "b": "one"}}, "`group_labels` names two groups alike"),
        ({"main_attribute": "nothing"}, "`main_attribute` is 'nothing'"),
        ({"annotation": AnnotationScheme(attributes=(CHOICE,)), "says": {"no": "is it"}}, "`says` has 'no'"),
    ],
    "attribute": [
        ({"options": "warm"}, "Attribute 'tone': `options`: input should be a valid tuple, got 'warm'; a tuple of"),
        ({"options": ("warm",)}, "`options` of tone has one, 'warm'"), ({"options": ("warm", "warm")}, "repeat one"),
        ({"options": ("warm", "other")}, "the option 'other' of tone is always there"), ({"role": "results"}, "`role`"),
        ({"name": "the tone"}, "'the tone' is called by small letters"), ({"count": "2"}, "`count`: input should be a"),
        ({"name": "failure"}, "is called as what happens to an answer that is lost"),
        ({"count": 0}, "`count` of tone is 1 or more, got 0"),
    ],
    "prompt": [({"text": 5}, "`text`: input should be a valid string, got 5")],
    "data": [({"table": "x.csv"}, "`table`")],
    "sampling": [({"temperature": -1.0}, "`temperature`"), ({"repeats": 0}, "`repeats`")],
}  # fmt: skip


@pytest.mark.parametrize(
    ("part", "changes", "told"), [(part, *row) for part, rows in MISTAKES.items() for row in rows], ids=str
)
def test_a_mistake_in_a_task_is_one_line(part: str, changes: dict[str, Any], told: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as found:
        if part == "attribute":
            changes = {"annotation": AnnotationScheme(attributes=(replace(CHOICE, **changes),))}
        elif part != "task":
            parts: dict[str, Any] = {"prompt": GOOD.prompt, "data": DataSource(corpus="a"), "sampling": Sampling()}
            changes = {part: replace(parts[part], **changes)}
        measure("simulated:biased", replace(GOOD, **changes), data="sample", output=tmp_path / "run")
    assert told in str(found.value)
    assert not (tmp_path / "run").exists()


def test_every_shipped_task_can_be_meant() -> None:
    tasks = list(builtin_tasks().values())
    assert tasks_in(tasks, "TASKS") == tasks
