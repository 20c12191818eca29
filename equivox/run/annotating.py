"""The annotate stage: an annotator annotates every stored response, and the samples of each task become one table.

Each annotation is stored as soon as it is made; those of `rules`, which take no time, are stored a block at a time.
When all responses of a task are annotated, the table of its samples is written. Scoring reads only this table.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from equivox.core.annotation import Annotation, Annotator, Job, annotation_key, grouped
from equivox.core.attributes import OTHER, UNSTATED, Attribute
from equivox.core.errors import RunError
from equivox.core.files import return_freed_memory, state_of, write_document, write_table
from equivox.core.lazy import pa, pc
from equivox.core.plugins import told_in_one_line
from equivox.core.progress import Event, Progress, no_progress
from equivox.core.samples import ENDED, UNANNOTATED, segment_columns
from equivox.core.segments import (
    STATUSES,
    Segment,
    SegmentAnnotation,
    SegmentTool,
    Status,
    Value,
)
from equivox.core.task import Task, digest
from equivox.run.live import add_usage
from equivox.run.manifest import forget_hashes
from equivox.run.plan import read_plan
from equivox.run.store import (
    Store,
    annotation_schema,
    annotations_folder,
    response_schema,
    samples_path,
    scheme_digest,
)

TOOLS = "_tools"
"""Folder of the annotations that rules and tools made without an annotator; all annotators share them."""

FOLLOW_UP = "follow up"
"""Name of the stage that asks questions about findings."""

SIMULATED = "simulated"
"""The engine whose responses can be annotated by special rules (`Task.simulate`)."""

_BLOCK = 8192
"""Number of responses that are annotated together; their segments stay in memory until the last is annotated."""


def annotate(
    folder: Path,
    tasks: Sequence[Task],
    annotator: Annotator,
    *,
    engine: str,
    redo: Collection[Status] = (),
    progress: Progress = no_progress,
) -> None:
    """Annotate the responses of the run in `folder` that lack an annotation, and write the tables of samples.

    `engine` is the name of the engine that answered: rules for simulated responses annotate no others.

    The manifest states no hashes from here until the run is scored. The annotator's identity is stored beside its
    annotations, so that they can be scored later without it. Annotations by another version of the same annotator stay
    in the store and no longer count. Annotations with a status in `redo` are made again; each stays until the new one
    is stored.
    """
    name = annotator.identity.name
    columns = ("key", "text", "finish_reason")
    responses = Store(folder / "responses", response_schema()).table(columns).combine_chunks()
    plan = read_plan(folder)
    return_freed_memory()
    n_answered = len(responses) - responses["text"].null_count
    forget_hashes(folder)
    write_document(annotations_folder(folder, name) / "annotator.json", annotator.identity.as_dict())
    progress(Event("annotate", 0, 0))
    stage = _Stage(
        annotator=annotator,
        simulated=engine == SIMULATED,
        store=Store(annotations_folder(folder, name), annotation_schema()),
        shared=Store(annotations_folder(folder, TOOLS), annotation_schema()),
        progress=progress,
        redo=redo,
    )
    before = dict(annotator.usage)
    try:
        with stage.store, stage.shared:
            for task in tasks:
                asked = plan.filter(pc.equal(plan["task"], task.name))
                metadata = [name for name in asked.column_names if name.startswith("metadata.")]
                # Columns of metadata that only other tasks keep are empty here.
                asked = asked.drop_columns([name for name in metadata if asked[name].null_count == len(asked)])
                with told_in_one_line(f"the annotation scheme of {task.name}"):
                    table = stage.samples(task, asked.combine_chunks(), responses)
                write_samples(folder, name, task, table, n_answered=n_answered)
    finally:
        add_usage(annotations_folder(folder, name), annotator.usage, before)


def count_answered(folder: Path) -> int:
    """Return how many requests of the run in `folder` have a response with a text; no texts are kept in memory.

    The responses are read again only if one of their files has changed.
    """
    responses = folder / "responses"
    with suppress(FileNotFoundError):  # a writer makes a journal into a shard
        return _answered(responses, tuple((path.name, *state_of(path)) for path in sorted(responses.glob("*"))))
    return _answered.__wrapped__(responses, ())


@lru_cache(maxsize=256)
def _answered(responses: Path, state: tuple[tuple[Any, ...], ...]) -> int:
    answered = Store(responses, response_schema()).filled("text")["text"]
    return int(pc.sum(answered).as_py() or 0)


@dataclass
class _Response:
    """One response while it is annotated."""

    key: str
    text: str
    metadata: Mapping[str, str]
    done: dict[str, SegmentAnnotation] = field(default_factory=dict)


@dataclass
class _Stage:
    """The annotator and the stores of one annotate stage."""

    annotator: Annotator
    simulated: bool
    store: Store
    shared: Store
    progress: Progress
    redo: Collection[Status]
    done: int = 0
    total: int = 0
    failed: int = 0
    annotated: list[Any] = field(default_factory=list)
    again: set[str] = field(default_factory=set)
    """The keys of annotations that failed before and are asked again."""
    redone: set[str] = field(default_factory=set)
    """The keys of annotations that were made in this stage, which no later task repeats; empty if none is repeated."""

    def report(self, done: int) -> None:
        """Report that `done` responses are annotated."""
        engine = self.annotator.engine
        event = Event("annotate", done, self.total, self.failed)
        self.progress(event if engine is None else engine.event("annotate", done, self.total, failed=self.failed))

    def samples(self, task: Task, plan: pa.Table, responses: pa.Table) -> pa.Table:
        """Annotate the responses of one task, which are among `responses`, and return the table of its samples."""
        blocks = []
        stored = self._stored(plan)
        for start in range(0, plan.num_rows, _BLOCK):
            block = plan.slice(start, _BLOCK)
            place = pc.index_in(block["key"], value_set=responses["key"].combine_chunks())
            requested = pc.is_valid(place).to_pylist()
            blocks.append(self._block(task, block, responses.take(place), requested, stored))
        return pa.concat_tables(blocks, promote_options="default").combine_chunks()

    def _stored(self, plan: pa.Table) -> pa.Table:
        """Return the stored annotations of the responses in `plan`."""
        columns = ("key", "response_key", "status", "values")
        keys = plan["key"].combine_chunks()
        if not self.annotated:
            before = [
                store.table(("response_key",))["response_key"].combine_chunks() for store in (self.store, self.shared)
            ]
            self.annotated = [array for array in before if len(array)]
        known = any(pc.any(pc.is_in(keys, value_set=array)).as_py() for array in self.annotated)
        self.annotated.append(keys)
        if not known:
            # The stored annotations are read only if they contain one of these responses.
            schema = annotation_schema()
            return pa.schema([schema.field(name) for name in columns]).empty_table()
        tables = [store.table(columns) for store in (self.store, self.shared)]
        stored = pa.concat_tables([t.filter(pc.is_in(t["response_key"], value_set=keys)) for t in tables])
        if not self.redo:
            return stored
        again = pc.and_not(_is_among(stored["status"], self.redo), _is_among(stored["key"], self.redone))
        failed = pc.and_(again, pc.equal(stored["status"], "failed"))
        self.again.update(stored.filter(failed)["key"].to_pylist())
        return stored.filter(pc.invert(again))

    def _block(
        self, task: Task, plan: pa.Table, responses: pa.Table, requested: Sequence[bool], stored: pa.Table
    ) -> pa.Table:
        keys = plan["key"].to_pylist()
        names = [name for name in plan.column_names if name.startswith("metadata.")]
        metadata = [plan[name].to_pylist() for name in names]
        short = [name.removeprefix("metadata.") for name in names]
        texts, ended = responses["text"], responses["finish_reason"]
        rows: list[_Response | None] = [
            None
            if text is None
            else _Response(key, text, {n: v for n, v in zip(short, given, strict=True) if v is not None})
            for key, text, given in zip(
                keys, texts.to_pylist(), zip(*metadata, strict=True) if metadata else [()] * len(keys), strict=True
            )
        ]
        known = {}
        if stored.num_rows:
            block = stored.filter(pc.is_in(stored["response_key"], value_set=plan["key"].combine_chunks()))
            known = {record["key"]: _stored_segment(record) for record in block.to_pylist()}
        self._settle(task, [row for row in rows if row is not None], known)
        statuses: list[str] = []
        segments: list[Mapping[str, SegmentAnnotation]] = []
        for row, was_requested in zip(rows, requested, strict=True):
            if row is None:
                statuses.append("failed" if was_requested else "missing")
                segments.append({})
            elif any(annotation.status == "failed" for annotation in row.done.values()):
                statuses.append(UNANNOTATED)
                segments.append({})
            else:
                status, kept = task.annotation.sample(task, row.metadata, row.text, row.done)
                statuses.append(status)
                segments.append(kept)
        described = ("key", "sample_id", "repeat", "group", "cluster", "stratum", "block", "item")
        kept_columns = [*(name for name in described if name in plan.column_names), *names]
        table = plan.select(kept_columns).append_column("status", pa.array(statuses, pa.string()).dictionary_encode())
        if ended.null_count < len(ended):
            table = table.append_column(ENDED, ended.dictionary_encode())
        for name, cells in segment_columns(segments).items():
            kind = pa.string() if name.startswith("status.") else pa.list_(pa.string())
            table = table.append_column(name, pa.array(cells, kind))
        return table

    def _settle(self, task: Task, rows: Sequence[_Response], known: dict[str, SegmentAnnotation]) -> None:
        """Annotate all segments of `rows`, round by round, until their scheme returns no new segment."""
        self.total += len(rows)
        active = list(rows)
        while active:
            jobs: dict[str, Job] = {}
            waiting: list[tuple[_Response, str, str]] = []
            unsettled = []
            for row in active:
                pending = self._pending(task, row, known)
                for key, segment in pending.items():
                    job = Job(key=key, response_key=row.key, task=task.name, segment=segment)
                    jobs.setdefault(key, replace(job, failed_before=True) if key in self.again else job)
                    waiting.append((row, segment.name, key))
                if pending:
                    unsettled.append(row)
                else:
                    self.done += 1
            self.report(self.done)
            made: dict[str, SegmentAnnotation] = {}
            instant: list[Mapping[str, Any]] = []
            settling = self.done
            for number, annotation in enumerate(run_jobs(list(jobs.values()), self.annotator), start=1):
                segment = jobs[annotation.key].segment
                if self.annotator.instant and segment.tool is None:
                    instant.append(annotation.as_record())
                else:
                    (self.shared if segment.alone else self.store).append(annotation.as_record())
                if self.redo:
                    self.redone.add(annotation.key)
                made[annotation.key] = SegmentAnnotation(annotation.status, annotation.by_attribute())
                self.failed += annotation.status == "failed"
                # A response counts as soon as its share of the answers is there.
                self.report(settling + len(unsettled) * number // (len(jobs) + 1))
            self.store.append_all(instant)
            for row, name, key in waiting:
                row.done[name] = made[key]
            active = unsettled

    def _pending(self, task: Task, row: _Response, known: Mapping[str, SegmentAnnotation]) -> dict[str, Segment]:
        """Use the stored annotations of a response, then return the segments to annotate next, by key."""
        while True:
            pending: dict[str, Segment] = {}
            found = False
            for segment in task.annotation.segments(task, row.metadata, row.text, row.done):
                if segment.name in row.done:
                    continue
                if self.simulated and task.simulate is not None:
                    # Rules for simulated responses, if the task has them for this segment.
                    segment = replace(segment, tool=task.simulate.tool(segment) or segment.tool)
                key = annotation_key(self.annotator.identity, segment, row.key)
                if (annotation := known.get(key)) is not None:
                    row.done[segment.name] = annotation
                    found = True
                else:
                    pending[key] = segment
            if not found:
                return pending


def run_jobs(jobs: Sequence[Job], annotator: Annotator) -> Iterator[Annotation]:
    """Yield one annotation per job: by the segment's tool if it has one that can tell, else by the annotator."""
    left: list[Job] = []
    by_tool: dict[str, tuple[SegmentTool, list[Job]]] = {}
    digests: dict[int, str] = {}
    for job in jobs:
        if (tool := job.segment.tool) is None:
            left.append(job)
        else:
            if id(tool) not in digests:
                digests[id(tool)] = digest(dict(tool.identity))
            by_tool.setdefault(digests[id(tool)], (tool, []))[1].append(job)
    for tool, members in by_tool.values():
        spoken = [job for job in members if job.segment.text.strip()]
        yield from (job.annotated("empty") for job in members if not job.segment.text.strip())
        for job, values in zip(spoken, tool.read([job.segment for job in spoken]), strict=True):
            if values is not None:
                asked = {one.name: one for one in job.segment.attributes}
                # A tool may give more than is asked for, such as which rule decided.
                known = all(_can_be(value, {value.attribute: _ANY, **asked}) for value in values)
                yield job.annotated(_status(job.segment, values), values) if known else job.annotated("failed")
            elif job.segment.alone:
                yield job.annotated("unparsed")
            else:
                left.append(job)
    with told_in_one_line(annotator.named):
        yield from _told(left, annotator)


_ANY = Attribute(name="", asks="")
"""An attribute that takes any words."""


def _told(jobs: Sequence[Job], annotator: Annotator) -> Iterator[Annotation]:
    """Yield an annotator's annotation of each job; RunError for anything else that it yields.

    The annotation has failed if its status or one of its values is none that there is, if an attribute has more values
    than it asks for, or if there is no annotation.
    """
    left = {job.key: job for job in jobs}
    named: dict[int, Mapping[str, Attribute]] = {}
    for annotation in annotator.annotate(jobs):
        job = left.pop(annotation.key, None) if isinstance(annotation, Annotation) else None
        if job is None:
            what = f"{annotation!r:.60}, no annotation of what was left to annotate"
            raise RunError(f"{annotator.named} yielded {what}; stored annotations are kept")
        attributes = job.segment.attributes
        asked = named.get(id(attributes)) or named.setdefault(id(attributes), {one.name: one for one in attributes})
        known = annotation.status in STATUSES and all(_can_be(value, asked) for value in annotation.values)
        if known and len(annotation.values) > 1:
            given = Counter(value.attribute for value in annotation.values)
            known = all(given[one.name] <= one.count for one in attributes)
        yield annotation if known else job.annotated("failed")
    yield from (job.annotated("failed") for job in left.values())


def _can_be(value: Any, asked: Mapping[str, Attribute]) -> bool:
    """Return whether a value is one that its attribute asks for: an option, a finite number, or words."""
    attribute = asked.get(value.attribute) if isinstance(value, Value) else None
    if attribute is None or not isinstance(text := value.value, str):
        return False
    if attribute.options:
        return text in attribute.options or text == OTHER
    if not text.strip() or text == UNSTATED:
        return False
    try:
        text.encode()  # no file can hold half of a surrogate pair
        return attribute.number is None or math.isfinite(float(text))
    except ValueError:
        return False


def _status(segment: Segment, values: Sequence[Value]) -> Status:
    refusals = {attribute.name for attribute in segment.attributes if attribute.role == "refusal"}
    if any(v.attribute in refusals and v.value == "yes" for v in values):
        return "refused"
    return "parsed"


def _is_among(column: pa.ChunkedArray, values: Collection[str]) -> pa.ChunkedArray:
    return pc.is_in(column, value_set=pa.array(sorted(values), pa.string()))


def _stored_segment(record: Mapping[str, Any]) -> SegmentAnnotation:
    return SegmentAnnotation(record["status"], grouped((v["attribute"], v["value"]) for v in record["values"]))


def stored_follow_ups(folder: Path, annotator: str, *, redo: Collection[Status] = ()) -> dict[str, SegmentAnnotation]:
    """Return an annotator's answers to follow-up questions by key; failed ones and those to `redo` are left out.

    Such a question is about a finding instead of one response.
    """
    answers = Store(annotations_folder(folder, annotator), annotation_schema()).where("response_key", [""])
    return {r["key"]: _stored_segment(r) for r in answers.to_pylist() if r["status"] not in {"failed", *redo}}


def ask(
    folder: Path,
    segments: Sequence[Segment],
    annotator: Annotator,
    *,
    redo: Collection[Status] = (),
    progress: Progress = no_progress,
) -> None:
    """Ask `annotator` each question in `segments` that it has not answered yet; every answer is stored at once.

    Answers with a status in `redo` are asked for again.
    """
    answers = stored_follow_ups(folder, annotator.identity.name, redo=redo)
    jobs: dict[str, Job] = {}
    for segment in segments:
        if (key := annotation_key(annotator.identity, segment, "")) not in answers:
            jobs.setdefault(key, Job(key=key, response_key="", task=segment.name, segment=segment))
    progress(Event(FOLLOW_UP, 0, len(jobs)))
    place = annotations_folder(folder, annotator.identity.name)
    before = dict(annotator.usage)
    try:
        with Store(place, annotation_schema()) as store:
            for done, annotation in enumerate(run_jobs(list(jobs.values()), annotator), start=1):
                store.append(annotation.as_record())
                progress(Event(FOLLOW_UP, done, len(jobs)))
    finally:
        add_usage(place, annotator.usage, before)


def write_samples(folder: Path, annotator: str, task: Task, table: pa.Table, *, n_answered: int) -> None:
    """Store the table of the samples of `task` as annotated by `annotator`.

    The file names the annotation scheme and the number of answered requests, so that scoring can refuse a stale table.
    """
    described = {"task": task.name, "scheme": scheme_digest(task), "answered": n_answered}
    table = table.replace_schema_metadata({"equivox": json.dumps(described)})
    write_table(samples_path(folder, annotator, task.name), table)
