"""A run computed again from its stored responses and annotations, in a temporary folder: the run is never written.

What needs no model is made again from the responses: the annotations of `rules` and of tools, the samples, a panel's
majority, the scores and their tables. A model's annotations are read again from its stored outputs; where there is no
output, the stored annotation is taken. An annotation belongs to one text, because its key is a hash of it.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from equivox.annotate import RULES, open_annotator
from equivox.annotate.model import read_again
from equivox.core.annotation import Annotation, Annotator, AnnotatorIdentity, Job
from equivox.core.errors import RequestError
from equivox.core.progress import Progress, no_progress
from equivox.core.scores import ScoringOptions
from equivox.core.segments import Value, check_tools
from equivox.core.task import Task
from equivox.run.annotating import annotate
from equivox.run.declarations import TASKS_FILE
from equivox.run.manifest import MANIFEST_FILE, answering_engine, read_manifest
from equivox.run.panel import PANEL, combine
from equivox.run.plan import PLAN_FILE
from equivox.run.scoring import follow_up
from equivox.run.stored import SOUNDS, stored_annotations


@contextmanager
def copied(run: Path) -> Iterator[Path]:
    """Yield a temporary folder with the responses, sounds, plan and tasks of `run`, without annotations and scores."""
    with TemporaryDirectory(prefix="equivox-verify-") as made:
        folder = Path(made)
        for name in (MANIFEST_FILE, TASKS_FILE, PLAN_FILE):
            shutil.copyfile(run / name, folder / name)
        (folder / "responses").mkdir()
        for path in run.glob("responses/[!.]*"):
            shutil.copyfile(path, folder / "responses" / path.name)
        (folder / SOUNDS).mkdir()
        for path in run.glob(f"{SOUNDS}/[!.]*"):
            _shared(path, folder / SOUNDS / path.name)
        yield folder


def _shared(path: Path, copy: Path) -> None:
    """Let `copy` be the same file as `path`, or a copy of it on another disk; spoken answers are large."""
    try:
        os.link(path, copy, follow_symlinks=False)
    except OSError:
        shutil.copyfile(path, copy, follow_symlinks=False)


@dataclass
class Replayed(Annotator):
    """Annotator that repeats what is stored of another annotator, and reads a model's outputs again.

    A text of which nothing is stored is `missing`.
    """

    identity: AnnotatorIdentity
    records: Mapping[str, Mapping[str, Any]] = field(repr=False)
    missing: str = "no annotation is stored for this text"

    @property
    def is_model(self) -> bool:
        """Whether the annotations have outputs in the form that equivox asks models for."""
        return {"engine", "prompt", "attempts"} <= set(self.identity.settings)

    def annotate(self, jobs: Iterable[Job]) -> Iterator[Annotation]:
        """Yield the stored annotation of each job, and a failed one for a job without."""
        for job in jobs:
            record = self.records.get(job.key)
            if record is None:
                yield job.annotated("failed", output=self.missing, attempts=0)
                continue
            again = read_again(job, record) if self.is_model else None
            yield again or job.annotated(
                record["status"],
                [Value(**value) for value in record["values"]],
                output=record["output"],
                attempts=record["attempts"],
            )


def annotate_again(
    run: Path,
    folder: Path,
    tasks: Sequence[Task],
    identity: AnnotatorIdentity,
    options: ScoringOptions,
    *,
    annotated: Sequence[str],
    progress: Progress = no_progress,
) -> str:
    """Annotate the copy of `run` in `folder` as one of its annotators did; return what was not made again, in words.

    `annotated` names those that the copy has already. RequestError for a panel that lacks a member there.
    """
    if is_panel(identity):
        members = [str(name) for name in identity.settings["members"]]
        if absent := [member for member in members if member not in annotated]:
            raise RequestError(f"its member {absent[0]} could not be recomputed")
        combine(folder, tasks, members)
        return ""
    check_tools(tasks)
    rules = open_annotator(RULES)
    replayed = Replayed(identity, stored_annotations(run, identity.name))
    annotator = rules if rules.identity == identity else replayed
    annotate(folder, tasks, annotator, engine=answering_engine(read_manifest(folder)), progress=progress)
    follow_up(folder, tasks, annotator, options)
    if annotator is rules:
        return ""
    how = "read again from its stored outputs" if replayed.is_model else "taken as they are stored"
    return f"the annotations by {identity.name} were {how}; {identity.name} was not asked again"


def is_panel(identity: AnnotatorIdentity) -> bool:
    """Return whether the annotations of `identity` are the majority of others."""
    return identity.name == PANEL and "members" in identity.settings
