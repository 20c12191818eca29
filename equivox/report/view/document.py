"""The content of the page besides single answers: one document of plain values, made from what the run stores."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from typing import Any

from equivox.compare.runs import ComparedRun, ValueShares
from equivox.core.errors import RequestError
from equivox.core.lazy import pa
from equivox.core.plain import as_plain
from equivox.core.redact import redacted_text, without_places
from equivox.core.task import Task
from equivox.report.numbers import p_value, score_interval, score_value
from equivox.report.opening import opening_of_one
from equivox.report.picture import ABOUT_MARKS, picture
from equivox.report.score_tables import marked
from equivox.report.view.pairs import Telling, losing_pair, telling_pair
from equivox.report.view.results import offered
from equivox.run.manifest import public_manifest, read_manifest

SHOWN_VALUES = 8
"""Values of an attribute that are offered as filters, those whose shares differ most."""


def run_document(run: ComparedRun) -> dict[str, Any]:
    """Return everything about a run that holds for all its tasks: its verdict in words and its manifest."""
    manifest = public_manifest(read_manifest(run.folder))
    manifest.pop("files", None)  # long, and `equivox verify` reads them from the run
    document = {
        "label": run.model,
        "annotator": run.annotator,
        "made": manifest["created"],
        "version": manifest["equivox"],
        "scored": bool(run.scores),
        "screens": offered(run.folder),
        "verdict": asdict(opening_of_one(run)) if run.scores else None,
        "marks": list(run.marks),
        "manifest": manifest,
    }
    return dict(without_places(document))


def task_document(run: ComparedRun, task: Task, table: pa.Table, reason: str | None) -> dict[str, Any]:
    """Return what the page knows of a task before it reads any answer; `reason` says why values are not known."""
    title = task.card.strip().splitlines()[0] if task.card.strip() else ""
    named = title.partition(": ")
    return {
        "name": task.name,
        "question": redacted_text((named[2] or named[0]).strip()),
        "prompt": task.prompt.text,
        "before": list(task.prompt.before),
        "dimension": task.dimension,
        "condition": task.condition,
        "media": task.media[0].kind if task.media else None,
        "strata": " × ".join(task.strata),
        "cluster": task.cluster,
        "n": len(table),
        "groups": sorted(set(table["group"].unique().to_pylist())),
        "statuses": _counts(table),
        "columns": [name for name in table.column_names if name.startswith(("values.", "metadata."))],
        "attributes": [{"name": a.name, "asks": a.asks, "role": a.role} for a in task.attributes],
        "moves": _moves(run, task),
        "telling": {
            name: found and asdict(found)
            for name, found in (("outcome", telling_of(run, task, table)), ("lost", losing_pair(table)))
        },
        "reason": reason,
    }


def picture_document(runs: Sequence[ComparedRun]) -> dict[str, Any]:
    """Return the picture of the report as plain values: which of `runs` are scored, and a line for each comparison."""
    scored = [number for number, run in enumerate(runs) if run.scores]
    lines = picture([runs[number] for number in scored]) if scored else []
    marked = [[mark and asdict(mark) | {"sign": mark.sign} for mark in line.marks] for line in lines]
    document = {
        "runs": scored,
        "about": ABOUT_MARKS,
        "lines": [asdict(line) | {"marks": marks} for line, marks in zip(lines, marked, strict=True)],
    }
    return dict(without_places(document))


def telling_of(run: ComparedRun, task: Task, table: pa.Table) -> Telling | None:
    """Return the two answers that show best what was found of a task, by an attribute that is scored; None without.

    Where only the task as a whole has scores, any of its attributes may show it.
    """
    scored = {score.attribute for score in run.scores if score.task == task.name and score.role == "outcome"}
    return telling_pair(table, [one for one in task.attributes if one.name in scored or scored == {None}])


def _counts(table: pa.Table) -> list[list[Any]]:
    """Return how many answers have which status in which group: status, group, number."""
    counted = table.select(["status", "group"]).group_by(["status", "group"]).aggregate([([], "count_all")])
    return sorted([row["status"], row["group"], row["count_all"]] for row in counted.to_pylist())


def _moves(run: ComparedRun, task: Task) -> list[dict[str, Any]]:
    """Return the attributes of a task, outcomes with the largest estimate first, with the values that differ most.

    A value has the wordings that count as it. There are no values where the task's metric stores no shares.
    """
    parts = [s for s in run.scores if s.task == task.name and s.mover is not None and s.attribute and not s.subset]
    parts.sort(key=lambda s: (s.role != "outcome", -s.headline if math.isfinite(s.headline) else 1))
    shares: list[ValueShares] = []
    if parts:
        with suppress(RequestError):
            shares = [one for one in run.value_shares if one.task == task.name]
    found = []
    for score in parts:
        name = str(score.attribute)
        own = sorted((one for one in shares if one.attribute == name), key=lambda one: -one.spread)[:SHOWN_VALUES]
        values = [
            {
                "value": one.value,
                "shares": {group: as_plain(percent) for group, percent in sorted(one.by_group.items())},
                "wordings": run.wordings.get((name, one.value), [one.value]),
            }
            for one in own
        ]
        found.append(
            {
                "attribute": name,
                "role": score.role,
                "headline": score_value(score.headline, score.unit) + marked(score),
                "interval": score_interval(score.ci_low, score.ci_high, score.unit),
                "q": p_value(score.q),
                "values": values,
            }
        )
    return found
