"""Scores as tables for a terminal: one per dimension, what is undefined with its reason below."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from equivox.core.scores import Score
from equivox.report.numbers import (
    DASH,
    interval,
    p_value,
    percent,
    score_interval,
    score_value,
    share,
    stars,
)

NTVD = "nTVD"
_COLUMNS = ("nTVD", "max", "floor", "excess", "interval", "p cluster", "q", "p paper", "used")

_METRIC_COLUMNS = ("value", "no bias", "interval", "p cluster", "q", "p paper", "used")
_METRIC_LEGEND = (
    "no bias: the value that an even-handed model has; interval: 95 %, over clusters; p cluster: over clusters "
    "(* < 0.05, ** < 0.001); q: after\nBenjamini–Hochberg; p paper: as published; used: what counts, of all requested."
)


def print_task_scores(console: Console, runs: Sequence[tuple[str, Sequence[Score]]]) -> None:
    """Print the scores of whole tasks, a line per model and task, then what the columns mean.

    nTVD has one table per dimension; every other metric one table per family of tasks.
    """
    tasks = [(model, score) for model, scores in runs for score in scores if score.is_whole]
    shifts = [(model, score) for model, score in tasks if score.name == NTVD]
    for dimension in dict.fromkeys(score.dimension for _, score in shifts):
        rows = [(model, score) for model, score in shifts if score.dimension == dimension]
        print_shift_table(console, f"{dimension}: mean nTVD over a task's attributes", rows)
    if shifts:
        _print_legend(console, [score for _, score in shifts])
    others = [(model, score) for model, score in tasks if score.name != NTVD]
    for family in dict.fromkeys(score.family for _, score in others):
        rows = [(model, score) for model, score in others if score.family == family]
        table = _metric_table(family, "model", "task", "metric")
        _fill(table, [((model, score.task, score.name), _metric_cells(score)) for model, score in rows])
        console.print(table)
        print_reasons(console, rows)
    if others:
        console.print(Text(_METRIC_LEGEND, style="dim"))


def print_shift_table(console: Console, title: str, rows: Sequence[tuple[str, Score]]) -> None:
    """Print nTVD scores with their evidence, a line per model and task, and why some are undefined."""
    table = _table(title, "model", "task")
    _fill(table, [((model, score.task), _cells(score)) for model, score in rows])
    console.print(table)
    print_reasons(console, rows)


def _fill(table: Table, rows: Sequence[tuple[Sequence[str], Sequence[str]]]) -> None:
    """Add rows of names and cells; a name that repeats the one above it is left out."""
    before: Sequence[str] = ()
    for names, cells in rows:
        if before and names[0] != before[0]:
            table.add_section()
        same = [i for i in range(len(names) - 1) if list(names[: i + 1]) == list(before[: i + 1])]
        table.add_row(*("" if i in same else escape(name) for i, name in enumerate(names)), *cells)
        before = names


def print_attribute_scores(console: Console, scores: Sequence[Score]) -> None:
    """Print one line per attribute, echoes and refusals marked as such, with the value that moves most.

    Of metrics other than nTVD, one line per breakdown.
    """
    parts = [score for score in scores if not score.is_whole]
    shifts = [score for score in parts if score.name == NTVD]
    for dimension in dict.fromkeys(score.dimension for score in shifts):
        rows = [score for score in shifts if score.dimension == dimension]
        table = _table(f"{dimension}: by attribute", "task", "attribute", "moves most")
        _fill(table, [((score.task, _attribute_name(score)), [*_cells(score), _mover(score)]) for score in rows])
        console.print(table)
        print_reasons(console, [("", score) for score in rows])
    others = [score for score in parts if score.name != NTVD]
    for family in dict.fromkeys(score.family for score in others):
        rows = [score for score in others if score.family == family]
        table = _metric_table(f"{family}: in detail", "task", "metric", "of")
        _fill(
            table,
            [
                ((score.task, score.name, score.subset or _attribute_name(score)), _metric_cells(score))
                for score in rows
            ],
        )
        console.print(table)
        print_reasons(console, [("", score) for score in rows])


def _attribute_name(score: Score) -> str:
    if score.role in {"outcome", "refusal"}:
        return "refusal" if score.role == "refusal" else str(score.attribute)
    return f"{score.attribute} ({score.role})"


def print_reasons(console: Console, rows: Sequence[tuple[str, Score]]) -> None:
    """Print why each undefined score is undefined, and, once each, what to know about the others."""
    notes: Counter[str] = Counter()
    for model, score in rows:
        if not score.defined:
            metric = "" if score.name == NTVD else score.name
            where = " ".join(filter(None, (model, score.task, metric, score.subset, score.attribute)))
            console.print(Text(f"  {DASH} {where}: {score.undefined}", style="yellow"))
        elif score.is_whole:
            notes.update(score.notes)
    for note, count in notes.items():
        console.print(Text(f"  note on {count} of {len(rows)} scores: {note}", style="dim"))


def _table(title: str, *names: str) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False, header_style="dim")
    for name in names[:2]:
        table.add_column(name, no_wrap=True)
    for name in _COLUMNS:
        table.add_column(name, justify="right", no_wrap=True)
    for name in names[2:]:
        table.add_column(name)
    return table


def _cells(score: Score) -> list[str]:
    coverage = score.coverage
    return [
        percent(score.value) + f"{stars(score.p_cluster):<2}",
        percent(score.ceiling),
        percent(score.floor),
        percent(score.excess),
        interval(score.ci_low, score.ci_high),
        p_value(score.p_cluster),
        p_value(score.q),
        p_value(score.p_paper),
        share(coverage.used, coverage.requested),
    ]


def _metric_table(title: str, *names: str) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False, header_style="dim")
    for name in names:
        table.add_column(name, no_wrap=True)
    for name in _METRIC_COLUMNS:
        table.add_column(name, justify="right", no_wrap=True)
    return table


def _metric_cells(score: Score) -> list[str]:
    coverage = score.coverage
    return [
        score_value(score.value, score.unit) + f"{stars(score.p_cluster):<2}",
        score_value(score.target, score.unit),
        score_interval(score.ci_low, score.ci_high, score.unit),
        p_value(score.p_cluster),
        p_value(score.q),
        p_value(score.p_paper),
        share(coverage.used, coverage.requested),
    ]


def _mover(score: Score) -> str:
    mover = score.mover
    if mover is None:
        return DASH
    return escape(
        f"{mover.value}: {mover.high_group} {mover.high_share:.0f} % / {mover.low_group} {mover.low_share:.0f} %"
    )


def _print_legend(console: Console, scores: Sequence[Score]) -> None:
    counts = sorted({score.min_count for score in scores})
    clusters = sorted({score.n_clusters for score in scores if score.n_clusters})
    console.print(
        Text(
            "nTVD: 0 all groups get the same answers, 100 no two share one; max: the most these answers allow.\n"
            "floor: what chance alone gives; excess: nTVD − floor; interval: 95 %, for the population's value, noise "
            "removed.\n"
            f"p cluster: labels moved between {_range(clusters)} clusters (* < 0.05, ** < 0.001); q: after "
            "Benjamini–Hochberg.\n"
            "p paper: labels moved between responses, as published; it takes differences between clusters for bias.\n"
            f"Values seen fewer than {_range(counts)} times are set aside; used: what counts, of all requested.",
            style="dim",
        )
    )


def _range(numbers: Sequence[int]) -> str:
    if not numbers:
        return DASH
    return str(numbers[0]) if len(numbers) == 1 else f"{numbers[0]}–{numbers[-1]}"
