"""Audits of an annotator: labels are scored, kept with the runs that they are about, and computed again."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from equivox.audit.agreement import Audit, attribute_audit, by_place, with_lists
from equivox.audit.correction import corrected_scores
from equivox.audit.drawing import UNIFY
from equivox.audit.labels import (
    ADJUDICATED,
    KEY_FILE,
    Key,
    Label,
    by_person,
    csv_of,
    label_files,
    label_of,
    people_labels,
    read_key,
    units_of,
)
from equivox.audit.stored import ANSWERS, AUDIT_FILE, AUDIT_FOLDER, OF_THE_SCORE, audit_files
from equivox.core.errors import UsageError
from equivox.core.files import read_document, write_document, write_text
from equivox.core.lazy import np
from equivox.core.plain import split_by
from equivox.core.scores import NAN, family_of
from equivox.core.task import Attribute
from equivox.run.manifest import read_manifest, state_hashes
from equivox.run.opening import open_run
from equivox.run.pipeline import writing
from equivox.run.recomputing import Compared


def annotators_of(folder: Path, annotator: str | None) -> dict[Path, str]:
    """Return the annotator that labels in `folder` check, for each run: `annotator`, or else the run's own."""
    runs = {Path(entry["run"]) for entry in read_key(folder).values()}
    for run in runs:
        open_run(run)
    return {run: annotator or str(read_manifest(run)["command"]["annotator"]) for run in sorted(runs)}


def score_audit(folder: Path, files: Sequence[Path], annotator: str | None = None) -> Audit:
    """Compare the annotator with the labels in `files` (one per person) of the sheet in `folder`.

    What people passed over is counted as such, and what the annotator could not annotate as unread; neither is
    agreement. Labels of whole answers correct the scores, those of one stage of the annotation do not. UsageError as
    in `units_of`.
    """
    key = read_key(folder)
    units = units_of(folder, key, files, annotator)
    by_attribute = split_by(units, lambda unit: unit.attribute.name)
    stage = next((entry["stage"] for entry in key.values() if "stage" in entry), "")
    attributes = [
        with_lists(attribute_audit(name, by_place(members)), members) if stage else attribute_audit(name, members)
        for name, members in by_attribute.items()
    ]
    return Audit(
        raters=sorted({name for unit in units for name in unit.people}),
        n_responses=len({(unit.run, unit.response or unit.item) for unit in units if unit.is_labelled}),
        attributes=attributes,
        scores=() if stage else corrected_scores(by_attribute, annotator),
        stage=stage,
    )


def is_about_shares(key: Key) -> bool:
    """Return whether people judge what the annotator did on a sheet, rather than label what it labelled."""
    return any(entry.get("judged") or entry.get("stage") == UNIFY for entry in key.values())


def score_shares(folder: Path, files: Sequence[Path]) -> tuple[list[dict[str, Any]], dict[str, int]]:
    """Return what people say of the annotator's lists, or of its clusters of wordings, as shares from 0 to 1.

    Each measure has `name`, `value`, the number of texts `n`, and `low` to `high`, a 95 % interval over texts: NaN for
    clusters, if all labels are equal, or of fewer than two. The second counts, by folder, what nobody judged.
    UsageError as in `units_of`, and for a share that is no number from 0 to 1.
    """
    key = read_key(folder)
    if any(entry.get("judged") for entry in key.values()):
        asked, shares = people_labels(folder, key, files, _share)
        n, measures = len(shares), _mean_shares(key, shares)
    else:
        asked, meanings = people_labels(folder, key, files, label_of)
        n, measures = len(meanings), _measure_clusters(key, meanings)
    return measures, {folder.name: len(asked) - n} if len(asked) > n else {}


def _mean_shares(key: Key, people: Mapping[tuple[str, str], Mapping[str, float]]) -> list[dict[str, Any]]:
    """Return the mean of each share by stage or family; a text counts once, with the mean of its judges."""
    from equivox.statistics.intervals import mean_interval

    by_name: dict[str, list[float]] = {}
    for (item, name), given in people.items():
        decided, entry = given.get(ADJUDICATED), key[item]
        where = family_of(entry["task"]) if entry["stage"] == ANSWERS else entry["stage"]
        by_name.setdefault(f"{where}: {name}", []).append(fmean(given.values()) if decided is None else decided)
    measures = []
    for name, values in by_name.items():
        low, high = mean_interval(values, rng=np.random.default_rng(0))
        measures.append({"name": name, "value": fmean(values), "n": len(values), "low": low, "high": high})
    return measures


def _share(text: str, attribute: Attribute, where: str) -> float:
    try:
        share = float(text)
    except ValueError:
        share = NAN
    if not 0 <= share <= 1:
        raise UsageError(f"{where}: {attribute.name} is a number from 0 to 1, got {text!r}")
    return share


def _measure_clusters(key: Key, given: Mapping[tuple[str, str], Mapping[str, Label]]) -> list[dict[str, Any]]:
    """Return homogeneity, completeness and V-measure of clusters against the meanings that people name.

    Meanings are compared within a task and category, person by person; of several people the means are given.
    """
    from equivox.statistics import clustering

    by_person: dict[str, list[tuple[str, tuple[str, str]]]] = {}
    for (item, _), people in given.items():
        place, cluster = key[item]["counted_as"]
        for person, label in people.items():
            by_person.setdefault(person, []).append((f"{place} {label}", (place, cluster)))
    found = [clustering([said for said, _ in own], [cluster for _, cluster in own]) for own in by_person.values()]
    names = ("homogeneity", "completeness", "V-measure")
    return [
        {"name": f"{UNIFY}: {name}", "value": fmean(values), "n": len(given), "low": NAN, "high": NAN}
        for name, values in zip(names, zip(*found, strict=True), strict=True)
    ]


def store_audit(folder: Path, files: Sequence[Path], audit: Audit, annotators: Mapping[Path, str]) -> list[Path]:
    """Keep an audit with each of its runs, in place of an earlier one of the same name; return their folders.

    Each run keeps its own labels and what they say of it; one without a label keeps nothing. `folder` is the label
    folder, `files` are its labels, and `annotators` holds the one that was checked in each run.
    """
    key, given_by = read_key(folder), by_person(files)
    written = []
    for run, annotator in annotators.items():
        place = run / AUDIT_FOLDER / (audit.stage or ANSWERS)
        own = {item: {**entry, "run": "../..", "model": ""} for item, entry in key.items() if Path(entry["run"]) == run}
        labels = {
            name: rows
            for name, given in given_by.items()
            if (rows := [(item, attribute, label) for _, item, attribute, label in given if item in own])
        }
        if not labels:
            continue
        with writing(run):
            _replace(place, folder, own, labels)
            # Labels of another model's answers say nothing of how this one's were read.
            alone = audit if len(annotators) == 1 else score_audit(place, label_files(place), annotator)
            write_document(place / AUDIT_FILE, _document(alone, run.resolve(), annotator))
            state_hashes(run)
        written.append(place)
    return written


def kept_audits(run: Path) -> Iterator[tuple[Path, dict[str, Any], Audit]]:
    """Yield the file of each audit that is kept with a run, what it states, and the audit scored again.

    UsageError for a damaged one, and for labels of another run: a run leads to no other folder.
    """
    for path in audit_files(run):
        stated, place = read_document(path), path.parent
        if not isinstance(stated.get("annotator"), str):
            raise UsageError(f"{AUDIT_FILE} of {run.name} is damaged; `equivox label score --store` writes it anew")
        if any(Path(entry["run"]) != run.resolve() for entry in read_key(place).values()):
            raise UsageError(f"the labels in {AUDIT_FOLDER}/{place.name} of {run.name} are about another run")
        yield path, stated, score_audit(place, label_files(place), stated["annotator"])


def compare_audits(run: Path, compared: Compared) -> None:
    """Score the labels that are kept with a run again, and compare every number with those stated."""
    for path, stated, again in kept_audits(run):
        plain = json.loads(json.dumps(_document(again, run.resolve(), stated["annotator"])))
        where = path.relative_to(run).as_posix()
        for name in dict.fromkeys((*stated, *plain)):
            compared.values(where, name, stated.get(name), plain.get(name))


def _document(audit: Audit, run: Path, annotator: str) -> dict[str, Any]:
    document = audit.as_dict() | {"annotator": annotator, "raters": len(audit.raters)}
    own = [one for one in document["scores"] if one["run"] == str(run)]
    kept = [{name: value for name, value in one.items() if name not in ("run", "model", *OF_THE_SCORE)} for one in own]
    return document | {"scores": kept}


def _replace(place: Path, folder: Path, key: Key, labels: Mapping[str, Sequence[Sequence[str]]]) -> None:
    if place.is_dir() and place.resolve() != folder.resolve():
        shutil.rmtree(place)
    write_document(place / KEY_FILE, key)
    for number, (name, rows) in enumerate(labels.items(), 1):
        # The names of those who labelled stay where they did.
        file = f"{ADJUDICATED}.csv" if name == ADJUDICATED else f"labels-person-{number}.csv"
        write_text(place / file, csv_of([("item", "attribute", "label"), *rows]))
