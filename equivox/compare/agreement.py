"""How far several annotators agree on one run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from equivox.core.scores import Row
from equivox.core.segments import WHOLE, PartReading
from equivox.core.task import UNSTATED, Task
from equivox.run.annotating import annotators_of
from equivox.run.scoring import scoring_rows


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
    names = annotators_of(folder)
    if len(names) < 2:
        return []
    read = {name: scoring_rows(folder, tasks, name) for name in names}
    return [entry for task in tasks for entry in _of_task(task, {name: read[name][task.name] for name in names})]


def _of_task(task: Task, rows: Mapping[str, Sequence[Row]]) -> Iterator[AttributeAgreement]:
    from equivox.statistics import krippendorff_alpha

    names = tuple(rows)
    readings = {name: _readings(rows[name]) for name in names}
    declared = {attribute.name for attribute in task.attributes}
    # What a reader keeps beside the attributes (which rule decided) is no reading to agree on.
    units = sorted({u for of_name in readings.values() for u in of_name if u[1] != WHOLE or u[2] in declared})
    for part, attribute in dict.fromkeys((part, attribute) for _, part, attribute in units):
        result = krippendorff_alpha(
            [[readings[name].get(unit) for name in names] for unit in units if unit[1:] == (part, attribute)]
        )
        yield AttributeAgreement(
            task=task.name,
            attribute=f"{part}: {attribute}" if part else attribute,
            annotators=names,
            n_responses=result.n_pairable_units,
            alpha=result.alpha,
            undefined=result.undefined,
        )


def _read_by_annotators(row: Row) -> Iterator[tuple[str, PartReading]]:
    return ((name, part) for name, part in row.parts.items() if not part.shared)


def _readings(rows: Sequence[Row]) -> dict[tuple[str, str, str], str]:
    """Return what was read, by response, part and attribute; every attribute of a part that could be read."""
    attributes: dict[str, set[str]] = {}
    for row in rows:
        for name, part in _read_by_annotators(row):
            attributes.setdefault(name, set()).update(part.values)
    readings: dict[tuple[str, str, str], str] = {}
    for row in rows:
        for name, part in _read_by_annotators(row):
            if part.status in {"parsed", "refused"}:
                for attribute in attributes[name]:
                    stated = sorted(part.values.get(attribute, ())) or [UNSTATED]
                    readings[row.key, name, attribute] = " + ".join(stated)
    return readings
