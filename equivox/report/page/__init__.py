"""The report: one self-contained HTML file, built from the stored files of runs.

The content of a run is not trusted: the template escapes all of it, and the page's Content-Security-Policy allows
only the one script of this package.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any

from equivox.compare.impact import impacts
from equivox.compare.runs import ComparedRun, Comparison, open_comparison, task_correlations, top_movers
from equivox.core.errors import RequestError
from equivox.core.metric import Panel
from equivox.core.plain import split_by
from equivox.core.scores import Score, family_of
from equivox.core.version import __version__
from equivox.report.impact_files import HOW, NOT_AN_AUDIT, side_by_side_tables
from equivox.report.numbers import (
    UNEVEN,
    UNTOLD,
    how_many,
    interval,
    p_value,
    percent,
    score_value,
    share,
)
from equivox.report.opening import family_summary, opening_of
from equivox.report.page.compared import conditions, favour_panels, side_by_side, speaker_panels
from equivox.report.page.examples import drawn_examples, telling_pairs
from equivox.report.picture import ABOUT_MARKS, SIGNS, picture
from equivox.report.safe_page import render_page
from equivox.report.score_tables import (
    BY_PEOPLE,
    by_people,
    evidence,
    evidence_columns,
    marked,
    marks,
    measure_name,
    p_headings,
)
from equivox.report.table import Table, as_html
from equivox.run.manifest import public_manifest, read_manifest
from equivox.run.opening import LeftOut

METHODS = (
    ("favourable answers", f"{HOW[:1].upper()}{HOW[1:]}"),
    (
        "estimate, null mean",
        "The estimate is the population's value: what noise adds to the published number is removed. The null mean is "
        "that of the published number when labels are permuted over clusters; it shows how large noise is.",
    ),
    (
        "interval",
        "95 %, for the population's value.",
    ),
    (
        "p cluster, q",
        "p cluster permutes labels over the units that carry them (speakers, contexts, narrative pairs), within what "
        "is held equal. q is p after correction for everything that this report shows: the scores of all tasks and "
        "models by Holm's method, attributes and breakdowns below them (Benjamini and Bogomolov 2014), so that the q "
        "of an attribute is never below that of its task. Without any difference, at most 5 % of reports show a star. "
        "Stars: * q below 0.05, ** below 0.001.",
    ),
    (
        "this design cannot tell",
        f"{UNTOLD}: the shift that is looked for would be found in fewer than 80 of 100 such samples, at the p that q "
        "needs among everything shown, and the interval does not rule it out; or no answers could have given a star, "
        "because there are too few permutations. Such a score says nothing, and it is not a score without a "
        "difference. What would do stands beside it.",
    ),
    (
        "missing answers",
        f"{UNEVEN}: the share of missing answers of two groups differs by 5 points or more. The bounds of the value, "
        "whatever these answers were, stand with its coverage.",
    ),
    (
        "p paper",
        "As published: labels permuted over single responses. It takes differences between clusters for bias, and is "
        "shown to compare with the paper.",
    ),
    (
        "rank, rank interval",
        "1 is nearest to no bias, as measured. The rank interval contains the ranks that the tests of all pairs of "
        "models allow, 95 % for all models of a task together (Mogstad et al. 2024, Holm's correction). Models with a "
        "common letter are not told apart: that is no proof that they are alike.",
    ),
    (
        "paired tests",
        "Two models on the samples that both answered: they are exchanged within whole clusters.",
    ),
    (
        "coverage",
        "requested, generated, answered (not refused), parsed, used. A score is undefined where too little of any "
        "group can be used. Worst case: the range of the score over all missing answers.",
    ),
)
"""Methods that apply to every metric; each metric adds the entries of its glossary."""


def build_report(
    folders: Sequence[Path],
    left_out: Sequence[LeftOut] = (),
    *,
    examples: int = 0,
    data: str | None = None,
    movers: int = 4,
) -> str:
    """Return the report of the runs in `folders` as HTML, which names the runs in `left_out` with their reasons.

    `examples` responses of each model, task and group are shown with their recordings or images, none by default: the
    papers' ethics sections ask for care with single answers. `data` is where the corpora are now.
    """
    from equivox.compare.ranking import judge

    comparison = open_comparison(folders, left_out)
    judged = judge(comparison)
    favourable = [
        {"caption": table.caption or "Without impact ratios", "html": as_html(replace(table, notes=()))}
        for table in side_by_side_tables(*impacts(comparison.runs))
    ]
    source = resources.files(__name__)
    shown = drawn_examples(comparison, examples, data) if examples else []
    pairs = telling_pairs(comparison, data) if examples else {}
    used = {metric.name: metric for metric in comparison.metrics.values()}.values()
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
        anchors={family: f"family-{number}" for number, family in enumerate(_families(comparison))},
        pairs=list(pairs.values()),
        pair_anchors={place: pair["anchor"] for place, pair in pairs.items()},
        cards=list(_cards(comparison)),
        made_up=any(run.model.startswith("simulated:") for run in comparison.runs),
        marks=marks(comparison.runs),
        sections=list(_sections(comparison)),
        compared=side_by_side(comparison, judged),
        conditions=conditions(judged),
        panels=list(favour_panels(comparison)),
        favourable=favourable,
        not_an_audit=NOT_AN_AUDIT,
        speakers=list(speaker_panels(comparison)),
        movers=_by_model(_movers(comparison, movers)),
        heat_maps=list(_heat_maps(comparison)),
        headings=_headings(comparison),
        correlations=list(_correlations(comparison)),
        coverage=_coverage(comparison),
        covered=_covered(comparison),
        failures=list(_failures(comparison)),
        examples=shown,
        filter_models=sorted({entry["model"] for entry in shown}),
        filter_tasks=sorted({entry["task"] for entry in shown}),
        filter_groups=sorted({entry["group"] for entry in shown}),
        methods=[*(entry for m in used for entry in m.glossary), *METHODS],
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


def _headings(comparison: Comparison) -> dict[str, tuple[str, str]]:
    """Return title and caption of each kind of panel, from the first metric with such a panel."""
    panels = [panel for metric in comparison.metrics.values() for panel in metric.panels]
    return {panel.kind: (panel.title, panel.caption) for panel in reversed(panels)}


def _cards(comparison: Comparison) -> Iterator[dict[str, Any]]:
    """Yield the summaries of each family of tasks, model by model."""
    questions = {name: card.splitlines()[0].partition(": ") for name, card in _task_cards(comparison).items() if card}
    for number, family in enumerate(_families(comparison)):
        task = next(s.task for _, s in comparison.scores() if s.is_whole and s.family == family)
        question = questions.get(task.partition("@")[0], ("", "", ""))
        question_ = question[2] or question[0]
        yield {
            "title": family,
            "anchor": f"family-{number}",
            "question": question_[:1].upper() + question_[1:],
            "verdicts": [
                _summary(run, family)
                for run in comparison.runs
                if any(score.is_whole and score.family == family for score in run.scores)
            ],
        }


def _families(comparison: Comparison) -> list[str]:
    return list(dict.fromkeys(score.family for _, score in comparison.scores() if score.is_whole))


def _summary(run: ComparedRun, family: str) -> dict[str, str]:
    """Return what is known of a family of tasks of one run: the verdict, its sign, and the sentences."""
    known, text = family_summary(run, family)
    return {"model": run.model, "state": known.replace(" ", "-"), "sign": SIGNS[known], "text": text}


def _sections(comparison: Comparison) -> Iterator[dict[str, Any]]:
    """Yield one section per family of tasks; each of its metrics has a figure and a table."""
    cards = _task_cards(comparison)
    for number, family in enumerate(_families(comparison)):
        rows = [(run, s) for run in comparison.runs for s in run.scores if s.is_whole and s.family == family]
        names = list(dict.fromkeys(measure_name(run, score) for run, score in rows))
        many = len(names) > FEW
        yield {
            "title": family,
            "anchor": f"family-{number}",
            "about": cards.get(rows[0][1].task.partition("@")[0], ""),
            "metrics": [
                _metric([row for row in rows if measure_name(*row) == name], family, narrow=many) for name in names
            ],
            "many": many,
        }


FEW = 2
"""Up to this many metrics of a family are shown below one another; more are shown in columns, their tables folded."""


def _metric(rows: Sequence[tuple[ComparedRun, Score]], family: str, *, narrow: bool) -> dict[str, Any]:
    from equivox.report.drawing import figure_in_page
    from equivox.report.figures import draw_forest, told_forest

    run, first = rows[0]
    several = len({run.model for run, _ in rows}) > 1
    labelled = [
        (" ".join(filter(None, (run.model if several else "", s.task.partition(":")[2] or s.task))), s)
        for run, s in rows
    ]
    notes = list(dict.fromkeys(note for _, score in rows for note in _remarks(score)))
    measure = run.measure(first)
    null_mean = any(math.isfinite(s.null_mean) for _, s in rows) or (measure is not None and measure.null_mean)
    p = p_headings(rows)
    people = by_people(rows)
    columns = [*evidence_columns("value", null_mean=null_mean, p=p), *(BY_PEOPLE if people else ())]
    table = Table(
        caption=f"{measure_name(run, first)}, {family}",
        columns=["model", "task", *columns, "note"],
        align="ll" + "r" * len(columns) + "l",
        rows=[
            [
                *(run.model, _within_family(s), *evidence(s, null_mean=null_mean, p=p)),
                *(people[number] if people else ()),
                " ".join(str(1 + notes.index(note)) for note in _remarks(s)),
            ]
            for number, (run, s) in enumerate(rows)
        ],
    )
    # In a column the layout for a phone fits every screen.
    phone = figure_in_page(draw_forest(labelled, layout="phone"))
    return {
        "name": measure_name(run, first),
        "zero_means": first.zero_means,
        "figure": phone if narrow else figure_in_page(draw_forest(labelled)),
        "phone": "" if narrow else phone,
        "told": told_forest(labelled),
        "has_null_mean": null_mean,
        "has_target": math.isfinite(first.target) and not null_mean,
        "n": len(rows),
        "table": as_html(table),
        "notes": notes,
    }


def _within_family(score: Score) -> str:
    """Return a task's name without its family, which is in the heading."""
    return score.task.partition(":")[2].partition("@")[0] or score.task


def _remarks(score: Score) -> tuple[str, ...]:
    """Return why a score is undefined, or the notes on it."""
    if score.undefined:
        return (f"undefined: {score.undefined}",)
    return (*((f"this design cannot tell: {score.untold_in_full}",) if score.untold else ()), *score.notes)


def _task_cards(comparison: Comparison) -> dict[str, str]:
    from equivox.run.declarations import read_tasks

    cards: dict[str, str] = {}
    for run in comparison.runs:
        # If the tasks of a run are no longer known, it is shown without their cards.
        with suppress(RequestError):
            cards |= {task.name: task.card.strip() for task in read_tasks(run.folder)}
    return cards


def _movers(comparison: Comparison, wanted: int) -> Iterator[dict[str, str]]:
    from equivox.report.drawing import figure_in_page
    from equivox.report.figures import draw_shares

    for run in comparison.runs:
        for score, shares in top_movers(run, attributes=wanted, values=6):
            if not shares or score.estimate_unclipped <= 0:
                continue
            title = f"{score.task}, {score.attribute}"
            yield {
                "model": run.model,
                "title": f"{title}: estimate {percent(score.headline)}",
                "figure": figure_in_page(draw_shares(shares, title)),
                "told": "; ".join(
                    f"{s.value}: " + ", ".join(f"{group} {percent(p)} %" for group, p in sorted(s.by_group.items()))
                    for s in shares
                ),
                "caption": (
                    f"{run.model}, {title}: estimate {percent(score.headline)}{marked(score)}, "
                    f"interval {interval(score.ci_low, score.ci_high)}, {score.name} {percent(score.value)}, "
                    f"null mean {percent(score.null_mean)}, q {p_value(score.q)}."
                ),
            }


def _by_model(found: Iterator[dict[str, str]]) -> list[dict[str, Any]]:
    return [
        {"model": model, "told": "; ".join(entry["title"] for entry in own), "figures": own}
        for model, own in split_by(found, lambda entry: entry["model"]).items()
    ]


def _heat_maps(comparison: Comparison) -> Iterator[dict[str, Any]]:
    """Yield a heat map for every task with counts, and its strongest findings."""
    from equivox.report.drawing import figure_in_page
    from equivox.report.figures import draw_heat_map, heat_maps

    maps = {run.model: heat_maps(run) for run in comparison.runs}
    # All models of a task share one scale, so that a colour means the same in each map.
    most: dict[str, float] = {}
    for found in maps.values():
        for task, (_, rows) in found.items():
            most[task] = max(most.get(task, 1.0), *(float(row["count"] or 0) for row in rows))
    for run in comparison.runs:
        for task, (panel, rows) in maps[run.model].items():
            known = [row for row in rows if row["count"] is not None]
            yield {
                "figure": figure_in_page(draw_heat_map(rows, most=most[task], unit=panel.unit)),
                "told": "; ".join(f"{r['category']}, {r['identity']}: {r['count']}" for r in known),
                "caption": f"{run.model}, {task}: {panel.caption}.",
                "top": as_html(_strongest(run, task, panel)) if panel.top else "",
            }


def _strongest(run: ComparedRun, task: str, panel: Panel) -> Table:
    from equivox.run.scoring import read_records

    rows = [r for r in read_records(run.folder, family_of(task), panel.top) or () if r["task"] == task]
    return Table(
        caption=f"{run.model}, {task}: the strongest {panel.unit}",
        columns=list(panel.top_columns.values()),
        align="".join("r" if rows and isinstance(rows[0][name], float) else "l" for name in panel.top_columns),
        rows=[[_number(name, row[name]) for name in panel.top_columns] for row in rows],
    )


def _number(name: str, value: object) -> str:
    if isinstance(value, float):
        return p_value(value) if name == "q" else f"{value:.4f}"
    return str(value)


def _correlations(comparison: Comparison) -> Iterator[dict[str, str]]:
    from equivox.report.drawing import figure_in_page
    from equivox.report.figures import draw_correlations

    found = task_correlations(comparison)
    for (dimension, condition, _), pairs in split_by(found, lambda c: (c.dimension, c.condition, c.metric)).items():
        few = next((pair.undefined for pair in pairs if pair.undefined), None)
        yield {
            "figure": figure_in_page(draw_correlations(pairs)),
            "told": "; ".join(f"{pair.first} and {pair.second}: {score_value(pair.r, 'r')}" for pair in pairs),
            "caption": (
                f"{dimension}, condition {condition}: Pearson's r of the tasks' {pairs[0].metric} over "
                f"{pairs[0].n_models} models" + (f"; {few}." if few else ".")
            ),
        }


COUNTS = ("requested", "generated", "answered", "parsed", "used")


def _coverage(comparison: Comparison) -> dict[str, Any]:
    """Return the table of coverage by model and task."""
    rows: dict[tuple[str, ...], list[str]] = {}
    for run in comparison.runs:
        for score in run.scores:
            c = score.coverage
            counts = [f"{getattr(c, name):,}" for name in COUNTS]
            known = math.isfinite(score.worst_low) and c.used < c.requested
            worst = f"{score.name} {interval(score.worst_low, score.worst_high)}" if known else ""
            if score.is_whole:
                rows.setdefault((run.model, score.task, *counts), [run.model, score.task, *counts, worst])
    columns = ("model", "task", *COUNTS, "worst case")
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
    from equivox.run.generating import count_failures

    for run in comparison.runs:
        for error, count in count_failures(run.folder).most_common(5):
            yield f"{run.model}: failed {how_many(count, 'time')}: {error}"


def _manifests(comparison: Comparison) -> Iterator[dict[str, str]]:
    for run in comparison.runs:
        text = json.dumps(public_manifest(read_manifest(run.folder)), indent=1, ensure_ascii=False)
        yield {"model": run.model, "text": text}
