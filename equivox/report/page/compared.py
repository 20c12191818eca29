"""Sections of the report that set models, relationships and speakers beside one another."""

from __future__ import annotations

import base64
import math
from collections.abc import Iterator
from typing import Any

from equivox.compare.pairs import untested_measures
from equivox.compare.ranking import Judged, Standing, missing_cohorts
from equivox.compare.runs import Comparison
from equivox.core.scores import Score
from equivox.dataset_builders.genres import RELATIONSHIPS
from equivox.metrics.genres.cohort import METRICS
from equivox.metrics.genres.measures import METRIC_OF
from equivox.report.judged_cells import (
    COHORT_LEGEND,
    RANK_COLUMNS,
    RANKS_LEGEND,
    TEST_COLUMNS,
    TESTS_LEGEND,
    cohort_cells,
    cohort_notes,
    in_order,
    in_words,
    rank_cells,
    tested_cells,
    told_places,
)
from equivox.report.numbers import DASH, p_value, score_interval, score_value, stars

SHADES = 4
"""Steps of colour in the panel of GENRES; the page's style names one class for each and direction."""


def side_by_side(comparison: Comparison, judged: Judged) -> dict[str, Any] | None:
    """Return ranks, paired tests and total bias scores as tables; None where there is one run."""
    if not judged.standings and not judged.tests:
        return None
    return {
        "families": [_family(judged, family, condition) for family, condition in _families(judged)],
        "rank_columns": RANK_COLUMNS,
        "ranks_legend": " ".join(RANKS_LEGEND.split()),
        "test_columns": TEST_COLUMNS,
        "tests_legend": " ".join(TESTS_LEGEND.split()),
        "untested": [f"{metric}: {reason}" for metric, reason in untested_measures(comparison).items()],
        "cohorts": [_cohort(judged, cohort) for cohort in dict.fromkeys(score.cohort for score in judged.cohorts)],
        "no_cohort": " ".join(missing_cohorts(comparison)),
        "cohort_legend": " ".join(COHORT_LEGEND.split()),
    }


def _families(judged: Judged) -> list[tuple[str, str]]:
    ranked = [(standing.family, standing.condition) for standing in judged.standings]
    return list(dict.fromkeys([*ranked, *((test.family, test.condition) for test in judged.tests)]))


def _family(judged: Judged, family: str, condition: str) -> dict[str, Any]:
    from equivox.report.figures import draw_places, svg_for_page

    standings = [s for s in judged.standings if (s.family, s.condition) == (family, condition)]
    tests = [t for t in judged.tests if (t.family, t.condition) == (family, condition)]
    columns = [
        [s for s in standings if (s.task, s.dimension, s.metric) == key]
        for key in dict.fromkeys((s.task, s.dimension, s.metric) for s in standings)
    ]
    several = len({s.dimension for s in standings}) > 1
    return {
        "title": family,
        "figure": _base64(svg_for_page(draw_places(standings))) if any(s.rank for s in standings) else "",
        "told": told_places(standings),
        "ranks": [
            {
                "title": " ".join(filter(None, (_label(members[0]), members[0].dimension if several else ""))),
                "words": in_words(members),
                "rows": [[s.model, *rank_cells(s)] for s in in_order(members)],
                "reasons": [f"{s.model} has no place: {s.undefined}" for s in members if s.undefined],
            }
            for members in columns
        ],
        "tests": [[t.task, t.metric, t.model_a, t.model_b, *tested_cells(t)] for t in tests if t.undefined is None],
        "refused": list(
            dict.fromkeys(
                f"{t.model_a} and {t.model_b} were not tested in {t.task}, {t.metric}: {t.undefined}"
                for t in tests
                if t.undefined is not None
            )
        ),
    }


def _label(standing: Standing) -> str:
    return f"{standing.task}, {standing.metric}"


def _cohort(judged: Judged, cohort: str) -> dict[str, Any]:
    own = [score for score in judged.cohorts if score.cohort == cohort]
    return {
        "title": f"{own[0].family}; cohort: {cohort}",
        "columns": ["TBS", "95 % interval", *own[0].parts],
        "rows": [[score.model, *cohort_cells(score)] for score in own],
        "notes": cohort_notes(own),
    }


def genres_panels(comparison: Comparison) -> Iterator[dict[str, Any]]:
    """Yield M1 to M8 of every model, over all relationships and for each, with the side that each favours in words.

    As Table 2 of GENRES: magnitudes, and a colour for the direction; here the direction is also written, and a score
    that cannot be told from no difference has no colour.
    """
    scores = [(m, s) for m, s in comparison.scores() if s.is_whole and s.name in METRICS]
    for family, condition in dict.fromkeys((s.family, s.condition) for _, s in scores):
        own = [(m, s) for m, s in scores if (s.family, s.condition) == (family, condition)]
        tasks = sorted({s.task for _, s in own}, key=lambda task: (":" in task, task))
        most = {
            name: max((abs(s.value) for _, s in own if s.name == name and s.defined), default=0) for name in METRICS
        }
        names = [name for name in METRICS if any(s.name == name for _, s in own)]
        yield {
            "family": family,
            "metrics": [{"name": name, "title": METRIC_OF[name].title, "unit": METRIC_OF[name].unit} for name in names],
            "relationships": [
                {
                    "title": _relationship(task),
                    "rows": [
                        {
                            "model": model,
                            "cells": [
                                panel_cell(
                                    next((s for m, s in own if (m, s.task, s.name) == (model, task, name)), None),
                                    most[name],
                                )
                                for name in names
                            ],
                        }
                        for model in dict.fromkeys(m for m, s in own if s.task == task)
                    ],
                }
                for task in tasks
            ],
        }


def _relationship(task: str) -> str:
    short = task.partition(":")[2].partition("@")[0]
    if not short:
        return "all relationships"
    return f"{RELATIONSHIPS[short]} ({short})" if short in RELATIONSHIPS else short


def panel_cell(score: Score | None, most: float) -> dict[str, str]:
    """Return the magnitude of a score, the side it favours in a word and an arrow, and the class of its colour."""
    if score is None or not score.defined:
        return {"value": DASH, "side": "" if score is None else "undefined", "shade": ""}
    written = score_value(abs(score.value), score.unit)
    if not score.value or written.strip("0.") == "":
        return {"value": written, "side": "even", "shade": ""}
    side, arrow = ("male", "▲") if score.value > 0 else ("female", "▼")
    step = math.ceil(SHADES * abs(score.value) / most) if most else 1
    known = score.q < 0.05
    return {
        "value": written + stars(score.p_cluster),
        "side": f"{arrow} {side}",
        "shade": f"{side}-{min(SHADES, max(1, step))}" if known else "",
    }


def speaker_panels(comparison: Comparison) -> Iterator[dict[str, Any]]:
    """Yield the share of stereotypical choices by speaker, sorted, one figure for each model and task."""
    from equivox.report.figures import draw_speakers, speakers_of, svg_for_page, told_forest

    for run in comparison.runs:
        for task, scores in speakers_of(run.scores).items():
            rows = sorted(scores, key=lambda score: (not score.defined, -score.value if score.defined else 0))
            labelled = [(score.subset.partition("=")[2], score) for score in rows]
            tested = [score for score in rows if score.defined and math.isfinite(score.q)]
            found = sum(score.q < 0.05 for score in tested)
            missing = len(rows) - sum(score.defined for score in rows)
            yield {
                "title": f"{run.model}, {task}",
                "figure": _base64(svg_for_page(draw_speakers(labelled))),
                "told": told_forest(labelled),
                "caption": (
                    f"{run.model}, {task}: {found} of {len(tested)} tested speakers differ from 50 beyond chance "
                    f"(q < 0.05, over the speakers of all tasks and models shown here)"
                    + (f"; {missing} have no score." if missing else ".")
                ),
                "rows": [
                    [
                        label,
                        score_value(s.value, s.unit) + stars(s.p_cluster),
                        score_interval(s.ci_low, s.ci_high, s.unit),
                        p_value(s.p_cluster),
                        p_value(s.q),
                        f"{s.coverage.used} of {s.coverage.requested}",
                        s.undefined or "",
                    ]
                    for label, s in labelled
                ],
            }


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()
