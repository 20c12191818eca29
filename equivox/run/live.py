"""A run that is under way: RUN/live.json says how far it is, on any machine that sees the folder."""

from __future__ import annotations

import math
import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from equivox.core.errors import EquivoxError
from equivox.core.files import read_document, write_document
from equivox.core.plain import as_plain
from equivox.core.progress import Event, Progress, Rates

LIVE_FILE = "live.json"
EVERY_S = 2.0
"""Seconds between two notes of a run."""
SILENT_S = 60.0
"""A run that has noted nothing for so many seconds has been stopped, or hangs."""


@dataclass(frozen=True, kw_only=True)
class Live(Event):
    """The last event of a run that was noted, and its note.

    `per_second` is the rate of the stage since it began, NaN before something is done; `noted` is the time of the
    note in seconds since 1970, `host` and `process` say who made it.
    """

    per_second: float
    noted: float
    host: str
    process: int

    @property
    def seconds_left(self) -> float:
        """Seconds until the stage is done at its rate so far; NaN without a rate."""
        return (self.total - self.done) / self.per_second if self.per_second > 0 else math.nan

    def age(self, now: float) -> float:
        """Return the seconds since the note, 0 if the other machine's clock is ahead."""
        return max(0.0, now - self.noted)


def read_live(folder: Path) -> Live | None:
    """Return how far the run in `folder` is; None if nothing writes it, or its last writer ended well.

    Entries that this version does not know, such as a later version writes, are not read.
    """
    try:
        found = read_document(folder / LIVE_FILE)
    except FileNotFoundError:
        return None
    rate = found["per_second"]
    known = {one.name: found[one.name] for one in fields(Live) if one.name in found}
    return Live(**known | {"per_second": math.nan if rate is None else rate})


@contextmanager
def noting(folder: Path, progress: Progress, now: Callable[[], float] = time.time) -> Iterator[Progress]:
    """Yield a progress callback that calls `progress` and notes in `folder` how far the run is.

    The note goes when the block ends well; after an error it stays and says where the run stopped.
    """
    rates = Rates()
    last = -math.inf
    seen: Event | None = None

    def note(event: Event) -> None:
        nonlocal last
        time_now = now()
        rate = rates.per_second(event.stage, event.done, now=time_now)
        if time_now - last < EVERY_S and event.done < event.total:
            return
        last = time_now
        made = {"noted": time_now, "host": socket.gethostname(), "process": os.getpid()}
        write_document(folder / LIVE_FILE, {**asdict(event), "per_second": as_plain(rate), **made})

    def report(event: Event) -> None:
        nonlocal seen
        seen = event
        progress(event)
        note(event)

    try:
        yield report
    except BaseException:
        if seen is not None:
            last = -math.inf
            with suppress(EquivoxError, OSError):  # the first error counts
                note(seen)
        raise
    (folder / LIVE_FILE).unlink(missing_ok=True)
