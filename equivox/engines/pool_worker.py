"""One worker of a pool: a process of its own with one engine, which Ray starts on any machine of a cluster."""

from __future__ import annotations

import os
import queue
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from equivox.core.errors import EquivoxError, RunError
from equivox.core.requests import Engine, EngineIdentity, Request, Response

PULSE_S = 1.0
"""A worker says something so often, whatever its engine does, so that the driver sees that it lives."""
_GATHER_S = 0.02
"""Responses that finish within so many seconds travel together."""


@dataclass(kw_only=True)
class News:
    """What a worker has to say: the responses since it last did, and whether its engine asks for requests.

    `idle` says that the engine holds no request: those that it took and did not answer have failed.
    """

    responses: list[Response] = field(default_factory=list)
    asks: bool = False
    idle: bool = False
    identity: EngineIdentity | None = None
    usage: Mapping[str, float] = field(default_factory=dict)
    served_as: frozenset[str] = frozenset()


class PoolWorker:
    """Answers requests with one engine, in a thread of its own.

    Its process takes over what counts for the driver: the variables of its `environment`, where it imports from
    (`path`), and the `folder` from which relative names of files count.
    """

    def __init__(self, environment: Mapping[str, str], path: Sequence[str], folder: str) -> None:
        os.environ.update(environment)
        sys.path += [entry for entry in path if entry not in sys.path]
        if os.path.isdir(folder):
            os.chdir(folder)
        self._given: queue.SimpleQueue[Sequence[Request]] = queue.SimpleQueue()
        self._said: queue.SimpleQueue[Response | News | Exception] = queue.SimpleQueue()
        self._engine: Engine | None = None
        self._stopped = False
        self._thread = threading.Thread(target=self._work, name="engine", daemon=True)

    def news(self, make: Callable[[], Engine]) -> Iterator[News]:
        """Open the engine with `make` and yield what is new, without end; raises what the engine raises."""
        self._make = make
        self._thread.start()
        while True:
            news, since = News(), time.monotonic()
            with suppress(queue.Empty):
                while not news.asks and (now := time.monotonic() - since) < PULSE_S:
                    said = self._said.get(timeout=_GATHER_S if news.responses else PULSE_S - now)
                    if isinstance(said, Exception):
                        raise said
                    if isinstance(said, News):
                        news.asks, news.idle, news.identity = said.asks, said.idle, said.identity
                    else:
                        news.responses.append(said)
            if self._engine is not None:
                news.usage, news.served_as = dict(self._engine.usage), frozenset(self._engine.served_as)
            yield news

    def give(self, requests: Sequence[Request]) -> None:
        """Let the engine have requests; without any it answers those that it has, and then asks again."""
        self._given.put(requests)

    def stop(self) -> None:
        """Free the engine; what it was about to answer is dropped."""
        self._stopped = True
        self._given.put(())
        self._thread.join()

    def _work(self) -> None:
        try:
            self._engine = self._make()
            while not self._stopped:
                responses = self._engine.generate(self._requests(self._engine.identity))
                for response in responses:
                    self._said.put(response)
                    if self._stopped:
                        break
                if isinstance(responses, Generator):
                    responses.close()
        except EquivoxError as error:
            self._said.put(error)
        except (Exception, SystemExit) as error:  # any failure of an engine ends the run, in the words of that engine
            self._said.put(RunError(f"{type(error).__name__}: {error}"))
        finally:
            if self._engine is not None:
                self._engine.close()

    def _requests(self, identity: EngineIdentity) -> Iterator[Request]:
        """Yield what the driver gives, until it gives nothing."""
        self._said.put(News(asks=True, idle=True, identity=identity))
        while given := self._given.get():
            yield from given
            self._said.put(News(asks=True))
