"""Progress of a run for the page: from its note of progress, its stored responses and annotations, and its usage."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from equivox.core.errors import EquivoxError
from equivox.core.files import read_document
from equivox.core.plain import as_plain
from equivox.core.redact import redacted_text
from equivox.run.annotating import annotations_folder
from equivox.run.live import SILENT_S, Live, read_live
from equivox.run.manifest import read_manifest
from equivox.run.pipeline import run_tasks
from equivox.run.speed import read_usage
from equivox.run.status import RequestCounts, count_requests
from equivox.run.store import Store, annotation_schema, response_schema

COUNT_EVERY_S = 5.0
"""Seconds between two counts of the stored records, or ten times what the last count took, whichever is more."""


class LiveRun:
    """The progress of one run; what is costly to count is counted now and then."""

    def __init__(self, folder: Path, now: Callable[[], float] = time.time) -> None:
        self._folder = folder
        self._now = now
        self._counted: dict[str, Any] = {}
        self._next_count = -math.inf

    def document(self) -> dict[str, Any]:
        """Return how far the run is, as plain values; whatever cannot be read is left out and said in `problem`.

        `state` is `under way`, `silent` (nothing was noted for a minute: stopped, or it hangs), `unscored` or `scored`.
        """
        found: dict[str, Any] = {"state": "unscored", "noted": None, "problem": None, "phases": [], "tasks": []}
        try:
            live = read_live(self._folder)
            found |= self._counts()
            found["phases"] = self._phases(live, found)
            found |= self._noted(live)
        except EquivoxError as error:
            found["problem"] = redacted_text(str(error))
        except OSError as error:  # a file that the run has just replaced
            found["problem"] = redacted_text(str(error.strerror or error))
        return found

    def _noted(self, live: Live | None) -> dict[str, Any]:
        if live is None:
            return {"state": "scored" if (self._folder / "scores.json").is_file() else "unscored"}
        age = live.age(self._now())
        return {
            "state": "silent" if age > SILENT_S else "under way",
            "noted": {
                "stage": live.stage,
                "done": live.done,
                "total": live.total,
                "failed": live.failed,
                "per_second": as_plain(live.per_second),
                "seconds_left": as_plain(live.seconds_left),
                "standing": live.waiting or None,
                "age": age,
            },
        }

    def _counts(self) -> dict[str, Any]:
        """Return the counts of the stored records, at most as old as `COUNT_EVERY_S` says."""
        started = self._now()
        if started >= self._next_count:
            self._counted = self._count()
            self._next_count = self._now() + max(COUNT_EVERY_S, 10 * (self._now() - started))
        return self._counted

    def _count(self) -> dict[str, Any]:
        import pyarrow.compute as pc

        annotator = str(read_manifest(self._folder)["command"]["annotator"])
        counts = count_requests(self._folder, run_tasks(self._folder))
        responses = Store(self._folder / "responses", response_schema()).table(("prompt_tokens", "completion_tokens"))
        store = Store(annotations_folder(self._folder, annotator), annotation_schema())
        annotations = store.table(("status", "attempts"))
        attempts = pc.sum(annotations["attempts"]).as_py() or 0
        by_status = {row["values"]: row["counts"] for row in pc.value_counts(annotations["status"]).to_pylist()}
        return {
            "tasks": [_task(one) for one in counts],
            "tokens": [pc.sum(responses[name]).as_py() or 0 for name in ("prompt_tokens", "completion_tokens")],
            "annotator": annotator,
            "annotated": len(annotations),
            "annotations": by_status,
            "again": max(0, attempts - len(annotations) + by_status.get("empty", 0)),
        }

    def _phases(self, live: Live | None, counted: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return what model and annotator did and used: asked, done, failed, asked again, tokens, cost."""
        tasks = counted["tasks"]
        annotator = str(counted["annotator"])
        place = annotations_folder(self._folder, annotator)
        stage = None if live is None else live.stage
        model = _usage(read_usage(self._folder), live.usage if live is not None and stage == "generate" else {})
        judge = _usage(read_usage(place), live.usage if live is not None and stage != "generate" else {})
        answered = sum(task["answered"] for task in tasks)
        if not model.get("requests"):
            # Engines on this machine count tokens with each response, and cost nothing here.
            model |= dict(zip(("prompt_tokens", "completion_tokens"), counted["tokens"], strict=True))
        return [
            {
                "name": "answers",
                "who": None,
                "done": answered,
                "total": sum(task["requested"] for task in tasks),
                "failed": sum(task["failed"] for task in tasks),
                "again": model.get("retries", 0),
                **_told(model),
            },
            {
                "name": "annotations",
                "who": _named(place, annotator),
                "done": counted["annotated"],
                "total": None,
                "failed": counted["annotations"].get("failed", 0),
                "again": judge.get("retries", 0) + counted["again"],
                **_told(judge),
            },
        ]


def _task(counts: RequestCounts) -> dict[str, Any]:
    names = ("task", "requested", "answered", "failed", "missing", "truncated", "withheld")
    return {name: getattr(counts, name) for name in names}


def _usage(stored: Mapping[str, float], since: Mapping[str, float]) -> dict[str, float]:
    """Return the usage of earlier starts and of this one together."""
    return {name: stored.get(name, 0) + since.get(name, 0) for name in {**stored, **since}}


def _told(usage: Mapping[str, float]) -> dict[str, Any]:
    names = ("requests", "prompt_tokens", "completion_tokens", "cost")
    return {name: as_plain(usage[name]) if usage.get(name) else None for name in names}


def _named(place: Path, annotator: str) -> str:
    try:
        return str(read_document(place / "annotator.json")["name"])
    except FileNotFoundError:
        return redacted_text(annotator)
