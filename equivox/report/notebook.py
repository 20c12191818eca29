"""A run in a notebook: its opening and its scores as HTML, and its figures."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from equivox.core.errors import RequestError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from equivox.core.scores import Score


def run_html(folder: Path) -> str:
    """Return the opening of a run and its scores with their evidence, coverage and notes as HTML without scripts."""
    from markupsafe import Markup

    from equivox.compare.runs import open_comparison
    from equivox.report.opening import opening
    from equivox.report.score_tables import task_tables
    from equivox.report.table import as_html

    (run,) = open_comparison([folder]).runs
    first = opening([run])
    sentences = Markup("").join(Markup("<li>{}</li>").format(sentence) for sentence in first.sentences)
    head = Markup("<p><strong>{} {}</strong></p><ul>{}</ul><p><strong>Trust:</strong> {}</p>").format(
        first.question, first.answer, sentences, " · ".join(map(str, first.trust))
    )
    tables = Markup("").join(as_html(table) for group in task_tables([run]) for table in group)
    return str(Markup('<div class="equivox">{}{}</div>').format(head, tables))


@dataclass(frozen=True)
class Plots:
    """The figures of a run, as matplotlib figures; `equivox report --figure` writes the same to files.

    RequestError, with the figures that the run has, for one that it does not have.
    """

    folder: Path

    def forest(self, family: str | None = None) -> Figure:
        """Return the scores of a family of tasks with their intervals; without a name, of the only family."""
        return self._figure(f"forest:{family or self._only_family()}")

    def shares(self, task: str, attribute: str) -> Figure:
        """Return the share of each value of an attribute in each group."""
        return self._figure(f"shares:{task}:{attribute}")

    def heat(self, task: str) -> Figure:
        """Return the scores of a task by two properties as a heat map."""
        return self._figure(f"heat:{task}")

    def metrics(self, family: str | None = None) -> Figure:
        """Return the signed measures of a family of tasks; without a name, of the only family."""
        return self._figure(f"metrics:{family or self._only_family()}")

    def speakers(self, task: str) -> Figure:
        """Return the scores of a task by speaker."""
        return self._figure(f"speakers:{task}")

    def _figure(self, name: str) -> Figure:
        from equivox.report.figures import figure_of

        return figure_of(self.folder, name)

    def _only_family(self) -> str:
        from equivox.run.scoring import read_scores

        scores: list[Score] = read_scores(self.folder)
        families = list(dict.fromkeys(score.family for score in scores if score.is_whole))
        if len(families) != 1:
            raise RequestError(f"`family` is missing: this run has {', '.join(families) or 'no scores'}")
        return families[0]
