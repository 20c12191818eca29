"""A pool of engines on Ray: several workers, on this machine or on many, answer as one engine.

Each worker is an actor of Ray, a process with one engine, and a streaming generator of what it has to say. In the
driver, which is the process of the run and the only one that writes, a thread for each worker gives it requests when
it asks for some. If a worker or its machine is lost, its requests go to the others, and a new worker takes its place.
"""

from __future__ import annotations

import itertools
import math
import os
import queue
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from equivox.core.errors import EquivoxError, RunError, UsageError, one_line
from equivox.core.requests import Engine, EngineIdentity, Request, Response, Workers
from equivox.engines import cluster
from equivox.engines.limits import failed
from equivox.engines.pool_worker import News, PoolWorker

TRAVELS = ("EQUIVOX_", "HF_", "HUGGING_FACE_", "OMP_NUM_THREADS", "TRANSFORMERS_", "VLLM_")
"""The beginnings of the names of environment variables that a worker gets from the driver."""
_MOST = 64
"""The most requests in a message; they carry their media."""
_STRIKES = 3
"""A request that was with this many workers when they were lost has failed."""
_FRUITLESS = 4
"""As many workers that are lost in a row in one place, without an answer, end the run."""
_STOP_S = 20.0
"""Seconds that a worker has to free its engine before it is killed."""
_ROOM_S = 300.0
"""Seconds that a worker has to start, or to load its model, which can keep Python from doing anything else."""
_SILENCE_S = 60.0
"""A loaded worker speaks every second; one that does not for so long is lost."""
_POLL_S = 0.2


@dataclass(eq=False)
class _Worker:
    """The driver's record of a worker: the requests that it has, and what it said last."""

    number: int
    actor: Any
    has: dict[str, Request] = field(default_factory=dict)
    news: News | None = None
    asks: bool = False
    loaded: bool = False
    answered: bool = False
    given_at: float = 0.0
    chunk: int = 1
    """The number of requests that it gets next time: about as many as it takes in a second."""


class PoolEngine(Engine):
    """Several engines of one model, used as one; `make` opens such an engine, here and in every worker.

    Nothing starts before the first request is generated.
    """

    def __init__(self, make: Callable[[], Engine], workers: Workers) -> None:
        self._make, self._workers, self._here = make, workers, make()
        self.identity, self.modalities, self.gpus = self._here.identity, self._here.modalities, self._here.gpus
        self.audio_sent, self.able = self._here.audio_sent, self._here.able
        self.lost = self.given_back = 0
        self._ray: Any = None
        self._threads: list[threading.Thread] = []
        self._changed = threading.Condition()
        """Guards what the threads share: all of the following."""
        self._all: list[_Worker] = []
        self._source: Iterator[Request] = iter(())
        self._suspects: deque[Request] = deque()
        """Requests that a lost worker had: each goes to a worker that has nothing else, so that it fails alone."""
        self._left = 0
        """The number of requests that no worker has, suspects included."""
        self._strikes: Counter[str] = Counter()
        self._done: queue.SimpleQueue[Sequence[Response] | BaseException] = queue.SimpleQueue()
        self._closing = False

    @property
    def usage(self) -> Mapping[str, float]:
        """The usage of all workers together; requests that were given to another worker count as sent again."""
        used: Counter[str] = Counter(self._here.usage)
        for worker in self._all:
            used.update(worker.news.usage if worker.news else {})
        if self.given_back:
            used["retries"] += self.given_back
        return used

    @property
    def served_as(self) -> Collection[str]:
        """The names under which servers answered."""
        return {name for worker in self._all if worker.news for name in worker.news.served_as}

    @property
    def copies(self) -> int:
        """The number of workers that have loaded the model."""
        return sum(worker.loaded for worker in self._all)

    @property
    def waiting(self) -> str:
        """How many workers are loaded, asked for and lost, in words."""
        lost = f", {self.lost} lost" if self.lost else ""
        return f"{self.copies} of {self._workers.count} workers{lost}"

    def check(self, requests: Sequence[Request]) -> None:
        """Raise UsageError for requests that the model cannot answer, or if there are too few GPUs for the workers.

        Ray is started or connected to, but no worker is started.
        """
        self._here.check(requests)
        self.modalities = self._here.modalities
        self._gpus()

    def generate(self, requests: Iterable[Request]) -> Iterator[Response]:
        """Yield each response as soon as it arrives from a worker; the keys of `requests` must differ.

        Raises UsageError or RunError, in the words of the worker, when one cannot load the model or cannot go on,
        and RunError when workers are lost again and again without an answer.
        """
        known = requests if isinstance(requests, Sized) else list(requests)
        done = self._done = queue.SimpleQueue()
        with self._changed:
            self._source, self._left = iter(known), len(known)
            self._suspects.clear()
        unanswered = len(known)
        self._start_threads()
        try:
            while unanswered:
                found = done.get()
                if isinstance(found, BaseException):
                    raise found
                unanswered -= len(found)
                yield from found
        except BaseException:
            self._end_threads()
            raise

    def close(self) -> None:
        """Stop all workers and free what they hold; the next request starts new ones."""
        self._end_threads()
        self._here.close()

    def _gpus(self) -> int:
        """Return how many GPUs a worker asks for: none where the cluster has none; UsageError if it has too few."""
        self._ray = cluster.start(self._workers.address, self._workers.count)
        there = int(self._ray.cluster_resources().get("GPU", 0))
        needed = self.gpus * (self._workers.count if self._workers.address is None else 1)
        if 0 < there < needed:
            raise UsageError(
                f"`workers` {self._workers.count} of {self.gpus} GPU(s) each need {needed}, and there are {there}; ask "
                f"for {there // self.gpus} workers" + (", or set tensor_parallel_size lower" if self.gpus > 1 else "")
            )
        return self.gpus if there else 0

    def _start_threads(self) -> None:
        gpus = self._gpus()
        with self._changed:
            self._threads = [thread for thread in self._threads if thread.is_alive()]
            for _ in range(self._workers.count - len(self._threads)):
                self._threads.append(threading.Thread(target=self._serve, args=[gpus], name="worker", daemon=True))
                self._threads[-1].start()
            self._changed.notify_all()

    def _end_threads(self) -> None:
        with self._changed:
            self._closing, self._left = True, 0
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()
        self._threads, self._closing = [], False

    def _serve(self, gpus: int) -> None:
        """Use one worker after the other until the pool is closed; what this raises, `generate` raises."""
        fruitless = 0
        try:
            while not self._closing:
                worker, why = self._start(gpus), ""
                try:
                    why = self._talk(worker)
                except self._ray.exceptions.RayTaskError as error:
                    kind = type(error.cause) if isinstance(error.cause, EquivoxError) else RunError
                    raise kind(f"worker {worker.number}: {one_line(str(error.cause or error), 600)}") from error
                except (self._ray.exceptions.RayError, StopIteration) as error:
                    why = one_line(str(error).strip().splitlines()[-1], 300)
                finally:
                    worker.loaded = False
                    if worker.news is not None and not why:
                        self._ray.wait([worker.actor.stop.remote()], timeout=_STOP_S)
                    self._ray.kill(worker.actor, no_restart=True)
                if why:
                    self._give_back(worker, why)
                    fruitless = 0 if worker.answered else fruitless + 1
                if fruitless == _FRUITLESS:
                    raise RunError(
                        f"{self.identity.model}: {fruitless} workers were lost in a row without an answer ({why})"
                    )
        except BaseException as error:
            self._done.put(error)

    def _start(self, gpus: int) -> _Worker:
        environment = {name: value for name, value in os.environ.items() if name.startswith(TRAVELS)}
        actor = self._ray.remote(PoolWorker).options(
            num_cpus=0, num_gpus=gpus, max_concurrency=4, max_restarts=0, scheduling_strategy="SPREAD"
        )
        with self._changed:
            worker = _Worker(len(self._all) + 1, actor.remote(environment, sys.path, os.getcwd()))
            self._all.append(worker)
        return worker

    def _talk(self, worker: _Worker) -> str:
        """Listen to a worker and give it what it asks for; return why it is lost, or nothing if the pool is closed."""
        stream = worker.actor.news.options(num_returns="streaming").remote(self._make)
        silent, looked = 0.0, time.monotonic()
        while not self._closing:
            if worker.asks:
                self._give(worker)
            ready, _ = self._ray.wait([stream], timeout=0 if worker.asks and not worker.has else _POLL_S)
            # While this process is stopped or busy, nobody is silent.
            looked, before = time.monotonic(), looked
            silent += min(looked - before, 2 * _POLL_S)
            if ready:
                silent = 0.0
                self._take(worker, self._ray.get(next(stream)))
            elif silent > (_SILENCE_S if worker.loaded else _ROOM_S):
                if worker.news is not None:
                    return f"it gave no sign of life for {silent:.0f} s"
                if not any(other.news for other in self._all):
                    raise RunError(f"the cluster started no worker in {silent:.0f} s; `ray status` shows its resources")
        return ""

    def _take(self, worker: _Worker, news: News) -> None:
        """Note what a worker says, and hand its responses on."""
        if news.identity is not None:
            self._refuse_other_model(worker, news.identity)
        with self._changed:
            worker.news = news
            worker.asks, worker.loaded = worker.asks or news.asks, worker.loaded or news.asks
            responses = [response for response in news.responses if worker.has.pop(response.key, None)]
            worker.answered |= bool(responses)
            if news.idle:
                responses += [Response(key=key, text=None, error="the engine gave no response") for key in worker.has]
                worker.has.clear()
        self._done.put(responses)

    def _give(self, worker: _Worker) -> None:
        """Give a worker that asks some of the requests that are left.

        An engine that has its share of what is not answered gets an empty message: it answers what it has, and asks
        again. So does one that has, or would get, a request that was with a lost worker: that one is given alone. An
        engine that asks and gets no message may wait for one before it answers, as vLLM does.
        """
        with self._changed:
            if not worker.has and not self._changed.wait_for(lambda: self._left or self._closing, timeout=_POLL_S):
                return
            quick = time.monotonic() - worker.given_at < 1
            worker.chunk = min(2 * worker.chunk, _MOST) if quick else max(worker.chunk // 2, 1)
            loaded = [other for other in self._all if other.loaded]
            share = math.ceil((self._left + sum(len(other.has) for other in loaded)) / len(loaded))
            room = max(0, min(worker.chunk, share - len(worker.has)))
            if self._suspects:
                batch = [] if worker.has else [self._suspects.popleft()]
            else:
                struck = any(self._strikes[key] for key in worker.has)
                batch = [] if struck else list(itertools.islice(self._source, room))
            self._left -= len(batch)
            worker.has.update((request.key, request) for request in batch)
            worker.given_at, worker.asks = time.monotonic(), False
        worker.actor.give.remote(with_media(batch))

    def _give_back(self, worker: _Worker, why: str) -> None:
        """Let the others have what a lost worker had; a request that was lost too often has failed."""
        if not any(node["Alive"] for node in self._ray.nodes()):
            raise RunError(
                "Ray has no machine left: its node manager died; stored responses are kept: repeat the command "
                "to resume"
            )
        with self._changed:
            self._strikes.update(worker.has.keys())
            again = [request for request in worker.has.values() if self._strikes[request.key] < _STRIKES]
            lost = [request for request in worker.has.values() if self._strikes[request.key] >= _STRIKES]
            worker.has.clear()
            self._suspects.extend(again)
            self._left += len(again)
            self.lost, self.given_back = self.lost + 1, self.given_back + len(again)
            self._changed.notify_all()
        self._done.put([failed(request, f"{_STRIKES} workers were lost with this request ({why})") for request in lost])

    def _refuse_other_model(self, worker: _Worker, theirs: EngineIdentity) -> None:
        """Raise RunError if a worker's model is not the driver's, such as one of another version."""
        if theirs.digest == self.identity.digest:
            return
        ours, other = self.identity.as_public_dict(), theirs.as_public_dict()
        ours, other = ours | ours.pop("settings"), other | other.pop("settings")
        differing = [name for name in ours | other if ours.get(name) != other.get(name) and name != "digest"]
        told = "; ".join(f"{name} is {other.get(name)!r} there, {ours.get(name)!r} here" for name in differing[:3])
        raise RunError(
            f"worker {worker.number} would answer as another model ({told or 'an argument that is not stored'}); "
            "install the same versions on every machine"
        )


def with_media(requests: Sequence[Request]) -> list[Request]:
    """Return requests that carry the bytes of their media, equal ones once; one that cannot be read fails there.

    Not references into Ray's object store: a worker waited for one without end, twice in 40,000 requests (Ray 2.60).
    """
    loads: dict[str, Callable[[], bytes]] = {}
    for part in (part for request in requests for part in request.media):
        if part.sha256 not in loads:
            try:
                loads[part.sha256] = partial(_content, part.load())
            except (OSError, EquivoxError) as error:
                loads[part.sha256] = partial(_content, b"", str(error))
    return [
        replace(request, media=tuple(replace(part, load=loads[part.sha256]) for part in request.media))
        for request in requests
    ]


def _content(content: bytes, unreadable: str = "") -> bytes:
    if unreadable:
        raise OSError(unreadable)
    return content
