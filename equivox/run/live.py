"""A run that is under way: RUN/live.json says how far it is, on any machine that sees the folder."""

from __future__ import annotations

import math
import os
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from equivox.core.errors import EquivoxError
from equivox.core.files import read_document, write_document
from equivox.core.plain import as_plain
from equivox.core.progress import Progress, Rates, Stage, Standing
from equivox.run.usage import usage_of

LIVE_FILE = "live.json"
EVERY_S = 2.0
"""Seconds between two notes of a run."""
SILENT_S = 60.0
"""A run that has noted nothing for so many seconds has been stopped, or hangs."""


@dataclass(frozen=True, kw_only=True)
class Live:
    """The progress of a run at its last note.

    `per_second` is the rate of the stage since it began, NaN before something is done; `noted` is the time of the
    note in seconds since 1970, `host` and `process` say who made it. `usage` is what a server was asked for in this
    stage since this start: requests, tokens, cost; empty without a server.
    """

    stage: str
    done: int
    total: int
    failed: int
    per_second: float
    standing: Standing | None
    noted: float
    host: str
    process: int
    usage: Mapping[str, float] = field(default_factory=dict)

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
    standing, rate = found.pop("standing"), found.pop("per_second")
    return Live(
        **_known(Live, found),
        per_second=math.nan if rate is None else rate,
        standing=None if standing is None else Standing(**_known(Standing, standing)),
    )


def _known(kind: type, entries: Mapping[str, Any]) -> dict[str, Any]:
    names = {one.name for one in fields(kind)}
    return {name: value for name, value in entries.items() if name in names}


@contextmanager
def noting(folder: Path, progress: Progress, now: Callable[[], float] = time.time) -> Iterator[Progress]:
    """Yield a progress callback that calls `progress` and notes in `folder` how far the run is.

    The note goes when the block ends well; after an error it stays and says where the run stopped.
    """
    rates = Rates()
    last = -math.inf
    seen: tuple[str, int, int] | None = None

    def note(stage: str, done: int, total: int) -> None:
        nonlocal last
        time_now = now()
        rate = rates.per_second(stage, done, now=time_now)
        if time_now - last < EVERY_S and done < total:
            return
        last = time_now
        standing = getattr(stage, "standing", None)
        document = {
            "stage": str(stage),
            "done": done,
            "total": total,
            "failed": getattr(stage, "failed", 0),
            "per_second": as_plain(rate),
            "standing": None if standing is None else asdict(standing),
            "usage": dict(getattr(stage, "usage", {})),
            "noted": time_now,
            "host": socket.gethostname(),
            "process": os.getpid(),
        }
        write_document(folder / LIVE_FILE, document)

    def report(stage: str, done: int, total: int) -> None:
        nonlocal seen
        seen = (stage, done, total)
        progress(stage, done, total)
        note(stage, done, total)

    try:
        yield report
    except BaseException:
        if seen is not None:
            last = -math.inf
            with suppress(EquivoxError, OSError):  # the first error counts
                note(*seen)
        raise
    (folder / LIVE_FILE).unlink(missing_ok=True)


def stage_of(name: str, failed: int, engine: object) -> Stage:
    """Return the stage with how the pool is doing, if `engine` is one."""
    return Stage(name, failed=failed, standing=getattr(engine, "standing", None), usage=usage_of(engine))
