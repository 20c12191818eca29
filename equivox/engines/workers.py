"""Workers: how many engines run at a time, and where."""

from __future__ import annotations

import threading

from equivox.core.errors import RequestError


class Workers:
    """A number of places for engines; models and annotators that share it never run more engines in all.

    `count` is the number of places that one pool may take, and `total` the number of all; they differ for what
    `at_most` returns. `address` is that of a Ray cluster, None for this machine.
    """

    def __init__(self, count: int = 1, address: str | None = None) -> None:
        if isinstance(count, bool) or not isinstance(count, int) or count < 1:
            raise RequestError(f"`workers` must be a whole number of 1 or more, got {count!r}")
        self.count = count
        self.address = address
        self._places = _Places(count)

    def at_most(self, count: int) -> Workers:
        """Return the same places for pools that may take no more than `count` of them each."""
        part = Workers(min(count, self.count), self.address)
        part._places = self._places
        return part

    @property
    def total(self) -> int:
        """The number of places of all pools together."""
        return self._places.total

    @property
    def pooled(self) -> bool:
        """Whether engines run in a pool: there are several workers, or a cluster."""
        return self.total > 1 or self.address is not None

    @property
    def wanted(self) -> bool:
        """Whether a pool waits for a place."""
        return bool(self._places.waiting)

    @property
    def stopped(self) -> bool:
        """Whether `stop` was called."""
        return self._places.stopped.is_set()

    def take(self, pool: object) -> bool:
        """Take a place for a worker of `pool`; if all are taken, return False and note that it waits."""
        places = self._places
        with places.lock:
            if not places.free:
                places.waiting.add(id(pool))
                return False
            places.free -= 1
            places.waiting.discard(id(pool))
            return True

    def give(self) -> None:
        """Give a place back."""
        with self._places.lock:
            self._places.free += 1

    def no_longer(self, pool: object) -> None:
        """Note that `pool` does not wait for a place any more."""
        with self._places.lock:
            self._places.waiting.discard(id(pool))

    def stop(self) -> None:
        """Let every pool that shares these places end what it does with RunError; pools in other threads, too."""
        self._places.stopped.set()


class _Places:
    """The places that several `Workers` share."""

    def __init__(self, total: int) -> None:
        self.total = self.free = total
        self.waiting: set[int] = set()
        self.stopped = threading.Event()
        self.lock = threading.Lock()
