"""What a notebook shows of a run: its first screen and its scores as HTML."""

from __future__ import annotations

from pathlib import Path

from markupsafe import Markup

from equivox.compare.runs import open_comparison
from equivox.core.text import visible
from equivox.report.details import list_score_tables
from equivox.report.safe_page import kept_apart
from equivox.report.table import as_html
from equivox.report.verdict import write_screen


def run_html(folder: Path, annotator: str | None = None) -> str:
    """Return the first screen of a run and all its scores as HTML without scripts.

    The scores are those by `annotator`, None: the run's own. The tables are folded.
    """
    runs = open_comparison([folder], annotator=annotator).runs
    tables = Markup("").join(as_html(table) for table in list_score_tables(runs))
    page = Markup('<div class="equivox"><pre>{}</pre><details><summary>all numbers</summary>{}</details></div>')
    return kept_apart(visible(page.format(write_screen(runs), tables)))
