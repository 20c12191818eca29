"""Stages of the annotation of a stored run: what the annotator saw at each, and what it answered."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from equivox.core.errors import RequestError, nearest
from equivox.core.samples import Row
from equivox.core.segments import Segment, SegmentAnnotation
from equivox.core.task import Task
from equivox.run.scoring import families, scored_with, scoring_samples

SEEN = ("parsed", "unparsed", "refused")
"""The statuses of a segment that the annotator answered about, readably or not."""


def check_stage(stage: str, tasks: Sequence[Task], run: Path) -> None:
    """Raise RequestError for a stage that no task of the run has, with those that there are."""
    known: dict[str, str] = {}
    for task in tasks:
        follow_up = task.metric.follow_up
        known |= {**task.annotation.stages(), **(follow_up.stages if follow_up else {})}
    if stage not in known:
        told = ", ".join(known) if known else "none: its responses are annotated as a whole, so leave `--stage` out"
        raise RequestError(f"{run} has no stage {stage!r}{nearest(stage, known)}; known: {told}")


def segments_at(task: Task, row: Row, text: str, stage: str) -> list[Segment]:
    """Return the segments of a response at a stage, as the annotator got them; only those that it answered about."""
    scheme = task.annotation
    done: dict[str, SegmentAnnotation] = {}
    found: dict[str, Segment] = {}
    while True:
        new = {
            segment.name: segment
            for segment in scheme.segments(task, row.metadata, text, done)
            if segment.name not in done and segment.name in row.segments
        }
        if not new:
            break
        found |= new
        done |= {name: row.segments[name] for name in new}
    return [
        segment
        for name, segment in found.items()
        if scheme.stage_of(name) == stage and row.segments[name].status in SEEN
    ]


def questions_at(
    folder: Path, tasks: Sequence[Task], annotator: str, stage: str
) -> list[tuple[Task, Segment, SegmentAnnotation]]:
    """Return the questions about findings of a kind that the annotator answered, each once, with a task of its family.

    Findings are those of the options with which the run was scored. DamageError if its scores cannot be read.
    """
    options = scored_with(folder, annotator)
    samples, _ = scoring_samples(folder, tasks, annotator, options)
    found: dict[str, tuple[Task, Segment, SegmentAnnotation]] = {}
    for members in families(tasks).values():
        follow_up = members[0].metric.follow_up
        if follow_up is None or stage not in follow_up.stages:
            continue
        for segment in follow_up.questions([(task, samples[task.name]) for task in members], options):
            answer = samples[members[0].name].follow_up(segment)
            if segment.name == stage and answer is not None and answer.status in SEEN:
                found.setdefault(segment.digest, (members[0], segment, answer))
    return list(found.values())
