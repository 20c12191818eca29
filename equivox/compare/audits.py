"""Audits of an annotator: labels are scored, kept with the runs that they are about, and verified."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from equivox.compare.label_folder import label_files, labels_csv
from equivox.compare.labels import ADJUDICATED, KEY_FILE, Audit, Key, by_person, read_key, score_labels
from equivox.compare.stage_labels import score_stage, stage_key
from equivox.compare.stored_audits import ANSWERS, AUDIT_FILE, AUDIT_FOLDER, OF_THE_SCORE
from equivox.core.files import read_document, write_document, write_text
from equivox.run.differing import Compared
from equivox.run.file_hashes import state_hashes
from equivox.run.manifest import read_manifest
from equivox.run.opening import open_run
from equivox.run.pipeline import writing

Rows = Sequence[tuple[str, str, str]]
"""Item, attribute and label of each label."""


def annotators_of(folder: Path, annotator: str | None) -> dict[Path, str]:
    """Return the annotator that labels in `folder` check, for each run: `annotator`, or else the run's own."""
    runs = {Path(entry["run"]) for entry in read_key(folder).values()}
    for run in runs:
        open_run(run)
    return {run: annotator or str(read_manifest(run)["command"]["annotator"]) for run in sorted(runs)}


def score_audit(folder: Path, files: Sequence[Path], annotator: str | None = None) -> Audit:
    """Compare the annotator with the labels in `files` of the sheet in `folder`, of whole answers or of one stage."""
    key = stage_key(folder)
    if key is None:
        return score_labels(folder, files, annotator=annotator)
    return score_stage(folder, key, files, annotator=annotator)


def store_audit(folder: Path, files: Sequence[Path], audit: Audit, annotators: Mapping[Path, str]) -> list[Path]:
    """Keep an audit with each of its runs, in place of an earlier one of the same name; return their folders.

    `folder` is the label folder, `files` are its labels, and `annotators` holds the one that was checked in each run.
    """
    key, given_by = read_key(folder), by_person(files)
    written = []
    for run, annotator in annotators.items():
        place = run / AUDIT_FOLDER / (audit.stage or ANSWERS)
        own = {item: {**entry, "run": "../..", "model": ""} for item, entry in key.items() if Path(entry["run"]) == run}
        people = {
            name: [(item, attribute, label) for _, item, attribute, label in given if item in own]
            for name, given in given_by.items()
        }
        labels = {name: rows for name, rows in people.items() if rows}
        with writing(run):
            _replace(place, folder, own, labels, _document(audit, run, annotator))
            state_hashes(run)
        written.append(place)
    return written


def compare_audits(run: Path, compared: Compared) -> None:
    """Score the labels that are kept with a run again, and compare every number with those stated."""
    for path in sorted((run / AUDIT_FOLDER).glob(f"*/{AUDIT_FILE}")):
        stated, place = read_document(path), path.parent
        again = score_audit(place, label_files(place), stated["annotator"])
        plain = json.loads(json.dumps(_document(again, run.resolve(), stated["annotator"])))
        where = path.relative_to(run).as_posix()
        for name in dict.fromkeys((*stated, *plain)):
            compared.values(where, name, stated.get(name), plain.get(name))


def _document(audit: Audit, run: Path, annotator: str) -> dict[str, Any]:
    document = audit.as_dict() | {"annotator": annotator, "raters": len(audit.raters)}
    own = [one for one in document["scores"] if one["run"] == str(run)]
    kept = [{name: value for name, value in one.items() if name not in ("run", "model", *OF_THE_SCORE)} for one in own]
    return document | {"scores": kept}


def _replace(place: Path, folder: Path, key: Key, labels: Mapping[str, Rows], document: Mapping[str, Any]) -> None:
    if place.is_dir() and place.resolve() != folder.resolve():
        shutil.rmtree(place)
    write_document(place / KEY_FILE, key)
    for number, (name, rows) in enumerate(labels.items(), 1):
        # The names of those who labelled stay where they did.
        file = f"{ADJUDICATED}.csv" if name == ADJUDICATED else f"labels-person-{number}.csv"
        write_text(place / file, labels_csv(rows))
    write_document(place / AUDIT_FILE, document)
