"""A self-contained HTML page of a heading, lines, figures and tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING

from equivox.core.version import __version__
from equivox.report.figures import figure_in_page
from equivox.report.safe_page import render_page
from equivox.report.table import Table, as_html

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Shown:
    """A figure with the text that stands for it and its caption."""

    figure: Figure
    told: str
    caption: str


def tables_page(
    *,
    title: str,
    heading: str,
    tables: Sequence[Table],
    warnings: Sequence[str] = (),
    lines: Sequence[str] = (),
    figures: Sequence[Shown] = (),
) -> str:
    """Return the page; `warnings` stand out, and `lines` follow them."""
    page = resources.files("equivox.report.page")
    return render_page(
        resources.files(__package__).joinpath("tables.html.j2"),
        style=page.joinpath("report.css"),
        script=page.joinpath("report.js"),
        version=__version__,
        title=title,
        heading=heading,
        warnings=warnings,
        lines=lines,
        figures=[{"svg": figure_in_page(one.figure), "told": one.told, "caption": one.caption} for one in figures],
        tables=[as_html(table, "wide") for table in tables],
    )
