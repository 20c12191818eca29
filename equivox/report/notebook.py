"""What a notebook shows of a run: its opening and its scores as HTML."""

from __future__ import annotations

from pathlib import Path

from markupsafe import Markup

from equivox.compare.runs import open_comparison
from equivox.core.text import visible
from equivox.report.opening import opening_of_one
from equivox.report.safe_page import kept_apart
from equivox.report.score_tables import task_tables
from equivox.report.table import as_html


def run_html(folder: Path, annotator: str | None = None) -> str:
    """Return the opening of a run and its scores with their evidence, coverage and notes as HTML without scripts.

    The scores are those by `annotator`, None: the run's own.
    """
    (run,) = open_comparison([folder], annotator=annotator).runs
    first = opening_of_one(run)
    sentences = Markup("").join(Markup("<li>{}</li>").format(sentence) for sentence in first.sentences)
    head = Markup("<p><strong>{} {}</strong></p><ul>{}</ul><p><strong>Trust:</strong> {}</p>").format(
        first.question, first.answer, sentences, " · ".join(map(str, first.trust))
    )
    tables = Markup("").join(as_html(table) for group in task_tables([run]) for table in group)
    return kept_apart(visible(Markup('<div class="equivox">{}{}</div>').format(head, tables)))
