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
from importlib import resources
from pathlib import Path
from typing import Annotated, Any

from annotated_types import Ge
from pydantic import BaseModel, ConfigDict, StringConstraints

from equivox.audit.stored import AUDIT_FILE, AUDIT_FOLDER
from equivox.compare.believing import PREDICATE
from equivox.compare.gate import Limits, gate
from equivox.compare.impact import impact_records, impacts
from equivox.compare.runs import ComparedRun, compared_run
from equivox.configs import read_config_file
from equivox.core.errors import RequestError
from equivox.core.files import read_document
from equivox.core.plain import as_plain
from equivox.core.redact import without_places
from equivox.core.scores import verdict
from equivox.core.text import visible
from equivox.core.version import __version__
from equivox.io.signed import STATEMENT_TYPE
from equivox.report.numbers import DASH, score_interval, score_value
from equivox.report.safe_page import render_page
from equivox.report.table import Table, as_html
from equivox.report.verification_tables import verdict as verdict_line
from equivox.run.annotating import annotations_folder, samples_path
from equivox.run.file_hashes import file_hash, hashes_of
from equivox.run.manifest import CALIBRATION, MANIFEST_FILE, public_manifest, read_manifest
from equivox.run.scoring import read_scores
from equivox.run.verifying import Verification

NOT_STATED = "not stated"
PAGE, RECORD = "index.html", "dossier.json"

IS_NOT = (
    "This is not a bias audit, no legal advice, and no finding about any law or standard, neither for nor against.",
    "The unit is an answer of a model to a voice, a picture or a text, not a person who applied.",
    "The scenario has the parts of prEN 18283, which is a draft; the tables of shares and ratios have the layout of the "
    "rules on New York City's Local Law 144 (6 RCNY § 5-301).",
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
        "limits": _limits(folder, limits),
        "impact": _impact(run, hashes),
        "validity": {
            "annotator": list(run.marks) or ["the annotator cannot err: it knows what the simulated model says"],
            "labels": _labels(run, hashes),
            "calibration": manifest.get(CALIBRATION, NOT_STATED),
        },
        "coverage": [
            {"task": task, **run.scores[n].coverage.as_dict(), "from": _from(hashes, "scores.json", n, "coverage")}
            for task, n in reversed(whole.items())
        ],
        "versions": {"equivox": manifest["equivox"], **manifest["environment"], "model": identity["model"]},
        "hashes": {MANIFEST_FILE: file_hash(folder / MANIFEST_FILE), **hashes},
    }  # fmt: skip
    return dict(without_places(known))


def _from(hashes: Mapping[str, str], file: str, place: int | str, field: str, of: str = "scores") -> dict[str, Any]:
    """Return where a number stands: a file of the run, its hash, and the key in it."""
    key = f"{of}[{place}].{field}" if isinstance(place, int) else f"{place}: {field}"
    return {"file": file, "sha256": hashes.get(file), "key": key}


def _samples(run: ComparedRun, task: str) -> str:
    return samples_path(run.folder, run.annotator, task).relative_to(run.folder).as_posix()


def _scores(run: ComparedRun, hashes: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return every score of a task and of its attributes, as stored: with q over the scores of its own run."""
    found = []
    for n, score in enumerate(run.scores):
        if score.subset:
            continue
        field = "value" if math.isnan(score.estimate) else "estimate"
        samples = _samples(run, score.task)
        found.append({
            "task": score.task, "attribute": score.attribute, "metric": score.name, "unit": score.unit,
            "value": score.headline, "interval": [score.ci_low, score.ci_high], "p": score.p, "q": score.q,
            "n": score.coverage.used, "clusters": score.n_clusters, "verdict": verdict([score]),
            "undefined": score.undefined, "cannot_tell": score.untold, "notes": list(score.notes),
            "from": _from(hashes, "scores.json", n, field),
            "recomputed_from": {"file": samples, "sha256": hashes.get(samples)},
        })  # fmt: skip
    return found


def _limits(folder: Path, limits: Mapping[str, float]) -> list[dict[str, Any]]:
    checks = gate(folder, None, Limits(most=limits)).checks if limits else ()
    return [
        {
            "task": one.task, "metric": one.metric, "unit": one.unit, "limit": one.limit,
            "value": one.value if math.isfinite(one.value) else one.difference, "interval": [one.low, one.high],
            "outcome": OUTCOMES[one.outcome], "reason": one.reason or None,
        }
        for one in checks
    ]  # fmt: skip


def _impact(run: ComparedRun, hashes: Mapping[str, str]) -> dict[str, Any]:
    """Return shares and ratios of each group; `why_none` says why there are none."""
    found, missing = impacts([run])
    rows = [
        row | {"from": _from(hashes, _samples(run, row["task"]), f"{row['attribute']} by {row['by']}", row["group"])}
        for one in found
        for row in impact_records(one)
    ]
    return {"rows": rows, "why_none": [*missing, *([] if rows or missing else ["no task declares favourable values"])]}


def _labels(run: ComparedRun, hashes: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return how often the annotator meets people's labels, and scores as these labels correct them."""
    found = []
    for path in sorted((run.folder / AUDIT_FOLDER).glob(f"*/{AUDIT_FILE}")):
        document, file = read_document(path), path.relative_to(run.folder).as_posix()
        if document["annotator"] != run.annotator:
            continue
        kinds = {"attributes": ("agreement", "percent"), "scores": ("corrected", "percent")}
        for kind, (field, unit) in kinds.items():
            found += [
                {
                    "what": field, "task": one.get("task"), "attribute": one.get("attribute"), "value": one[field],
                    "unit": unit, "interval": [one["ci_low"], one["ci_high"]], "undefined": one.get("undefined"),
                    "n": one["n"] if kind == "attributes" else sum(one["labels"].values()),
                    "people": document["raters"], "from": _from(hashes, file, n, field, kind),
                }
                for n, one in enumerate(document[kind])
            ]  # fmt: skip
    return found


def statement_of(found: Verification, beside: Mapping[str, str], keyid: str, when: str) -> bytes:
    """Return the in-toto statement about one run that is signed: its manifest and the files of the pack.

    `beside` has the SHA-256 of each file of the pack, `when` is the time that the signer states.
    """
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
    """Return the tables of one run; those of attributes are in the JSON file alone."""
    whole = [one for one in run["scores"] if one["attribute"] is None]
    impact, labels = run["impact"], run["validity"]["labels"]
    return [
        Table(
            caption="Measured", columns=("task", "metric", "value", "interval", "n", "clusters", "verdict", "from"),
            align="llrrrrll",
            rows=[
                [one["task"], one["metric"], *_cells(one), str(one["n"]), str(one["clusters"]), one["verdict"],
                 f"{one['from']['file']} {one['from']['key']}"]
                for one in whole
            ],
            remarks=[f"{DASH} {one['task']} {one['metric']}: {why}" for one in whole
                     if (why := one["undefined"] or one["cannot_tell"])],
        ),
        Table(
            caption="Held against the stated limits", columns=("task", "metric", "value", "interval", "limit", "outcome"),
            align="llrrrl",
            rows=[[one["task"], one["metric"], *_cells(one), f"{one['limit']:g}", one["outcome"]] for one in run["limits"]],
            remarks=[f"{DASH} {one['task']} {one['metric']}: {one['reason']}" for one in run["limits"] if one["reason"]],
        ),
        Table(
            caption="Favourable answers: shares and impact ratios",
            columns=("task", "attribute", "by", "group", "known", "unknown", "share", "ratio", "interval", "from"),
            align="llllrrrrrl",
            rows=[
                [one["task"], one["attribute"], one["by"], one["group"], str(one["known"]), str(one["unknown"]),
                 _shown(one["share"], "percent"), _shown(one["ratio"], ""), _span(one["low"], one["high"], ""),
                 one["from"]["file"]]
                for one in impact["rows"]
            ],
            grouped=3, remarks=[f"{DASH} {why}" for why in impact["why_none"]],
            notes=["interval: 95 %, for all pairs of groups of a table together; unknown: in no share."],
        ),
        Table(
            caption="Labels by people", columns=("what", "task", "attribute", "value", "interval", "n", "people", "from"),
            align="lllrrrrl",
            rows=[
                [one["what"], one["task"] or "all", one["attribute"] or "all", *_cells(one), str(one["n"]),
                 str(one["people"]), f"{one['from']['file']} {one['from']['key']}"]
                for one in labels
            ],
            remarks=[] if labels else [f"{DASH} labels by people: {NOT_STATED}"],
        ),
        Table(
            caption="Coverage", columns=("task", "requested", "generated", "answered", "parsed", "used", "from"),
            align="lrrrrrl",
            rows=[
                [one["task"], *(str(one[name]) for name in ("requested", "generated", "answered", "parsed", "used")),
                 f"{one['from']['file']} {one['from']['key']}"]
                for one in run["coverage"]
            ],
        ),
        Table(caption="Files of the run", columns=("file", "SHA-256"), align="ll", rows=list(map(list, run["hashes"].items()))),
    ]  # fmt: skip


def _cells(one: Mapping[str, Any]) -> list[str]:
    return [_shown(one["value"], one["unit"]), _span(*one["interval"], one["unit"])]


def _shown(value: float | None, unit: str) -> str:
    return DASH if value is None else score_value(value, unit)


def _span(low: float | None, high: float | None, unit: str) -> str:
    return DASH if low is None or high is None else score_interval(low, high, unit)
