"""Sheets of wordings: which mean the same? People name each meaning, and their names are held against the clusters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from equivox.audit.drawing import Drawn
from equivox.audit.labels import Key, asked_of, label_of, people_labels
from equivox.core.errors import RequestError
from equivox.core.plain import split_by
from equivox.core.samples import Row
from equivox.core.scores import NAN, family_of
from equivox.core.segments import Segment
from equivox.core.task import Attribute, Task, digest
from equivox.run.declarations import read_tasks
from equivox.run.manifest import read_manifest
from equivox.run.scoring import read_records

UNIFY = "unify"
"""The name of the stage in which wordings are counted as one."""

MEANING = Attribute(
    name="meaning", asks="a name of your own for what is meant; wordings that mean the same get the same"
)


def is_unify(stage: str | None, folders: Sequence[Path]) -> bool:
    """Return whether the stage is the merging of wordings, and the runs have one."""
    return stage == UNIFY and all(_tables(folder) for folder in folders)


def _tables(folder: Path) -> dict[str, str]:
    """Return the name of the table of merged wordings of each family of a run that has one."""
    found = {}
    for task in read_tasks(folder):
        if task.metric.follow_up is not None and task.metric.follow_up.merged:
            found[family_of(task.name)] = task.metric.follow_up.merged
    return found


def draw_merged(folders: Sequence[Path], *, n: int, seed: int = 0, annotator: str | None = None) -> list[Drawn]:
    """Return `n` wordings of every task and category, whole clusters at a time, in random order.

    A cluster is drawn whole, because wordings that are drawn one by one hardly ever share one; it is cut at `n`.
    RequestError if the runs have no wordings.
    """
    drawn: list[Drawn] = []
    for folder in folders:
        manifest = read_manifest(folder)["command"]
        name, model = annotator or str(manifest["annotator"]), str(manifest["model"])
        tasks = {task.name: task for task in read_tasks(folder)}
        rows = [
            row for family, table in _tables(folder).items() for row in read_records(folder, family, table, name) or ()
        ]
        for (task, category), own in split_by(rows, lambda row: (row["task"], row["category"])).items():
            chosen = sorted(own, key=lambda row: digest([seed, "draw", category, row["counts_as"], row["wording"]]))
            order = {
                cluster: digest([seed, "cluster", category, cluster]) for cluster in {row["counts_as"] for row in own}
            }
            chosen.sort(key=lambda row: order[row["counts_as"]])
            drawn += [_drawn(folder, model, tasks[task], row, len(own) / n, seed) for row in chosen[:n]]
    if not drawn:
        raise RequestError(f"no wordings were found in {', '.join(map(str, folders))}; score the runs first")
    return sorted(drawn, key=lambda one: one.item)


def _drawn(folder: Path, model: str, task: Task, row: Mapping[str, Any], weight: float, seed: int) -> Drawn:
    segment = Segment(name=UNIFY, text=f"{row['category']}: {row['wording']}", attributes=(MEANING,))
    item = digest([seed, "item", model, str(folder), task.name, row["category"], row["wording"]])[:12]
    nobody = Row(group="", cluster="", stratum="", status="parsed")
    counted = (f"{task.name} {row['category']}", str(row["counts_as"]))
    return Drawn(item, folder, model, task, nobody, segment.text, max(1.0, weight), segment, UNIFY, counted_as=counted)


def is_merged(key: Key) -> bool:
    """Return whether a sheet is one of wordings."""
    return any(entry.get("stage") == UNIFY for entry in key.values())


def score_merged(folder: Path, key: Key, files: Sequence[Path]) -> tuple[list[dict[str, Any]], dict[str, int]]:
    """Return homogeneity, completeness and V-measure of the clusters against the meanings that people name, 0 to 1.

    Meanings are compared within a task and category, person by person; of several people the means are given. The form
    is that of `equivox.audit.kept.score_judged`, without intervals.
    """
    from equivox.statistics import clustering

    asked = asked_of(key)
    given = people_labels(folder, key, asked, files, label_of)
    by_person: dict[str, list[tuple[str, tuple[str, str]]]] = {}
    for (item, _), people in given.items():
        place, cluster = key[item]["counted_as"]
        for person, label in people.items():
            by_person.setdefault(person, []).append((f"{place} {label}", (place, cluster)))
    found = [clustering([said for said, _ in own], [cluster for _, cluster in own]) for own in by_person.values()]
    names = ("homogeneity", "completeness", "V-measure")
    measures = [
        {"name": f"{UNIFY}: {name}", "value": fmean(values), "n": len(given), "low": NAN, "high": NAN}
        for name, values in zip(names, zip(*found, strict=True), strict=True)
    ]
    missing = len(asked) - len(given)
    return measures, {folder.name: missing} if missing else {}
