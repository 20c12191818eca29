"""Requests that come while an engine already answers: what a worker of a pool receives instead of a list."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Iterator

from equivox.core.requests import Request


def would_wait(requests: Iterator[Request]) -> bool:
    """Return whether `next(requests)` would wait for a request that nobody has sent yet.

    An engine that has requests under way asks this before it takes another one, so that it goes on with those it has.
    Only a feed waits; any other iterator has its next request or is at its end.
    """
    return isinstance(requests, Feed) and not requests.ready()


class Feed:
    """An iterator of requests that another thread adds to; `next` waits until there is one or the last one came.

    `starved` says that an engine asked for a request and found none since some were added last. `blocked` says that
    it waits for one now, so that it can do nothing else; `asked`, that it has asked at all. `taken` holds the keys of
    the requests that the engine took; who sees their responses removes them. `changed` guards all of it.
    """

    def __init__(self) -> None:
        self._requests: deque[Request] = deque()
        self._last = False
        self._closed = False
        self.changed = threading.Condition()
        self.taken: dict[str, None] = {}
        self.asked = False
        self.starved = False
        self.blocked = False

    def __len__(self) -> int:
        return len(self._requests)

    def __iter__(self) -> Iterator[Request]:
        return self

    def __next__(self) -> Request:
        with self.changed:
            self.asked = True
            while not self._requests:
                if self._last:
                    raise StopIteration
                self.starved = self.blocked = True
                self.changed.notify_all()
                self.changed.wait()
            self.blocked = False
            request = self._requests.popleft()
            self.taken[request.key] = None
            return request

    def ready(self) -> bool:
        """Return whether `next` returns or ends at once."""
        with self.changed:
            if self._requests or self._last:
                return True
            if not self.starved:
                self.starved = True
                self.changed.notify_all()
            return False

    def add(self, requests: Iterable[Request], *, last: bool) -> None:
        """Append `requests`; with `last` the feed ends after them, until more are added."""
        with self.changed:
            before = len(self._requests)
            self._requests.extend(requests)
            self._last = last
            if last or len(self._requests) > before:
                self.starved = self.blocked = False
            self.changed.notify_all()

    def withdraw(self) -> list[Request]:
        """Return the requests that the engine has not taken yet; it will not get them."""
        with self.changed:
            left = list(self._requests)
            self._requests.clear()
            return left

    def wait_for_requests(self) -> bool:
        """Wait until there is a request; return False if the feed was closed instead."""
        with self.changed:
            self.changed.wait_for(lambda: self._requests or self._closed)
            return not self._closed

    def close(self) -> None:
        """End the feed for good: what it still holds is dropped."""
        with self.changed:
            self._requests.clear()
            self._last = self._closed = True
            self.changed.notify_all()
