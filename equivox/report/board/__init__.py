"""A leaderboard: many runs as a static site, and as JSON and CSV.

Only like is ranked with like: scores of one task, on one corpus, cut and annotated in the same way. A rank never stands
without its interval; an undefined score has no rank, and its reason is shown. Runs that were refused are listed.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from importlib import resources
from pathlib import Path
from typing import Any

from equivox.compare.asking import asked_apart, judge_of
from equivox.compare.runs import ComparedRun, compared_run
from equivox.core.errors import RequestError
from equivox.core.hashing import digest
from equivox.core.plain import split_by
from equivox.core.redact import redacted_text
from equivox.core.scores import Score, Verdict, distance_interval, family_of, unusual_options, verdict
from equivox.core.version import __version__
from equivox.engines import model_label
from equivox.report.failures import lost_in
from equivox.report.numbers import DASH, p_value, score_interval, score_value, share, stars
from equivox.report.safe_page import render_page
from equivox.report.table import as_csv
from equivox.run.manifest import read_manifest
from equivox.run.scoring import read_scores
from equivox.statistics import differences_of_intervals, rank_models


@dataclass(frozen=True, kw_only=True)
class Row:
    """One score of one run. `distance` is the estimated distance from "no bias"; None if it is undefined.

    `rank` is 1 for the model nearest to no bias among the `n_ranked` that were measured alike; `rank_low` and
    `rank_high` are the ranks that the intervals of all of them allow together, with 95 % confidence. None without a
    rank, which a model that is alone has not. Only scores that decide a verdict (`decides`) are ranked.

    `verdict` says whether a difference was found; `cannot_tell` says why the design could not have found anything,
    whatever the answers; None if it could, or if something was found. `lost` says which answers the groups lose
    unequally, or may, with the largest and the smallest share; it is empty if none are. `notes` has what else is to be
    known of the number, such as an attribute that is not in it. `data` and `task_version` are the beginnings of content
    hashes of corpus and task, or of all the tasks that a number over a family is made of; rows in which they differ
    cannot be compared, nor can those that differ in `scoring`, the options and the settings of the model that make
    scores mean something else than declared, in words. An `annotator` is called by its name, and by the beginning of a
    hash of what it is where another one has that name. `parameters` and `licence` are those that are known of the
    model, None and "" if they are not.
    """

    model: str
    task: str
    metric: str
    rank: int | None = None
    rank_low: int | None = None
    rank_high: int | None = None
    n_ranked: int = 0
    value: float | None
    distance: float | None
    ci_low: float | None
    ci_high: float | None
    p_cluster: float | None
    p_these: float | None
    q: float | None
    used: float
    lost: str
    notes: str
    data: str
    task_version: str
    limit: int | None
    annotator: str
    scoring: str
    made_with: str
    run: str
    engine: str
    modality: str
    revision: str
    parameters: int | None
    licence: str
    date: str
    manifest: str
    decides: bool
    verdict: Verdict
    cannot_tell: str | None
    undefined: str | None
    shown: dict[str, str]


def find_runs(folder: Path) -> list[Path]:
    """Return the scored runs below `folder`; RequestError if there is none."""
    if not folder.is_dir():
        raise RequestError(f"`runs` must be a folder with runs in it, got {folder}")
    found = sorted(path.parent for path in folder.rglob("manifest.json") if (path.parent / "scores.json").is_file())
    if not found:
        raise RequestError(f"{folder} holds no scored run; give the folder that runs were written into")
    return found


Facts = tuple[int | None, str]
"""The number of parameters of a model and its licence; None and "" if they are not known."""


def unknown_facts(model: str, revision: str) -> Facts:
    """Return that nothing is known of a model."""
    return None, ""


def board_rows(runs: Mapping[Path, str], facts: Callable[[str, str], Facts] = unknown_facts) -> list[Row]:
    """Return every score of a whole task of every run, in the order task, metric, distance.

    `runs` are folders with the names that the board calls them by; `facts` tells what is known of a model at a
    revision. q is that of each run, as in its own report: over all runs of a board no p of permutations would reach
    it, and a run's verdict would depend on who else is there.
    """
    # A model has one name in all its runs, which stand in the order in which they were made.
    manifests = {folder: read_manifest(folder) for folder in runs}
    opened = [
        compared_run(model_label(str(manifests[folder]["command"]["model"])), folder, read_scores(folder))
        for folder in sorted(runs, key=lambda folder: str(manifests[folder].get("created", "")))
    ]
    judges = {run.folder: (run.annotator, judge_of(run.folder, run.annotator)) for run in opened}
    several = Counter(name for name, _ in set(judges.values()))
    named = {folder: name if several[name] == 1 else f"{name} {what}" for folder, (name, what) in judges.items()}
    found = [
        (replace(_row(run, score, runs[run.folder], facts), annotator=named[run.folder]), score)
        for run in opened
        for score in run.scores
        if score.is_whole
    ]
    rows = [row for alike in split_by(found, lambda entry: _measured(entry[0])).values() for row in _ranked(alike)]
    return sorted(rows, key=lambda row: (row.task, row.metric, row.distance is None, row.distance or 0.0, row.model))


def _measured(row: Row) -> tuple[Any, ...]:
    """Return what must be equal for two scores to be ranked: what was asked, of whom, and how it was scored."""
    return row.task, row.metric, row.data, row.task_version, row.limit, row.annotator, row.scoring


def _ranked(alike: Sequence[tuple[Row, Score]]) -> list[Row]:
    """Return the rows of scores that were measured alike with their ranks.

    They stand in the order in which the runs were made. Of a model with several runs the latest one is ranked, or none
    if its score is undefined.
    """
    latest = {row.model: row for row, _ in alike if row.decides}
    distances = {model: row.distance for model, row in latest.items() if row.distance is not None}
    intervals = {
        row.model: distance_interval(
            score.ci_low, score.ci_high, 0.0 if math.isfinite(score.estimate) else score.target
        )
        for row, score in alike
        # Without an interval a rank is any: nobody knows where a model is whose score may leave a difference out.
        if latest.get(row.model) is row and row.model in distances and score.hidden_difference is None
    }
    ranks = rank_models(distances, differences_of_intervals(distances, intervals)) if len(distances) > 1 else {}
    found: dict[str, dict[str, Any]] = {
        model: {"rank": own.rank, "rank_low": own.low, "rank_high": own.high} for model, own in ranks.items()
    }
    return [
        replace(row, n_ranked=len(distances), **found.get(row.model, {}))
        if latest.get(row.model) is row and row.model in distances
        else row
        for row, _ in alike
    ]


def _row(run: ComparedRun, score: Score, name: str, facts: Callable[[str, str], Facts]) -> Row:
    manifest = read_manifest(run.folder)
    identity = manifest["identity"]
    task = next((one for one in run.tasks if one.name == score.task or one.family == score.task), None)
    corpora = {
        name: fingerprint
        for name, fingerprint in identity["corpora"].items()
        if task is None or name == task.data.corpus
    }
    # A number over all tasks of a family is one of those that were asked.
    versions = sorted(str(own) for name, own in identity["tasks"].items() if score.task in (name, family_of(name)))
    plain = score.as_dict()
    used = score.coverage.used / score.coverage.requested if score.coverage.requested else 0.0
    measure = run.measure(score)
    distance = None if math.isnan(score.distance) else score.distance
    parameters, licence = facts(str(identity["model"]["model"]), run.origin.revision)
    return Row(
        model=run.model,
        task=score.task,
        metric=score.name,
        **{name: plain[name] for name in ("value", "ci_low", "ci_high", "p_cluster", "p_these", "q", "undefined")},
        distance=distance,
        decides=score.role == "outcome" and (measure is None or measure.in_verdict),
        verdict=verdict([score]),
        cannot_tell=score.untold,
        used=used,
        lost=lost_in(score.task, run.scores),
        notes=" | ".join(score.notes),
        data=" ".join(f"{name} {fingerprint[:8]}" for name, fingerprint in corpora.items()),
        task_version=(versions[0] if len(versions) == 1 else digest(versions))[:8],
        limit=identity["limit"],
        annotator=run.annotator,
        scoring=redacted_text("; ".join([*unusual_options(run.options).values(), *asked_apart(identity, run.tasks)])),
        made_with=str(manifest["equivox"]),
        run=name,
        engine=str(identity["model"]["engine"]),
        modality=" and ".join(medium.kind for medium in task.media) or "text" if task else "",
        revision=run.origin.revision,
        parameters=parameters,
        licence=licence,
        date=run.origin.date,
        manifest=run.origin.fingerprint,
        shown={
            "value": score_value(score.value, score.unit) + stars(score.q),
            "headline": score_value(score.headline, score.unit) if score.defined else "",
            "distance": DASH if distance is None else score_value(distance, score.unit),
            "interval": score_interval(score.ci_low, score.ci_high, score.unit),
            "p": p_value(score.p_cluster),
            "p_these": p_value(score.p_these),
            "q": p_value(score.q),
            "used": share(score.coverage.used, score.coverage.requested),
        },
    )


def board_json(rows: Sequence[Row]) -> str:
    """Return the rows as JSON."""
    return json.dumps({"equivox": __version__, "rows": _records(rows)}, indent=1, ensure_ascii=False) + "\n"


def board_csv(rows: Sequence[Row]) -> str:
    """Return the rows as CSV, of which no spreadsheet takes a cell for a formula."""
    return as_csv(_records(rows))


def _records(rows: Sequence[Row]) -> list[dict[str, Any]]:
    return [{name: value for name, value in asdict(row).items() if name != "shown"} for row in rows]


@dataclass(frozen=True)
class Section:
    """Scores that may be ranked together: a line for each model, a column for each task and metric."""

    title: str
    about: str
    columns: tuple[str, ...]
    lines: tuple[tuple[Row, tuple[Row | None, ...]], ...]


def board_sections(rows: Sequence[Row]) -> list[Section]:
    """Return the rows that decide as tables of models by comparisons, those nearest to no bias in most columns first.

    A model without a rank, because its score is undefined, stands last: what failed is not left out. Of a task that a
    model lacks, or has no score of, it counts as the last: whoever hands in the best task alone does not stand first.
    """
    shown = [row for row in rows if row.n_ranked or (row.decides and row.undefined)]
    found = []
    alike = split_by(shown, lambda row: (family_of(row.task), row.data, row.limit, row.annotator, row.scoring))
    for key, own in alike.items():
        columns = list(dict.fromkeys((row.task, row.metric, row.task_version) for row in own))
        # Of several runs of a model the ranked one is shown, or else the latest.
        latest = sorted(own, key=lambda row: row.n_ranked > 0)
        cells = {(row.model, row.task, row.metric, row.task_version): row for row in latest}
        places, last = {(row.task, row.metric) for row in own}, len({row.model for row in own})
        means = {}
        for model, members in split_by([row for row in own if row.rank], lambda row: row.model).items():
            ranks = {(row.task, row.metric): row.rank or last for row in members}
            means[model] = sum(ranks.get(place, last) for place in places)
        several = len({metric for _, metric, _ in columns}) > 1
        versions = Counter((task, metric) for task, metric, _ in columns)
        family, data, limit, annotator, scoring = key
        found.append(
            Section(
                title=family,
                about=f"{data}{f', cut to {limit} samples a task' if limit else ''}, annotated by {annotator}"
                + (f", {scoring}" if scoring else ""),
                columns=tuple(
                    " ".join(
                        (
                            task.partition(":")[2] or task,
                            *([metric] if several else ()),
                            *([version] if versions[task, metric] > 1 else ()),
                        )
                    )
                    for task, metric, version in columns
                ),
                lines=tuple(
                    (next(row for row in own if row.model == model), tuple(cells.get((model, *one)) for one in columns))
                    for model in sorted({row.model for row in own}, key=lambda name: (means.get(name, math.inf), name))
                ),
            )
        )
    return found


def board_pages(rows: Sequence[Row], refused: Sequence[tuple[str, str]], verified: str) -> dict[str, str]:
    """Return the site as HTML pages by their paths: `index.html` with the ranks, `scores.html`, and one for each model.

    `refused` are the runs that did not enter, each with the reason; `verified` says who verified the others, and when.
    """
    models = list(dict.fromkeys(row.model for row in rows))
    files = {model: f"models/{page_name(model)}.html" for model in models}
    common = {"refused": refused, "verified": verified}
    pages = {
        "index.html": _page(rows, "Leaderboard", sections=board_sections(rows), files=files, **common),
        "scores.html": _page(rows, "All scores", sections=[], files=files, **{**common, "refused": ()}),
    }
    for model in models:
        own = sorted((row for row in rows if row.model == model), key=lambda row: (row.task, row.metric, row.date))
        pages[files[model]] = _page(own, model, sections=[], files={}, **{**common, "refused": ()})
    return pages


def page_name(model: str) -> str:
    """Return a name for the page of a model that every file system takes; models of other names get others.

    >>> page_name("org/model")
    'org-model-d1e29a'
    """
    return f"{re.sub('[^A-Za-z0-9.]+', '-', model).strip('-.')[:60]}-{digest(model)[:6]}"


CHOICES = {
    "task": "task",
    "metric": "metric",
    "modality": "what is sent",
    "engine": "engine",
    "licence": "licence",
    "annotator": "annotator",
    "data": "data",
}
"""What the rows can be chosen by, with its name for readers."""


def _page(rows: Sequence[Row], title: str, **context: Any) -> str:
    """Return one self-contained page: of `sections` if there are any, else with a table of all rows."""
    source = resources.files(__name__)
    return render_page(
        source.joinpath("board.html.j2"),
        style=source.joinpath("board.css"),
        script=source.joinpath("board.js"),
        version=__version__,
        title=title,
        rows=rows,
        signs={"found": "●", "not shown": "○", "cannot tell": "?", "undefined": "—"},
        runs=list({(row.run, row.manifest): row for row in rows}.values()),
        choices={
            name: (label, sorted({str(getattr(row, name)) for row in rows} - {""}))
            for name, label in CHOICES.items()
            if name not in ("task", "metric") or not context["sections"]
        },
        sized=any(row.parameters for row in rows),
        **context,
    )
