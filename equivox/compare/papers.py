"""The tables of a paper, filled from finished runs: measured numbers beside published ones.

A cell whose number was not measured says why: it is never 0, and never empty without a reason. All numbers are read
from the runs' stored files; nothing is scored again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import zip_longest
from typing import Any

from equivox.annotate import evaluation_of
from equivox.compare.paper_runs import Number, OpenedRun, TableRun, average
from equivox.configs.published import PublishedPaper, PublishedTable, Source, published_paper
from equivox.core.errors import UsageError
from equivox.core.lazy import pandas
from equivox.core.notes import Note, note_about
from equivox.core.plain import split_by
from equivox.core.scores import LEVEL, NAN, family_of

__all__ = ["FilledTable", "Number", "TableRun", "fill_tables"]

DASH = "—"
"""The beginning of a remark that says why something has no number."""
_MARKS = {"": {}, "ends": {0: "smallest", -1: "largest"}, "lowest": {0: "lowest", 1: "second lowest"}}


@dataclass(frozen=True)
class FilledTable:
    """One table of a paper with its cells, row by row; `remarks` say what to know of the runs.

    The columns of `cells`: the labels `block`, `row`, `column`; `model`, `task`, `annotators` and the `source` of the
    number; `published`, `stars_published`, `p_published` as printed; the fields of `Number`; `deviation` (measured −
    published; NaN without both, and for a total that is relative to another cohort); `stars_found` by q (below 0.05,
    0.001; None without a test); `favours` (the group that the number favours, where the paper prints magnitudes);
    `extreme` ("largest", "smallest", "lowest" or "second lowest" of its column and block, which is no test); `remarks`.
    A table of findings has a row per rank, entries in place of numbers, and says whether they are `in_paper`.
    """

    declared: PublishedTable
    paper: str
    cells: pandas.DataFrame
    remarks: Sequence[Note | str] = ()


def fill_tables(paper: str, runs: Sequence[TableRun]) -> list[FilledTable]:
    """Return the tables of a paper as `runs` fill them, cell by cell.

    `paper` is the name of a packaged file (`equivox.configs.published.published_names`) or a YAML file of that form.
    Models that the paper does not have follow as further rows, without a published number. UsageError for an unknown
    paper, and if two of the runs have the same task of the same model.
    """
    declared = published_paper(paper)
    opened = [OpenedRun(run, declared.stand_ins) for run in runs]
    return [_fill(table, declared, opened) for table in declared.tables]


def _fill(table: PublishedTable, paper: PublishedPaper, runs: Sequence[OpenedRun]) -> FilledTable:
    declared = list(table.cells())
    beside = [other for other in paper.tables if other is table or (table.findings and other.findings)]
    named = {cell["source"].model for other in beside for cell in other.cells()}
    new = {run.label: run for run in runs if not any(map(run.is_of, named))}
    cells = declared + [cell for model in new for cell in _cells_of_new(model, declared, runs)]
    blocks = list(dict.fromkeys(cell["block"] for cell in cells))
    cells.sort(key=lambda cell: blocks.index(cell["block"]))
    tasks = dict.fromkeys(cell["source"].task_name for cell in declared)
    departures = cache(lambda run: run.departures(tasks))
    for cell in cells:
        cell |= _measure(cell["source"], table.findings, paper.annotator, runs, departures)
    cohorts = _fill_totals(cells)
    lines: list[Note | str] = [f"{DASH} {reason}" for reason in _reasons(cells, len(table.columns))]
    nothing = f"nothing was measured for {', '.join(dict.fromkeys(map(family_of, tasks)))}"
    shown = {cell["model"] for cell in cells}
    lines += [f"{DASH} {model}: {run.undefined or nothing}" for model, run in new.items() if model not in shown]
    lines += [f"{cell['model']}: {line}" for cell in cells for line in cell["remarks"]]
    weak = [((cell["model"], why), cell["column"]) for cell in cells for why in cell["weak"]]
    for (model, why), group in split_by(weak, lambda entry: entry[0]).items():
        columns = ", ".join(dict.fromkeys(column for _, column in group))
        lines.append(note_about(f"{model}, {columns}", why))
    if table.findings:
        cells, cohorts = _split_by_rank(cells)
    _complete(cells)
    return FilledTable(
        table, paper.source, pandas.DataFrame(cells, dtype=object), list(dict.fromkeys([*lines, *cohorts]))
    )


def _cells_of_new(model: str, declared: Sequence[Mapping[str, Any]], runs: Sequence[OpenedRun]) -> list[dict[str, Any]]:
    """Return the cells of a model that the paper does not have, in the rows or blocks of which it was asked a task."""
    cells: list[dict[str, Any]] = []
    for cell in declared:
        others = cell["block_of_others"]
        label = {"row": model} if others is None else {"block": f"{model}, {others}" if others else model}
        source = cell["source"].model_copy(update={"model": model})
        fresh = {**cell, **label, "source": source, "published": None, "stars_published": None, "p_published": None}
        if fresh not in cells:
            cells.append(fresh)
    together = split_by(cells, lambda cell: (cell["block"], cell["block_of_others"] is None and cell["row"]))
    present = [group for group in together.values() if any(run.has(cell["source"]) for run in runs for cell in group)]
    return [cell for group in present for cell in group]


def _measure(
    source: Source,
    findings: str,
    expected: str,
    runs: Sequence[OpenedRun],
    departures: Callable[[OpenedRun], Sequence[str]],
) -> dict[str, Any]:
    """Return the columns of a cell that come from the run that has its task."""
    columns: dict[str, Any] = {"model": source.model, "task": source.task_name, "annotators": (), "remarks": ()}
    run = "a total" if source.cohort_total else _run_of(runs, source)
    if isinstance(run, str):
        run = Number(undefined=run)
    if isinstance(run, Number):
        return columns | vars(run)
    annotators = run.annotators(source.annotator)
    if findings:
        number = run.findings(source, findings, annotators[0])
    else:
        number = average({name: run.number(source, name) for name in annotators})
    expected = source.annotator or expected
    others = [name for name in annotators if expected and evaluation_of(name)[0] != expected]
    remarks = [*departures(run)]
    remarks += [f"annotated by {', '.join(others)}, in the paper by {expected}"] if others else []
    remarks += run.doubts(source.task_name, annotators)
    return columns | vars(number) | {"annotators": tuple(annotators), "remarks": tuple(remarks), "run": run}


def _run_of(runs: Sequence[OpenedRun], source: Source) -> OpenedRun | Number:
    """Return the run that has the task of a cell, or a number that says why there is none."""
    of_model = [run for run in runs if run.is_of(source.model)]
    if not of_model:
        return Number(undefined=f"no run of {source.model}", lacks="run")
    if all(run.undefined is not None for run in of_model):
        return Number(undefined=str(of_model[0].undefined))
    fitting = [run for run in of_model if run.has(source)]
    if source.setting:
        fitting = [run for run in fitting if run.run.setting == source.setting] or fitting
    if not fitting:
        setting = f" in the setting {source.setting}" if source.setting else ""
        return Number(undefined=f"{source.task_name} was not asked{setting}", lacks="task")
    if len(fitting) > 1:
        folders = ", ".join(str(run.folder) for run in fitting)
        raise UsageError(f"{len(fitting)} runs of {source.model} have {source.task_name}: {folders}; give one")
    return fitting[0]


def _reasons(cells: Sequence[Mapping[str, Any]], width: int) -> list[str]:
    """Return why cells have no number; rows without any number for one reason share a line."""
    models: dict[str, None] = {}
    rows: dict[tuple[str, str], list[str]] = {}
    for cell in cells:
        reason = cell["undefined"] or ""
        if cell["lacks"] == "run":
            models[cell["model"]] = None
        elif reason:
            row = ", ".join(filter(None, (cell["block"], cell["row"])))
            # The cells of one row name one task each.
            rows.setdefault(("was not asked" if cell["lacks"] == "task" else reason, row), []).append(cell["column"])
    lines = [f"no run of {', '.join(models)}"] if models else []
    # A row that lacks some of its columns has a line of its own.
    lines += [
        f"{row}, {', '.join(columns)}: {reason}" for (reason, row), columns in rows.items() if len(columns) < width
    ]
    whole = [key for key, columns in rows.items() if len(columns) == width]
    for reason, keys in split_by(whole, lambda key: key[0]).items():
        lines.append(f"{'; '.join(row for _, row in keys)}: {reason}")
    return lines


def _fill_totals(cells: Sequence[dict[str, Any]]) -> list[str]:
    """Fill the totals that are relative to the models of a block, and return what to know of them."""
    lines = []
    every = [cell for cell in cells if cell["source"].cohort_total]
    for (block, column), totals in split_by(every, lambda cell: (cell["block"], cell["column"])).items():
        parts = [cell for cell in cells if cell["block"] == block and cell["source"].score]
        members: dict[str, list[dict[str, Any]]] = {}
        lacking: dict[str, str] = {}
        for row, group in split_by(parts, lambda cell: cell["row"]).items():
            if missing := [cell for cell in group if cell["undefined"] is not None]:
                some = f"no value for {', '.join(cell['column'] for cell in missing)}"
                lacking[row] = missing[0]["undefined"] if len(missing) == len(group) else some
            else:
                members[row] = group
        metrics = [metric for group in members.values() for c in group if (metric := c["run"].metric(c["task"]))]
        if not metrics or metrics[0].cohort is None:
            for cell in totals:
                cell["undefined"] = lacking.get(cell["row"], "the metric of the run has no total")
            continue
        alone, published = len(members) == 1, totals[0]["source"].cohort
        # A measured model may be in the published cohort as well.
        values = {
            f"{row} (measured)": {c["source"].score: c["measured"] for c in group} for row, group in members.items()
        }
        cohort = metrics[0].cohort.totals(values, (published or None) if alone else None, False)
        comparable = not alone and set(members) == {cell["row"] for cell in totals if cell["published"] is not None}
        for cell in totals:
            group = members.get(cell["row"], [])
            total = cohort.total.get(f"{cell['row']} (measured)", NAN)
            undefined = lacking.get(cell["row"]) or cohort.undefined.get(f"{cell['row']} (measured)")
            cell["undefined"] = undefined or ("the total is not a number" if math.isnan(total) else None)
            if group:
                cell |= {
                    "measured": NAN if cell["undefined"] else total,
                    "evaluations": max(part["evaluations"] for part in group),
                    "comparable": comparable,
                    "annotators": group[0]["annotators"],
                    "remarks": group[0]["remarks"],
                }
        beside = published if alone and published else f"{len(members)} measured models"
        where = f"{f'{block}: ' if block else ''}{column} is relative to {beside}{' and' if alone else ':'}"
        other = "" if comparable else "; the paper's cohort is another, so that nothing can be subtracted"
        lines.append(f"{where} {', '.join(members)}{other}")
    return lines


def _split_by_rank(cells: Sequence[Mapping[str, Any]]) -> tuple[list[dict[str, Any]], list[str]]:
    """Return a cell per rank of each list of findings, and how many of them are in the paper's."""
    ranked, lines = [], []
    for cell in cells:
        published, entries = cell["published"] or [], [] if cell["undefined"] else cell["measured"]
        if entries:
            known = sum(entry in published for entry in entries)
            lines.append(f"{cell['block']}, {cell['column']}: {known} of the {len(entries)} are in the paper's list")
        for rank, (printed, entry) in enumerate(zip_longest(published, entries or [None]), start=1):
            ranked.append({**cell, "row": str(rank), "published": printed, "measured": entry})
            ranked[-1]["in_paper"] = None if entry is None else entry in published
            ranked[-1]["undefined"] = cell["undefined"] or ("no finding at this rank" if entry is None else None)
    return ranked, lines


def _complete(cells: Sequence[dict[str, Any]]) -> None:
    """Add the columns that follow from the numbers of a cell and of those beside it."""
    for cell in cells:
        measured, sides = cell["measured"], cell["source"].sides
        number = isinstance(measured, float) and math.isfinite(measured)
        subtracted = number and cell["published"] is not None and cell.pop("comparable", True)
        cell["deviation"] = measured - cell["published"] if subtracted else NAN
        cell["stars_found"] = None if math.isnan(cell["q"]) else (cell["q"] < LEVEL) + (cell["q"] < 0.001)
        cell["favours"] = sides[measured < 0] if number and sides and measured != 0 else ""
        cell["extreme"] = ""
    for group in split_by(cells, lambda cell: (cell["block"], cell["column"])).values():
        marks = _MARKS[group[0]["source"].marks]
        known = sorted({cell["measured"] for cell in group if marks and math.isfinite(cell["measured"])})
        for position, mark in marks.items() if len(known) > 1 else ():
            for cell in group:
                cell["extreme"] = mark if cell["measured"] == known[position] else cell["extreme"]
