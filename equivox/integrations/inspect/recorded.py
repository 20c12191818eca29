"""Answers and annotations that logs hold, stored as a run and scored exactly as `equivox run` scores."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from equivox.annotate import Annotation, AnnotatorIdentity, Job, annotation_key
from equivox.core.hashing import digest
from equivox.core.progress import no_progress
from equivox.core.requests import EngineIdentity, Response
from equivox.core.samples import UNANNOTATED
from equivox.core.scores import Score
from equivox.core.segments import Segment, SegmentAnnotation
from equivox.core.task import Task
from equivox.dataset_builders.corpus import Corpus
from equivox.engines.function import RecordedEngine
from equivox.integrations.inspect.asking import sample_id
from equivox.run.annotating import TOOLS
from equivox.run.generating import IMPORTED
from equivox.run.pipeline import PreparedRun, annotate_and_score, prepared
from equivox.run.recomputing import Replayed, stored
from equivox.run.spec import RunSpec
from equivox.run.store import Store, annotation_schema, annotations_folder

NO_SAMPLE = "the log has no answer to it"
"""The error of a request without a sample in the log, because it failed there or was not asked."""

NOT_THERE = "the log has no annotation of it"

Read = Callable[[Sequence[Job]], Iterable[Annotation]]
"""Function that annotates some segments of one response."""


Segments = Mapping[str, Mapping[str, Any]]
"""The name of a segment → `status`, `values`, `output` and `attempts` of its annotation."""

Answers = Mapping[tuple[str, str], tuple[Response, Segments]]
"""The task's name and the sample's id → the answer, and what its segments were annotated as."""


def score_recorded(
    spec: RunSpec,
    answers: Answers,
    annotator: AnnotatorIdentity,
    *,
    corpora: Mapping[str, Corpus],
) -> list[Score]:
    """Make the run `spec` of recorded answers and return its scores.

    `annotator` is the one whose recorded annotations count. A request without an answer is a failed one.
    """
    replayed = Replayed(annotator, {}, NOT_THERE)
    content = sorted([name, key, answer.text or "", answer.error or ""] for (name, key), (answer, _) in answers.items())
    model = spec.model.removeprefix(f"{IMPORTED}:")
    # Tasks that ask the same share the response, so one of them is enough.
    by_id = {key: answer for (_, key), (answer, _) in answers.items()}
    nothing = Response(key="", text=None, error=NO_SAMPLE)
    engine = RecordedEngine(
        EngineIdentity(engine=IMPORTED, model=model, revision=digest(content)),
        lambda request: replace(by_id.get(sample_id(request), nothing), key=request.key),
    )
    with prepared(spec, replayed, engine, dict(corpora)) as run:
        run.answer(no_progress)
        _store_annotations(run, answers, annotator)
        return annotate_and_score(spec.output, run.tasks, replayed, spec.options, retry_failed=spec.retry_failed)


def annotate_response(
    task: Task,
    metadata: Mapping[str, str],
    text: str,
    response_key: str,
    identity: AnnotatorIdentity,
    read: Read,
) -> dict[str, tuple[Segment, Annotation]]:
    """Annotate one response, round by round, until its scheme returns no new segment; return them by name."""
    found: dict[str, tuple[Segment, Annotation]] = {}
    while True:
        done = {name: _short(annotation) for name, (_, annotation) in found.items()}
        jobs: dict[str, Job] = {}
        for segment in task.annotation.segments(task, metadata, text, done):
            if segment.name not in found:
                key = annotation_key(identity, segment, response_key)
                jobs[key] = Job(key=key, response_key=response_key, task=task.name, segment=segment)
        if not jobs:
            return found
        for annotation in read(list(jobs.values())):
            segment = jobs[annotation.key].segment
            found[segment.name] = segment, annotation


def sample_of(
    task: Task, metadata: Mapping[str, str], text: str, found: Mapping[str, tuple[Segment, Annotation]]
) -> tuple[str, Mapping[str, SegmentAnnotation]]:
    """Return the status of an annotated response and the segments that count, as in the table of samples."""
    done = {name: _short(annotation) for name, (_, annotation) in found.items()}
    if any(entry.status == "failed" for entry in done.values()):
        return UNANNOTATED, {}
    return task.annotation.sample(task, metadata, text, done)


def as_segments(found: Mapping[str, tuple[Segment, Annotation]]) -> dict[str, dict[str, Any]]:
    """Return annotations as logs hold them, by the name of the segment."""
    kept = ("status", "values", "output", "attempts")
    records = {name: annotation.as_record() for name, (_, annotation) in found.items()}
    return {name: {field: record[field] for field in kept} for name, record in records.items()}


def _short(annotation: Annotation) -> SegmentAnnotation:
    return SegmentAnnotation(annotation.status, annotation.by_attribute())


def _store_annotations(run: PreparedRun, answers: Answers, identity: AnnotatorIdentity) -> None:
    """Store the recorded annotations of a run, where its annotate stage looks for them."""
    tasks = {task.name: task for task in run.tasks}
    folder = run.spec.output
    own = Store(annotations_folder(folder, identity.name), annotation_schema())
    shared = Store(annotations_folder(folder, TOOLS), annotation_schema())
    with own, shared:
        for row, request in run.plan.described():
            task = tasks[row["task"]]
            answer, segments = answers.get((task.name, sample_id(request)), (None, {}))
            if answer is None or answer.text is None:
                continue
            read = _reader(segments)
            found = annotate_response(task, request.labels.metadata, answer.text, request.key, identity, read)
            for segment, annotation in found.values():
                (shared if segment.alone else own).append(annotation.as_record())


def _reader(segments: Segments) -> Read:
    return lambda jobs: [stored(job, segments.get(job.segment.name), NOT_THERE) for job in jobs]
