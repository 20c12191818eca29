"""The annotation stage: every stored response read by an annotator, each reading stored as it is done."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from equivox.core.annotation import Annotation, Annotator, AnnotatorIdentity, Job, Status, Value, annotation_key
from equivox.core.errors import RequestError
from equivox.core.progress import Progress, no_progress
from equivox.core.segments import Part, PartReading, reading_of
from equivox.core.task import Task, digest
from equivox.run.store import Store, annotation_schema, response_schema, write_text

if TYPE_CHECKING:
    import pyarrow as pa

READERS = "readers"
"""Where the readings lie that no annotator has a part in: those of the readers that parts bring with them."""

FOLLOW_UP = "follow up"
"""What the stage of questions about findings is called."""


class Readings:
    """What has been read of a run: by one annotator, and by the readers that parts bring with them."""

    def __init__(self, identity: AnnotatorIdentity, records: Mapping[str, Mapping[str, Any]]) -> None:
        self._identity = identity
        self._records = dict(records)

    @classmethod
    def of(cls, folder: Path, identity: AnnotatorIdentity) -> Readings:
        """Return all that has been read of the run in `folder`."""
        return cls(identity, stored_annotations(folder, identity.name) | stored_annotations(folder, READERS))

    def settle(
        self, task: Task, planned: Mapping[str, Any], text: str
    ) -> tuple[dict[str, PartReading], dict[str, Part]]:
        """Return what has been read of a response, by part, and the parts that can be read now, by annotation key."""
        done: dict[str, PartReading] = {}
        while True:
            found: dict[str, PartReading] = {}
            pending: dict[str, Part] = {}
            for part in reading_of(task).parts(task, planned["facts"], text, done):
                if part.name in done:
                    continue
                key = annotation_key(self._identity, part, planned["key"])
                record = self._records.get(key)
                if record is None:
                    pending[key] = part
                else:
                    found[part.name] = _part_reading(record, part.alone)
            if not found:
                return done, pending
            done |= found

    def add(self, annotation: Annotation) -> None:
        """Take an annotation that has just been made."""
        self._records[annotation.key] = annotation.as_record()


def annotate(folder: Path, tasks: Sequence[Task], annotator: Annotator, *, progress: Progress = no_progress) -> None:
    """Have `annotator` read every stored response that it has not read yet, round by round until nothing is left.

    Who it is is kept beside its readings, so that they can be told apart and scored later without it. Readings by
    another version of the same annotator stay in the store and no longer count.
    """
    own = annotations_folder(folder, annotator.identity.name)
    readings = Readings.of(folder, annotator.identity)
    write_text(own / "annotator.json", json.dumps(annotator.identity.as_dict(), indent=1) + "\n")
    shared = Store(annotations_folder(folder, READERS), annotation_schema())
    texts = stored_texts(folder)
    answered = [(row, text) for row in plan_rows(folder) if (text := texts.get(row["key"])) is not None]
    done = 0
    progress("annotate", 0, 0)
    with Store(own, annotation_schema()) as store, shared:
        while jobs := _jobs(answered, tasks, readings):
            total = done + len(jobs)
            for annotation in _read(list(jobs.values()), annotator):
                (shared if jobs[annotation.key].part.alone else store).append(annotation.as_record())
                readings.add(annotation)
                done += 1
                progress("annotate", done, total)
            store.flush()
            shared.flush()
        store.compact()
        shared.compact()


class StoredRun:
    """What was asked, answered and read in a run, kept as it is stored and handed out task by task.

    As objects of Python, the readings of a large run take ten times the memory.
    """

    def __init__(self, folder: Path, identity: AnnotatorIdentity) -> None:
        self._identity = identity
        self._plan = _plan_table(folder)
        self._texts = Store(folder / "responses", response_schema()).table(("key", "text"))
        columns = ("key", "response_key", "status", "values")
        names = (identity.name, READERS)
        self._read = [Store(annotations_folder(folder, name), annotation_schema()).table(columns) for name in names]

    def of_task(self, task: Task) -> tuple[list[dict[str, Any]], dict[str, str | None], Readings]:
        """Return the plan of one task, what was answered by the keys of the responses, and what was read of that."""
        import pyarrow.compute as pc

        plan = self._plan.filter(pc.equal(self._plan["task"], task.name))
        texts = _among(self._texts, "key", plan["key"])
        records = {r["key"]: r for table in self._read for r in _among(table, "response_key", plan["key"]).to_pylist()}
        answered = dict(zip(texts["key"].to_pylist(), texts["text"].to_pylist(), strict=True))
        return _with_facts(plan), answered, Readings(self._identity, records)


def _among(table: pa.Table, column: str, keys: pa.ChunkedArray) -> pa.Table:
    import pyarrow.compute as pc

    return table.filter(pc.is_in(table[column], value_set=keys.combine_chunks()))


class Answers:
    """What an annotator said to follow-up questions, those about findings rather than responses."""

    def __init__(self, folder: Path, identity: AnnotatorIdentity) -> None:
        self._identity = identity
        self._records = {
            key: record
            for key, record in stored_annotations(folder, identity.name).items()
            if not record["response_key"]
        }

    def to(self, part: Part) -> PartReading | None:
        """Return what was said to `part`; None where it has not been asked."""
        record = self._records.get(annotation_key(self._identity, part, ""))
        return None if record is None else _part_reading(record, part.alone)


def ask(folder: Path, parts: Sequence[Part], annotator: Annotator, *, progress: Progress = no_progress) -> None:
    """Ask `annotator` each of `parts` that it has not answered yet, each once; every answer is stored as it comes."""
    answers = Answers(folder, annotator.identity)
    jobs: dict[str, Job] = {}
    for part in parts:
        if answers.to(part) is None:
            key = annotation_key(annotator.identity, part, "")
            jobs.setdefault(key, Job(key=key, response_key="", task=part.name, part=part))
    progress(FOLLOW_UP, 0, len(jobs))
    with Store(annotations_folder(folder, annotator.identity.name), annotation_schema()) as store:
        for done, annotation in enumerate(_read(list(jobs.values()), annotator), start=1):
            store.append(annotation.as_record())
            progress(FOLLOW_UP, done, len(jobs))
        store.flush()
        store.compact()


def _jobs(
    answered: Sequence[tuple[Mapping[str, Any], str]], tasks: Sequence[Task], readings: Readings
) -> dict[str, Job]:
    """Return what can be read now of the planned requests that were answered, each with its response's text."""
    by_name = {task.name: task for task in tasks}
    jobs: dict[str, Job] = {}
    for row, text in answered:
        for key, part in readings.settle(by_name[row["task"]], row, text)[1].items():
            jobs.setdefault(key, Job(key=key, response_key=row["key"], task=row["task"], part=part))
    return jobs


def _read(jobs: Sequence[Job], annotator: Annotator) -> Iterator[Annotation]:
    """Yield one annotation per job: by the part's own reader where it has one that can tell, else by the annotator."""
    left = [job for job in jobs if job.part.reader is None]
    by_reader: dict[str, list[Job]] = {}
    for job in jobs:
        if job.part.reader is not None:
            by_reader.setdefault(digest(dict(job.part.reader.identity)), []).append(job)
    for members in by_reader.values():
        reader = members[0].part.reader
        if reader is None:
            continue
        spoken = [job for job in members if job.part.text.strip()]
        yield from (_by_reader(job, "empty", ()) for job in members if not job.part.text.strip())
        for job, values in zip(spoken, reader.read([job.part for job in spoken]), strict=True):
            if values is not None:
                yield _by_reader(job, _status(job.part, values), values)
            elif job.part.alone:
                yield _by_reader(job, "unparsed", ())
            else:
                left.append(job)
    yield from annotator.annotate(left)


def _status(part: Part, values: Sequence[Value]) -> Status:
    refusals = {attribute.name for attribute in part.attributes if attribute.role == "refusal"}
    return "refused" if any(v.attribute in refusals and v.value == "yes" for v in values) else "parsed"


def _by_reader(job: Job, status: Status, values: Sequence[Value]) -> Annotation:
    return Annotation(
        key=job.key,
        response_key=job.response_key,
        task=job.task,
        status=status,
        values=tuple(values),
        part=job.part.name,
    )


def _part_reading(record: Mapping[str, Any], shared: bool) -> PartReading:
    values = record["values"]
    return PartReading(record["status"], values_by_attribute(values), values_by_attribute(values, "raw"), shared)


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


def values_by_attribute(values: Sequence[Mapping[str, str]], field: str = "value") -> dict[str, tuple[str, ...]]:
    """Group the values of one annotation record (or, by `field`, their raw words) by attribute, in the order stored."""
    grouped: dict[str, tuple[str, ...]] = {}
    for value in values:
        grouped[value["attribute"]] = (*grouped.get(value["attribute"], ()), value[field])
    return grouped


def stored_responses(folder: Path) -> dict[str, dict[str, Any]]:
    """Return the responses of the run in `folder` by their keys."""
    return {record["key"]: record for record in Store(folder / "responses", response_schema()).records()}


def stored_texts(folder: Path) -> dict[str, str | None]:
    """Return what was answered by the keys of the responses, None where a request failed; nothing else is held."""
    table = Store(folder / "responses", response_schema()).table(("key", "text"))
    return dict(zip(table["key"].to_pylist(), table["text"].to_pylist(), strict=True))


def plan_rows(folder: Path) -> list[dict[str, Any]]:
    """Return the plan of the run in `folder`; RequestError if the run was stopped before it was written."""
    return _with_facts(_plan_table(folder))


def _plan_table(folder: Path) -> pa.Table:
    import pyarrow.parquet as pq

    path = folder / "plan.parquet"
    if not path.is_file():
        raise RequestError(f"{folder} has no plan.parquet: the run was stopped before it began; run it again")
    return pq.read_table(path)


def _with_facts(plan: pa.Table) -> list[dict[str, Any]]:
    return [{**row, "facts": dict(row["facts"])} for row in plan.to_pylist()]
