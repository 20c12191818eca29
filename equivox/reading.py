"""The annotation stage: every stored response read by an annotator, each reading stored as it is done."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from equivox.annotate.base import Annotator, AnnotatorIdentity, Job, annotation_key
from equivox.errors import RequestError
from equivox.progress import Progress, no_progress
from equivox.store import Store, annotation_schema, response_schema, write_text
from equivox.task import Task


def annotate(folder: Path, tasks: Sequence[Task], annotator: Annotator, *, progress: Progress = no_progress) -> None:
    """Have `annotator` read every stored response that it has not read yet.

    Who it is is kept beside its readings, so that they can be told apart and scored later without it. Readings by
    another version of the same annotator stay in the store and no longer count.
    """
    by_name = {task.name: task for task in tasks}
    texts = {
        key: response["text"] for key, response in stored_responses(folder).items() if response["text"] is not None
    }
    own = annotations_folder(folder, annotator.identity.name)
    with Store(own, annotation_schema()) as store:
        done = store.keys()
        jobs = []
        for row in plan_rows(folder):
            text = texts.get(row["key"])
            if text is None:
                continue
            task = by_name[row["task"]]
            key = annotation_key(annotator.identity, task, row["key"], text)
            if key not in done:
                done.add(key)
                jobs.append(Job(key=key, response_key=row["key"], task=task, text=text))
        write_text(own / "annotator.json", json.dumps(annotator.identity.as_dict(), indent=1) + "\n")
        progress("annotate", 0, len(jobs))
        for number, annotation in enumerate(annotator.annotate(jobs), start=1):
            store.append(annotation.as_record())
            progress("annotate", number, len(jobs))
        store.flush()
        store.compact()


def annotations_folder(folder: Path, annotator: str) -> Path:
    """Return where the readings of `annotator` lie in a run."""
    return folder / "annotations" / annotator


def annotators_of(folder: Path) -> list[str]:
    """Return the annotators that have read the run in `folder`."""
    return sorted(path.parent.name for path in (folder / "annotations").glob("*/annotator.json"))


def stored_annotator(folder: Path, name: str) -> AnnotatorIdentity:
    """Return who `name` is, as stored with its readings; RequestError if it has not read this run."""
    try:
        record = json.loads((annotations_folder(folder, name) / "annotator.json").read_text("utf-8"))
    except OSError:
        known = ", ".join(annotators_of(folder)) or "none"
        raise RequestError(
            f"{folder} has no annotations by {name!r} (there: {known}); make them with "
            f"`equivox annotate {folder} --annotator {name}`"
        ) from None
    return AnnotatorIdentity(**record)


def stored_annotations(folder: Path, name: str) -> dict[str, dict[str, Any]]:
    """Return the readings of annotator `name` by their keys."""
    store = Store(annotations_folder(folder, name), annotation_schema())
    return {record["key"]: record for record in store.records()}


def values_by_attribute(values: Sequence[Mapping[str, str]]) -> dict[str, tuple[str, ...]]:
    """Group the values of one annotation record by attribute, in the order stored."""
    grouped: dict[str, tuple[str, ...]] = {}
    for value in values:
        grouped[value["attribute"]] = (*grouped.get(value["attribute"], ()), value["value"])
    return grouped


def stored_responses(folder: Path) -> dict[str, dict[str, Any]]:
    """Return the responses of the run in `folder` by their keys."""
    return {record["key"]: record for record in Store(folder / "responses", response_schema()).records()}


def plan_rows(folder: Path) -> list[dict[str, Any]]:
    """Return the plan of the run in `folder`; RequestError if the run was stopped before it was written."""
    import pyarrow.parquet as pq

    path = folder / "plan.parquet"
    if not path.is_file():
        raise RequestError(f"{folder} has no plan.parquet: the run was stopped before it began; run it again")
    return list(pq.read_table(path).to_pylist())
