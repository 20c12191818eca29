"""Progress bars on stderr."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from equivox.core.progress import Event, Progress, Rates, no_progress
from equivox.core.text import visible
from equivox.report.numbers import in_words

if TYPE_CHECKING:
    from rich.progress import Progress as Bars
    from rich.progress import TaskID


EVERY_S = 30.0
"""Seconds between two lines of progress where there is no terminal."""


@contextmanager
def progress_bars(*, quiet: bool, title: str = "", warning: str = "") -> Iterator[Progress]:
    """Yield a progress callback that draws one bar per stage on stderr; with `quiet` it draws nothing.

    Where stderr is no terminal it writes a line every 30 seconds instead.

    A `warning` is printed there before the first stage, so after every refusal, with `quiet` too.
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    err = Console(stderr=True)
    if quiet:
        yield _after(warning, no_progress)
        return
    if not err.is_terminal:
        yield _after(warning, lines_of_progress(title, sys.stderr.write, time.monotonic))
        return
    # The name of a model and what a stage waits for are texts: square brackets in them are no markup.
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}", markup=False),
    )
    with Bars(*columns, console=err, transient=True) as bars:
        yield _after(warning, _drawn(bars, title))


def lines_of_progress(title: str, write: Callable[[str], object], now: Callable[[], float]) -> Progress:
    """Return a callback that writes how far a stage is, every 30 seconds by the clock `now`.

    >>> clock = iter([0.0, 10.0, 40.0])
    >>> progress = lines_of_progress("qwen", print, lambda: next(clock))
    >>> for done in (20, 40, 100):
    ...     progress(Event("generate", done, 260))
    qwen generate: 100 of 260, 2.0 a second, about 80 s left
    <BLANKLINE>
    """
    rates = Rates()
    last = now()

    def tell(event: Event) -> None:
        nonlocal last
        time_now = now() if event.stage in rates else last
        rate = rates.per_second(event.stage, event.done, now=time_now)
        if time_now - last < EVERY_S:
            return
        last = time_now
        words = [f"{event.done} of {event.total}"]
        if rate > 0:
            words += [f"{rate:.1f} a second", f"about {in_words((event.total - event.done) / rate)} left"]
        if event.note:
            words.append(event.note)
        write(f"{title} {event.stage}: {', '.join(words)}\n".lstrip())

    return tell


def _drawn(bars: Bars, title: str) -> Progress:
    """Return a callback that draws a bar for each stage."""
    known: dict[str, TaskID] = {}

    def show(event: Event) -> None:
        if event.stage not in known:
            known[event.stage] = bars.add_task(f"{title} {event.stage}".strip(), total=event.total, note="")
        bars.update(known[event.stage], completed=event.done, total=event.total, note=event.note)

    return show


def _after(warning: str, progress: Progress) -> Progress:
    """Return `progress` with a warning on stderr before its first stage."""
    told = not warning

    def report(event: Event) -> None:
        nonlocal told
        if not told:
            told = True
            sys.stderr.write(f"warning: {visible(warning)}\n")
        progress(event)

    return report
