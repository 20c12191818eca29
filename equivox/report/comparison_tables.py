"""A comparison as tables for a terminal, laid out as the papers lay them out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import chain, repeat

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from equivox.compare.pairs import PairedTest, untested_measures
from equivox.compare.ranking import Judged, Standing, missing_cohorts
from equivox.compare.runs import Comparison, TaskCorrelation, ValueShares, task_correlations, top_movers
from equivox.core.metric import CohortScore
from equivox.core.scores import Score
from equivox.metrics.badf.overlap import Overlap
from equivox.report.judged_cells import (
    COHORT_LEGEND,
    RANK_COLUMNS,
    RANKS_LEGEND,
    TEST_COLUMNS,
    TESTS_LEGEND,
    cohort_cells,
    cohort_notes,
    correlation_cells,
    in_order,
    rank_cells,
    tested_cells,
)
from equivox.report.numbers import DASH, p_value, percent, score_interval, score_value, stars
from equivox.report.tables import NTVD, print_shift_table, print_task_scores


def print_comparison(console: Console, comparison: Comparison, *, attributes: int = 3, values: int = 5) -> None:
    """Print models × tasks with stars, the evidence behind each number, refusals, correlations and what moves most."""
    whole = [(model, s) for model, s in comparison.scores() if s.is_whole and s.name == NTVD]
    refusals = [(model, s) for model, s in comparison.scores() if s.role == "refusal" and s.name == NTVD]
    for dimension, condition in dict.fromkeys((s.dimension, s.condition) for _, s in whole):
        rows = [(model, s) for model, s in whole if (s.dimension, s.condition) == (dimension, condition)]
        console.print(_grid(f"{dimension}, condition {condition}: nTVD", rows))
    print_task_scores(console, [(run.model, run.scores) for run in comparison.runs])
    for dimension, condition in dict.fromkeys((s.dimension, s.condition) for _, s in refusals):
        rows = [(model, s) for model, s in refusals if (s.dimension, s.condition) == (dimension, condition)]
        _print_refusals(console, f"{dimension}, condition {condition}: refusal nTVD", rows)
    _print_correlations(console, task_correlations(comparison))
    for run in comparison.runs:
        for score, shares in top_movers(run, attributes=attributes, values=values):
            _print_shares(console, run.model, score, shares)
    for caveat in comparison.caveats:
        console.print(Text(f"  note: {caveat}", style="yellow"))


def print_judged(console: Console, comparison: Comparison, judged: Judged) -> None:
    """Print the paired tests of every two models, the ranks that they leave open, and cohort-relative scores."""
    for metric, condition in dict.fromkeys((test.metric, test.condition) for test in judged.tests):
        _print_tests(console, [t for t in judged.tests if (t.metric, t.condition) == (metric, condition)])
    if judged.tests:
        console.print(Text(TESTS_LEGEND, style="dim"))
        for metric, reason in untested_measures(comparison).items():
            console.print(Text(f"  {DASH} {metric}: no paired test: {reason}", style="yellow"))
    for family, condition in dict.fromkeys((standing.family, standing.condition) for standing in judged.standings):
        _print_ranks(console, [s for s in judged.standings if (s.family, s.condition) == (family, condition)])
    if judged.standings:
        console.print(Text(RANKS_LEGEND, style="dim"))
    for cohort in dict.fromkeys(score.cohort for score in judged.cohorts):
        _print_cohort(console, [score for score in judged.cohorts if score.cohort == cohort])
    if judged.cohorts:
        console.print(Text(COHORT_LEGEND, style="dim"))
    elif none := " ".join(missing_cohorts(comparison)):
        console.print(Text(f"  {DASH} {none}", style="yellow"))


def _print_tests(console: Console, tests: Sequence[PairedTest]) -> None:
    table = _plain_table(
        f"{tests[0].metric}, condition {tests[0].condition}: models two by two, on the items that both answered"
    )
    for name in ("task", "a", "b"):
        table.add_column(name, no_wrap=True)
    for name in TEST_COLUMNS:
        table.add_column(name, justify="right", no_wrap=True)
    for test in (t for t in tests if t.undefined is None):
        table.add_row(escape(test.task), escape(test.model_a), escape(test.model_b), *tested_cells(test))
    if table.row_count:
        console.print(table)
    # One reason for many pairs is said once.
    for reason, pairs in _reasons(tests).items():
        console.print(Text(f"  {DASH} {pairs} of {len(tests)} not tested: {reason}", style="yellow"))


def _reasons(tests: Sequence[PairedTest]) -> Counter[str]:
    return Counter(f"{test.task}: {test.undefined}" for test in tests if test.undefined is not None)


def _print_ranks(console: Console, standings: Sequence[Standing]) -> None:
    table = _plain_table(
        f"{standings[0].family}, condition {standings[0].condition}: places, the first nearest to no bias"
    )
    for name in ("task", "metric", "model"):
        table.add_column(name, no_wrap=True)
    for name in RANK_COLUMNS:
        table.add_column(name, justify="left" if name == "letters" else "right", no_wrap=True)
    columns = dict.fromkeys((s.task, s.dimension, s.metric) for s in standings)
    for task, dimension, metric in columns:
        members = [s for s in standings if (s.task, s.dimension, s.metric) == (task, dimension, metric)]
        for first, standing in zip(chain([True], repeat(False)), in_order(members), strict=False):
            named = (escape(task), metric) if first else ("", "")
            table.add_row(*named, escape(standing.model), *rank_cells(standing))
        table.add_section()
    console.print(table)
    for reason, n in Counter(f"{s.task}, {s.model}: {s.undefined}" for s in standings if s.undefined).items():
        told = "" if n == 1 else f" ({n} metrics)"
        console.print(Text(f"  {DASH} {reason}{told}", style="yellow"))


def _print_cohort(console: Console, scores: Sequence[CohortScore]) -> None:
    table = _plain_table(f"{scores[0].family}: total bias score; cohort: {scores[0].cohort}")
    table.add_column("model", no_wrap=True)
    for name in ("TBS", "interval", *scores[0].parts):
        table.add_column(name, justify="right", no_wrap=True)
    for score in scores:
        table.add_row(escape(score.model), *cohort_cells(score))
    console.print(table)
    for line in cohort_notes(scores):
        console.print(Text(f"  {line}", style="yellow"))


def print_overlaps(console: Console, overlaps: Sequence[Overlap]) -> None:
    """Print how far every two settings and models share associations."""
    table = _plain_table("associations shared by settings and models")
    for name in ("dimension", "one", "other"):
        table.add_column(name, no_wrap=True)
    for name in ("of one", "of other", "shared", "Jaccard", "rank correlation"):
        table.add_column(name, justify="right", no_wrap=True)
    for found in overlaps:
        counts = (str(n) for n in (found.n_one, found.n_other, found.n_shared))
        shares = (score_value(value, "share") for value in (found.jaccard, found.rank_correlation))
        table.add_row(found.dimension, escape(found.one), escape(found.other), *counts, *shares)
    console.print(table)
    console.print(Text("Jaccard: shared of what either has; rank correlation: Kendall's τ of shared scores", "dim"))


def _plain_table(title: str | None) -> Table:
    return Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False, header_style="dim")


def _grid(title: str, rows: Sequence[tuple[str, Score]]) -> Table:
    """Return models × tasks; stars by the p-value that moves clusters."""
    tasks = list(dict.fromkeys(score.task for _, score in rows))
    cells = {(model, score.task): score for model, score in rows}
    table = _plain_table(title)
    table.add_column("model", no_wrap=True)
    for task in tasks:
        table.add_column(escape(task.partition(":")[2] or task), justify="right", no_wrap=True)
    for model in dict.fromkeys(model for model, _ in rows):
        scores = [cells.get((model, task)) for task in tasks]
        table.add_row(
            escape(model), *(DASH if s is None else f"{percent(s.value)}{stars(s.p_cluster):<2}" for s in scores)
        )
    return table


def _print_refusals(console: Console, title: str, rows: Sequence[tuple[str, Score]]) -> None:
    """Print refusal scores with their evidence; where none is defined, only why."""
    if any(score.defined for _, score in rows):
        console.print(_grid(title, rows))
        print_shift_table(console, title, rows)
        return
    console.print(Text(title, style="bold"))
    for reason, n in Counter(score.undefined for _, score in rows).items():
        console.print(Text(f"  {DASH} {n} of {len(rows)} scores: {reason}", style="yellow"))


def _print_correlations(console: Console, found: Sequence[TaskCorrelation]) -> None:
    for dimension, condition in dict.fromkeys((c.dimension, c.condition) for c in found):
        table = _plain_table(f"{dimension}, condition {condition}: correlation of tasks over models")
        for name in ("task", "task", "models", "r", "interval", "p", "q", "r of excess", ""):
            table.add_column(name, justify="left" if name in {"task", ""} else "right", no_wrap=True)
        for c in (c for c in found if (c.dimension, c.condition) == (dimension, condition)):
            table.add_row(escape(c.first), escape(c.second), *correlation_cells(c), c.undefined or "")
        console.print(table)


def _print_shares(console: Console, model: str, score: Score, shares: Sequence[ValueShares]) -> None:
    groups = sorted({group for share in shares for group in share.by_group})
    told = (
        f"{model}, {score.task}, {score.attribute}: nTVD {percent(score.value)}{stars(score.p_cluster)}, "
        f"floor {percent(score.floor)}, interval {score_interval(score.ci_low, score.ci_high, 'percent')}, "
        f"p cluster {p_value(score.p_cluster)}, q {p_value(score.q)}"
    )
    console.print(Text(told, style="bold"))
    table = _plain_table(None)
    table.add_column("value", no_wrap=True)
    for group in groups:
        table.add_column(f"{group} %", justify="right", no_wrap=True)
    for share in shares:
        table.add_row(escape(share.value), *(percent(share.by_group.get(group, 0.0)) for group in groups))
    console.print(table)
