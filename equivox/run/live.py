"""What a run notes while it is under way: how far it is, what it uses of servers."""

from __future__ import annotations

import math
import os
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from equivox.core.errors import EquivoxError, UsageError
from equivox.core.files import is_file_name, read_document, write_document
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
    note in seconds since 1970, `host` and `process` say who made it. `annotator` is the one that annotates; empty
    while the model answers.
    """

    per_second: float
    noted: float
    host: str
    process: int
    annotator: str = ""

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
def noting(
    folder: Path, progress: Progress, now: Callable[[], float] = time.time, *, annotator: str = ""
) -> Iterator[Progress]:
    """Yield a progress callback that calls `progress` and notes in `folder` how far the run is.

    `annotator` is the one whose server is used; empty for the model's.

    The note goes when the block ends well; after an error it stays and says where the run stopped. What the server was
    used for stands in it as long as nobody else counts that: of a start that was killed it is counted now.
    """
    killed = read_live(folder)
    if killed is not None and (not killed.annotator or is_file_name(str(killed.annotator))):
        place = folder / "annotations" / str(killed.annotator) if killed.annotator else folder
        add_usage(place, {name: used for name, used in killed.usage.items() if isinstance(used, int | float)})
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
        made = {"noted": time_now, "host": socket.gethostname(), "process": os.getpid(), "annotator": annotator}
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
                note(replace(seen, usage={}))
        raise
    (folder / LIVE_FILE).unlink(missing_ok=True)


def refuse_unfinished(folder: Path) -> None:
    """Raise UsageError for a run that is under way or was stopped before its end."""
    if (live := read_live(folder)) is not None:
        raise UsageError(
            f"{folder} is running or was stopped ({live.stage}: {live.done} of {live.total}); wait, or repeat its "
            "command to resume"
        )


USAGE_FILE = "usage.json"


def read_usage(folder: Path) -> dict[str, float]:
    """Return what was used of a server over all starts: requests and tokens; empty if none was.

    `folder` is that of a run, or that of the annotations by one annotator.
    """
    return _counted(folder / USAGE_FILE)


def _counted(path: Path) -> dict[str, Any]:
    """Return what was counted over all starts; {} if nothing was."""
    try:
        return read_document(path)
    except FileNotFoundError:
        return {}


def add_usage(folder: Path, used: Mapping[str, float], before: Mapping[str, float] = MappingProxyType({})) -> None:
    """Add what an engine has `used` of a server, if anything, to that of earlier starts.

    `before` is what it had used when this work began; nothing by default.
    """
    since = {name: value - before.get(name, 0) for name, value in used.items()}
    if since.get("requests"):
        total = read_usage(folder)
        write_document(folder / USAGE_FILE, {name: value + total.get(name, 0) for name, value in since.items()})
