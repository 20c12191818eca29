"""Verify a run with the labels of people that are stored with it."""

from __future__ import annotations

from pathlib import Path

from equivox.core.errors import EquivoxError
from equivox.core.progress import Progress, no_progress
from equivox.labels.checking import compare_audits
from equivox.run.verification import Verification
from equivox.run.verifying import verify


def verify_with_labels(run: Path, *, data: str | None = None, progress: Progress = no_progress) -> Verification:
    """Return what `equivox.run.verifying.verify` finds, with the scores that labels stored with the run correct."""
    found = verify(run, data=data, progress=progress)
    if not (found.wrong_files or found.problems):
        try:
            compare_audits(run, found)
        except (EquivoxError, KeyError, TypeError, AttributeError) as error:
            found.not_verified.append(f"the scores corrected by people's labels: {error}")
    return found
