"""Labels from people for one stage of an annotation: agreement with the annotator, or how good they judge its lists."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any, TypeVar

from equivox.compare.labels import (
    ADJUDICATED,
    AttributeAudit,
    Audit,
    Key,
    Label,
    Unit,
    attribute_audit,
    by_person,
    label_of,
    label_of_values,
    read_key,
    unit_of,
)
from equivox.core.errors import RequestError, nearest
from equivox.core.metric import CheckedStage, CheckedStages
from equivox.core.scores import NAN
from equivox.core.segments import SegmentAnnotation
from equivox.core.task import OTHER, UNSTATED, Attribute
from equivox.run.manifest import read_manifest
from equivox.run.pipeline import run_tasks
from equivox.run.scoring import sample_rows
from equivox.run.stages import questions_at

Given = TypeVar("Given")


def stage_key(folder: Path) -> Key | None:
    """Return the key of a sheet of one stage, None if the sheet in `folder` is of whole responses."""
    key = read_key(folder)
    return key if any("stage" in entry for entry in key.values()) else None


def score_stage(folder: Path, key: Key, files: Sequence[Path], *, annotator: str | None = None) -> Audit:
    """Compare the annotator with the labels of one stage in `files` (one per person).

    What nobody labelled is counted as such, and what the annotator could not annotate as unread; neither is agreement.
    RequestError, with the line, for an item or attribute that is not on the sheet, for a value that a closed choice
    does not offer, and for a second label of one person.
    """
    asked, people = _labelled(folder, key, files, label_of)
    answers = _answers(key, annotator)
    units: dict[str, list[Unit]] = {}
    for (item, name), attribute in asked.items():
        if (item, name) in people:
            answer = answers.get(item)
            given: Label | None = None
            if answer is not None and answer.status == "parsed":
                given = label_of_values(answer.values.get(name, ()), attribute)
            units.setdefault(name, []).append(unit_of(item, key[item], attribute, given, people[item, name]))
    audits = [
        replace(
            _with_lists(attribute_audit(name, _by_place(members)), members),
            unlabelled=sum(other == name and (item, other) not in people for item, other in asked),
        )
        for name, members in units.items()
    ]
    (stage,) = {entry["stage"] for entry in key.values()}
    return Audit(
        raters=sorted({person for given in people.values() for person in given if person != ADJUDICATED}),
        n_responses=len({(unit.run, unit.response or unit.item) for own in units.values() for unit in own}),
        attributes=audits,
        scores=(),
        stage=stage,
    )


def score_judged(folder: Path, key: Key, files: Sequence[Path]) -> CheckedStages:
    """Return the mean precision and recall of the annotator's lists as people judge them, 0 to 1, per attribute.

    Each text counts once, with the mean of its judges; the interval is over texts. `left_out` counts what nobody
    judged. RequestError as in `score_stage`, and for a label that is no number from 0 to 1.
    """
    import numpy as np

    from equivox.statistics.bootstrap import mean_interval

    asked, people = _labelled(folder, key, files, _share)
    by_name: dict[str, list[float]] = {}
    for (_, name), given in people.items():
        decided = given.get(ADJUDICATED)
        by_name.setdefault(name, []).append(fmean(given.values()) if decided is None else decided)
    (stage,) = {entry["stage"] for entry in key.values()}
    measures = []
    for name, values in by_name.items():
        low, high = mean_interval(values, rng=np.random.default_rng(0))
        measures.append(CheckedStage(name=f"{stage}: {name}", value=fmean(values), n=len(values), low=low, high=high))
    missing = len(asked) - len(people)
    return CheckedStages(measures=measures, left_out={folder.name: missing} if missing else {})


def _share(text: str, attribute: Attribute, where: str) -> float:
    try:
        share = float(text)
    except ValueError:
        share = NAN
    if not 0 <= share <= 1:
        raise RequestError(f"{where}: {attribute.name} is a number from 0 to 1, got {text!r}")
    return share


def _labelled(
    folder: Path, key: Key, files: Sequence[Path], read: Callable[[str, Attribute, str], Given]
) -> tuple[dict[tuple[str, str], Attribute], dict[tuple[str, str], dict[str, Given]]]:
    """Return what is asked on the sheet, and each person's label of it, as `read` takes it, where there is one."""
    asked = {
        (item, attribute.name): attribute
        for item, entry in key.items()
        for attribute in map(_attribute, entry["attributes"])
    }
    people: dict[tuple[str, str], dict[str, Given]] = {}
    for person, labels in by_person(files).items():
        for where, item, name, text in labels:
            if item not in key:
                raise RequestError(f"{where}: nothing is called {item!r} on the sheet of {folder}")
            if (item, name) not in asked:
                known = [other for of_item, other in asked if of_item == item]
                raise RequestError(f"{where}: {item} has no attribute {name!r}{nearest(name, known)}")
            given = people.setdefault((item, name), {})
            if person in given:
                raise RequestError(f"{where}: {person} has labelled {name} of {item} already; remove one label")
            given[person] = read(text, asked[item, name], where)
    if not people:
        raise RequestError(f"no label is filled in in {', '.join(map(str, files))}; fill in the column `label`")
    return asked, people


def _attribute(fields: Mapping[str, Any]) -> Attribute:
    return Attribute(**{**fields, "options": tuple(fields["options"]), "words": (), "favourable": ()})


def _answers(key: Key, annotator: str | None) -> dict[str, SegmentAnnotation | None]:
    """Return the annotator's answer to each item; None if there is no longer one."""
    found: dict[str, SegmentAnnotation | None] = {}
    for run in sorted({Path(entry["run"]) for entry in key.values()}):
        own = {item: entry for item, entry in key.items() if Path(entry["run"]) == run}
        name = annotator or str(read_manifest(run)["command"]["annotator"])
        named = {entry["task"] for entry in own.values() if entry["response"]}
        tasks = run_tasks(run)
        rows = sample_rows(run, [task for task in tasks if task.name in named], name) if named else {}
        segments = {(task, row.key): row.segments for task, of_task in rows.items() for row in of_task}
        questions: dict[str, SegmentAnnotation] = {}
        if any(not entry["response"] for entry in own.values()):
            (stage,) = {entry["stage"] for entry in own.values()}
            questions = {segment.digest: answer for _, segment, answer in questions_at(run, tasks, name, stage)}
        for item, entry in own.items():
            if not entry["response"]:
                found[item] = questions.get(entry["question"])
            elif (entry["task"], entry["response"]) not in segments:
                raise RequestError(f"{run} no longer holds response {entry['response'][:12]}; restore the run")
            else:
                found[item] = segments[entry["task"], entry["response"]].get(entry["segment"])
    return found


def _by_place(units: Sequence[Unit]) -> list[Unit]:
    """Return units whose options differ, such as two names, with the places of the options in place of their texts.

    Otherwise every name would be a category of its own, which hardly anything is by chance.
    """
    offered = {unit.attribute.options for unit in units}
    if len(offered) < 2 or not all(offered):
        return list(units)
    shared = {OTHER, UNSTATED}.union(set.intersection(*map(set, offered)))

    def placed(label: Label, options: Sequence[str]) -> Label:
        return tuple(value if value in shared else f"option {options.index(value) + 1}" for value in label)

    return [
        replace(
            unit,
            given=None if unit.given is None else placed(unit.given, unit.attribute.options),
            people={name: placed(label, unit.attribute.options) for name, label in unit.people.items()},
            decided=None if unit.decided is None else placed(unit.decided, unit.attribute.options),
        )
        for unit in units
    ]


def _with_lists(audit: AttributeAudit, units: Sequence[Unit]) -> AttributeAudit:
    """Return the audit of an attribute with precision and recall if it is a list."""
    if not units[0].attribute.is_list:
        return audit
    precision, recall = [], []
    for unit in units:
        for label in unit.people.values() if unit.given is not None else ():
            read, said = set(unit.given or ()) - {UNSTATED}, set(label) - {UNSTATED}
            if read:
                precision.append(len(read & said) / len(read))
            if said:
                recall.append(len(read & said) / len(said))
    return replace(
        audit,
        precision=100 * fmean(precision) if precision else NAN,
        recall=100 * fmean(recall) if recall else NAN,
    )
