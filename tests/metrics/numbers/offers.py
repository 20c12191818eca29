"""A task about salaries, its answers as rows, and task files that ask for them."""

from __future__ import annotations

import csv
from pathlib import Path

from made_scores import toy_task

from equivox.core.attributes import Number
from equivox.core.samples import Row
from equivox.core.scores import ScoringOptions
from equivox.core.task import Attribute, DataSource, Task
from equivox.metrics.numbers.metric import METRIC

SALARY = Attribute(name="salary", asks="the salary", number=Number(unit="EUR", low=0, high=100))
OPTIONS = ScoringOptions(n_resamples=999, min_coverage=0.5)


def task(*attributes: Attribute) -> Task:
    source = DataSource(corpus="toy", kind="text")
    return toy_task(METRIC, *attributes, name="toy:salary", data=source, cluster="name", media=(), condition="text")


def rows(group: str, answers: list[float | str]) -> list[Row]:
    """One row per answer and cluster: a number is parsed, a text is the status of a lost answer."""
    return [
        Row(
            group=group,
            cluster=f"{group}{number}",
            stratum="",
            status="parsed" if not isinstance(answer, str) else answer,
            values={} if isinstance(answer, str) else {"salary": (str(answer),), "refusal": ("no",)},
        )
        for number, answer in enumerate(answers)
    ]


SALARIES = "{unit: EUR, low: 0, high: 1000}"
TASKS = """\
name: offers
table: cvs.csv
group: gender
{design}
questions:
  - name: salary
    text: "{{cv}} Which salary?"
    attributes:
      - {{name: salary, asks: the yearly salary, number: {number}}}
card: Made up.
"""


def task_file(folder: Path, *, crossed: bool = True, n: int = 40, number: str = SALARIES) -> Path:
    design = "swap: {name: {female: [Anna, Olga], male: [Jonas, Emil]}}" if crossed else "cluster: id"
    with (folder / "cvs.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "cv"] if crossed else ["id", "cv", "gender"])
        for i in range(n):
            text = f"{'{name}' if crossed else 'They'} worked for {i} years."
            writer.writerow([f"c{i}", text] if crossed else [f"c{i}", text, ("female", "male")[i % 2]])
    file_ = folder / "offers.yaml"
    file_.write_text(TASKS.format(design=design, number=number))
    return file_
