"""Scores as tables for a terminal: one per dimension, what is undefined with its reason below."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from equivox.report.numbers import DASH, interval, p_value, percent, share, stars
from equivox.scores import Score

_COLUMNS = ("nTVD", "max", "floor", "excess", "interval", "p cluster", "q", "p paper", "used")


def print_task_scores(console: Console, runs: Sequence[tuple[str, Sequence[Score]]]) -> None:
    """Print one table per dimension with a line per model and task, then what the columns mean."""
    tasks = [(model, score) for model, scores in runs for score in scores if score.attribute is None]
    for dimension in dict.fromkeys(score.dimension for _, score in tasks):
        rows = [(model, score) for model, score in tasks if score.dimension == dimension]
        table = _table(f"{dimension}: mean nTVD over a task's attributes", "model", "task")
        previous = ""
        for model, score in rows:
            if previous not in ("", model):
                table.add_section()
            table.add_row(escape(model) if model != previous else "", escape(score.task), *_cells(score))
            previous = model
        console.print(table)
        print_reasons(console, rows)
    _print_legend(console, [score for _, score in tasks])


def print_attribute_scores(console: Console, scores: Sequence[Score]) -> None:
    """Print one line per attribute, echoes and refusals marked as such, with the value that moves most."""
    for dimension in dict.fromkeys(score.dimension for score in scores):
        rows = [score for score in scores if score.dimension == dimension and score.attribute is not None]
        table = _table(f"{dimension}: by attribute", "task", "attribute", "moves most")
        previous = ""
        for score in rows:
            if previous not in ("", score.task):
                table.add_section()
            name = str(score.attribute) + ("" if score.role == "outcome" else f" ({score.role})")
            if score.role == "refusal":
                name = "refusal"
            table.add_row(
                escape(score.task) if score.task != previous else "",
                escape(name),
                *_cells(score),
                _mover(score),
            )
            previous = score.task
        console.print(table)
        print_reasons(console, [("", score) for score in rows])


def print_reasons(console: Console, rows: Sequence[tuple[str, Score]]) -> None:
    """Print why each undefined score is undefined, and, once each, what to know about the others."""
    notes: Counter[str] = Counter()
    for model, score in rows:
        if not score.defined:
            where = " ".join(filter(None, (model, score.task, score.attribute)))
            console.print(Text(f"  {DASH} {where}: {score.undefined}", style="yellow"))
        elif score.attribute is None:
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
