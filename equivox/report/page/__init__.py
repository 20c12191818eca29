"""The report: one self-contained HTML file, built from the stored files of runs.

The content of a run is not trusted: the template escapes all of it, and the page's Content-Security-Policy allows
only the one script of this package.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from equivox.compare.ranking import judge
from equivox.compare.runs import ComparedRun, Comparison, open_comparison, task_correlations, top_movers
from equivox.core.coverage import STAGES
from equivox.core.metric import Metric
from equivox.core.scores import Score
from equivox.core.version import __version__
from equivox.report.comparison_tables import correlation_tables
from equivox.report.failures import annotation_failures, request_failures
from equivox.report.numbers import UNEVEN, UNTOLD, percent, score_interval, share
from equivox.report.opening import family_summary, opening_of
from equivox.report.page.compared import conditions, favour_panels, heat_maps_in_page, side_by_side, speaker_panels
from equivox.report.page.examples import drawn_examples, telling_pairs
from equivox.report.picture import ABOUT_MARKS, SIGNS, further_lines, picture, speaker_lines
from equivox.report.safe_page import render_page
from equivox.report.score_tables import evidence_table, marks, measure_name, share_table
from equivox.report.table import Table, as_html, drawn
from equivox.run.generating import count_failures
from equivox.run.manifest import public_manifest, read_manifest
from equivox.run.opening import LeftOut
from equivox.run.store import count_annotation_failures


def build_report(
    folders: Sequence[Path],
    left_out: Sequence[LeftOut] = (),
    *,
    examples: int = 0,
    data: str | None = None,
) -> str:
    """Return the report of the runs in `folders` as HTML, which names the runs in `left_out` with their reasons.

    `examples` responses of each model, task and group are shown with their recordings or images, none by default: the
    papers' ethics sections ask for care with single answers. `data` is where the corpora are now.
    """
    comparison = open_comparison(folders, left_out)
    judged = judge(comparison)
    source = resources.files(__name__)
    shown = drawn_examples(comparison, examples, data) if examples else []
    pairs = telling_pairs(comparison, data) if examples else {}
    return render_page(
        source.joinpath("report.html.j2"),
        style=source.joinpath("report.css"),
        script=source.joinpath("report.js"),
        version=__version__,
        models=[run.model for run in comparison.runs],
        opening=opening_of(comparison, judged),
        origins=[_origin(run) for run in comparison.runs],
        caveats=comparison.caveats,
        picture=picture(comparison.runs),
        about_marks=ABOUT_MARKS,
        links=_links(comparison) | {place: pair["anchor"] for place, pair in pairs.items()},
        drawn=drawn,
        pairs=list(pairs.values()),
        made_up=any(run.model.startswith("simulated:") for run in comparison.runs),
        marks=marks(comparison.runs),
        sections=list(_sections(comparison)),
        further=further_lines(comparison.runs),
        compared=side_by_side(comparison, judged),
        conditions=conditions(judged),
        panels=list(favour_panels(comparison)),
        speaker_lines=speaker_lines(comparison.runs),
        speakers=list(speaker_panels(comparison)),
        movers=list(_movers(comparison)),
        heat_maps=list(heat_maps_in_page(comparison)),
        headings=_headings(comparison),
        correlations=[as_html(table) for table in correlation_tables(task_correlations(comparison))],
        coverage=_coverage(comparison),
        covered=_covered(comparison),
        failures=list(_failures(comparison)),
        examples=shown,
        filters={name: sorted({entry[name] for entry in shown}) for name in ("model", "task", "group")},
        methods=[*dict.fromkeys(entry for metric in _metrics(comparison) for entry in metric.glossary)],
        words={"untold": UNTOLD, "uneven": UNEVEN},
        manifests=list(_manifests(comparison)),
    )


def _origin(run: ComparedRun) -> str:
    """Return the model of a run, its revision, its annotator, its date and its hash in one line."""
    known = (
        run.model,
        f"revision {run.origin.revision}" if run.origin.revision else "",
        f"annotated by {run.annotator}",
        f"run of {run.origin.date}" if run.origin.date else "",
        f"SHA-256 of its manifest {run.origin.fingerprint[:16]}" if run.origin.fingerprint else "",
    )
    return " · ".join(filter(None, known))


def _metrics(comparison: Comparison) -> list[Metric]:
    """Return the metrics of all runs; runs can have other questions of one family."""
    return [metric for run in comparison.runs for metric in run.metrics.values()]


def _headings(comparison: Comparison) -> dict[str, tuple[str, str]]:
    """Return title and caption of each kind of panel, from the first metric with such a panel."""
    panels = [panel for metric in _metrics(comparison) for panel in metric.panels]
    return {panel.kind: (panel.title, panel.caption) for panel in reversed(panels)}


def _links(comparison: Comparison) -> dict[tuple[str, str], str]:
    """Return the section that stands behind the marks of each model and task."""
    anchors = {family: f"family-{number}" for number, family in enumerate(_families(comparison))}
    return {(run.model, s.task): anchors.get(s.family, "coverage") for run in comparison.runs for s in run.scores}


def _families(comparison: Comparison) -> list[str]:
    return list(dict.fromkeys(score.family for _, score in comparison.scores() if score.is_whole))


def _summary(run: ComparedRun, family: str) -> dict[str, str]:
    """Return what is known of a family of tasks of one run: the verdict, its sign, and the sentences."""
    known, text = family_summary(run, family)
    return {"model": run.model, "state": known.replace(" ", "-"), "sign": SIGNS[known], "text": text}


def _sections(comparison: Comparison) -> Iterator[dict[str, Any]]:
    """Yield one section per family of tasks: its question, what was found of each model, and a table per metric."""
    # If the tasks of a run are no longer known, it is shown without their cards.
    cards = {task.name: task.card.strip() for run in comparison.runs for task in run.tasks}
    for number, family in enumerate(_families(comparison)):
        rows = [(run, s) for run in comparison.runs for s in run.scores if s.is_whole and s.family == family]
        names = list(dict.fromkeys(measure_name(run, score) for run, score in rows))
        about = cards.get(rows[0][1].task.partition("@")[0], "")
        first, _, question = about.partition("\n")[0].partition(": ")
        question = question or first
        yield {
            "title": family,
            "anchor": f"family-{number}",
            "question": question[:1].upper() + question[1:],
            "verdicts": [_summary(run, family) for run in comparison.runs if any(run is other for other, _ in rows)],
            "about": about,
            "metrics": [_metric([row for row in rows if measure_name(*row) == name], family) for name in names],
            "few": len(rows) <= FEW,
        }


FEW = 16
"""Up to this many scores of a family have their tables open; the tables of more are folded."""


def _metric(rows: Sequence[tuple[ComparedRun, Score]], family: str) -> dict[str, Any]:
    run, first = rows[0]
    notes = list(dict.fromkeys(note for _, score in rows for note in _remarks(score)))
    measure = run.measure(first)
    null_mean = any(math.isfinite(s.null_mean) for _, s in rows) or (measure is not None and measure.null_mean)
    table = evidence_table(
        f"{measure_name(run, first)}, {family}",
        {
            "model": lambda run, score: run.model,
            "task": lambda run, score: score.task.partition(":")[2].partition("@")[0] or score.task,
        },
        rows,
        null_mean=null_mean,
        last={"note": lambda run, score: " ".join(str(1 + notes.index(note)) for note in _remarks(score))},
    )
    return {
        "name": measure_name(run, first),
        "zero_means": first.zero_means,
        "n": len(rows),
        "table": as_html(table),
        "notes": notes,
    }


def _remarks(score: Score) -> tuple[str, ...]:
    """Return why a score is undefined or cannot tell, and the notes on it."""
    if score.undefined:
        return (f"undefined: {score.undefined}", *score.notes)
    return (*((f"this design cannot tell: {score.untold_in_full}",) if score.untold else ()), *score.notes)


def _movers(comparison: Comparison) -> Iterator[dict[str, Any]]:
    """Yield, for each model, the attributes with the largest estimate, and the shares of their values by group."""
    for run in comparison.runs:
        found = [
            (score, shares)
            for score, shares in top_movers(run, attributes=4, values=6)
            if shares and score.estimate_unclipped > 0
        ]
        if found:
            titles = [f"{s.task}, {s.attribute}: estimate {percent(s.headline)}" for s, _ in found]
            yield {
                "model": run.model,
                "told": "; ".join(titles),
                "tables": [as_html(share_table(run.model, score, shares)) for score, shares in found],
            }


def _coverage(comparison: Comparison) -> dict[str, Any]:
    """Return the table of coverage by model and task."""
    rows: dict[tuple[str, ...], list[str]] = {}
    for run in comparison.runs:
        for score in run.scores:
            c = score.coverage
            counts = [f"{getattr(c, name):,}" for name in STAGES]
            known = math.isfinite(score.worst_low) and c.used < c.requested
            worst = f"{score.name} {score_interval(score.worst_low, score.worst_high, score.unit)}" if known else ""
            if score.is_whole:
                rows.setdefault((run.model, score.task, *counts), [run.model, score.task, *counts, worst])
    columns = ("model", "task", *STAGES, "worst case")
    table = Table(caption="Requests by model and task", columns=columns, align="llrrrrrl", rows=list(rows.values()))
    return {"n": len(rows), "table": as_html(table)}


def _covered(comparison: Comparison) -> str:
    """Return a sentence about the share of requests that the scores use."""
    whole = [(run.model, s) for run in comparison.runs for s in run.scores if s.is_whole and s.coverage.requested]
    if not whole:
        return "Nothing was asked."
    model, least = min(whole, key=lambda entry: entry[1].coverage.used / entry[1].coverage.requested)
    if least.coverage.used == least.coverage.requested:
        return "All requests were answered and are used in every score."
    used = share(least.coverage.used, least.coverage.requested)
    return f"The least is used of {model}, {least.task}, {least.name}: {used} of the requests."


def _failures(comparison: Comparison) -> Iterator[str]:
    for run in comparison.runs:
        annotated = count_annotation_failures(run.folder, run.annotator)
        lines = request_failures(count_failures(run.folder), 5)
        for line in (*lines, *annotation_failures(run.annotator, *annotated)):
            yield f"{run.model}: {line}"


def _manifests(comparison: Comparison) -> Iterator[dict[str, str]]:
    for run in comparison.runs:
        text = json.dumps(public_manifest(read_manifest(run.folder)), indent=1, ensure_ascii=False)
        yield {"model": run.model, "text": text}
