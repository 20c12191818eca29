"""Agreement of several annotators on one run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from equivox.core.samples import Row
from equivox.core.segments import WHOLE, SegmentAnnotation
from equivox.core.task import UNSTATED, Task
from equivox.run.panel import PANEL
from equivox.run.scoring import sample_rows
from equivox.run.store import annotators_of
from equivox.statistics import krippendorff_alpha


@dataclass(frozen=True, kw_only=True)
class AttributeAgreement:
    """Agreement of `annotators` on one attribute of one task.

    `alpha` is Krippendorff's α (nominal; 1 all agree, 0 no better than chance); NaN if `undefined` gives a reason.
    An attribute with several values is compared as a set; an unstated value is a value like any other, but a response
    that an annotator could not parse is missing.
    """

    task: str
    attribute: str
    annotators: tuple[str, ...]
    n_responses: int
    alpha: float
    undefined: str | None


def agreement(folder: Path, tasks: Sequence[Task]) -> list[AttributeAgreement]:
    """Return the agreement of all annotators of the run in `folder`; empty with fewer than two."""
    names = [name for name in annotators_of(folder) if name != PANEL]
    if len(names) < 2:
        return []
    rows = {name: sample_rows(folder, tasks, name) for name in names}
    return [entry for task in tasks for entry in _of_task(task, {name: rows[name][task.name] for name in names})]


def _of_task(task: Task, rows: Mapping[str, Sequence[Row]]) -> Iterator[AttributeAgreement]:
    names = tuple(rows)
    annotations = {name: _annotations(task, rows[name]) for name in names}
    declared = {attribute.name for attribute in task.attributes}
    # Details that a tool stores in addition to the attributes (such as the rule that decided) are left out.
    units = sorted({u for of_name in annotations.values() for u in of_name if u[1] != WHOLE or u[2] in declared})
    for segment, attribute in dict.fromkeys((segment, attribute) for _, segment, attribute in units):
        result = krippendorff_alpha(
            [[annotations[name].get(unit) for name in names] for unit in units if unit[1:] == (segment, attribute)]
        )
        yield AttributeAgreement(
            task=task.name,
            attribute=f"{segment}: {attribute}" if segment else attribute,
            annotators=names,
            n_responses=result.n_pairable_units,
            alpha=result.alpha,
            undefined=result.undefined,
        )


def _by_annotators(task: Task, rows: Sequence[Row]) -> Iterator[tuple[str, str, SegmentAnnotation]]:
    """Yield the segments that annotators annotated, each with its response's key and its name."""
    asked = {segment.name for segment in task.annotation.asks(task) if not segment.alone}
    for row in rows:
        for name, segment in row.segments.items():
            # A repeated evaluation of a segment has the name of the first and a number.
            if name.partition("#")[0] in asked:
                yield row.key, name, segment


def _annotations(task: Task, rows: Sequence[Row]) -> dict[tuple[str, str, str], str]:
    """Return the annotated values by response, segment and attribute, for all attributes of parsed segments."""
    attributes: dict[str, set[str]] = {}
    for _, name, segment in _by_annotators(task, rows):
        attributes.setdefault(name, set()).update(segment.values)
    annotations: dict[tuple[str, str, str], str] = {}
    for key, name, segment in _by_annotators(task, rows):
        if segment.status in {"parsed", "refused"}:
            for attribute in attributes[name]:
                stated = sorted(segment.values.get(attribute, ())) or [UNSTATED]
                annotations[key, name, attribute] = " + ".join(stated)
    return annotations
