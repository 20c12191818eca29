"""A leaderboard: many verified runs as a static site, with their scores as JSON and CSV.

All of them show a data frame with a row for each score of a whole task. Only scores that were measured in the same way
are ranked together. A rank stands with its interval; a model without a result stands last.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from importlib import resources
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from equivox.compare.asking import asked_apart, judge_of
from equivox.compare.runs import ComparedRun, compared_run
from equivox.core.hashing import digest
from equivox.core.lazy import pandas
from equivox.core.outcomes import OUTCOMES
from equivox.core.plain import as_plain
from equivox.core.redact import redacted_text
from equivox.core.scores import NAN, family_of, unusual_options
from equivox.core.version import __version__
from equivox.engines import model_label
from equivox.report.failures import lost_in
from equivox.report.findings import list_verdicts
from equivox.report.frames import arrange_grid, format_value, make_score_frame, make_table
from equivox.report.safe_page import render_page
from equivox.report.table import Cell, Table, as_csv, as_html
from equivox.report.verdict import SHORT, write_headline
from equivox.run.manifest import read_manifest
from equivox.run.scoring import read_scores
from equivox.statistics import rank_models
from equivox.statistics.multiplicity import differences_of_intervals

if TYPE_CHECKING:
    from pathlib import Path

    from pandas import DataFrame

MEASURED = ["task", "metric", "task_version", "measured"]
"""The columns in which scores must agree to be ranked together."""
NAME = ("task", "metric", "outcome")
"""The columns that name a score on the pages."""
SCORE = ("rank", "rank_low", "rank_high", "headline", "ci_low", "ci_high", "q", "date", "requested", "used")
"""The columns of a score on the pages, behind its name."""
RUN = ("date", "engine", "revision", "annotator", "equivox", "manifest")
"""The columns that describe a run, below its scores."""


def make_board(runs: Mapping[Path, str]) -> DataFrame:
    """Return a row for each score of a whole task, with its rank.

    `runs` are folders with the names that the board calls them by. A row has every field of the score, outcome and q as
    in the run's report, and these columns.

    distance, distance_low, distance_high
        The distance from "no bias" with its interval, which is not known where the score may leave a difference out.
    latest
        Whether the score may be ranked: it decides an outcome, and the model has no later score.
    rank, rank_low, rank_high, n_ranked
        The rank among `n_ranked` models that were measured in the same way, 1 for the nearest to no bias, and the ranks
        that all their intervals allow together, with 95 % confidence. A model that is alone has no rank.
    measured, task_version
        Data, limit, annotator and unusual options in words; the version of the task, or a hash of those of a family.
    says, lost
        The sentence of the report about the task, and which answers groups lose unequally.
    date, engine, revision, annotator, equivox, manifest
        When and how the run was made, and the SHA-256 of its manifest.
    """
    opened = _open_runs(runs)
    judges = [(run.annotator, judge_of(run.folder, run.annotator)) for run in opened]
    n_judges = Counter(name for name, _ in set(judges))
    annotators = [name if n_judges[name] == 1 else f"{name} {what}" for name, what in judges]
    rows = [
        {"run": runs[run.folder], **facts}
        for run, annotator in zip(opened, annotators, strict=True)
        for facts in _describe_scores(run, annotator)
    ]
    frame = make_score_frame(opened)
    frame = frame.assign(**pandas.DataFrame(rows, frame.index))
    ranked = _add_ranks(frame[frame["attribute"].isna() & (frame["subset"] == "")])
    return ranked.sort_values(["task", "metric", "distance", "model"], kind="stable", ignore_index=True)


def _open_runs(runs: Mapping[Path, str]) -> list[ComparedRun]:
    """Return the runs in the order in which they were made; all runs of a model have the same name."""
    manifests = {folder: read_manifest(folder) for folder in runs}
    return [
        compared_run(model_label(str(manifests[folder]["command"]["model"])), folder, read_scores(folder))
        for folder in sorted(runs, key=lambda folder: str(manifests[folder].get("created", "")))
    ]


def _describe_scores(run: ComparedRun, annotator: str) -> Iterator[dict[str, Any]]:
    """Yield what each score of a run has besides its fields."""
    manifest = read_manifest(run.folder)
    identity = manifest["identity"]
    says = {verdict.score.task: write_headline(verdict) for verdict in list_verdicts(run)}
    limit = [f"cut to {identity['limit']} samples a task"] if identity["limit"] else []
    options = [*unusual_options(run.options).values(), *asked_apart(identity, run.tasks)]
    for score in run.scores:
        task, measure = next((t for t in run.tasks if score.task in (t.name, t.family)), None), run.measure(score)
        corpora = [name for name in identity["corpora"] if task is None or name == task.data.corpus]
        data = " ".join(f"{name} {identity['corpora'][name][:8]}" for name in corpora)
        # A number over a family is about those of its tasks that the run has.
        versions = sorted(str(of) for name, of in identity["tasks"].items() if score.task in (name, family_of(name)))
        low, high = score.interval
        lost = lost_in(score.task, run.scores)
        yield {
            "distance": score.distance,
            "distance_low": NAN if score.omitted else low,
            "distance_high": NAN if score.omitted else high,
            "decides": score.role == "outcome" and (measure is None or measure.in_verdict),
            "measured": redacted_text("; ".join([data, *limit, f"annotated by {annotator}", *options])),
            "task_version": (versions[0] if len(versions) == 1 else digest(versions))[:8],
            "says": ". ".join(filter(None, [says.get(score.task), lost])),
            "lost": lost,
            "date": run.origin.date,
            "engine": identity["model"]["engine"],
            "revision": run.origin.revision,
            "annotator": annotator,
            "equivox": manifest["equivox"],
            "manifest": run.origin.fingerprint,
        }


def _add_ranks(frame: DataFrame) -> DataFrame:
    """Return the scores, which stand in the order of their runs, with their ranks.

    Of a model with several runs the latest is ranked, or none if that has no result.
    """
    latest = frame[frame["decides"]].groupby([*MEASURED, "model"]).tail(1)
    ranks: dict[str, list[int | None]] = {}
    for _, rows in latest[latest["distance"].notna()].groupby(MEASURED):
        distances = {str(row): distance for row, distance in rows["distance"].items()}
        ends = zip(rows["distance_low"], rows["distance_high"], strict=True)
        pairs = differences_of_intervals(distances, dict(zip(distances, ends, strict=True)))
        ranked = rank_models(distances, pairs) if len(rows) > 1 else {}
        for row in distances:
            rank = ranked.get(row)
            ranks[row] = [len(rows), *((rank.rank, rank.low, rank.high) if rank else [None] * 3)]
    columns = ["n_ranked", "rank", "rank_low", "rank_high"]
    added = [ranks.get(str(row), [0, None, None, None]) for row in frame.index]
    latest_rows = frame.index.isin(latest.index)
    return frame.assign(latest=latest_rows, **pandas.DataFrame(added, frame.index, columns, dtype=object))


def list_rank_tables(frame: DataFrame) -> list[Table]:
    """Return models by tasks with their ranks, a table for each family of tasks measured in the same way."""
    # A number that is neither ranked nor without a result, such as a count, has nothing to stand beside.
    latest = frame[frame["latest"] & (frame["distance"].notna() | frame["undefined_reason"].notna())]
    families = latest["task"].map(family_of)
    groups = latest.groupby([families, "measured"], sort=False)
    return [_make_rank_table(rows, f"{family}: {measured}") for (family, measured), rows in groups]


def _make_rank_table(rows: DataFrame, caption: str) -> Table:
    columns = rows["task"] + (" " + rows["metric"] if rows["metric"].nunique() > 1 else "")
    versions = rows.groupby(["task", "metric"])["task_version"].transform("nunique")
    columns = columns.where(versions == 1, columns + " " + rows["task_version"])
    cells = [_write_rank(row) for row in rows.to_dict("records")]
    table = arrange_grid(rows.drop(columns=["notes", "uneven"]).assign(task=columns), cells, caption)
    by_model = {str(row[0]): row for row in table.rows}
    return replace(table, rows=[by_model[model] for model in _order_models(rows)])


def _write_rank(row: Mapping[Any, Any]) -> Cell:
    """Return the rank of a score with its interval; below it the outcome and the number."""
    rank = "no rank" if row["rank"] is None else f"{row['rank']} ({row['rank_low']} to {row['rank_high']})"
    number = "" if isinstance(row["undefined_reason"], str) else format_value("headline", row["headline"], row["unit"])
    lost = ", answers lost unequally" if row["lost"] else ""
    return Cell(rank, f"{SHORT.get(row['outcome'], 'not tested')} {number}".strip() + lost)


def _order_models(rows: DataFrame) -> list[str]:
    """Return models by the sum of their ranks, those without a result last.

    A task that a model lacks, or has no rank in, counts as its last rank: the best task alone puts nobody first.
    """
    ranks = rows["rank"].astype(float).groupby([rows["model"], rows["task"], rows["metric"]]).last().unstack([1, 2])
    totals = ranks.fillna(len(ranks)).sum(axis=1)
    known = set(rows["model"][rows["outcome"] != "no_result"])
    return sorted(totals.index, key=lambda model: (totals[model], model not in known, model))


def render_site(frame: DataFrame, refused: Sequence[tuple[str, str]], verified: str) -> dict[str, str]:
    """Return every file of the site by its path: pages, JSON and CSV.

    `refused` are the runs that did not enter, each with the reason; `verified` says who verified the others, and when.
    """
    records = [as_plain(record) for record in frame.to_dict("records")]
    document = {"equivox": __version__, "rows": records}
    pages = {model: f"models/{name_page(model)}.html" for model in dict.fromkeys(map(str, frame["model"]))}
    ranks = [_link_models(table, pages) for table in list_rank_tables(frame)]
    shown = frame.assign(outcome=[SHORT.get(outcome, "not tested") for outcome in frame["outcome"]])
    scores = _link_models(make_table(shown, "Scores of whole tasks", by=("model", *NAME), columns=SCORE), pages)
    choices = {"task": sorted(set(frame["task"])), "outcome": [SHORT[outcome] for outcome in OUTCOMES]}
    common: dict[str, Any] = {"verified": verified, "home": "", "refused": [], "choices": {}}
    site = {
        "leaderboard.json": json.dumps(document, indent=1, ensure_ascii=False) + "\n",
        "leaderboard.csv": as_csv(records),
        "index.html": _render("Leaderboard", ranks, **common | {"refused": refused}),
        "scores.html": _render("All scores", [scores], **common | {"choices": choices}),
    }
    for model, page in pages.items():
        runs = list(_list_run_tables(shown[shown["model"] == model]))
        site[page] = _render(model, runs, **common | {"home": "../"})
    return site


def _list_run_tables(rows: DataFrame) -> Iterator[Table]:
    """Yield the scores of each run, those on the same data together, and how the run was made."""
    for (run, measured), scores in rows.sort_values("date", kind="stable").groupby(["run", "measured"], sort=False):
        made = [f"{name} {scores[name].iloc[0]}" for name in RUN if scores[name].iloc[0]]
        yield make_table(scores, f"{run}: {measured}", by=NAME, columns=(*SCORE, "says"), note=", ".join(made))


def _link_models(table: Table, pages: Mapping[str, str]) -> Table:
    """Return a table whose models link to their pages."""
    link = Markup('<a href="{}">{}</a>')
    return replace(table, rows=[[link.format(pages[str(row[0])], row[0]), *row[1:]] for row in table.rows])


def name_page(model: str) -> str:
    """Return a name for the page of a model that every file system takes.

    >>> name_page("org/model")
    'org-model-d1e29a'
    """
    return f"{re.sub('[^A-Za-z0-9.]+', '-', model).strip('-.')[:60]}-{digest(model)[:6]}"


def _render(title: str, tables: Sequence[Table], **context: Any) -> str:
    """Return a page that needs no network."""
    source, page = resources.files(__name__), resources.files("equivox.report.page")
    return render_page(
        source / "board.html.j2",
        styles=[page / "page.css", source / "board.css"],
        script=source / "board.js",
        version=__version__,
        title=title,
        tables=[as_html(table) for table in tables],
        **context,
    )
