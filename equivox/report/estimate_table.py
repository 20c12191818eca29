"""An estimate as a table for a terminal."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from equivox.report.numbers import DASH
from equivox.run.run_files import Estimate


def print_estimate(console: Console, estimate: Estimate) -> None:
    """Print what each model takes, the sum, and what was reckoned with."""
    table = Table(box=None, pad_edge=False, header_style="dim", show_footer=True)
    models = estimate.models
    columns = (
        ("model", "sum", [escape(m.model) for m in models]),
        ("engine", "", [m.engine for m in models]),
        ("responses", f"{sum(m.responses for m in models):,}", [f"{m.responses:,}" for m in models]),
        ("annotator calls", f"{sum(m.annotator_calls for m in models):,}", [f"{m.annotator_calls:,}" for m in models]),
        ("GPU-hours", _hours(sum(m.gpu_hours for m in models)), [_hours(m.gpu_hours) for m in models]),
        (
            "of the annotator",
            _hours(sum(m.annotator_gpu_hours for m in models)),
            [_hours(m.annotator_gpu_hours) for m in models],
        ),
    )
    for name, footer, _ in columns:
        table.add_column(name, footer, justify="left" if name in {"model", "engine"} else "right", no_wrap=True)
    for row in zip(*(cells for _, _, cells in columns), strict=True):
        table.add_row(*row)
    console.print(table)
    a = estimate.assumptions
    told = (
        f"{estimate.tasks} tasks; {'; '.join(estimate.sources)}.\n"
        f"Reckoned with {a.completion_tokens:g} tokens an answer at {a.tokens_per_second:g} a second on one GPU, and "
        f"{a.annotation_tokens:g} at {a.annotation_tokens_per_second:g} for the annotator: set `estimate` in the file "
        f"to figures of your own. {DASH}: on a server, or without a GPU."
    )
    console.print(Text(told, style="dim"))


def _hours(hours: float) -> str:
    return DASH if hours == 0 else f"{hours:,.2f}"
