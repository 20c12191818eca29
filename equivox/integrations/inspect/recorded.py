"""Answers and annotations that logs hold, stored as a run and scored exactly as `equivox run` scores."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from equivox.annotate import Annotation, Annotator, AnnotatorIdentity, Job, annotation_key
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
from equivox.run.annotating import run_jobs
from equivox.run.generating import IMPORTED
from equivox.run.pipeline import annotate_and_score, prepared
from equivox.run.recomputing import stored
from equivox.run.spec import RunSpec

NO_SAMPLE = "the log has no answer to it"
"""The error of a request without a sample in the log, because it failed there or was not asked."""

NOT_THERE = "the log has no annotation of it"

Segments = Mapping[str, Mapping[str, Any]]
"""The name of a segment → `status`, `values`, `output` and `attempts` of its annotation."""

Answers = Mapping[tuple[str, str], tuple[Response, Segments]]
"""The task's name and the sample's id → the answer, and what its segments were annotated as."""


@dataclass
class _Recorded(Annotator):
    """Annotator that repeats the annotations beside answers; `ids` has the sample's id of each request by its key."""

    identity: AnnotatorIdentity
    answers: Answers
    ids: dict[str, str] = field(default_factory=dict)

    def annotate(self, jobs: Iterable[Job]) -> Iterator[Annotation]:
        """Yield the recorded annotation of each job, and a failed one for a job without."""
        for job in jobs:
            _, segments = self.answers.get((job.task, self.ids.get(job.response_key, "")), (None, {}))
            yield stored(job, segments.get(job.segment.name), NOT_THERE)


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
    recorded = _Recorded(annotator, answers)
    content = sorted([name, key, answer.text or "", answer.error or ""] for (name, key), (answer, _) in answers.items())
    model = spec.model.removeprefix(f"{IMPORTED}:")
    # Tasks that ask the same share the response, so one of them is enough.
    by_id = {key: answer for (_, key), (answer, _) in answers.items()}
    nothing = Response(key="", text=None, error=NO_SAMPLE)
    engine = RecordedEngine(
        EngineIdentity(engine=IMPORTED, model=model, revision=digest(content)),
        lambda request: replace(by_id.get(sample_id(request), nothing), key=request.key),
    )
    with prepared(spec, recorded, engine, dict(corpora)) as run:
        run.answer(no_progress)
        recorded.ids |= {request.key: sample_id(request) for request in run.plan.requests()}
        return annotate_and_score(spec.output, run.tasks, recorded, spec.options, retry_failed=spec.retry_failed)


def annotate_response(
    task: Task, metadata: Mapping[str, str], text: str, response_key: str, annotator: Annotator
) -> dict[str, tuple[Segment, Annotation]]:
    """Annotate one response, round by round, until its scheme returns no new segment; return them by name."""
    found: dict[str, tuple[Segment, Annotation]] = {}
    while True:
        done = {name: _short(annotation) for name, (_, annotation) in found.items()}
        jobs: dict[str, Job] = {}
        for segment in task.annotation.segments(task, metadata, text, done):
            if segment.name not in found:
                key = annotation_key(annotator.identity, segment, response_key)
                jobs[key] = Job(key=key, response_key=response_key, task=task.name, segment=segment)
        if not jobs:
            return found
        for annotation in run_jobs(list(jobs.values()), annotator):
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
