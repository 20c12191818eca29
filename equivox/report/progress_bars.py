"""Progress bars on stderr."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from equivox.core.progress import Progress, no_progress
from equivox.core.text import visible


@contextmanager
def progress_bars(*, quiet: bool, title: str = "", warning: str = "") -> Iterator[Progress]:
    """Yield a progress callback that draws one bar per stage on stderr; with `quiet` it draws nothing.

    A `warning` is printed there before the first stage, so after every refusal, with `quiet` too.
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    err = Console(stderr=True)
    if quiet or not err.is_terminal:
        yield _after(warning, no_progress)
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Bars(*columns, console=err, transient=True) as bars:
        known: dict[str, object] = {}

        def show(stage: str, done: int, total: int) -> None:
            if stage not in known:
                known[stage] = bars.add_task(f"{title} {stage}".strip(), total=total)
            bars.update(known[stage], completed=done, total=total)  # type: ignore[arg-type]

        yield _after(warning, show)


def _after(warning: str, progress: Progress) -> Progress:
    """Return `progress` with a warning on stderr before its first stage."""
    told = not warning

    def report(stage: str, done: int, total: int) -> None:
        nonlocal told
        if not told:
            told = True
            sys.stderr.write(f"warning: {visible(warning)}\n")
        progress(stage, done, total)

    return report
