"""A stored run while it is exported: its files, each read once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from equivox.annotate import AnnotatorIdentity
from equivox.core.scores import Score
from equivox.core.task import Task
from equivox.run.annotating import stored_annotator
from equivox.run.manifest import public_manifest, read_manifest
from equivox.run.pipeline import run_tasks
from equivox.run.scoring import read_scores


@dataclass(frozen=True)
class StoredRun:
    """A scored run in the folder `folder`; RequestError, when it is read, for what is missing."""

    folder: Path

    @cached_property
    def stored(self) -> dict[str, Any]:
        """The manifest as it is stored, which is not published."""
        return read_manifest(self.folder)

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """The manifest as it may be published."""
        return public_manifest(self.stored)

    @cached_property
    def tasks(self) -> list[Task]:
        """The run's tasks."""
        return run_tasks(self.folder)

    @cached_property
    def every_score(self) -> list[Score]:
        """The scores by the run's annotator."""
        return read_scores(self.folder)

    @cached_property
    def annotator(self) -> AnnotatorIdentity:
        """The annotator whose annotations are scored."""
        return stored_annotator(self.folder, str(self.manifest["command"]["annotator"]))
