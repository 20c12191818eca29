"""A pool of engines on Ray, which answers like a single engine.

A worker is an actor of Ray, a process with an engine. Its method `news` streams answers; `give` returns when the engine
begins with the requests. Then the driver, the process of the run, gives the next, so the engine does not wait.
"""

from __future__ import annotations

import itertools
import math
import os
import pickle
import queue
import sys
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from equivox.core.errors import EquivoxError, RunError, UsageError, one_line
from equivox.core.requests import Engine, EngineIdentity, Request, Response, Workers
from equivox.engines import cluster
from equivox.engines.limits import failed

TRAVELS = ("EQUIVOX_", "HF_", "HUGGING_FACE_", "OMP_NUM_THREADS", "TRANSFORMERS_", "VLLM_")
"""Prefixes of the environment variables that workers get from the driver."""
_MOST = 64  # requests in a message, which carry their media
_FRUITLESS = 4  # workers lost in a row in the same place, without an answer, end the run
_STOP_S = 20.0  # for engines to be freed, before their workers are killed
_ROOM_S = 300.0  # of silence while a worker starts or loads its model, which can hold Python up
_SILENCE_S = 60.0  # of silence of a loaded worker, which has news every second
_POLL_S = 0.05
_GATHER_S = 0.01  # responses that finish so soon after another travel together


class PoolWorker:
    """Answers requests with an engine, in the environment of the driver."""

    def __init__(self, environment: Mapping[str, str], path: Sequence[str], folder: str) -> None:
        os.environ.update(environment)
        sys.path += [entry for entry in path if entry not in sys.path]
        if os.path.isdir(folder):
            os.chdir(folder)
        self._given: queue.Queue[Sequence[Request]] = queue.Queue()
        self._said: queue.SimpleQueue[Response | None] = queue.SimpleQueue()
        self._engine, self._stopped = Engine(), False

    def answer(self, make: bytes, identity: EngineIdentity) -> None:
        """Answer requests with the engine of a pickled `make` until `stop`."""
        try:
            with pickle.loads(make)() as self._engine:
                _refuse_other_model(self._engine.identity, identity)
                while not self._stopped:
                    taken: dict[str, Request] = {}
                    for response in self._engine.generate(self._take(taken)):
                        taken.pop(response.key, None)
                        self._said.put(response)
                        if self._stopped:
                            return
                    for key in taken:
                        self._said.put(Response(key=key, text=None, error="the engine gave no response"))
        except SystemExit as error:  # Ray would end the process without a word
            raise RunError(f"SystemExit: {error}") from error
        finally:
            self._said.put(None)

    def _take(self, taken: dict[str, Request]) -> Iterator[Request]:
        """Yield requests, until none is given while others are unanswered."""
        while not self._stopped:
            given = self._given.get()
            self._given.task_done()
            if taken and not given:
                return
            taken.update((request.key, request) for request in given)
            yield from given

    def news(self) -> Iterator[tuple[list[Response | None], Any, Any]]:
        """Yield new responses, usage and servers every second, or sooner."""
        said: list[Response | None] = []
        while None not in said:
            said = []
            with suppress(queue.Empty):
                said.append(self._said.get(timeout=1))
                time.sleep(_GATHER_S)
                said += [self._said.get() for _ in range(self._said.qsize())]
            yield said, dict(self._engine.usage), frozenset(self._engine.served_as)

    def give(self, requests: Sequence[Request]) -> None:
        """Return when the engine begins with the requests; `()` ends its batch."""
        self._given.put(requests)
        self._given.join()

    def stop(self) -> None:
        """End `answer`, which frees the engine and drops unfinished responses."""
        self._stopped = True
        self._given.put(())


@dataclass(eq=False)
class _Worker:
    """The record of a worker; `given` is None if it wants requests."""

    number: int
    actor: Any
    work: Any
    news: Any
    given: Any
    fruitless: int
    has: dict[str, Request] = field(default_factory=dict)  # those that it has not answered
    chunk: int = 1  # requests in the next message, about as many as it begins with in a second
    given_at: float = 0.0
    silent: float = 0.0
    started: bool = False
    loaded: bool = False


class PoolEngine(Engine):
    """Several engines of a model, which `make` opens here and in workers."""

    served_as: Collection[str] = frozenset()

    def __init__(self, make: Callable[[], Engine], workers: Workers) -> None:
        self._make, self._workers, self._here = make, workers, make()
        self.identity, self.modalities, self.gpus = self._here.identity, self._here.modalities, self._here.gpus
        self.audio_sent, self.able = self._here.audio_sent, self._here.able
        self.lost = self.given_back = self._unanswered = 0
        self._ray: Any = None
        self._live: list[_Worker] = []
        self._used: list[Mapping[str, float]] = []  # by each worker that there was
        self._source: Iterator[Request] = iter(())
        self._alone: list[Request] = []  # each goes to a worker that has no other, so that it fails alone
        self._strikes: Counter[str] = Counter()

    @property
    def usage(self) -> Mapping[str, float]:
        """The usage of all workers; requests given to others count as retries."""
        used = Counter({"retries": self.given_back} if self.given_back else {})
        for more in (self._here.usage, *self._used):
            used.update(more)
        return used

    @property
    def copies(self) -> int:
        """The number of workers that have loaded the model."""
        return sum(worker.loaded for worker in self._live)

    @property
    def waiting(self) -> str:
        """The numbers of workers that are loaded, wanted and lost, in words."""
        return f"{self.copies} of {self._workers.count} workers" + (f", {self.lost} lost" if self.lost else "")

    def check(self, requests: Sequence[Request]) -> None:
        """Raise UsageError for requests without a possible answer, or too few GPUs."""
        self._here.check(requests)
        self.modalities = self._here.modalities
        self._connect()

    def generate(self, requests: Iterable[Request]) -> Iterator[Response]:
        """Yield each response as it arrives; the keys of `requests` must differ.

        Raises UsageError or RunError if a worker cannot go on, or if workers are lost in a row without an answer.
        """
        known = requests if isinstance(requests, Sized) else list(requests)
        self._source, self._unanswered, self._strikes, self._alone = iter(known), len(known), Counter(), []
        gpus, looked = self._connect(), time.monotonic()
        try:
            self._live += [self._start(gpus, 0) for _ in range(self._workers.count - len(self._live))]
            while self._unanswered:
                for worker in self._live:
                    self._give(worker)
                calls = [call for worker in self._live for call in (worker.given, worker.news) if call]
                self._ray.wait(calls, timeout=_POLL_S)
                ready = set(self._ray.wait(calls, num_returns=len(calls), timeout=0)[0])
                looked, before = time.monotonic(), looked
                for place, worker in enumerate(self._live):
                    try:  # nobody is silent while this process stands still
                        responses = self._hear(worker, ready, min(looked - before, 2 * _POLL_S))
                    except self._ray.exceptions.RayTaskError as error:
                        kind = type(error.cause) if isinstance(error.cause, EquivoxError) else RunError
                        raise kind(f"worker {worker.number}: {one_line(str(error.cause or error), 600)}") from error
                    except (self._ray.exceptions.RayError, TimeoutError) as error:
                        responses = self._give_back(worker, one_line(str(error).strip().rpartition("\n")[2]))
                        self._live[place] = self._start(gpus, worker.fruitless + 1)
                    self._unanswered -= len(responses)
                    yield from responses
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Free the engines and end the workers; the next request starts others."""
        started = [worker for worker in self._live if worker.started]
        for worker in started:
            worker.actor.stop.remote()
        if started:
            self._ray.wait([worker.work for worker in started], num_returns=len(started), timeout=_STOP_S)
        for worker in self._live:
            self._ray.kill(worker.actor)
        self._live.clear()
        self._here.close()

    def _connect(self) -> int:
        """Return the GPUs of a worker; UsageError if there are too few."""
        self._ray = cluster.start(self._workers.address, self._workers.count)
        there = int(self._ray.cluster_resources().get("GPU", 0))
        needed = self.gpus * (self._workers.count if self._workers.address is None else 1)
        if 0 < there < needed:
            raise UsageError(
                f"`workers` {self._workers.count} of {self.gpus} GPU(s) each need {needed}, and there are {there}; ask "
                f"for {there // self.gpus} workers" + (", or set tensor_parallel_size lower" if self.gpus > 1 else "")
            )
        return self.gpus if there else 0

    def _start(self, gpus: int, fruitless: int) -> _Worker:
        environment = {name: value for name, value in os.environ.items() if name.startswith(TRAVELS)}
        options = {"num_cpus": 0, "num_gpus": gpus, "max_concurrency": 4, "scheduling_strategy": "SPREAD"}
        actor = self._ray.remote(PoolWorker).options(**options).remote(environment, sys.path, os.getcwd())
        work = actor.answer.remote(self._ray.cloudpickle.dumps(self._make), self.identity)
        news = actor.news.options(num_returns="streaming").remote()
        self._used.append({})
        # The engine takes the first message, which has no requests, when its model is loaded.
        return _Worker(len(self._used), actor, work, news, actor.give.remote(()), fruitless)

    def _hear(self, worker: _Worker, ready: Collection[Any], passed: float) -> list[Response]:
        """Return what a worker answered; TimeoutError after a long silence."""
        if worker.given in ready:
            self._ray.get(worker.given)
            worker.given, worker.loaded, worker.started, worker.silent = None, True, True, 0.0
            quick = time.monotonic() - worker.given_at < 1
            worker.chunk = min(2 * worker.chunk, _MOST) if quick else max(worker.chunk // 2, 1)
        if worker.news in ready:
            said, self._used[worker.number - 1], servers = self._ray.get(next(worker.news, worker.work))
            responses = [answer for answer in said if answer and worker.has.pop(answer.key, None)]
            self.served_as = {*self.served_as, *servers}
            worker.silent, worker.started, worker.fruitless = 0.0, True, 0 if responses else worker.fruitless
            return responses
        worker.silent += passed
        if worker.silent > (_SILENCE_S if worker.loaded else _ROOM_S):
            if worker.started:
                raise TimeoutError(f"it gave no sign of life for {worker.silent:.0f} s")
            if not any(other.started for other in self._live):
                raise RunError(f"the cluster started no worker in {_ROOM_S:.0f} s; `ray status` shows its resources")
        return []

    def _give(self, worker: _Worker) -> None:
        """Give a worker that wants requests its share of the rest."""
        if worker.given is not None:
            return
        if self._alone or any(self._strikes[key] == 2 for key in worker.has):
            batch = [self._alone.pop()] if self._alone and not worker.has else []
        else:
            share = math.ceil(self._unanswered / self.copies) - len(worker.has)
            batch = list(itertools.islice(self._source, max(0, min(worker.chunk, share))))
        if batch or worker.has:  # without a message, an engine may wait for requests before it answers
            worker.has.update((request.key, request) for request in batch)
            worker.given, worker.given_at = worker.actor.give.remote(with_media(batch)), time.monotonic()

    def _give_back(self, worker: _Worker, why: str) -> list[Response]:
        """Return failures of requests that lost three workers; others get the rest."""
        self._ray.kill(worker.actor)
        self.lost += 1
        if not any(node["Alive"] for node in self._ray.nodes()):
            again = "its node manager died; stored responses are kept: repeat the command to resume"
            raise RunError(f"Ray has no machine left: {again}")
        if worker.fruitless + 1 == _FRUITLESS:
            raise RunError(f"{self.identity.model}: {_FRUITLESS} workers were lost in a row without an answer ({why})")
        self._strikes.update(worker.has.keys())
        once, twice, thrice = ([r for r in worker.has.values() if self._strikes[r.key] == n] for n in (1, 2, 3))
        self._source = itertools.chain(once, self._source)
        self._alone += twice
        self.given_back += len(once) + len(twice)
        return [failed(request, f"3 workers were lost with this request ({why})") for request in thrice]


def _refuse_other_model(there: EngineIdentity, here: EngineIdentity) -> None:
    """Raise RunError if a worker's model is not the driver's."""
    if there.digest != here.digest:
        public = there.as_public_dict(), here.as_public_dict()
        theirs, ours = ({**record.pop("settings"), **record, "digest": ""} for record in public)
        names = [name for name in ours | theirs if theirs.get(name) != ours.get(name)]
        said = [f"{name} is {theirs.get(name)!r} there, {ours.get(name)!r} here" for name in names]
        raise RunError(
            f"it would answer as another model ({'; '.join(said[:3]) or 'an argument that is not stored'}); "
            "install the same versions on every machine"
        )


def with_media(requests: Sequence[Request]) -> list[Request]:
    """Return requests with the bytes of their media, equal media once."""
    # A worker waited without end for references into Ray's object store, twice in 40,000 requests (Ray 2.60).
    parts = {part.sha256: part for request in requests for part in request.media}
    loads = {sha256: _read(part.load) for sha256, part in parts.items()}
    return [replace(r, media=tuple(replace(p, load=loads[p.sha256]) for p in r.media)) for r in requests]


def _read(load: Callable[[], bytes]) -> Callable[[], bytes]:
    try:
        return partial(bytes, load())
    except (OSError, EquivoxError) as error:
        return partial(_fail, str(error))


def _fail(reason: str) -> bytes:
    raise OSError(reason)
