"""Sections of the report that compare models, sides, speakers and associations."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from equivox.compare.pairs import untested_measures
from equivox.compare.ranking import Judged, missing_cohorts
from equivox.compare.runs import ComparedRun, Comparison
from equivox.core.metric import Panel
from equivox.core.plain import split_by
from equivox.core.scores import family_of
from equivox.report.comparison_tables import (
    cohort_tables,
    condition_tables,
    conditions_in_words,
    paired_tables,
    rank_tables,
)
from equivox.report.numbers import DASH, p_value, score_interval, score_value
from equivox.report.panels import favoured, heat_maps, largest, metric_panels, speakers_of
from equivox.report.picture import rank_lines
from equivox.report.ranks import told_apart
from equivox.report.score_tables import marked, untold_lines
from equivox.report.table import Cell, Table, as_html
from equivox.run.scoring import read_records

SHADES = 4
"""Number of colour steps in the panel of signed measures; the page's style has a class for each step and direction."""


def side_by_side(comparison: Comparison, judged: Judged) -> dict[str, Any] | None:
    """Return ranks, paired tests and cohort-relative scores as tables; None for a single run."""
    if not judged.ranks and not judged.tests:
        return None
    ranked = [(rank.family, rank.condition) for rank in judged.ranks]
    families = dict.fromkeys([*ranked, *((test.family, test.condition) for test in judged.tests)])
    return {
        "families": [_family(judged, [run.model for run in comparison.runs], *key) for key in families],
        "untested": [f"{name}: no paired test: {reason}" for name, reason in untested_measures(comparison).items()],
        "cohorts": [as_html(table) for table in cohort_tables(comparison.metrics, judged.cohorts)],
        "no_cohort": " ".join(missing_cohorts(comparison)) if not judged.cohorts else "",
    }


def conditions(judged: Judged) -> dict[str, Any] | None:
    """Return tests between conditions in words and as tables; None if no run has two conditions."""
    if not judged.conditions:
        return None
    return {
        "words": conditions_in_words(judged.conditions),
        "tables": [as_html(table) for table in condition_tables(judged.conditions)],
    }


def _family(judged: Judged, models: Sequence[str], family: str, condition: str) -> dict[str, Any]:
    ranks = [s for s in judged.ranks if (s.family, s.condition) == (family, condition)]
    tests = [t for t in judged.tests if (t.family, t.condition) == (family, condition)]
    words = {
        ", ".join(key): told_apart(members)
        for key, members in split_by(ranks, lambda s: (s.task, s.metric, s.dimension)).items()
    }
    return {
        "title": family,
        "lines": rank_lines(ranks, models) if any(s.rank for s in ranks) else [],
        "words": words,
        "ranks": [as_html(table, "ranks") for table in rank_tables(ranks)],
        "tests": [as_html(table) for table in paired_tables(tests)],
    }


def favour_panels(comparison: Comparison) -> Iterator[dict[str, Any]]:
    """Yield the signed measures of every model, over all tasks and for each task, with the favoured side in words.

    A cell shows the magnitude; its colour and a word give the direction. A score that does not differ from no bias
    beyond chance has no colour.
    """
    every = [(run, family, *found) for run in comparison.runs for family, found in metric_panels(run).items()]
    for family in dict.fromkeys(family for _, family, *_ in every):
        own = [(run, panel, rows) for run, name, panel, rows in every if name == family]
        run, panel, _ = own[0]
        cells = {(run.model, label, s.name): s for run, _, rows in own for label, s in rows}
        most = largest(list(cells.values()))
        units = {score.name: score.unit for score in cells.values()}
        measures = run.metrics[family].by_name
        tables = []
        for label in dict.fromkeys(label for _, label, _ in cells):
            rows = []
            for model in dict.fromkeys(model for model, other, _ in cells if other == label):
                row: list[str | Cell] = [model]
                for name in units:
                    score = cells.get((model, label, name))
                    # Without a difference from no bias beyond chance there is no colour.
                    shade = _step(score.value, most[name]) if score is not None and score.found else ""
                    row.append(Cell(*favoured(score, panel.sides), shade=shade))
                rows.append(row)
            columns: list[str | Cell] = ["model", *(Cell(name, measures[name].title) for name in units)]
            table = Table(caption=label, columns=columns, align="l" + "r" * len(units), rows=rows)
            tables.append(as_html(table, "panel"))
        units_told = "; ".join(f"{name} {unit}" for name, unit in units.items())
        yield {"family": family, "sides": panel.sides, "tables": tables, "units": units_told}


def _step(number: float, most: float) -> str:
    """Return the class of a number's colour on a scale that ends at `most`; empty for 0."""
    if not number:
        return ""
    step = math.ceil(SHADES * abs(number) / most) if most else 1
    return f"{'above' if number > 0 else 'below'}-{min(SHADES, max(1, step))}"


def speaker_panels(comparison: Comparison) -> Iterator[dict[str, Any]]:
    """Yield a table with the scores of single speakers, the largest first, for each model and task."""
    for run in comparison.runs:
        for task, rows in speakers_of(run).items():
            name, target = rows[0][1].name, rows[0][1].target
            tested = [score for _, score in rows if score.defined and math.isfinite(score.q)]
            missing = sum(not score.defined for _, score in rows)
            table = Table(
                caption=f"{run.model}, {task}: {name} by speaker",
                columns=("speaker", name, "interval", "p cluster", "q", "used", "undefined"),
                align="lrrrrrl",
                rows=[
                    [
                        *(label, score_value(s.value, s.unit) + marked(s)),
                        *(score_interval(s.ci_low, s.ci_high, s.unit), p_value(s.p_cluster), p_value(s.q)),
                        *(f"{s.coverage.used} of {s.coverage.requested}", s.undefined or ""),
                    ]
                    for label, s in rows
                ],
            )
            yield {
                "caption": (
                    f"{run.model}, {task}: {sum(s.found for s in tested)} of {len(tested)} tested speakers differ "
                    f"from {target:g} beyond chance (q < 0.05; a speaker's q is never below that of the task)"
                    + (f"; {missing} have no score." if missing else ".")
                    + "".join(f" {line}." for line in untold_lines([score for _, score in rows]))
                ),
                "table": as_html(table),
            }


def heat_maps_in_page(comparison: Comparison) -> Iterator[dict[str, Any]]:
    """Yield the findings per category and identity of every task with counts as a table, and the strongest of them.

    A cell shows their number and the number that survive q; one that is not known shows a dash, never 0. All models of
    a task share one scale, so that a colour means the same in each table.
    """
    maps = {run.model: heat_maps(run) for run in comparison.runs}
    most: dict[str, float] = {}
    for found in maps.values():
        for task, (_, rows) in found.items():
            most[task] = max(most.get(task, 1.0), *(float(row["count"] or 0) for row in rows))
    for run in comparison.runs:
        for task, (panel, rows) in maps[run.model].items():
            identities = list(dict.fromkeys(str(row["identity"]) for row in rows))
            cells = {
                (str(row["category"]), str(row["identity"])): Cell(
                    f"{row['count']} ({row['surviving_q']})", shade=_step(row["count"], most[task])
                )
                for row in rows
                if row["count"] is not None
            }
            table = Table(
                caption=f"{run.model}, {task}",
                columns=["category", *identities],
                align="l" + "r" * len(identities),
                rows=[
                    [category, *(cells.get((category, identity), DASH) for identity in identities)]
                    for category in dict.fromkeys(str(row["category"]) for row in rows)
                ],
                notes=[f"{panel.caption}."],
            )
            top = as_html(_strongest(run, task, panel)) if panel.top else ""
            yield {"table": as_html(table, "panel"), "top": top}


def _strongest(run: ComparedRun, task: str, panel: Panel) -> Table:
    rows = [r for r in read_records(run.folder, family_of(task), panel.top, run.annotator) or () if r["task"] == task]
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
