"""Progress of long-running stages: one kind of event, the function that receives it, and an engine's outage."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from equivox.core.errors import RunError

if TYPE_CHECKING:
    from equivox.core.requests import Response


@dataclass(frozen=True)
class Event:
    """How far a stage is: `done` of `total` things, of which `failed` have failed.

    `waiting` says in words what several workers wait for. `usage` counts the requests to a server since this start, and
    their tokens; empty without one.

    >>> Event("generate", 40, 100, failed=2, usage={"requests": 90, "retries": 3}).note
    '2 failed, 3 sent again'
    """

    stage: str
    done: int
    total: int
    failed: int = 0
    waiting: str = ""
    usage: Mapping[str, float] = field(default_factory=dict)

    @property
    def note(self) -> str:
        """The words beside the count: the workers, failures, requests sent again; without what is zero."""
        retries = self.usage.get("retries", 0)
        words = [self.waiting, f"{self.failed} failed" * bool(self.failed), f"{retries:.0f} sent again" * bool(retries)]
        return ", ".join(filter(None, words))


Progress = Callable[[Event], None]


def no_progress(event: Event) -> None:
    """Ignore progress."""


def keeping_first(progress: Progress, kept: list[Event]) -> Progress:
    """Return a callback that calls `progress`, and keeps the first event: what was done before this start."""

    def report(event: Event) -> None:
        if not kept:
            kept.append(event)
        progress(event)

    return report


class Rates:
    """How fast each stage is, counted from the first thing that was done while it was watched.

    What was done before is no work of this start. The time until the first answer is mostly that of loading a model,
    which further answers do not take.

    >>> rates = Rates()
    >>> times = ((20, 0), (21, 600), (22, 601), (101, 640))
    >>> [rates.per_second("generate", done, now=seconds) for done, seconds in times]
    [nan, nan, nan, 2.0]
    """

    def __init__(self) -> None:
        self._seen: dict[str, int] = {}
        self._began: dict[str, tuple[float, int]] = {}

    def per_second(self, stage: str, done: int, *, now: float) -> float:
        """Return the things done per second at the time `now`; NaN while too few are done to tell."""
        if done <= self._seen.setdefault(stage, done):
            return math.nan
        since, before = self._began.setdefault(stage, (now, done))
        # Fewer than five give no rate: of the scores of a few tasks, one can take as long as all others.
        return (done - before) / (now - since) if now > since and done - before >= 5 else math.nan

    def __contains__(self, stage: str) -> bool:
        """Whether a stage was seen."""
        return stage in self._seen


STOP_AFTER = 20
"""So many failures in a row for one fatal cause are an outage, unless a user says otherwise."""
NO_ANSWER_YET = "no answer yet: "
"""The beginning of `fatal` where a failure is fatal only because the engine has answered nothing since its start."""


def until_outage(
    responses: Iterable[Response], who: str, stop_after: int, *, failed_before: Collection[str] = ()
) -> Iterator[Response]:
    """Yield responses as they come; RunError at an outage, which is `stop_after` fatal failures alike in a row.

    Fatal failures are held back until another response shows that the engine still answers. Those of an outage are
    not yielded: they are asked again when the run goes on. With `stop_after` 0 nothing is an outage. `failed_before`
    are the keys of requests that an earlier run failed on. An engine that answers none of them may answer others.
    """
    held: list[Response] = []
    try:
        for response in responses:
            known = response.key in failed_before and str(response.fatal).startswith(NO_ANSWER_YET)
            fatal = None if known or not stop_after else response.fatal
            if held and held[-1].fatal != fatal:
                yield from held
                held = []
            if fatal is None:
                yield response
            else:
                held.append(response)
            if len(held) >= stop_after > 0:
                failed = f"{who} failed {len(held)} times in a row with the same error ({response.error})"
                cure = "stored responses are kept: fix the cause and repeat the command (or `--stop-after 0`)"
                raise RunError(f"{failed}, so the run stopped; {cure}")
    finally:
        if isinstance(responses, Generator):
            responses.close()
    yield from held
