"""The tables of a paper as finished runs fill them: for a terminal, as CSV and as LaTeX."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

from equivox.compare.published import ReproducedCell, ReproducedTable, TableRun, reproduced
from equivox.compare.published_lists import ReproducedList, reproduced_lists
from equivox.core.files import write_text
from equivox.core.plain import split_by
from equivox.report.numbers import DASH
from equivox.report.table import Cell, Content, Table, Weight, as_csv, as_latex

NOTE = (
    "each cell: measured, then the published number and measured - published; ±: standard deviation over evaluations; "
    "stars of a\nmeasured number: q < 0.05 and q < 0.001, of a published one: the paper's own test; "
    "a row without published numbers is a model\nthat the paper does not have; max, min: of the measured numbers, "
    "which is no test"
)


CELLS_NOTE = (
    "±: standard deviation over evaluations; deviation: measured - published; estimate and interval as in the run's "
    "scores;\n* q < 0.05, ** q < 0.001, of a published number by the paper's own test; max, min: of the measured "
    "numbers, which is no test"
)


UP, DOWN = "▲", "▼"
P_NOTE = (
    "in brackets: p by the paper's own test; that of a mean takes the evaluations for independent samples; the scores "
    "of the run have a p that does not"
)
_WEIGHTS: dict[str, Weight] = {"lowest": "bold", "second lowest": "underlined"}


def cell_tables(tables: Sequence[ReproducedTable]) -> list[Table]:
    """Return the tables with a row per cell, for a terminal: those of the models that have a run, without figures."""
    return [_cells(table) for table in tables if not table.draw]


def write_tables(paper: str, runs: Sequence[TableRun], folder: Path) -> list[Path]:
    """Write the tables and figures of a paper as `runs` fill them, and return the files.

    Each has a CSV file with a row per cell and all numbers; a table has a LaTeX file in the layout of the paper, a
    figure an SVG file. Nothing is written if one cannot be made; each file is whole or absent. Raises as
    `equivox.compare.published.reproduced`.
    """
    from equivox.report.drawing import rendered
    from equivox.report.published_figures import draw_published

    texts: dict[Path, str] = {}
    for name, own in split_by(reproduced_lists(paper, runs), lambda one: one.table).items():
        texts[folder / f"{name}.csv"] = as_csv(list_records(own))
        texts[folder / f"{name}.tex"] = as_latex([list_table(own)])
    for table in reproduced(paper, runs):
        texts[folder / f"{table.name}.csv"] = as_csv(records(table))
        if table.draw:
            texts[folder / f"{table.name}.svg"] = rendered(draw_published(table), "svg").decode()
        else:
            texts[folder / f"{table.name}.tex"] = as_latex([published_table(table)])
    for path, text in texts.items():
        write_text(path, text)
    return list(texts)


def list_records(lists: Sequence[ReproducedList]) -> list[dict[str, Any]]:
    """Return a row of plain values per rank of each list; None where one of the two has no entry of this rank."""
    return [
        {
            "table": one.table,
            "block": one.block,
            "column": one.column,
            "rank": rank,
            "published": published,
            "measured": measured,
            "in_paper": None if measured is None else measured in one.published,
            "undefined": one.undefined or "",
        }
        for one in lists
        for rank, (published, measured) in enumerate(zip_longest(one.published, one.measured), start=1)
    ]


def list_table(lists: Sequence[ReproducedList]) -> Table:
    """Return a table that lists findings: a row per rank, the measured entry with the published one below."""
    columns = list(dict.fromkeys(one.column for one in lists))
    rows: list[list[Content]] = []
    for block, own in split_by(lists, lambda one: one.block).items():
        pairs = zip_longest(*(list(zip_longest(one.measured, one.published)) for one in own), fillvalue=(None, None))
        for rank, cells in enumerate(pairs, start=1):
            rows.append([block, str(rank), *(Cell(measured or DASH, printed or "") for measured, printed in cells)])
    missing = dict.fromkeys(f"{DASH} {one.block}, {one.column}: {one.undefined}" for one in lists if one.undefined)
    shared = [
        f"{one.block}, {one.column}: {len(one.shared)} of the {len(one.measured)} are in the paper's list"
        for one in lists
        if one.measured
    ]
    return Table(
        caption=lists[0].caption,
        columns=["", "rank", *columns],
        align="lr" + "l" * len(columns),
        rows=rows,
        grouped=1,
        remarks=[*missing, *shared],
        notes=["each cell: what was found, and what the paper has in this place; a dash where nothing was"],
    )


_FIELDS = (
    *("block", "row", "column", "model", "task", "annotators", "evaluations", "published", "stars_published"),
    *("measured", "deviation", "spread", "estimate", "low", "high", "q", "p", "p_published", "favours", "stars_found"),
    *("extreme", "undefined", "remarks"),
)
"""The columns of a row: fields of a cell, and whom its number favours."""


def records(table: ReproducedTable) -> list[dict[str, Any]]:
    """Return a row of plain values per cell; NaN and None where there is no number."""
    rows = []
    for cell in table.cells:
        texts = {
            "annotators": " ".join(cell.annotators),
            "favours": _favoured(cell.measured, cell),
            "undefined": cell.undefined or "",
            "remarks": " | ".join(cell.remarks),
        }
        values = {name: texts[name] if name in texts else getattr(cell, name) for name in _FIELDS}
        rows.append({"table": table.name, **values, "source": table.source})
    return rows


def published_table(table: ReproducedTable) -> Table:
    """Return a table of a paper in its layout; a cell without a measured number is a dash, the remarks say why."""
    blocks = any(cell.block for cell in table.cells)
    rows: list[list[Content]] = []
    for cells in table.rows():
        labels = [cells[0].block, cells[0].row] if blocks else [cells[0].row]
        rows.append([*labels, *(_content(cell) for cell in cells)])
    names = ["", ""] if blocks else [""]
    return Table(
        caption=table.caption,
        columns=[*names, *table.columns],
        align="l" * len(names) + "r" * len(table.columns),
        rows=rows,
        grouped=int(blocks),
        remarks=table.remarks,
        notes=[NOTE, *_notes(table)],
    )


def _notes(table: ReproducedTable) -> list[str]:
    """Return what the arrows of a table mean, and what its p-values are."""
    sides = dict.fromkeys(cell.sides for cell in table.cells if cell.sides)
    lines = [f"{UP} favours {first}, {DOWN} favours {second}; a deviation has its sign" for first, second in sides]
    return [*lines, P_NOTE] if any(cell.with_p for cell in table.cells) else lines


def _cells(table: ReproducedTable) -> Table:
    rows = [
        [
            *(cell.block, cell.row, cell.column, _measured(cell) + _word(cell), _published(cell)),
            _deviation(cell) or DASH,
            _number(cell.estimate, cell.places),
            _interval(cell),
        ]
        for cells in table.rows()
        if any(cell.annotators for cell in cells)
        for cell in cells
    ]
    if not any(cell.block for cell in table.cells):
        rows = [row[1:] for row in rows]
    names = ["", "", "", "measured", "published", "deviation", "estimate", "interval"]
    width = len(rows[0]) if rows else len(names)
    return Table(
        caption=table.caption,
        columns=names[-width:],
        align="l" * (width - 5) + "r" * 5,
        rows=rows,
        grouped=width - 6,
        remarks=table.remarks,
        notes=[CELLS_NOTE, *_notes(table)],
    )


def _content(cell: ReproducedCell) -> Cell:
    """Return the measured number, and beside it the published one and the deviation."""
    published = [_published(cell)] if math.isfinite(cell.published) else []
    below = "; ".join(filter(None, [*published, _deviation(cell)]))
    weight = _WEIGHTS.get(cell.extreme, "")
    return Cell(_measured(cell) + ("" if weight else _word(cell)), below, weight=weight)


def _word(cell: ReproducedCell) -> str:
    """Return the mark of a number as a word."""
    short = {"largest": "max", "smallest": "min"}
    return f" {short.get(cell.extreme, cell.extreme)}" if cell.extreme else ""


def _measured(cell: ReproducedCell) -> str:
    text = _magnitude(cell.measured, cell)
    if math.isfinite(cell.spread):
        text += f" ± {_number(cell.spread, cell.places)}"
    # Numbers whose p is shown have no stars.
    return text + (_beside(cell.p) if cell.with_p else "*" * (cell.stars_found or 0))


def _published(cell: ReproducedCell) -> str:
    text = _magnitude(cell.published, cell)
    return text + (_beside(cell.p_published) if cell.with_p else "*" * (cell.stars_published or 0))


def _beside(p: float) -> str:
    return f" ({_number(p, 3)})" if math.isfinite(p) else ""


def _magnitude(value: float, cell: ReproducedCell) -> str:
    """Return a number; where the paper prints magnitudes, with an arrow for its sign."""
    favoured = _favoured(value, cell)
    if not favoured:
        return _number(value, cell.places)
    return f"{_number(abs(value), cell.places)} {UP if favoured == cell.sides[0] else DOWN}"


def _favoured(value: float, cell: ReproducedCell) -> str:
    """Return whom a number favours; empty for 0, without a number, and where numbers favour nobody."""
    if not cell.sides or not math.isfinite(value) or value == 0:
        return ""
    return cell.sides[0] if value > 0 else cell.sides[1]


def _deviation(cell: ReproducedCell) -> str:
    """Return the deviation with its sign; empty if there is none."""
    return f"{_rounded(cell.deviation, cell.places):+.{cell.places}f}" if math.isfinite(cell.deviation) else ""


def _interval(cell: ReproducedCell) -> str:
    if not (math.isfinite(cell.low) and math.isfinite(cell.high)):
        return DASH
    return f"{_number(cell.low, cell.places)} to {_number(cell.high, cell.places)}"


def _number(value: float, places: int) -> str:
    """Format a number with the decimals of the paper; a missing one is a dash.

    >>> _number(46.774, 2), _number(-0.0001, 2), _number(float("nan"), 2), _number(277, 0)
    ('46.77', '0.00', '—', '277')
    """
    return f"{_rounded(value, places):.{places}f}" if math.isfinite(value) else DASH


def _rounded(value: float, places: int) -> float:
    # Without this a small negative number would be printed as -0.00.
    return round(value, places) + 0.0
