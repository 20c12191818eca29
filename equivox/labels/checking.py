"""The check of an annotator against people: computed from sheets, stored with the run, and computed again."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

from equivox.core.errors import UsageError
from equivox.core.files import write_document, write_text
from equivox.core.plain import split_by
from equivox.labels.agreement import measure_agreement
from equivox.labels.correction import correct_scores
from equivox.labels.reading import Rows, compare_labels, read_sheets
from equivox.labels.result import LABELS_FOLDER, RESULT_FILE, Audit, read_audit
from equivox.labels.sheet import COLUMNS, format_csv
from equivox.run.manifest import read_manifest, state_hashes
from equivox.run.opening import open_run
from equivox.run.pipeline import writing
from equivox.run.verification import Verification


def check_annotator(run: Path, sheets: Mapping[str, Rows], annotator: str | None = None) -> Audit:
    """Return the comparison of an annotator, by default the run's, with the labels in `sheets`.

    UsageError as in `compare_labels`.
    """
    open_run(run)
    name = annotator or str(read_manifest(run)["command"]["annotator"])
    ratings = compare_labels(run, sheets, name)
    by_attribute = split_by(ratings, lambda rating: rating.attribute.name)
    return Audit(
        annotator=name,
        raters=len({person for rating in ratings for person in rating.people}),
        n_responses=len({rating.response for rating in ratings if rating.people}),
        attributes=[measure_agreement(attribute, members) for attribute, members in by_attribute.items()],
        scores=correct_scores(run, ratings, name),
    )


def store_audit(run: Path, sheets: Mapping[str, Rows], audit: Audit) -> Path:
    """Store labels and their result with the run, instead of earlier ones; return the file of the result.

    The names of people, and the texts beside their labels, are left out.
    """
    folder = run / LABELS_FOLDER
    with writing(run):
        if folder.is_dir():
            shutil.rmtree(folder)
        for number, rows in enumerate(sheets.values(), 1):
            write_text(folder / f"person-{number}.csv", format_csv([COLUMNS, *rows]))
        write_document(folder / RESULT_FILE, audit.as_dict())
        state_hashes(run)
    return folder / RESULT_FILE


def compare_audits(run: Path, compared: Verification) -> None:
    """Compute the result that is stored with a run again from its labels, and compare every number."""
    try:
        stated = read_audit(run)
    except ValueError as error:
        raise UsageError(f"{RESULT_FILE} of {run.name} is damaged; `label score --store` writes it anew") from error
    if stated is None:
        return
    files = sorted((run / LABELS_FOLDER).glob("person-*.csv"))
    again = check_annotator(run, read_sheets(files), stated.annotator).as_dict()
    for name, value in stated.as_dict().items():
        compared.values(f"{LABELS_FOLDER}/{RESULT_FILE}", name, value, again[name])
