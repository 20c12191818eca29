"""Verify a run before its scores are published, ranked or used as a baseline."""

from __future__ import annotations

from pathlib import Path

from equivox.core.errors import EquivoxError, UsageError
from equivox.core.progress import Progress, no_progress
from equivox.labels.checking import compare_audits
from equivox.run.manifest import NOT_LISTED, changed_files, read_manifest
from equivox.run.opening import is_computed, note_computed
from equivox.run.verifying import Verification, verify


def verify_with_labels(run: Path, *, data: str | None = None, progress: Progress = no_progress) -> Verification:
    """Return what `equivox.run.verifying.verify` finds, with the scores that labels kept with the run correct."""
    found = verify(run, data=data, progress=progress)
    if not (found.wrong_files or found.problems):
        try:
            compare_audits(run, found)
        except (EquivoxError, KeyError, TypeError, AttributeError) as error:
            found.not_verified.append(f"the scores corrected by people's labels: {error}")
    if found.doubt is None:
        note_computed(run)
    return found


def believe(run: Path, progress: Progress = no_progress) -> None:
    """Raise UsageError unless the numbers of a run are those that its answers give.

    They are computed again, unless that was done on this machine and the run has not changed since.
    """
    if is_computed(run):
        return
    wrong = changed_files(run, read_manifest(run)).items()
    changed = [f"{name}: {why}" for name, why in wrong if why != NOT_LISTED]
    reason = changed[0] if changed else verify_with_labels(run, progress=progress).doubt
    if reason is not None:
        raise UsageError(
            f"{run} cannot be used: its numbers differ from those of its answers ({reason}); `equivox verify` lists "
            "them, `equivox score` computes the scores again, and the run's command sends missing requests"
        )
