"""One worker of a pool: a process of its own with one engine, which Ray starts on any machine of a cluster."""

from __future__ import annotations

import os
import pickle
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from equivox.core.errors import EquivoxError, RequestError
from equivox.core.media import sha256
from equivox.core.requests import Engine, EngineIdentity, MediaPart, Request, Response
from equivox.engines.feed import Feed
from equivox.engines.quiet import one_line

GATHER_S = 0.02
"""Responses that finish within so many seconds travel together."""
PATIENCE_S = 1.0
"""A worker without news answers the driver after so many seconds, so that the driver sees that it lives."""


@dataclass(frozen=True, kw_only=True)
class Report:
    """A worker's message to the driver: responses, how many requests wait, and whether its engine could take more.

    `failure` is why its engine cannot go on, in words; `refused` says that the request or the model is at fault.
    `returned` are the keys of requests that it gives back untouched. `usage` is that of its engine since the start.
    `node` is Ray's name of its machine.
    """

    responses: Sequence[Response]
    queued: int
    loaded: bool
    starved: bool
    blocked: bool
    idle: bool
    node: str
    returned: Sequence[str] = ()
    failure: str | None = None
    refused: bool = False
    usage: Mapping[str, float] = field(default_factory=dict)
    served_as: frozenset[str] = frozenset()


class PoolWorker:
    """Answers requests with one engine, in a thread of its own; the driver talks to it by `exchange`.

    The engine is loaded at once. `make` is the pickled function that opens it. Before that, the process takes over
    what counts for the driver: the variables of its `environment`, where it imports from (`path`), and the `folder`
    from which relative names of files count.
    """

    def __init__(self, make: bytes, environment: Mapping[str, str], path: Sequence[str], folder: str) -> None:
        os.environ.update(environment)
        sys.path += [entry for entry in path if entry not in sys.path]
        if os.path.isdir(folder):
            os.chdir(folder)
        self._node = _node()
        self._make: Callable[[], Engine] = pickle.loads(make)
        self._feed = Feed()
        self._changed = self._feed.changed
        self._done: list[Response] = []
        self._idle = False
        self._failure: Exception | None = None
        self._stopped = False
        self._engine: Engine | None = None
        self._thread = threading.Thread(target=self._work, name="engine", daemon=True)
        self._thread.start()

    def identity(self) -> EngineIdentity:
        """Return the identity of the model that this worker opens."""
        return (self._engine or self._make()).identity

    def reads(self, part: MediaPart) -> bool:
        """Return whether this worker finds the same bytes under the reference as the driver; `part` has a digest."""
        try:
            return sha256(part.load()) == part.sha256
        except (OSError, EquivoxError, ImportError):
            return False

    def exchange(self, requests: Sequence[Request], *, last: bool, hungry: bool, withdraw: bool) -> Report:
        """Take `requests` and return what is new, at the latest after `PATIENCE_S`.

        `last` says that there are no more for now. Without `hungry` a worker that could take more does not say so
        before it has something else to tell. With `withdraw` it gives back the requests that its engine has not taken.
        """
        returned = [request.key for request in self._feed.withdraw()] if withdraw else []
        with self._changed:
            if requests:
                self._idle = False
            self._feed.add(requests, last=last)
            self._changed.wait_for(lambda: returned or self._news(hungry), timeout=PATIENCE_S)
        if self._done and not self._feed.blocked and self._failure is None:
            time.sleep(GATHER_S)
        with self._changed:
            done, self._done = self._done, []
            engine = self._engine
            return Report(
                responses=done,
                queued=len(self._feed),
                loaded=self._feed.asked,
                starved=self._feed.starved,
                blocked=self._feed.blocked,
                idle=self._idle and not self._feed,
                node=self._node,
                returned=returned,
                failure=None if self._failure is None else one_line(_words(self._failure), 600),
                refused=isinstance(self._failure, RequestError),
                usage=engine.usage if engine else {},
                served_as=frozenset(engine.served_as if engine else ()),
            )

    def stop(self) -> None:
        """Free the engine; what it was about to answer is dropped."""
        with self._changed:
            self._stopped = True
        self._feed.close()
        self._thread.join()

    def _news(self, hungry: bool) -> bool:
        return bool(self._done or self._failure or self._idle or self._feed.blocked or (hungry and self._feed.starved))

    def _work(self) -> None:
        try:
            self._engine = engine = self._make()
            # The first round begins without a request, so that the model is loaded when the first one comes.
            while True:
                self._answer(engine)
                if self._stopped or not self._feed.wait_for_requests():
                    return
                self._idle = False
        except Exception as error:  # any failure of an engine ends the run, in the words of that engine
            with self._changed:
                self._failure = error
                self._changed.notify_all()
        finally:
            if self._engine is not None:
                self._engine.close()

    def _answer(self, engine: Engine) -> None:
        """Let the engine answer until the feed ends; a request that it took and left unanswered has failed."""
        responses = engine.generate(self._feed)
        for response in responses:
            with self._changed:
                self._feed.taken.pop(response.key, None)
                self._done.append(response)
                self._changed.notify_all()
            if self._stopped:
                close = getattr(responses, "close", None)
                if close is not None:
                    close()
                return
        with self._changed:
            lost = list(self._feed.taken)
            self._feed.taken.clear()
            self._done += [Response(key=key, text=None, error="the engine gave no response") for key in lost]
            self._idle = not self._feed
            self._changed.notify_all()


def _node() -> str:
    import ray

    return str(ray.get_runtime_context().get_node_id()) if ray.is_initialized() else ""


def _words(error: BaseException) -> str:
    return str(error) if isinstance(error, EquivoxError) else f"{type(error).__name__}: {error}"
