"""The one kind of table of results, printed to a terminal, as HTML, LaTeX or Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

from markupsafe import Markup, escape

from equivox.core.lazy import pandas
from equivox.core.text import inert_record, visible
from equivox.core.version import __version__
from equivox.report.numbers import DASH
from equivox.report.safe_page import kept_apart

if TYPE_CHECKING:
    from rich.console import Console


Weight = Literal["", "bold", "underlined"]

_GAP = 2
"""Signs between two columns on a terminal."""


@dataclass(frozen=True)
class Cell:
    """A text with a smaller text below; `weight` is the type in print."""

    text: str
    below: str = ""
    weight: Weight = ""

    def __str__(self) -> str:
        """Return the text, followed by the smaller text in parentheses."""
        return f"{self.text} ({self.below})" if self.below else self.text


Content = str | Cell


@dataclass(frozen=True, kw_only=True)
class Table:
    """One table whose numbers are already formatted as text; without rows, its remarks alone.

    Attributes
    ----------
    align
        A letter per column, `l` for text and `r` for numbers.
    grouped
        The number of leading columns that name a group of rows: a terminal omits repeated names, LaTeX separates the
        groups by a line.
    remarks
        Lines about single rows, such as the reason for a missing number; they follow the table.
    notes
        Explanations of the columns; a terminal prints the notes of several tables once, below the last.
    """

    caption: str = ""
    columns: Sequence[Content] = ()
    align: str = ""
    rows: Sequence[Sequence[Content]] = ()
    grouped: int = 0
    remarks: Sequence[str] = ()
    notes: Sequence[str] = ()


def print_tables(console: Console, tables: Iterable[Table]) -> None:
    """Print tables with their remarks, then each note once; of a table without rows, only the remarks are printed.

    A table wider than the console is printed in parts below each other, each with the columns that name its rows; a
    name that all rows of a group's column share is printed once, above.
    """
    from rich.text import Text

    notes: dict[str, None] = {}
    for table in tables:
        if table.caption and (table.rows or table.remarks):
            console.print(Text(table.caption, style="bold"))
        if table.rows:
            _print_rows(console, table)
        for remark in table.remarks:
            style = "yellow" if remark.startswith(DASH) else "dim"
            console.print(Text(f"  {remark}", style=style), soft_wrap=True)  # Remarks may hold commands, to be copied.
        notes |= dict.fromkeys(table.notes)
    for note in notes:
        console.print(Text(note, style="dim"))


def _print_rows(console: Console, table: Table) -> None:
    """Print the rows of a table, in as many parts below each other as the console's width takes."""
    from rich.cells import cell_len, set_cell_size
    from rich.text import Text

    cells = [[visible(str(cell)).replace("\n", " ") for cell in row] for row in [table.columns, *table.rows]]
    turned = zip(zip(*cells, strict=True), table.align, strict=True)
    columns = [_aligned(column) if letter == "r" else list(column) for column, letter in turned]
    names = [list(zip(*(column[1:] for column in columns[: n + 1]), strict=True)) for n in range(table.grouped)]
    for n, beside in enumerate(names):
        columns[n][2:] = ["" if own == above else own[n] for above, own in pairwise(beside)]
    widths = [max(map(cell_len, column)) + _GAP for column in columns]
    n_names = len(table.align) - len(table.align.lstrip("l"))
    naming = list(range(n_names))
    if sum(widths) - _GAP > console.width:
        for n in range(table.grouped):
            if not any(columns[n][2:]):  # One name for all rows, such as that of the only model.
                naming.remove(n)
                console.print(Text(": ".join(filter(None, columns[n][:2])), style="dim"), soft_wrap=True)
    parts = [naming]
    for n in range(n_names, len(columns)):
        if len(parts[-1]) > len(naming) and sum(widths[own] for own in [*parts[-1], n]) - _GAP > console.width:
            parts.append(naming)
        parts[-1] = [*parts[-1], n]
    for part in parts:
        for row in range(len(cells)):
            line = "".join(set_cell_size(columns[n][row], widths[n]) for n in part)[:-_GAP]
            # What is still too wide, such as a long name, is wrapped by the terminal: no digit is lost.
            console.print(Text(line, style="" if row else "dim"), soft_wrap=True)


def _aligned(texts: Sequence[str]) -> list[str]:
    """Return numbers padded so that they align with and without stars; the first text is the heading."""
    from rich.cells import cell_len

    stars = [len(text) - len(text.rstrip("*")) for text in texts]
    padded = [text + " " * (max(stars) - own) for text, own in zip(texts, stars, strict=True)]
    padded[0] = texts[0]
    width = max(map(cell_len, padded))
    return [" " * (width - cell_len(text)) + text for text in padded]


def as_html(table: Table, css: str = "") -> Markup:
    """Return the table, its remarks and notes as HTML without inline styles; the content of cells is escaped.

    The page's style aligns numbers to the right: the class `left-2` marks a table whose first two columns are text,
    `last` one whose last column is text. `css` adds classes to the scrolling box.
    """
    left = len(table.align) - len(table.align.lstrip("l"))
    last = " last" if table.align.endswith("l") else ""
    if not table.rows:
        return _lines(table)
    caption = Markup("<caption>{}</caption>\n").format(table.caption) if table.caption else ""
    head = Markup("").join(Markup('<th scope="col">{}</th>').format(_html(cell)) for cell in table.columns)
    body = Markup("\n").join(_row(row) for row in table.rows)
    grid = Markup("<table>{}<thead><tr>{}</tr></thead>\n<tbody>{}</tbody></table>").format(caption, head, body)
    box = Markup('<div class="scroll left-{}{} {}" tabindex="0" role="region" aria-label="{}">{}</div>')
    return box.format(left, last, css, table.caption, grid) + _lines(table)


def _row(cells: Sequence[Content]) -> Markup:
    others = "".join(f"<td>{_html(cell)}</td>" for cell in cells[1:])
    return Markup(f'<tr><th scope="row">{_html(cells[0])}</th>{others}</tr>')  # its parts are escaped


def _html(cell: Content) -> Markup:
    if isinstance(cell, str):
        return escape(cell)
    return escape(cell.text) + (Markup("<small>{}</small>").format(cell.below) if cell.below else Markup(""))


def _lines(table: Table) -> Markup:
    warn = Markup('<p class="note warn">{}</p>')
    lines = [warn.format(remark.removeprefix(f"{DASH} ")) for remark in table.remarks]
    return Markup("\n").join([*lines, *(Markup('<p class="note">{}</p>').format(note) for note in table.notes)])


_SIGNS = str.maketrans(
    {sign: f"\\{sign}" for sign in "{}$&#%_"}
    | {sign: f"{{{sign}}}" for sign in "[]*-"}
    | {"\\": r"\textbackslash{}", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}", "<": r"\textless{}"}
    | {">": r"\textgreater{}", "|": r"\textbar{}", '"': r"\char34{}", "'": r"\textquotesingle{}"}
    | {"`": r"\textasciigrave{}", "—": "---", "–": "--", "−": r"\ensuremath{-}", "×": r"\ensuremath{\times}"}
    | {"τ": r"\ensuremath{\tau}", "▲": r"\ensuremath{\uparrow}", "▼": r"\ensuremath{\downarrow}"}
    | {"Δ": r"\ensuremath{\Delta}", "↔": r"\ensuremath{\leftrightarrow}"}
)
"""Characters with a meaning in LaTeX: two hyphens make a dash, a bracket or star after a row is read as an option.

The escapes of pandas do not cover brackets, stars, hyphens and quotes.
"""
_MINUS = re.compile(r"(?<![\w-])-(?=\d)")
_PAGE = 40
"""The number of rows that fit on a page."""


def tex(text: str) -> str:
    r"""Return `text` escaped for LaTeX: no character is a command, breaks a line or ends a table.

    >>> print(tex(r"50 % \input{x} a_b $1"))
    50 \% \textbackslash{}input\{x\} a\_b \$1
    """
    plain = _MINUS.sub("−", " ".join(text.split()))
    return "".join(sign for sign in plain if sign.isprintable()).translate(_SIGNS)


def _tex_cell(cell: Content) -> str:
    """Return a cell escaped for LaTeX, its smaller text beside the text."""
    if isinstance(cell, str):
        return tex(cell)
    command = {"bold": r"\textbf", "underlined": r"\underline"}.get(cell.weight)
    text = f"{command}{{{tex(cell.text)}}}" if command else tex(cell.text)
    return rf"{text} {{\scriptsize {tex(cell.below)}}}" if cell.below else text


def as_latex(tables: Iterable[Table]) -> str:
    """Return tables for a paper (booktabs), with remarks and notes below each; empty if no table has a row."""
    texts = [_latex(table) for table in tables if table.rows]
    packages = r"Needs \usepackage{booktabs,longtable}; letters beyond Latin need LuaLaTeX or XeLaTeX."
    return "\n".join([f"% Made by equivox {__version__}. {packages}", *texts]) if texts else ""


def _latex(table: Table) -> str:
    long = len(table.rows) > _PAGE
    # Labels are positions, because names of columns can repeat.
    frame: Any = pandas.DataFrame([list(row) for row in table.rows], columns=range(len(table.columns)), dtype=object)
    style = frame.style.hide(axis="index").format(_tex_cell)
    style = style.format_index(lambda place: tex(str(table.columns[place])), axis="columns")
    text = style.to_latex(
        column_format=table.align,
        caption=tex(table.caption),
        hrules=True,
        environment="longtable" if long else None,
        position_float=None if long else "centering",
    )
    lines = text.splitlines()
    first = len(lines) - 1 - lines[::-1].index(r"\endlastfoot" if long else r"\midrule") + 1
    for n in range(len(table.rows) - 1, 0, -1):
        if table.grouped and table.rows[n][: table.grouped] != table.rows[n - 1][: table.grouped]:
            lines.insert(first + n, r"\midrule")
    notes = [rf"\smallskip{{\footnotesize {tex(note)}}}" for note in (*table.notes, *table.remarks)]
    below = [line for note in notes for line in ("", note)]
    if long:
        return "\n".join([r"{\small", *lines, "}", *below]) + "\n"
    return "\n".join([lines[0], r"\small", *lines[1:-1], *below, lines[-1]]) + "\n"


def as_markdown(tables: Iterable[Table]) -> str:
    """Return tables as Markdown, with remarks and notes below each; no content is a sign of Markdown or HTML."""
    return "\n".join(_markdown(table) for table in tables if table.rows)


def _markdown(table: Table) -> str:
    head = [f"**{caption}**", ""] if (caption := _plain(table.caption)) else []
    rules = [":--" if letter == "l" else "--:" for letter in table.align]
    rows = [[_marked(cell) for cell in row] for row in [table.columns, *table.rows]]
    lines = [f"| {' | '.join(row)} |" for row in [rows[0], rules, *rows[1:]]]
    below = [line for note in (*table.remarks, *table.notes) for line in ("", _line(_plain(note)))]
    return "\n".join([*head, *lines, *below, ""])


def _marked(cell: Content) -> str:
    if isinstance(cell, str):
        return _plain(cell)
    weight = {"bold": "**", "underlined": "_"}.get(cell.weight, "")
    return f"{weight}{_plain(cell.text)}{weight}{f' ({_plain(cell.below)})' if cell.below else ''}"


def _plain(text: str) -> str:
    """Return a text of which no character is a sign of Markdown or HTML."""
    return re.sub(r"([\\`*_{}\[\]<>&|#~!])", r"\\\1", " ".join(visible(text).split()))


def _line(text: str) -> str:
    """Return a line that begins no list, rule or heading."""
    return re.sub(r"^(\d*)([-+=.)])", r"\1\\\2", text)


def as_page(tables: Iterable[Table], title: str) -> str:
    """Return tables as one HTML page without scripts."""
    body = Markup("\n").join(as_html(table) for table in tables)
    style = Markup("<style>table {border-collapse: collapse} td, th {padding: .2rem .6rem; text-align: right}</style>")
    head = Markup('<!doctype html>\n<html lang="en"><meta charset="utf-8"><title>{}</title>{}\n').format(title, style)
    return kept_apart(visible(head + body + Markup("\n</html>\n")))


def as_csv(records: Sequence[Mapping[Any, Any]]) -> str:
    """Return rows of plain values as CSV, with every column that any of them has; None and NaN are empty.

    No cell is a formula to a spreadsheet.
    """
    return str(pandas.DataFrame([inert_record(dict(record)) for record in records], dtype=object).to_csv(index=False))
