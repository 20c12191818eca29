"""Verify a run and the labels kept with it; believe a run before anything is published or decided by it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from equivox.audit.kept import compare_audits
from equivox.core.errors import EquivoxError, RequestError
from equivox.core.files import file_hash, is_file_name
from equivox.core.progress import Progress, no_progress
from equivox.run.manifest import MANIFEST_FILE, NOT_LISTED, changed_files, read_manifest
from equivox.run.opening import is_computed, note_computed
from equivox.run.verifying import Verification, verify

PREDICATE = "urn:equivox:evidence-pack:1"
"""The type of what a signed statement says of a run."""


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


def check_statement(found: Verification, statement: Mapping[str, Any], path: Path) -> None:
    """Add to `found` what a signed statement, read from `path`, does not fit: this run, or a file beside the statement.

    What fits becomes a remark, with the time that the signer states. See `equivox.report.dossier.statement_of`.
    """
    try:
        if statement["predicateType"] != PREDICATE:
            raise ValueError(f"it is a {statement['predicateType']:.80}")
        signed = {one["name"]: one["digest"]["sha256"] for one in statement["subject"]}
        about, said = signed.pop(MANIFEST_FILE), statement["predicate"]
        remark = f"{path} was signed at {said['signed']} (as the signer says), after verify said: {said['verdict']}"
    except (KeyError, TypeError, ValueError) as error:
        found.problems.append(f"{path} is signed, but it is no statement about a run: {error}")
        return
    if about != found.manifest:
        found.problems.append(
            f"{path} is about another run, or this one changed: it signs the manifest {str(about)[:16]}, here it is "
            f"{found.manifest[:16]}"
        )
        return
    found.remarks.append(remark)
    for name, stated in signed.items():
        beside = path.parent / name
        if not is_file_name(name) or not beside.is_file():
            found.remarks.append(f"{name} was signed too, but is not beside {path}: it is not checked")
        elif file_hash(beside) != stated:
            found.problems.append(f"{beside} is not the file that was signed: it changed")


def believe(run: Path, progress: Progress = no_progress) -> None:
    """Raise RequestError unless the numbers of a run are those that its answers give.

    They are computed again, unless that was done on this machine and the run has not changed since.
    """
    if is_computed(run):
        return
    wrong = changed_files(run, read_manifest(run)).items()
    changed = [f"{name}: {why}" for name, why in wrong if why != NOT_LISTED]
    refuse_doubt(run, changed[0] if changed else verify_with_labels(run, progress=progress).doubt)


def refuse_doubt(run: Path, reason: str | None) -> None:
    """Raise RequestError if there is a reason not to use the numbers of a run, such as `Verification.doubt`."""
    if reason is not None:
        raise RequestError(
            f"{run} is not used, because its numbers are not what its answers give here ({reason}); `equivox verify` "
            "lists everything, `equivox score` computes the scores anew, and the run's own command asks for what is "
            "missing"
        )
