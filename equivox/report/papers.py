"""The tables and figures of a paper as finished runs fill them: for a terminal, as CSV, LaTeX and SVG."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from equivox.compare.papers import FilledTable
from equivox.core.files import write_text
from equivox.core.plain import split_by
from equivox.core.scores import LEVEL
from equivox.report.notes import write_note
from equivox.report.numbers import DASH, shortened
from equivox.report.table import Cell, Content, Table, Weight, as_csv, as_latex
from equivox.statistics import correlations

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NOTE = (
    "in a cell, in this order: measured, published, measured - published; ±: standard deviation over evaluations; "
    "estimate and interval as\nin the run's scores; * q < 0.05, ** q < 0.001, of a published number by the paper's own "
    "test; a row without published numbers is a\nmodel that the paper does not have; max, min: of the measured "
    "numbers, which is no test"
)
FINDINGS_NOTE = "each cell: the finding, and that of the paper at this rank; a dash where there is none"
P_NOTE = (
    "in brackets: p by the paper's own test; that of a mean takes the evaluations for independent samples; the scores "
    "of the run have a p that does not"
)
_COLUMNS = (
    *("block", "row", "column", "model", "task", "annotators", "evaluations", "published", "stars_published"),
    *("measured", "deviation", "spread", "estimate", "low", "high", "q", "p", "p_published", "favours", "stars_found"),
    *("extreme", "undefined", "remarks"),
)
_WEIGHTS: dict[str, Weight] = {"lowest": "bold", "second lowest": "underlined"}
_WORDS = {"largest": "max", "smallest": "min"}


def write_tables(tables: Sequence[FilledTable], folder: Path) -> list[Path]:
    """Write the tables and figures of a paper, and return the files.

    Each has a CSV file with a row per cell and all numbers; a table has a LaTeX file in the layout of the paper, a
    figure an SVG file. Nothing is written if one cannot be made; each file is whole or absent.
    """
    from equivox.report.drawing import rendered

    texts: dict[Path, str] = {}
    for table in tables:
        path = folder / f"{table.declared.name}.csv"
        texts[path] = as_csv(table_records(table))
        if table.declared.draw:
            texts[path.with_suffix(".svg")] = rendered(draw_table(table), "svg").decode()
        else:
            texts[path.with_suffix(".tex")] = as_latex([paper_table(table)])
    for path, text in texts.items():
        write_text(path, text)
    return list(texts)


def table_records(table: FilledTable) -> list[dict[str, Any]]:
    """Return a row of plain values per cell; NaN and None where there is no number."""
    cells = table.cells.fillna({"undefined": ""})
    cells["remarks"] = cells["remarks"].str.join(" | ")
    if table.declared.findings:
        names = ("block", "column", "row", "published", "measured", "in_paper", "undefined", "remarks")
        cells = cells[list(names)].rename(columns={"row": "rank"})
    else:
        cells["annotators"] = cells["annotators"].str.join(" ")
        cells = cells[list(_COLUMNS)].assign(source=table.paper)
    rows: Any = cells.to_dict("records")
    return [{"table": table.declared.name, **row} for row in rows]


def cell_tables(tables: Sequence[FilledTable]) -> list[Table]:
    """Return the tables with a row per cell, for a terminal: the rows that have a run, without findings and figures."""
    return [_cell_table(table) for table in tables if not (table.declared.draw or table.declared.findings)]


def _cell_table(table: FilledTable) -> Table:
    shown = [cell for cells in _rows(table) if any(cell["annotators"] for cell in cells) for cell in cells]
    first = 0 if any(table.cells["block"]) else 1
    return Table(
        caption=table.declared.caption,
        columns=["", "", "", "measured", "published", "deviation", "estimate", "interval"][first:],
        align="lllrrrrr"[first:],
        rows=[[cell["block"], cell["row"], cell["column"], *format_cell(cell)][first:] for cell in shown],
        grouped=2 - first,
        remarks=[write_note(remark) for remark in table.remarks],
        notes=[NOTE, *_notes(table)],
    )


def paper_table(table: FilledTable) -> Table:
    """Return a table in the layout of the paper; a cell without a measured number is a dash, the remarks say why."""
    findings, first = bool(table.declared.findings), 0 if any(table.cells["block"]) else 1
    rows: list[list[Content]] = []
    for cells in _rows(table):
        by_column = {cell["column"]: _content(cell) for cell in cells}
        contents = [by_column.get(column, DASH) for column in table.declared.columns]
        rows.append([*[cells[0]["block"], cells[0]["row"]][first:], *contents])
    return Table(
        caption=table.declared.caption,
        columns=[*["", "rank" if findings else ""][first:], *table.declared.columns],
        align=("lr" if findings else "ll")[first:] + ("l" if findings else "r") * len(table.declared.columns),
        rows=rows,
        grouped=1 - first,
        remarks=[write_note(remark) for remark in table.remarks],
        notes=[FINDINGS_NOTE] if findings else [NOTE, *_notes(table)],
    )


def _rows(table: FilledTable) -> list[list[dict[str, Any]]]:
    cells: Any = table.cells.to_dict("records")
    return list(split_by(cells, lambda cell: (cell["block"], cell["row"])).values())


def _notes(table: FilledTable) -> list[str]:
    """Return what the arrows of a table mean, and what its p-values are."""
    sides = dict.fromkeys(source.sides for source in table.cells["source"] if source.sides)
    lines = [f"▲ favours {first}, ▼ favours {second}; a deviation has its sign" for first, second in sides]
    return lines + [P_NOTE] * any(source.with_p for source in table.cells["source"])


def _content(cell: dict[str, Any]) -> Cell:
    """Return the measured number or finding, and beside it the published one and the deviation."""
    if "in_paper" in cell:
        return Cell(cell["measured"] or DASH, cell["published"] or "")
    weight = _WEIGHTS.get(cell["extreme"], "")
    measured, published, deviation, *_ = format_cell(cell | {"extreme": ""} if weight else cell)
    return Cell(measured, "; ".join(text for text in (published, deviation) if text != DASH), weight=weight)


def format_cell(cell: dict[str, Any]) -> list[str]:
    """Return the texts of a cell: measured, published, deviation, estimate, interval; a dash without a number."""
    source = cell["source"]

    def format_tested(value: float | None, p: float | None, stars: int | None, spread: float = math.nan) -> str:
        text = format_number(value, source.places, source.sides)
        text += "" if math.isnan(spread) else f" ± {format_number(spread, source.places)}"
        if source.with_p:  # Numbers whose p is shown have no stars.
            return text + f" ({format_number(p, 3)})".replace(f" ({DASH})", "")
        return text + "*" * (stars or 0)

    word = f" {_WORDS.get(cell['extreme'], cell['extreme'])}".rstrip()
    low, high = (format_number(cell[end], source.places) for end in ("low", "high"))
    return [
        format_tested(cell["measured"], cell["p"], cell["stars_found"], cell["spread"]) + word,
        format_tested(cell["published"], cell["p_published"], cell["stars_published"]),
        DASH
        if math.isnan(cell["deviation"])
        else f"{round(cell['deviation'], source.places) + 0.0:+.{source.places}f}",
        format_number(cell["estimate"], source.places),
        DASH if DASH in (low, high) else f"{low} to {high}",
    ]


def format_number(value: float | None, places: int, sides: Sequence[str] = ()) -> str:
    """Format a number with the decimals of the paper; with `sides`, a magnitude with an arrow for its sign.

    >>> format_number(46.774, 2), format_number(-0.0001, 2), format_number(float("nan"), 2), format_number(277, 0)
    ('46.77', '0.00', '—', '277')
    >>> format_number(-0.25, 1, ("male", "female"))
    '0.2 ▼'
    """
    if value is None or not math.isfinite(value):
        return DASH
    arrow = "" if not sides or value == 0 else " ▲" if value > 0 else " ▼"
    # Without + 0.0 a small negative number would be printed as -0.00.
    return f"{round(abs(value) if arrow else value, places) + 0.0:.{places}f}{arrow}"


def draw_table(table: FilledTable) -> Figure:
    """Draw a figure of a paper, a panel per block: bars, or how the columns correlate over the rows.

    A dash stands for a number that was not measured. Where the paper prints a p, bars are open if it is not below 0.05.
    """
    from equivox.report.drawing import INK, PAPER, drawing
    from equivox.report.figures import draw_triangles, grouped_bars

    cells: Any = table.cells.to_dict("records")
    panels = {
        block: split_by(group, lambda cell: cell["column"])
        for block, group in split_by(cells, lambda c: c["block"]).items()
    }
    if table.declared.draw == "correlations":
        triangles = {}
        for block, columns in panels.items():
            numbers = {column: [cell["measured"] for cell in group] for column, group in columns.items()}
            triangles[block] = {(pair.first, pair.second): pair.r for pair in correlations(numbers)}
        return draw_triangles(triangles)
    rows = {block: [cell["row"] for cell in next(iter(columns.values()))] for block, columns in panels.items()}
    across = min(2, len(panels))
    down = math.ceil(len(panels) / across)
    with drawing(0.8 + down * (0.5 + 0.4 * max(map(len, rows.values()))), shape=(down, across)) as (figure, every):
        for axes, (block, columns) in zip(every, panels.items(), strict=False):
            grouped_bars(axes, [(column, [cell["measured"] for cell in group]) for column, group in columns.items()])
            for bars, group in zip(axes.containers, columns.values(), strict=True):
                for bar, cell in zip(bars, group, strict=True):
                    if math.isnan(cell["measured"]):
                        axes.text(0, bar.get_y() + bar.get_height() / 2, f" {DASH}", va="center", fontsize=6)
                    elif cell["source"].with_p and not cell["p"] < LEVEL:
                        bar.set_facecolor(PAPER)
            axes.axvline(0, color=INK, linewidth=0.8)
            axes.set_yticks(range(len(rows[block])), [shortened(row, 24) for row in rows[block]])
            axes.set_ylim(len(rows[block]) - 0.5, -0.5)
            axes.set_title(block, loc="left", fontsize=9, color=INK)
        for axes in every[len(panels) :]:
            axes.set_visible(False)
        figure.supxlabel(table.declared.unit, fontsize=9, color=INK)
        handles, labels = every[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper right", ncols=min(6, len(labels)), frameon=False, fontsize=8)
        return figure
