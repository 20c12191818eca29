"""The content of the page besides single answers: one document of plain values, made from what the run stores."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from equivox.compare.runs import ComparedRun, ValueShares, value_shares
from equivox.core.errors import RequestError
from equivox.core.files import read_table
from equivox.core.plain import as_plain
from equivox.core.redact import redacted_text, without_places
from equivox.core.scores import Score, verdict
from equivox.core.task import Task
from equivox.report.numbers import p_value, score_interval, score_value, share
from equivox.report.score_tables import marked
from equivox.run.manifest import public_manifest, read_manifest
from equivox.run.scoring import tables_folder

if TYPE_CHECKING:
    import pyarrow as pa

SHOWN_VALUES = 8
"""Values of an attribute that are offered as filters, those whose shares differ most."""


def run_document(run: ComparedRun, verdict: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return everything about a run that holds for all its tasks: its verdict, its scores and its manifest."""
    manifest = public_manifest(read_manifest(run.folder))
    manifest.pop("files", None)  # long, and `equivox verify` reads them from the run
    whole = [score for score in run.scores if score.is_whole]
    document = {
        "label": run.model,
        "annotator": run.annotator,
        "made": manifest["created"],
        "version": manifest["equivox"],
        "scored": bool(run.scores),
        "verdict": verdict,
        "scores": [_score(run, score) for score in whole],
        "marks": list(run.marks),
        "manifest": manifest,
    }
    return dict(without_places(document))


def _by_people(run: ComparedRun, score: Score) -> str:
    """Return the score as people's labels correct it, with its interval; empty without labels."""
    found = run.corrected(score)
    if found is None:
        return ""
    interval = score_interval(found.ci_low, found.ci_high, score.unit)
    return f"{score_value(found.corrected, score.unit)} ({interval})"


def _score(run: ComparedRun, score: Score) -> dict[str, Any]:
    measure = run.measure(score)
    target = score.target if math.isnan(score.estimate) else 0.0
    return {
        "task": score.task,
        "family": score.family,
        "name": score.name,
        "headline": score_value(score.headline, score.unit) + marked(score),
        "interval": score_interval(score.ci_low, score.ci_high, score.unit),
        "by_people": _by_people(run, score),
        "q": p_value(score.q),
        "used": share(score.coverage.used, score.coverage.requested),
        "verdict": verdict([score]),
        "why": score.undefined or score.untold_in_full,
        "zero_means": score.zero_means,
        "counts": measure is None or measure.in_verdict,
        "percent": score.unit.startswith("percent"),
        "numbers": [as_plain(number) for number in (score.headline, score.ci_low, score.ci_high, target)],
    }


def task_document(run: ComparedRun, task: Task, table: pa.Table, reason: str | None, shares: Shares) -> dict[str, Any]:
    """Return what the page knows of a task before it reads any answer; `reason` says why values are not known."""
    title = task.card.strip().splitlines()[0] if task.card.strip() else ""
    named = title.partition(": ")
    return {
        "name": task.name,
        "question": redacted_text((named[2] or named[0]).strip()),
        "prompt": task.prompt.text,
        "before": list(task.prompt.before),
        "tools": [tool.name for tool in task.prompt.tools],
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
        "moves": _moves(run, task, shares),
        "reason": reason,
    }


def _counts(table: pa.Table) -> list[list[Any]]:
    """Return how many answers have which status in which group: status, group, number."""
    counted = table.select(["status", "group"]).group_by(["status", "group"]).aggregate([([], "count_all")])
    return sorted([row["status"], row["group"], row["count_all"]] for row in counted.to_pylist())


@dataclass(frozen=True)
class Shares:
    """The shares of the values of a run's attributes, and the wordings that count as each value."""

    by_attribute: Mapping[tuple[str, str], Sequence[ValueShares]]
    wordings: Mapping[tuple[str, str], Sequence[str]]

    @classmethod
    def of(cls, run: ComparedRun) -> Shares:
        """Return what the run stores of them; empty where its metrics store no shares."""
        found: defaultdict[tuple[str, str], list[ValueShares]] = defaultdict(list)
        if run.scores:
            with suppress(RequestError):
                for one in value_shares(run):
                    found[one.task, one.attribute].append(one)
        wordings: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
        with suppress(FileNotFoundError):
            table = read_table(tables_folder(run.folder / "scores.json") / "open_values.parquet")
            for row in table.select(["attribute", "value", "counts_as"]).to_pylist():
                wordings[row["attribute"], row["counts_as"]].append(row["value"])
        return cls(found, wordings)


def _moves(run: ComparedRun, task: Task, shares: Shares) -> list[dict[str, Any]]:
    """Return the attributes of a task, outcomes with the largest estimate first, with the values that differ most."""
    parts = [s for s in run.scores if s.task == task.name and s.mover is not None and s.attribute and not s.subset]
    parts.sort(key=lambda s: (s.role != "outcome", -s.headline if math.isfinite(s.headline) else 1))
    found = []
    for score in parts:
        name = str(score.attribute)
        own = sorted(shares.by_attribute.get((task.name, name), ()), key=lambda one: -one.spread)[:SHOWN_VALUES]
        values = [
            {
                "value": one.value,
                "shares": {group: as_plain(percent) for group, percent in sorted(one.by_group.items())},
                "wordings": [*shares.wordings.get((name, one.value), (one.value,))],
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
