"""What the panels of metrics show, as rows of plain data: for the report's page, and for figures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from equivox.compare.runs import ComparedRun
from equivox.core.metric import Panel
from equivox.core.scores import Score
from equivox.report.numbers import score_value
from equivox.report.score_tables import marked
from equivox.run.scoring import read_records


def panels_of(run: ComparedRun, kind: str) -> dict[str, Panel]:
    """Return the panels of a kind by family."""
    return {family: panel for family, metric in run.metrics.items() if (panel := metric.panel(kind)) is not None}


def heat_maps(run: ComparedRun) -> dict[str, tuple[Panel, list[dict[str, Any]]]]:
    """Return the rows of every table of counts of a run with its panel, by task."""
    found: dict[str, tuple[Panel, list[dict[str, Any]]]] = {}
    for family, panel in panels_of(run, "heat").items():
        for row in read_records(run.folder, family, panel.table, run.annotator) or ():
            found.setdefault(row["task"], (panel, []))[1].append(row)
    return found


def metric_panels(run: ComparedRun) -> dict[str, tuple[Panel, list[tuple[str, Score]]]]:
    """Return the panel and the signed scores of a run by family; each score has the panel's name for its task."""
    found: dict[str, tuple[Panel, list[tuple[str, Score]]]] = {}
    panels = panels_of(run, "metrics")
    for score in sorted(run.scores, key=lambda score: ":" in score.task):
        panel = panels.get(score.family)
        if panel is not None and score.is_whole and run.measure(score) is not None:
            task = score.task.partition(":")[2].partition("@")[0]
            label = f"{panel.tasks[task]} ({task})" if task in panel.tasks else task or panel.whole
            found.setdefault(score.family, (panel, []))[1].append((label, score))
    return found


def speakers_of(run: ComparedRun) -> dict[str, list[tuple[str, Score]]]:
    """Return the score of every speaker with the speaker's name, by task; the largest first, undefined ones last."""
    found: dict[str, list[tuple[str, Score]]] = {}
    panels = panels_of(run, "speakers")
    for score in sorted(run.scores, key=lambda score: (not score.defined, -score.value if score.defined else 0)):
        name, _, speaker = score.subset.partition("=")
        if score.family in panels and score.name == panels[score.family].measure and name == "speaker":
            found.setdefault(score.task, []).append((speaker, score))
    return found


def largest(scores: Sequence[Score]) -> dict[str, float]:
    """Return the largest magnitude of each measure; 0 if none is defined."""
    found = dict.fromkeys((score.name for score in scores), 0.0)
    for score in scores:
        if score.defined:
            found[score.name] = max(found[score.name], abs(score.value))
    return found


def favoured(score: Score | None, sides: tuple[str, str]) -> tuple[str, str]:
    """Return the magnitude of a score with its stars, and the favoured side as a word with an arrow."""
    if score is None or not score.defined:
        return "—", "" if score is None else "undefined"
    written = score_value(abs(score.value), score.unit)
    if written.strip("0.") == "":
        return written, "even"
    return written + marked(score), f"▲ {sides[0]}" if score.value > 0 else f"▼ {sides[1]}"
