"""Progress callbacks of long-running stages."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

Progress = Callable[[str, int, int], None]
"""Called with a stage's name, the number of things done and the total; the name can be a `Stage`, which knows more."""


def no_progress(stage: str, done: int, total: int) -> None:
    """Ignore progress."""


class Rates:
    """How fast each stage is, counted from when it was first seen: what was done before then is no work of this start.

    >>> rates = Rates()
    >>> rates.per_second("generate", 20, now=0.0), rates.per_second("generate", 100, now=40.0)
    (nan, 2.0)
    """

    def __init__(self) -> None:
        self._began: dict[str, tuple[float, int]] = {}

    def per_second(self, stage: str, done: int, *, now: float) -> float:
        """Return the things done per second at the time `now`; NaN before something is done."""
        since, before = self._began.setdefault(str(stage), (now, done))
        return (done - before) / (now - since) if now > since and done > before else math.nan

    def __contains__(self, stage: str) -> bool:
        """Whether a stage was seen."""
        return stage in self._began


@dataclass(frozen=True, kw_only=True)
class Standing:
    """How a pool of engines is doing: the workers that are loaded, asked for and lost, and the requests given back."""

    loaded: int
    asked: int
    lost: int
    given_back: int

    def __str__(self) -> str:
        """Return it in words, without what is zero.

        >>> str(Standing(loaded=3, asked=4, lost=1, given_back=12))
        '3 of 4 workers, 1 lost, 12 requests given back'
        """
        words = [f"{self.loaded} of {self.asked} workers"]
        words += [f"{self.lost} lost"] if self.lost else []
        words += [f"{self.given_back} requests given back"] if self.given_back else []
        return ", ".join(words)


class Stage(str):
    """The name of a stage, with the number of things that failed and how the pool of engines is doing, if there is one.

    `usage` is what a server was asked for since this start: requests, tokens, cost; empty without one.

    >>> Stage("generate", failed=2) == "generate"
    True
    >>> Stage("generate", failed=2, usage={"requests": 90, "retries": 3, "cost": 0.042}).note
    '2 failed, 3 sent again, cost 0.04'
    """

    failed: int
    standing: Standing | None
    usage: Mapping[str, float]

    def __new__(
        cls,
        name: str,
        *,
        failed: int = 0,
        standing: Standing | None = None,
        usage: Mapping[str, float] | None = None,
    ) -> Stage:
        """Return the stage called `name`."""
        stage = super().__new__(cls, name)
        stage.failed, stage.standing, stage.usage = failed, standing, usage or {}
        return stage

    @property
    def note(self) -> str:
        """The words beside the count: the pool, failures, requests sent again, cost; without what is zero."""
        words = [str(self.standing)] if self.standing is not None else []
        words += [f"{self.failed} failed"] if self.failed else []
        words += [f"{self.usage['retries']:.0f} sent again"] if self.usage.get("retries") else []
        words += [f"cost {self.usage['cost']:.2f}"] if self.usage.get("cost") else []
        return ", ".join(words)
