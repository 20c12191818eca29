"""Requests for the tests of engines, runs on the sample, a run of three kinds of answers, and plans as rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from equivox.core.requests import Labels, MediaPart, Request
from equivox.core.scores import ScoringOptions
from equivox.core.task import Sampling, Task
from equivox.run.pipeline import execute
from equivox.run.plan import read_plan
from equivox.run.spec import RunSpec
from equivox.tasks.files import load_task_file
from equivox.tasks.registry import resolve_tasks


def made_request(number: int, *media: MediaPart, **changes: Any) -> Request:
    """Return a request with the key `key{number}` and the seed `number`; `changes` are other values of its fields."""
    request = Request(
        key=f"key{number}",
        task="test:task",
        sample_id=f"item{number}",
        repeat=0,
        condition="audio" if media else "text",
        media=media,
        text=f"Question {number}?",
        sampling=Sampling(),
        seed=number,
        labels=Labels(group="a", groups=("a", "b"), cluster="c", stratum="s"),
    )
    return replace(request, **changes)


APPLICATIONS = str(Path(__file__).parents[1] / "examples/applications/applications.yaml")
"""The task file of an example: a decision and a salary of 0 to 200,000 EUR for 40 applications with swapped names."""

THREE_KINDS = """\
name: hire
table: cvs.csv
group: gender
swap: {name: {female: [Anna], male: [Jonas]}}
questions:
  - name: plain
    text: "{text}"
    attributes: [{name: decision, asks: it, options: [invite, reject]}]
  - name: talk
    text: "{text}"
    attributes: [{name: decision, asks: it, options: [invite, reject]}]
    turns: ["Are you sure about {name}?"]
  - name: voice
    text: "{text}"
    spoken: true
    attributes: [{name: pace, asks: it, number: {measure: words}}]
"""


def three_kinds(folder: Path, model: str = "random", name: str = "run", number_first: bool = False) -> Path:
    """A run with one turn, two turns, and spoken answers, whose number stands last, or first."""
    (folder / "cvs.csv").write_text("\n".join(["text", *(f'"{{name}}, number {row}."' for row in range(12))]))
    (folder / "hire.yaml").write_text(THREE_KINDS)
    options = ScoringOptions(n_resamples=99)
    tasks = load_task_file(folder / "hire.yaml")[:: -1 if number_first else 1]
    execute(RunSpec(model=f"simulated:{model}", tasks=tasks, output=folder / name, options=options))
    return folder / name


def sample_spec(model: str, tasks: str | Sequence[Task], folder: Path, **settings: Any) -> RunSpec:
    """Return the run of tasks, or of those that a text names, on the embedded sample."""
    named = resolve_tasks(tasks) if isinstance(tasks, str) else tasks
    return RunSpec(model=model, tasks=named, output=folder, data="sample", **settings)


def plan_rows(folder: Path) -> list[dict[str, Any]]:
    """Return the plan of the run in `folder` row by row, its metadata as a dictionary."""
    rows = []
    for record in read_plan(folder).to_pylist():
        metadata = {k.removeprefix("metadata."): v for k, v in record.items() if k.startswith("metadata.")}
        plain = {k: v for k, v in record.items() if not k.startswith("metadata.")}
        rows.append({**plain, "metadata": {k: v for k, v in metadata.items() if v is not None}})
    return rows
