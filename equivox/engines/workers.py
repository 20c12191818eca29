"""Workers: how many engines run at a time, and where."""

from __future__ import annotations

import copy
import threading

from equivox.core.errors import RequestError


class Workers:
    """A number of places for engines; models and annotators that share it never run more engines in all.

    `count` is the number of places that one pool may take, and `total` the number of all; they differ for what
    `at_most` returns. `address` is that of a Ray cluster, None for this machine. Once `stopped` is set, every pool ends
    what it does with RunError; pools in other threads, too.
    """

    def __init__(self, count: int = 1, address: str | None = None) -> None:
        if isinstance(count, bool) or not isinstance(count, int) or count < 1:
            raise RequestError(f"`workers` must be a whole number of 1 or more, got {count!r}")
        self.count = self.total = count
        self.address = address
        self.places = threading.Semaphore(count)
        self.stopped = threading.Event()

    def at_most(self, count: int) -> Workers:
        """Return the same places for pools that may take no more than `count` of them each."""
        part = copy.copy(self)
        part.count = min(count, self.count)
        return part

    @property
    def pooled(self) -> bool:
        """Whether engines run in a pool: there are several workers, or a cluster."""
        return self.total > 1 or self.address is not None
