"""A comparison as tables for a terminal, laid out as the papers lay them out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from equivox.comparing import Comparison, TaskCorrelation, ValueShares, task_correlations, top_movers
from equivox.metrics.badf.overlap import Overlap
from equivox.report.numbers import DASH, p_value, percent, score_interval, score_value, stars
from equivox.report.tables import NTVD, print_shift_table, print_task_scores
from equivox.scores import Score


def print_comparison(console: Console, comparison: Comparison, *, attributes: int = 3, values: int = 5) -> None:
    """Print models × tasks with stars, the evidence behind each number, refusals, correlations and what moves most."""
    whole = [(model, s) for model, s in comparison.scores() if s.is_whole and s.name == NTVD]
    refusals = [(model, s) for model, s in comparison.scores() if s.role == "refusal" and s.name == NTVD]
    for dimension, arm in dict.fromkeys((s.dimension, s.arm) for _, s in whole):
        rows = [(model, s) for model, s in whole if (s.dimension, s.arm) == (dimension, arm)]
        console.print(_grid(f"{dimension}, arm {arm}: nTVD", rows))
    print_task_scores(console, [(run.model, run.scores) for run in comparison.runs])
    for dimension, arm in dict.fromkeys((s.dimension, s.arm) for _, s in refusals):
        rows = [(model, s) for model, s in refusals if (s.dimension, s.arm) == (dimension, arm)]
        _print_refusals(console, f"{dimension}, arm {arm}: refusal nTVD", rows)
    _print_correlations(console, task_correlations(comparison))
    for run in comparison.runs:
        for score, shares in top_movers(run, attributes=attributes, values=values):
            _print_shares(console, run.model, score, shares)
    for caveat in comparison.caveats:
        console.print(Text(f"  note: {caveat}", style="yellow"))


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
    for dimension, arm in dict.fromkeys((c.dimension, c.arm) for c in found):
        table = _plain_table(f"{dimension}, arm {arm}: correlation of tasks over models")
        for name in ("task", "task", "models", "r", "interval", "p", "q", "r of excess", ""):
            table.add_column(name, justify="left" if name in {"task", ""} else "right", no_wrap=True)
        for c in (c for c in found if (c.dimension, c.arm) == (dimension, arm)):
            table.add_row(
                escape(c.first),
                escape(c.second),
                str(c.n_models),
                score_value(c.r, "r"),
                score_interval(c.ci_low, c.ci_high, "r"),
                p_value(c.p),
                p_value(c.q),
                score_value(c.r_excess, "r"),
                c.undefined or "",
            )
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
