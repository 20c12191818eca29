"""The figures of a paper as finished runs fill them: a panel per block, a bar or bubble per number."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from equivox.compare.published import ReproducedCell, ReproducedTable
from equivox.report.drawing import INK, PALETTE, drawing, look
from equivox.report.figures import draw_triangles, grouped_bars
from equivox.report.numbers import DASH, shortened
from equivox.statistics import correlations

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LARGEST, _SMALLEST = 220.0, 12.0
"""The areas of bubbles for the smallest p and for a p of 1, in square points."""

Cells = Mapping[tuple[str, str], ReproducedCell]
"""The cells of a panel by row and column."""


def draw_published(table: ReproducedTable) -> Figure:
    """Draw a figure of a paper; a row without a measured number is a dash.

    Bars stand side by side or are stacked, in the order of the columns. Bubbles stand at their number in the row of
    their column; they are larger for a smaller p, and open where p is not below 0.05.
    """
    panels: dict[str, dict[tuple[str, str], ReproducedCell]] = {}
    for cell in table.cells:
        panels.setdefault(cell.block, {})[cell.row, cell.column] = cell
    if table.draw == "correlations":
        return _correlations(panels, table.columns)
    across = min(2, len(panels))
    down = math.ceil(len(panels) / across)
    rows = max(len({row for row, _ in cells}) for cells in panels.values())
    lines = len(table.columns) if table.draw == "bubbles" else rows * (1 if table.draw == "stacked" else 1.6)
    with drawing(0.8 + down * (0.5 + 0.24 * lines), shape=(down, across)) as (figure, every):
        for axes, (label, cells) in zip(every, panels.items(), strict=False):
            {"bars": _bars, "stacked": _stacked, "bubbles": _bubbles}[table.draw or "bars"](axes, cells, table.columns)
            axes.set_title(label, loc="left", fontsize=9, color=INK)
        for axes in every[len(panels) :]:
            axes.set_visible(False)
        figure.supxlabel(table.unit, fontsize=9, color=INK)
        handles, labels = every[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper right", ncols=min(6, len(labels)), frameon=False, fontsize=8)
        return figure


def _names(cells: Cells) -> list[str]:
    return list(dict.fromkeys(row for row, _ in cells))


def _set_rows(axes: Any, names: Sequence[str], cells: Cells) -> None:
    """Name the rows of a panel; a row without a number has a dash."""
    for place, name in enumerate(names):
        if all(math.isnan(cell.measured) for (row, column), cell in cells.items() if name in (row, column)):
            axes.text(0, place, f" {DASH}", va="center", fontsize=7)
    axes.set_yticks(range(len(names)), [shortened(name, 24) for name in names])
    axes.set_ylim(len(names) - 0.5, -0.5)


def _bars(axes: Any, cells: Cells, columns: Sequence[str]) -> None:
    names = _names(cells)
    values = {column: [cells[name, column].measured for name in names] for column in columns}
    grouped_bars(axes, [(column, [0 if math.isnan(v) else v for v in own]) for column, own in values.items()])
    axes.axvline(0, color=INK, linewidth=0.8)
    _set_rows(axes, names, cells)


def _stacked(axes: Any, cells: Cells, columns: Sequence[str]) -> None:
    names = _names(cells)
    left = [0.0] * len(names)
    for number, column in enumerate(columns):
        values = [cells[name, column].measured for name in names]
        widths = [0 if math.isnan(value) else value for value in values]
        axes.barh(range(len(names)), widths, 0.8, left=left, label=column, **look(number))
        left = [sum(both) for both in zip(left, widths, strict=True)]
    _set_rows(axes, names, cells)


def _bubbles(axes: Any, cells: Cells, columns: Sequence[str]) -> None:
    for number, name in enumerate(_names(cells)):
        found = [(place, cells[name, column]) for place, column in enumerate(columns)]
        known = [(place, cell) for place, cell in found if math.isfinite(cell.measured)]
        colour = PALETTE[number % len(PALETTE)]
        axes.scatter(
            [cell.measured for _, cell in known],
            [place for place, _ in known],
            [_area(cell.p) for _, cell in known],
            edgecolors=colour,
            facecolors=[colour if cell.p < 0.05 else "none" for _, cell in known],
            alpha=0.7,
        )
        # A mark of one size for the legend.
        axes.scatter([], [], 40, facecolors=colour, edgecolors=colour, label=shortened(name, 24))
    axes.axvline(0, color=INK, linewidth=0.8)
    _set_rows(axes, columns, cells)


def _area(p: float) -> float:
    """Return the area of a bubble: that of p = 1 and of an unknown p is the smallest, that of p = 0.0001 the largest.

    >>> _area(1.0), _area(0.01), _area(0.0), _area(math.nan)
    (12.0, 116.0, 220.0, 12.0)
    """
    if math.isnan(p):
        return _SMALLEST
    return _SMALLEST + (_LARGEST - _SMALLEST) * min(1.0, -math.log10(max(p, 1e-4)) / 4)


def _correlations(panels: Mapping[str, Cells], columns: Sequence[str]) -> Figure:
    """Draw how the columns of each block correlate over its rows; a dash where fewer than three rows have both."""
    found = {
        label: correlations({column: [cells[name, column].measured for name in _names(cells)] for column in columns})
        for label, cells in panels.items()
    }
    return draw_triangles({label: {(pair.first, pair.second): pair.r for pair in own} for label, own in found.items()})
