"""The evidence pack: what an auditor hands in about runs, as one record that a page and a JSON file show.

Every number names the file of the run that it is recomputed from, with the file's SHA-256 and the key in it. What a run
cannot know (the hazard, a threshold, a mitigation) is stated by people in a file of the form `Statements`, or else "not
stated". The record never judges by a law.

The parts follow the bias scenarios of prEN 18283, which is a draft, and New York City's rules on Local Law 144 (6 RCNY
§ 5-301: counts, unknowns, shares and ratios; § 5-302: why and how data were made).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from importlib import resources
from pathlib import Path
from typing import Annotated, Any

from annotated_types import Ge
from pydantic import BaseModel, ConfigDict, StringConstraints

from equivox.audit.stored import audit_files
from equivox.compare.believing import PREDICATE
from equivox.compare.gate import Limits, gate
from equivox.compare.impact import UNKNOWN, impact_records, impacts
from equivox.compare.runs import ComparedRun, compared_run
from equivox.configs import read_config_file
from equivox.core.coverage import STAGES
from equivox.core.errors import RequestError
from equivox.core.files import file_hash, read_document
from equivox.core.plain import as_plain
from equivox.core.redact import without_places
from equivox.core.scores import family_of, unusual_options, verdict
from equivox.core.text import visible
from equivox.core.version import __version__
from equivox.io.signed import STATEMENT_TYPE
from equivox.report.numbers import DASH, score_interval, score_value
from equivox.report.safe_page import render_page
from equivox.report.table import Table, as_html
from equivox.report.verdicts import LOST_ROLES, lost_shares
from equivox.report.verification_tables import verdict as verdict_line
from equivox.run.manifest import (
    CALIBRATION,
    MANIFEST_FILE,
    hashes_of,
    public_manifest,
    read_manifest,
    stated_hashes,
)
from equivox.run.scoring import read_scores
from equivox.run.store import evaluations_of, samples_path
from equivox.run.verifying import Verification

NOT_STATED = "not stated"
PAGE, RECORD = "index.html", "dossier.json"

IS_NOT = (
    "This is not a bias audit, no legal advice, and no finding about any law or standard, neither for nor against.",
    "The unit is an answer of a model to a voice, a picture or a text, not a person who applied.",
    "The scenario has the parts of prEN 18283, which is a draft; the table of shares and ratios has the layout of New "
    "York City's rules on Local Law 144 (6 RCNY § 5-301).",
)

OUTCOMES = {
    "pass": "within the limit",
    "worse": "beyond the limit",
    "inconclusive": "this design cannot tell",
    "not comparable": "cannot be held against the limit",
}

LONGEST = 8_000
"""Longer texts of a run are cut, at this many characters."""

_CLAIM = re.compile(r"\b(?:compl(?:y|ies|ied|ying|iant|iance)|conform\w*)\b", re.IGNORECASE)

Said = Annotated[str, StringConstraints(min_length=1, max_length=4_000, strip_whitespace=True)]


class Statements(BaseModel):
    """What people state about the runs of a pack, in a YAML file; all of it is optional.

    `limits` holds the largest distance from "no bias" by the name of a metric, as `equivox gate --max`; "" is for all.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    hazard: Said | None = None
    threshold: Said | None = None
    limits: dict[str, Annotated[float, Ge(0)]] = {}
    mitigation: Said | None = None
    review_trigger: Said | None = None
    why_these_data: Said | None = None
    how_data_were_made: Said | None = None
    responsible: Said | None = None


def read_statements(path: Path) -> Statements:
    """Return the statements in a YAML file; RequestError for another form, and for a text that judges by a law."""
    if path.suffix not in (".yaml", ".yml"):
        raise RequestError(f"`statements` is a YAML file, got {path}; give one that ends in .yaml")
    found = read_config_file(Statements, str(path), "")
    for name, text in found:
        if isinstance(text, str) and (claim := _CLAIM.search(text)):
            raise RequestError(
                f"{path}: `{name}` says {claim[0]!r}; a pack states what was measured and done, never that a law or a "
                "standard is met: take it out"
            )
    return found


def dossier(found: Sequence[Verification], statements: Statements) -> dict[str, Any]:
    """Return the record of runs, each verified before, as plain JSON values; what is not known is None with a reason.

    RequestError for runs whose folders have the same name, and for `limits` of metrics that a run has not.
    """
    names = [one.run.resolve().name for one in found]
    if twice := [name for name in names if names.count(name) > 1]:
        raise RequestError(f"two runs are in folders called {twice[0]!r}; rename one: a pack names runs by folder")
    stated = {name: text or NOT_STATED for name, text in statements if name != "limits"}
    record = {
        "kind": "equivox evidence pack", "format": 1, "equivox": __version__, "is_not": list(IS_NOT),
        "stated": stated, "runs": [_run(one, statements.limits) for one in found],
    }  # fmt: skip
    return dict(_bounded(as_plain(record)))


def _bounded(value: Any) -> Any:
    """Return plain values whose texts are visible and of bounded length."""
    if isinstance(value, str):
        return visible(value if len(value) <= LONGEST else f"{value[:LONGEST]}…")
    if isinstance(value, list):
        return [_bounded(one) for one in value]
    return {visible(k): _bounded(v) for k, v in value.items()} if isinstance(value, dict) else value


def _run(found: Verification, limits: Mapping[str, float]) -> dict[str, Any]:
    """Return all that a pack says of one run."""
    folder = found.run
    manifest = public_manifest(read_manifest(folder))
    run = compared_run(str(manifest["command"]["model"]), folder, read_scores(folder))
    command, identity, hashes = manifest["command"], manifest["identity"], hashes_of(folder)
    whole = {score.task: n for n, score in reversed(list(enumerate(run.scores))) if score.is_whole}
    known = {
        "run": folder.resolve().name, "model": run.model, "annotator": run.annotator, "made": manifest["created"],
        "verified": verdict_line(found), "not_verified": list(found.not_verified),
        "scenario": [
            {
                "task": task.name, "compared": task.dimension, "unit": task.cluster or NOT_STATED,
                "groups": sorted(run.scores[whole[task.name]].coverage.requested_by_group),
                "asked": task.prompt.text,
                "measured": sorted({f"{s.name}, zero: {s.zero_means}" for s in run.scores if s.task == task.name}),
            }
            for task in run.tasks if task.name in whole
        ],
        "data": {
            "corpora": dict(identity["corpora"]), "source": command["data"] or NOT_STATED, "limit": identity["limit"],
            "samples_without_group": manifest.get("samples_without_group", {}),
            "cards": sorted({task.card.strip() for task in run.tasks if task.card.strip()}),
        },
        "scores": _scores(run, hashes),
        "limits": _limits(run, hashes, limits),
        "impact": _impact(run, hashes),
        "validity": {
            "annotator": list(run.marks) or ["the annotator cannot err: it knows what the simulated model says"],
            "scoring": list(unusual_options(run.options).values()),
            "labels": _labels(run, hashes),
            "calibration": manifest.get(CALIBRATION, NOT_STATED),
        },
        "coverage": [
            {"task": task, **asdict(run.scores[n].coverage), "from": _from(hashes, "scores.json", n, "coverage")}
            for task, n in reversed(whole.items())
        ],
        "versions": {"equivox": manifest["equivox"], **manifest["environment"], "model": identity["model"]},
        "hashes": {MANIFEST_FILE: file_hash(folder / MANIFEST_FILE), **hashes},
    }  # fmt: skip
    return dict(without_places(known))


def _from(hashes: Mapping[str, str], file: str, place: int | str, field: str, of: str = "scores") -> dict[str, Any]:
    """Return where a number stands or is counted: a file of the run, its hash, and the key or the rows in it."""
    key = f"{of}[{place}].{field}" if isinstance(place, int) else f"{place}: {field}"
    return {"file": file, "sha256": hashes[file], "key": key}


def _samples(run: ComparedRun, hashes: Mapping[str, str], task: str) -> list[dict[str, str]]:
    """Return the annotated samples that the numbers of a task are computed from; of a family, those of its tasks."""
    names = [one.name for one in run.tasks if task in (one.name, family_of(one.name))]
    paths = [samples_path(run.folder, own, one) for own in evaluations_of(run.folder, run.annotator) for one in names]
    files = [path.relative_to(run.folder).as_posix() for path in paths]
    return [{"file": file, "sha256": hashes[file]} for file in files if file in hashes]


def _scores(run: ComparedRun, hashes: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return every score of a task and of its attributes, as stored: with q over the scores of its own run.

    Those of lost answers say in `lost` how many which groups lose.
    """
    found = []
    for n, score in enumerate(run.scores):
        if score.subset:
            continue
        field = "value" if math.isnan(score.estimate) else "estimate"
        lost = score.mover if score.role in LOST_ROLES else None
        found.append({
            "task": score.task, "attribute": score.attribute, "metric": score.name, "unit": score.unit,
            "role": score.role, "lost": None if lost is None else lost_shares(lost),
            "value": score.headline, "interval": [score.ci_low, score.ci_high], "p": score.p, "q": score.q,
            "n": score.coverage.used, "clusters": score.n_clusters, "verdict": verdict([score]),
            "undefined": score.undefined, "cannot_tell": score.untold, "notes": list(score.notes),
            "from": _from(hashes, "scores.json", n, field),
            "recomputed_from": _samples(run, hashes, score.task),
        })  # fmt: skip
    return found


def _limits(run: ComparedRun, hashes: Mapping[str, str], limits: Mapping[str, float]) -> list[dict[str, Any]]:
    checks = gate(run.folder, None, Limits(most=limits)).checks if limits else ()
    places = {
        (score.task, str(score.attribute) if score.role in LOST_ROLES else score.name): n
        for n, score in reversed(list(enumerate(run.scores)))
        if not score.subset
    }
    found = []
    for one in checks:
        n = places[one.task, one.metric]
        found.append({
            "task": one.task, "metric": one.metric, "unit": one.unit, "limit": float(one.limit),
            "value": one.value if math.isfinite(one.value) else one.difference, "interval": [one.low, one.high],
            "n": run.scores[n].coverage.used, "outcome": OUTCOMES[one.outcome], "undefined": one.reason or None,
            "from": _from(hashes, "scores.json", n, "distance from no bias"),
        })  # fmt: skip
    return found


def _impact(run: ComparedRun, hashes: Mapping[str, str]) -> dict[str, Any]:
    """Return shares and ratios of each group; `why_none` says why there are none."""
    found, missing = impacts([run])
    rows = []
    for row in [row for one in found for row in impact_records(one)]:
        place = f"{row['attribute']} by {row['by']}"
        rows.append({
            **{name: row[name] for name in ("task", "attribute", "by", "group", "requested", "unknown")},
            "share": row["share"], "ratio": row["ratio"],
            "favourable": row["favourable_values"], "n": row["known"], "n_favourable": row["favourable"],
            "units": {"share": "percent", "ratio": "of the share of the most favoured group"},
            "interval": [row["low"], row["high"]], "with_unknowns": [row["least"], row["most"]],
            "unknown_because": {name: row[f"unknown_{name}"] for name in UNKNOWN}, "four_fifths": row["mark"],
            "without_group": row["without_group"], "undefined": row["undefined"],
            "from": _from(hashes, _samples(run, hashes, row["task"])[0]["file"], place, row["group"]),
        })  # fmt: skip
    return {"rows": rows, "why_none": missing or ([] if rows else ["no task declares favourable values"])}


def _labels(run: ComparedRun, hashes: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return how often the annotator meets people's labels, and scores as these labels correct them."""
    units = {(score.task, score.attribute or ""): score.unit for score in reversed(run.scores)}
    found = []
    for path in audit_files(run.folder):
        document, file = read_document(path), path.relative_to(run.folder).as_posix()
        if document["annotator"] != run.annotator:
            continue
        for kind, field in (("attributes", "agreement"), ("scores", "corrected")):
            found += [
                {
                    "what": field, "task": one.get("task"), "attribute": one["attribute"], "value": one[field],
                    "unit": units.get((one.get("task"), one["attribute"]), "percent"),
                    "interval": [one["ci_low"], one["ci_high"]], "undefined": one.get("undefined"),
                    "n": one["n"] if kind == "attributes" else sum(one["labels"].values()),
                    "people": document["raters"], "from": _from(hashes, file, n, field, kind),
                }
                for n, one in enumerate(document[kind])
            ]  # fmt: skip
    return found


def statement_of(found: Verification, beside: Mapping[str, str], keyid: str, when: str) -> bytes:
    """Return the in-toto statement about one run that is signed: its manifest and the files of the pack.

    `beside` has the SHA-256 of each file of the pack, `when` is the time that the signer states. RequestError for a run
    whose manifest states no hashes: the signature would cover none of its numbers.
    """
    if stated_hashes(read_manifest(found.run)) is None:
        raise RequestError(f"{found.run} is not signed: its manifest states no hashes; `equivox score` states them")
    digests = {MANIFEST_FILE: found.manifest, **beside}
    statement = {
        "_type": STATEMENT_TYPE,
        "subject": [{"name": name, "digest": {"sha256": digest}} for name, digest in digests.items()],
        "predicateType": PREDICATE,
        "predicate": {
            "equivox": __version__, "outcome": found.outcome, "verdict": verdict_line(found),
            "not_verified": list(found.not_verified), "signer": keyid, "signed": when,
        },
    }  # fmt: skip
    return json.dumps(statement, ensure_ascii=False).encode()


def dossier_html(record: Mapping[str, Any]) -> str:
    """Return the record as one page without a script; all numbers on it are in the record."""
    return render_page(
        resources.files("equivox.report").joinpath("dossier.html.j2"),
        style=resources.files("equivox.report.page").joinpath("report.css"),
        record=record,
        parts=[{"about": run, "tables": [as_html(table) for table in _tables(run)]} for run in record["runs"]],
        plain=lambda value: json.dumps(value, indent=1, ensure_ascii=False),
    )


def _tables(run: Mapping[str, Any]) -> list[Table]:
    """Return the tables of one run; scores of attributes are in the JSON file alone."""
    whole = [one for one in run["scores"] if one["attribute"] is None]
    losses = [one for one in run["scores"] if one["role"] in LOST_ROLES]
    impact, labels, limits = run["impact"], run["validity"]["labels"], run["limits"]
    gone = {one["by"]: one["without_group"] for one in impact["rows"] if one["without_group"]}
    return [
        _table(
            "Measured", ("task", "metric", "verdict", "value", "interval", "n", "clusters", "from"), whole,
            [f"{one['task']}, {one['metric']}: {note}" for one in whole for note in one["notes"]],
        ),
        _table(
            "Lost answers: how unequal groups are in them",
            ("task", "attribute", "verdict", "lost", "value", "interval", "n", "clusters", "from"), losses,
        ),
        _table("Held against the stated limits", ("task", "metric", "outcome", "value", "interval", "limit"), limits),
        _table(
            "Favourable answers: shares and impact ratios",
            ("task", "attribute", "favourable", "group", "n", "unknown", "share", "ratio", "interval", "from"),
            impact["rows"],
            [f"{DASH} {why}" for why in impact["why_none"]]
            + [f"{n} responses have no value of {by} and are in no group" for by, n in gone.items()],
        ),
        _table(
            "Labels by people", ("what", "task", "attribute", "value", "interval", "n", "people", "from"), labels,
            [] if labels else [f"{DASH} labels by people: {NOT_STATED}"],
        ),
        _table("Coverage", ("task", *STAGES, "from"), run["coverage"]),
        _table("Files of the run", ("file", "SHA-256"), [{"file": n, "SHA-256": h} for n, h in run["hashes"].items()]),
    ]  # fmt: skip


def _table(caption: str, names: Sequence[str], rows: Sequence[Mapping[str, Any]], remarks: Sequence[str] = ()) -> Table:
    """Return a table of entries of the record; why a value is not known is a remark."""
    said = [
        f"{DASH} {one.get('task') or 'all tasks'}, {one.get('attribute') or one.get('metric') or 'all'}: {why}"
        for one in rows
        if (why := one.get("undefined") or one.get("cannot_tell"))
    ]
    return Table(
        caption=caption,
        columns=names,
        align="".join("r" if name in _NUMBERS else "l" for name in names),
        rows=[[_cell(name, one) for name in names] for one in rows],
        remarks=[*remarks, *dict.fromkeys(said)],
    )


_NUMBERS = frozenset({"value", "interval", "limit", "n", "clusters", "unknown", "share", "ratio", "people"} | {*STAGES})


def _cell(name: str, one: Mapping[str, Any]) -> str:
    value, unit = one[name], "percent" if name == "share" else one.get("unit", "")
    if name == "from":
        return f"{value['file']} {value['key']}"
    if name == "interval":
        low, high = (math.nan if end is None else end for end in value)
        return score_interval(low, high, unit)
    if isinstance(value, float):
        return f"{value:g}" if name == "limit" else score_value(value, unit)
    return DASH if value is None else str(value)
