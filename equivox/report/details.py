"""The tables behind the first screen: every field of every score, and every test between runs and conditions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from equivox.compare.conditions import condition_tests
from equivox.compare.dimensions import dimension_contrasts
from equivox.compare.pairs import PairedTest, open_one
from equivox.compare.ranking import Judged, PublishedTotals, judged_records
from equivox.compare.runs import ComparedRun, Comparison, comparison_records
from equivox.core.lazy import pandas
from equivox.core.metric import Overlap
from equivox.core.plain import split_by
from equivox.core.scores import LEVEL
from equivox.core.variants import is_intervention
from equivox.report.frames import make_grid, make_score_frame, make_table
from equivox.report.numbers import DASH
from equivox.report.table import Table
from equivox.statistics import adjust

if TYPE_CHECKING:
    from pandas import DataFrame

NAMES = ("model", "task", "metric", "attribute", "role", "subset")
"""The columns that name a score."""
_TITLES = {
    "paired_tests": "Which of two models is more biased, by the answers that both gave",
    "ranks": "Ranks, the first nearest to no bias",
    "conditions": "The same samples in another condition",
    "cohort": "Totals relative to the compared models",
    "correlations": "Pearson's r of two tasks over models",
    "dimensions": "The same tasks by two dimensions",
}
_NAMES: Mapping[str, Sequence[str]] = {
    "paired_tests": ("task", "metric", "model_a", "model_b"), "ranks": ("task", "metric", "model"),
    "conditions": ("model", "task", "metric", "condition_a", "condition_b"), "cohort": ("family", "cohort", "model"),
    "correlations": ("first", "second"), "dimensions": ("first", "second", "task"),
}  # fmt: skip
_NOTES = {"conditions": "A smaller difference is no improvement where fewer answers are used."}
_SHORT: Mapping[str, Sequence[str]] = {
    "paired_tests": ("more_biased", "further", "ci_low", "ci_high", "q"),
    "ranks": ("distance", "rank", "low", "high"),
    "conditions": ("more_biased", "value_a", "value_b", "further", "ci_low", "ci_high", "q"),
}
"""The columns that a comparison shows without `--details`."""


def list_score_tables(runs: Sequence[ComparedRun]) -> list[Table]:
    """Return every field of every score: whole tasks first, then their parts; a table for each family."""
    frame = make_score_frame(runs)
    if frame.empty:
        return []
    whole = frame["attribute"].isna() & (frame["subset"] == "") & (frame["role"] == "outcome")
    family = frame["task"].str.replace(":.*", "", regex=True)
    return [
        make_table(rows, f"{name}: {title}", by=NAMES)
        for title, part in (("whole tasks", whole), ("parts of tasks, refusals and lost answers", ~whole))
        for name, rows in frame[part].groupby(family[part], sort=False)
    ]


def make_comparison_frames(
    comparison: Comparison, judged: Judged, overlaps: Sequence[Overlap] = ()
) -> dict[str, DataFrame]:
    """Return all numbers of a comparison as data frames, by the names of their files."""
    records: dict[str, Sequence[Any]] = {**comparison_records(comparison)}
    records["dimensions"] = [vars(contrast) for contrast in dimension_contrasts(comparison)]
    for findings, members in split_by(overlaps, lambda overlap: overlap.findings).items():
        records[f"{findings}_overlap"] = [vars(overlap) for overlap in members]
    return {name: pandas.DataFrame(rows) for name, rows in records.items() if rows} | make_test_frames(judged)


def make_test_frames(judged: Judged) -> dict[str, DataFrame]:
    """Return tests, ranks and cohort scores as data frames, by the names of their files."""
    frames = {name: pandas.DataFrame(rows) for name, rows in judged_records(judged).items() if rows}
    for name, tests in (("paired_tests", judged.tests), ("conditions", [test for _, test in judged.conditions])):
        if name in frames:
            frames[name]["more_biased"] = [name_more_biased(test, tests) for test in tests]
    return frames


def name_more_biased(test: PairedTest, tests: Sequence[PairedTest]) -> str:
    """Return which side of a test is more biased; `no difference shown`, `too few data` or `no result` if neither.

    `tests` are all that are corrected together: a test whose least possible p could not have survived had too few data.
    """
    if test.undefined is not None:
        return "no result"
    if not math.isfinite(test.p):  # not a single answer changed
        return "no difference shown"
    if test.q < LEVEL:
        # Without a value for "no bias" the sides differ, and neither is more biased.
        return "they differ" if math.isnan(test.further) else test.model_b if test.further < 0 else test.model_a
    place = next(n for n, other in enumerate(tests) if other is test)
    p = [other.p for other in tests]
    least = adjust([*p[:place], test.p_least, *p[place + 1 :]], method="by")[place]
    return "too few data" if least >= LEVEL else "no difference shown"


def list_comparison_tables(frames: Mapping[str, DataFrame], *, details: bool) -> dict[str, list[Table]]:
    """Return the tables of a comparison by the names of their files; without `details` a few columns of a few.

    Two models are then compared by their tests, which say which is more biased, and several by their ranks.
    """
    tables: dict[str, list[Table]] = {}
    several = "ranks" in frames and len(frames["ranks"]["model"].unique()) > 2
    left_out = ("scores", "values") if details else ("scores", "values", "paired_tests" if several else "ranks")
    for name, frame in frames.items():
        if name in left_out or (not details and name not in _SHORT):
            continue
        if not details and name == "paired_tests":  # a number without "no bias" makes no model more biased
            frame = frame[frame["further"].notna() | frame["undefined"].notna()]
        names = _NAMES.get(name, ("dimension", "one", "other"))
        title, columns = _TITLES.get(name, name.replace("_", " ")), () if details else _SHORT[name]
        families = frame["family"] if "family" in frame else frame[names[0]].map(lambda _: "")
        tables[name] = [
            make_table(
                rows, f"{title}{f': {family}' if family else ''}", by=names, columns=columns, note=_NOTES.get(name, "")
            )
            for family, rows in frame.groupby(families, sort=False)
        ]
    return tables


def list_score_grids(runs: Sequence[ComparedRun]) -> list[Table]:
    """Return models by tasks for each metric, dimension and condition, as papers print them."""
    frame = make_score_frame(runs)
    if frame.empty:
        return []
    whole = frame[frame["attribute"].isna() & (frame["subset"] == "") & (frame["role"] == "outcome")]
    keys = ["metric", "unit", "dimension", "condition"]
    return [
        make_grid(rows, f"{metric} ({unit}), {dimension}, condition {condition}")
        for (metric, unit, dimension, condition), rows in whole.groupby(keys, sort=False)
    ]


def list_change_tables(runs: Sequence[ComparedRun]) -> list[Table]:
    """Return what system prompts, other wordings and further turns changed; [] for runs without any.

    Less difference is no improvement where fewer answers are left: the shares of answers used and refused are rows.
    """
    asked = [run for run in runs if any(is_intervention(score.condition) for score in run.scores)]
    tests = [pair for pair in condition_tests([open_one(run) for run in asked]) if is_intervention(pair[1].model_b)]
    frames = make_test_frames(Judged((), (), (), tests))
    return [table for tables in list_comparison_tables(frames, details=False).values() for table in tables]


def make_published_tables(published: Sequence[PublishedTotals]) -> list[Table]:
    """Return the total scores of runs beside those of a published cohort, a table for each family."""
    tables = []
    for totals in published:
        reasons = totals.totals.undefined
        rows = [
            {"model": model, **values, "total": totals.totals.total[model], "undefined": reasons.get(model)}
            for model, values in totals.totals.values.items()
        ]
        made_up = f"{DASH} {totals.cohort.stand_ins}, comparable with nothing else: {', '.join(totals.by_stand_ins)}"
        table = make_table(pandas.DataFrame(rows), f"{totals.cohort.title}; cohort: {totals.totals.cohort}",
                           by=("model",), columns=(*totals.measures, "total"), note=totals.cohort.legend)  # fmt: skip
        tables += [table, *([Table(remarks=[made_up])] if totals.by_stand_ins else [])]
    return tables
