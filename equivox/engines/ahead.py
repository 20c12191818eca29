"""Requests in their order, with the media of the next ones read and decoded by threads while the engine works."""

from __future__ import annotations

import os
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from types import TracebackType
from typing import Any

from equivox.core.requests import MediaPart, Request
from equivox.engines.messages import media_content

_MOST = 16
"""The number of requests whose media are ready or being made ready at a time, so that memory is bounded."""
_RECENT = 4
"""The number of media items that are kept for the next requests about them."""
_THREADS = min(4, os.cpu_count() or 1)

_Content = dict[str, Any]


@dataclass
class _Next:
    """A request that was taken from the source; `media` is None until its media are asked for."""

    request: Request
    media: list[Future[_Content]] | None = None


class MediaAhead:
    """The requests of `source`, one by one, each with its media as parts of a chat message.

    Media of the next requests are made ready in threads, in the order of the requests. Consecutive requests about one
    clip share it: it is read and decoded once. Requests without media need no thread, and none is started for them.
    Leaving the `with` block ends the threads.
    """

    def __init__(
        self,
        source: Iterable[Request],
        *,
        content: Callable[[MediaPart], _Content] = media_content,
        most: int = _MOST,
        threads: int = _THREADS,
    ) -> None:
        self._source: Iterator[Request] = iter(source)
        self._content = content
        self._most = most
        self._threads = threads
        self._pool: ThreadPoolExecutor | None = None
        self._taken: deque[_Next] = deque()
        self._recent: OrderedDict[tuple[str, str, str], Future[_Content]] = OrderedDict()

    def take(self, room: int) -> None:
        """Take requests from the source until `room` of them, or as many as are made ready at a time, are here."""
        while len(self._taken) < min(room, self._most):
            if (request := next(self._source, None)) is None:
                break
            self._taken.append(_Next(request))
        for entry in islice(self._taken, self._most):
            if entry.media is None:
                entry.media = [self._prepare(part) for part in entry.request.media]

    @property
    def first(self) -> Request | None:
        """The next request, None if none was taken."""
        return self._taken[0].request if self._taken else None

    def ready(self) -> bool:
        """Return whether the media of the next request are ready, or failed."""
        media = self._taken[0].media if self._taken else None
        return media is not None and all(part.done() for part in media)

    def media(self) -> list[_Content]:
        """Return the media of the next request, once they are ready; raises what reading or decoding one raised."""
        entry = self._taken[0]
        if entry.media is None:
            entry.media = [self._prepare(part) for part in entry.request.media]
        return [part.result() for part in entry.media]

    def drop(self) -> None:
        """Forget the next request: it was sent, or it failed."""
        self._taken.popleft()

    def put_back(self, requests: Iterable[Request]) -> None:
        """Put requests that must be sent again before all others, in their order."""
        self._taken.extendleft(_Next(request) for request in reversed(list(requests)))

    def _prepare(self, part: MediaPart) -> Future[_Content]:
        named = (part.kind, part.sha256, part.name)
        content = self._recent.pop(named, None)
        if content is None:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(self._threads, thread_name_prefix="equivox-media")
            content = self._pool.submit(self._content, part)
        self._recent[named] = content
        if len(self._recent) > _RECENT:
            self._recent.popitem(last=False)
        return content

    def close(self) -> None:
        """End the threads; a clip that one of them is reading is read to its end."""
        pool, self._pool = self._pool, None
        self._taken.clear()
        self._recent.clear()
        if pool is not None:
            pool.shutdown(wait=True, cancel_futures=True)

    def __enter__(self) -> MediaAhead:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
