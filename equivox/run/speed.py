"""How fast a run was: tokens per second of its model, measured while it answered."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from pathlib import Path

from equivox.core.files import read_document, write_document

SPEED_FILE = "speed.json"

FEWEST_RESPONSES = 20
"""A speed from fewer responses is not used: the first ones wait for the engine to warm up."""


@dataclass
class Speed:
    """What a model generated, and in how many seconds; loading it does not count.

    `responses` and `tokens` are those after the first response, and `seconds` those since.
    """

    responses: int = 0
    tokens: int = 0
    seconds: float = 0.0
    _began: float | None = field(default=None, repr=False, compare=False)

    def count(self, tokens: int) -> None:
        """Count a response of so many tokens that has just come."""
        now = time.monotonic()
        if self._began is None:
            self._began = now
            return
        self.responses += 1
        self.tokens += tokens
        self.seconds = now - self._began

    @property
    def per_second(self) -> float:
        """Tokens per second; NaN with too few responses, or if the engine does not count tokens."""
        known = self.responses >= FEWEST_RESPONSES and self.tokens > 0 and self.seconds > 0
        return self.tokens / self.seconds if known else math.nan

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
        document = {name: getattr(speed, name) + getattr(before, name) for name in ("responses", "tokens", "seconds")}
        write_document(folder / SPEED_FILE, document)
