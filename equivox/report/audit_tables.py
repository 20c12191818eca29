"""An audit of an annotator as tables for a terminal."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from equivox.compare.labels import Audit
from equivox.metrics.badf.labels import StageAudit
from equivox.report.numbers import DASH, interval, p_value, percent, score_interval, score_value


def print_audit(console: Console, audit: Audit, *, errors: int = 3) -> None:
    """Print agreement per attribute, the most frequent errors, and each score with the error carried over."""
    people = f"{len(audit.raters)} {'person' if len(audit.raters) == 1 else 'people'} ({', '.join(audit.raters)})"
    table = _table(f"The annotator against {people}, {audit.n_responses} responses")
    for name in ("attribute", "labelled", "agree %", "interval", "κ", "α", "by group %", "p groups", "unread", "split"):
        table.add_column(name, justify="left" if name in {"attribute", "by group %"} else "right", no_wrap=True)
    for entry in audit.attributes:
        table.add_row(
            escape(entry.attribute),
            str(entry.n),
            percent(entry.agreement),
            interval(entry.ci_low, entry.ci_high),
            score_value(entry.kappa, "κ"),
            score_value(entry.alpha, "α"),
            escape(", ".join(f"{group} {percent(value)}" for group, value in entry.by_group.items())),
            p_value(entry.p_groups),
            str(entry.unread),
            str(entry.split),
        )
    console.print(table)
    for entry in audit.attributes:
        if entry.undefined:
            console.print(Text(f"  {DASH} {entry.attribute}: {entry.undefined}", style="yellow"))
        for said, read, n in entry.errors[:errors]:
            console.print(Text(f"  {entry.attribute}: people say {said!r}, the annotator {read!r}, {n} times"))
    table = _table("Scores with the annotator's error carried over")
    for name in ("model", "task", "attribute", "nTVD", "interval", "corrected", "interval with error"):
        table.add_column(name, justify="left" if name in {"model", "task", "attribute"} else "right", no_wrap=True)
    for score in audit.scores:
        table.add_row(
            escape(score.model),
            escape(score.task),
            escape(score.attribute),
            percent(score.value),
            interval(score.own_low, score.own_high),
            percent(score.corrected),
            interval(score.ci_low, score.ci_high),
        )
    if audit.scores:
        console.print(table)
    for score in audit.scores:
        if score.undefined:
            console.print(Text(f"  {DASH} {score.task} {score.attribute}: {score.undefined}", style="yellow"))
    console.print(
        Text(
            "p groups: whether the annotator errs more on one group than on another, which bends what is compared; "
            "κ, α: 1 all agree, 0 as by chance.\ncorrected: what people's reading would have given; its interval adds "
            "the annotator's error, as far as the labels tell, to that of the score.",
            style="dim",
        )
    )


def _table(title: str) -> Table:
    return Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False, header_style="dim")


def print_stage_audit(console: Console, audit: StageAudit) -> None:
    """Print how often each stage is right, a line per measure."""
    table = _table("stages against people")
    table.add_column("measure", no_wrap=True)
    for name in ("value", "interval", "labels"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("note")
    for measure in audit.measures:
        low_high = score_interval(measure.low, measure.high, "share")
        value = f"{measure.value:.4f}" if measure.value == measure.value else DASH
        table.add_row(measure.name, value, low_high, str(measure.n), measure.note)
    console.print(table)
    for name, count in audit.left_out.items():
        console.print(f"  {count} rows of {name} hold no complete label and are left out", style="dim", markup=False)
    console.print("interval: 95 %, over the labels", style="dim")
