"""How far several annotators agree on one run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from equivox.annotate.base import annotation_key
from equivox.reading import (
    annotators_of,
    plan_rows,
    stored_annotations,
    stored_annotator,
    stored_responses,
    values_by_attribute,
)
from equivox.task import UNSTATED, Task


@dataclass(frozen=True, kw_only=True)
class AttributeAgreement:
    """Agreement of `annotators` on one attribute of one task.

    `alpha` is Krippendorff's α (nominal; 1 all agree, 0 no better than chance), NaN with `undefined` giving the reason.
    An attribute with several values is compared as a set; an unstated value is a reading like any other, while a
    response that an annotator could not read is missing.
    """

    task: str
    attribute: str
    annotators: tuple[str, ...]
    n_responses: int
    alpha: float
    undefined: str | None


def agreement(folder: Path, tasks: Sequence[Task]) -> list[AttributeAgreement]:
    """Return the agreement of all annotators of the run in `folder`; empty with fewer than two."""
    from equivox.statistics import krippendorff_alpha

    names = annotators_of(folder)
    if len(names) < 2:
        return []
    readings = {name: _readings(folder, tasks, name) for name in names}
    found = []
    for task in tasks:
        keys = [row["key"] for row in plan_rows(folder) if row["task"] == task.name]
        for attribute in task.attributes:
            result = krippendorff_alpha(
                [[readings[name].get((task.name, key, attribute.name)) for name in names] for key in keys]
            )
            found.append(
                AttributeAgreement(
                    task=task.name,
                    attribute=attribute.name,
                    annotators=tuple(names),
                    n_responses=result.n_pairable_units,
                    alpha=result.alpha,
                    undefined=result.undefined,
                )
            )
    return found


def _readings(folder: Path, tasks: Sequence[Task], name: str) -> dict[tuple[str, str, str], str]:
    by_name = {task.name: task for task in tasks}
    identity, annotations = stored_annotator(folder, name), stored_annotations(folder, name)
    responses = stored_responses(folder)
    readings: dict[tuple[str, str, str], str] = {}
    for row in plan_rows(folder):
        response = responses.get(row["key"])
        if response is None or response["text"] is None:
            continue
        task = by_name[row["task"]]
        annotation = annotations.get(annotation_key(identity, task, row["key"], response["text"]))
        if annotation is None or annotation["status"] not in {"parsed", "refused"}:
            continue
        values = values_by_attribute(annotation["values"])
        for attribute in task.attributes:
            stated = sorted(values.get(attribute.name, ())) or [UNSTATED]
            readings[task.name, row["key"], attribute.name] = " + ".join(stated)
    return readings
