"""What a run took: tokens per second of a worker with its model, measured while it answered, and its use of servers."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from equivox.core.files import read_document, write_document

SPEED_FILE, USAGE_FILE = "speed.json", "usage.json"

FEWEST_RESPONSES = 20
"""A speed from fewer responses is not used: the first ones wait for the engine to warm up."""


@dataclass
class Speed:
    """Responses and tokens that a model generated, and the seconds that it took; loading it does not count.

    `responses` and `tokens` are those after the first response, and `seconds` those since. `worker_seconds` counts them
    for each worker that had its model loaded; 0 means that there was one.
    """

    responses: int = 0
    tokens: int = 0
    seconds: float = 0.0
    worker_seconds: float = 0.0
    _last: float | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        self.worker_seconds = self.worker_seconds or self.seconds

    def count(self, tokens: int, workers: int = 1) -> None:
        """Count a response of so many tokens that has just come from one of so many workers."""
        now, before = time.monotonic(), self._last
        self._last = now
        if before is None:
            return
        self.responses += 1
        self.tokens += tokens
        self.seconds += now - before
        self.worker_seconds += (now - before) * workers

    @property
    def per_second(self) -> float:
        """Tokens per second of one worker; NaN with too few responses, or if the engine does not count tokens."""
        known = self.responses >= FEWEST_RESPONSES and self.tokens > 0 and self.worker_seconds > 0
        return self.tokens / self.worker_seconds if known else math.nan

    @property
    def per_response(self) -> float:
        """Tokens per response; NaN where `per_second` is."""
        return math.nan if math.isnan(self.per_second) else self.tokens / self.responses


def read_speed(folder: Path) -> Speed:
    """Return the speed of the run in `folder` over all its starts; without a response if it was not measured."""
    try:
        return Speed(**read_document(folder / SPEED_FILE))
    except FileNotFoundError:
        return Speed()


def add_speed(folder: Path, speed: Speed) -> None:
    """Add what was measured to what earlier starts of the run measured."""
    if speed.responses:
        before = read_speed(folder)
        names = ("responses", "tokens", "seconds", "worker_seconds")
        document = {name: getattr(speed, name) + getattr(before, name) for name in names}
        write_document(folder / SPEED_FILE, document)


def read_usage(folder: Path) -> dict[str, float]:
    """Return what was used of a server over all starts: requests, tokens, cost; empty if none was.

    `folder` is that of a run, or that of the annotations by one annotator.
    """
    try:
        return read_document(folder / USAGE_FILE)
    except FileNotFoundError:
        return {}


def add_usage(folder: Path, used: Mapping[str, float], before: Mapping[str, float] = MappingProxyType({})) -> None:
    """Add what an engine has `used` of a server, if anything, to that of earlier starts.

    `before` is what it had used when this work began; nothing by default.
    """
    since = {name: value - before.get(name, 0) for name, value in used.items()}
    if since.get("requests"):
        total = read_usage(folder)
        document = {name: value + total.get(name, 0) for name, value in since.items()}
        write_document(folder / USAGE_FILE, document)
