"""Agreement: of several annotators on one run, and of engines that run one model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path, PurePath

from equivox.compare.runs import ComparedRun, Comparison
from equivox.core.lazy import pa, pc
from equivox.core.samples import Row
from equivox.core.segments import WHOLE, SegmentAnnotation
from equivox.core.task import UNSTATED, Task
from equivox.run.manifest import read_manifest
from equivox.run.panel import PANEL
from equivox.run.plan import read_plan
from equivox.run.scoring import sample_rows
from equivox.run.store import Store, response_schema
from equivox.run.stored import annotators_of
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


_SAME_REQUEST = ["task", "sample_id", "condition", "seed"]
"""Columns of a plan that tell its requests apart, whatever the model: each repeat and presentation has its own seed."""


@dataclass(frozen=True, kw_only=True)
class Parity:
    """Two runs of one model on two engines: the requests that both answered, and in how many of them word for word."""

    model: str
    a: str
    b: str
    asked: int
    same: int


def parities(comparison: Comparison) -> list[Parity]:
    """Return the parity of every two runs whose models have one name and whose engines differ; empty without such."""
    return [found for pair in combinations(comparison.runs, 2) for found in _parity(*pair)]


def _parity(one: ComparedRun, other: ComparedRun) -> Iterator[Parity]:
    (engine, model), (other_engine, other_model) = (_asked(run.folder) for run in (one, other))
    if engine == other_engine or model != other_model:
        return

    theirs = _answers(other.folder).rename_columns([*_SAME_REQUEST, "other"])
    answers = _answers(one.folder).join(theirs, keys=_SAME_REQUEST, join_type="inner")
    same = pc.sum(pc.equal(answers["answer"], answers["other"])).as_py()
    yield Parity(model=model, a=one.model, b=other.model, asked=len(answers), same=int(same or 0))


def _asked(folder: Path) -> tuple[str, str]:
    """Return the engine of a run and the name of its model, without the folder that it lies in."""
    model = read_manifest(folder)["identity"]["model"]
    return str(model["engine"]), PurePath(str(model["model"])).name


def _answers(folder: Path) -> pa.Table:
    """Return the answered requests of a run, as `_SAME_REQUEST` tells them apart, with their answers."""
    plan = read_plan(folder)
    # Columns of a dictionary cannot be joined by.
    texts = {name: plan[name].cast(pa.string()) for name in ("key", *_SAME_REQUEST)}
    responses = Store(folder / "responses", response_schema()).table(("key", "text"))
    answered = pa.table({"key": responses["key"].cast(pa.string()), "answer": responses["text"].cast(pa.string())})
    joined = pa.table(texts).join(answered.drop_null(), keys="key", join_type="inner")
    return joined.select([*_SAME_REQUEST, "answer"])
