"""A pool of engines on Ray: several workers, on this machine or on many, answer as one engine.

Each worker is a process with one engine. The driver, which is the process of the run, hands out requests as they are
needed, and it alone writes. A worker gets new requests before its engine runs out of them, but few in advance, so that
a slow one does not hold the others. If a worker or its machine is lost, its requests go to the others, and a new
worker takes its place.
"""

from __future__ import annotations

import itertools
import math
import os
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from equivox.core.errors import EquivoxError, RequestError, RunError
from equivox.core.requests import Engine, MediaPart, Request, Response
from equivox.engines import cluster
from equivox.engines.limits import failed
from equivox.engines.pool_media import Parcel, travels
from equivox.engines.pool_worker import PATIENCE_S, PoolWorker, Report
from equivox.engines.quiet import one_line
from equivox.engines.workers import Workers

_AHEAD = 512
"""Requests that the driver looks ahead for each worker, so that it can share out the last ones evenly."""
_MOST_QUEUED = 512
_STRIKES = 3
"""A request that was with this many workers when they were lost has failed."""
_FRUITLESS = 2
"""As many losses in a row for each worker, without an answer in between, end the run."""
_STOP_S = 20.0
"""Seconds that a worker has to free its engine before it is killed."""
_ROOM_S = 300.0
"""Seconds after which a cluster that starts no worker at all has no room for one."""
_SILENCE_S = 60.0
"""A worker answers the driver every `PATIENCE_S`, whatever its engine does; one that does not for so long is lost.

While it loads its model, which can keep Python from doing anything else, it has `_ROOM_S`.
"""
_POLL_S = 0.2


@dataclass(eq=False)
class _Worker:
    """The driver's record of a worker: the requests it has, and the call to it that is under way."""

    number: int
    actor: Any
    has: dict[str, Request] = field(default_factory=dict)
    call: Any = None
    silent: float = 0.0
    """Seconds for which its answer to the call has been waited for."""
    depth: int = 1
    """The number of requests to keep in its queue."""
    answered: int = 0
    reads: bool | None = None
    """Whether it reads media under the same names as the driver; None: not known yet."""
    report: Report | None = None

    @property
    def loaded(self) -> bool:
        return self.report is not None and self.report.loaded

    @property
    def idle(self) -> bool:
        return self.report is not None and self.report.idle and not self.has


class PoolEngine(Engine):
    """Several engines of one model, used as one; `make` opens such an engine, here and in every worker.

    Nothing starts before the first request is generated or `warm` is called. `successor` is a pool that comes next:
    it gets the places of workers that have nothing left to do, unless another pool waits for one already.
    """

    def __init__(self, make: Callable[[], Engine], workers: Workers) -> None:
        self._make = make
        self._workers = workers
        self._here = make()
        self.identity = self._here.identity
        self.modalities = self._here.modalities
        self.gpus = self._here.gpus
        self._ray: Any = None
        self._running: dict[int, _Worker] = {}
        self._numbers = itertools.count(1)
        self._kept = 0
        self._ended: list[Report] = []
        self.lost = self.given_back = self._fruitless = 0
        self._leaving: list[threading.Thread] = []
        self._began = self._looked = 0.0
        self._last_words = ""
        self._warming = threading.Lock()

    @property
    def usage(self) -> Mapping[str, float]:
        """The usage of all workers together; requests that were given to another worker count as sent again."""
        used: Counter[str] = Counter(self._here.usage)
        for report in self._reported():
            used.update(report.usage)
        if self.given_back:
            used["retries"] += self.given_back
        return used

    @property
    def served_as(self) -> Collection[str]:
        """The names under which servers answered."""
        return set().union(*(report.served_as for report in self._reported()))

    @property
    def copies(self) -> int:
        """The number of workers that have loaded the model."""
        return sum(worker.loaded for worker in self._running.values())

    @property
    def waiting(self) -> str:
        """How many workers are loaded, asked for and lost, in words."""
        lost = f", {self.lost} lost" if self.lost else ""
        return f"{self.copies} of {self._workers.count} workers{lost}"

    def check(self, requests: Sequence[Request]) -> None:
        """Raise RequestError for requests that the model cannot answer, or if there is no room for the workers.

        Ray is started or connected to, but no worker is started.
        """
        self._here.check(requests)
        self.modalities = self._here.modalities
        self._enter()
        self._gpus()

    def generate(self, requests: Iterable[Request]) -> Iterator[Response]:
        """Yield each response as soon as it arrives from a worker; the keys of `requests` must differ.

        Raises RequestError or RunError, in the words of the worker, when one cannot load the model or cannot go on,
        and RunError when workers are lost again and again without an answer.
        """
        left, strikes, finished = _Left(requests), dict[str, int](), False
        try:
            self._enter()
            while True:
                left.look_ahead(_AHEAD * max(1, len(self._running)))
                if not left and not any(worker.has for worker in self._running.values()):
                    break
                if self._workers.stopped:
                    raise RunError(f"{self.identity.model} was stopped; what was answered is stored")
                if left:
                    self._fill()
                else:
                    # What was released at the end is for others.
                    self._workers.no_longer(self)
                self._hand_out(left)
                for worker, report in self._reports():
                    if report is None:
                        yield from self._give_back(worker, left, strikes)
                    else:
                        yield from self._take(worker, report, left)
            finished = True
        finally:
            self._workers.no_longer(self)
            if not finished:
                self._stop(list(self._running.values()))

    def warm(self) -> None:
        """Start the workers for which there are places, so that the model is loaded before the first request.

        Other pools let this one have the places that they do not need.
        """
        with self._warming:
            self._enter()
            self._fill()

    def close(self) -> None:
        """Stop all workers and free what they hold; the next request starts new ones."""
        self._workers.no_longer(self)
        self._stop(list(self._running.values()))
        for thread in self._leaving:
            thread.join()
        self._leaving = []
        while self._kept:
            self._kept -= 1
            self._workers.give()
        self._here.close()
        if self._ray is not None:
            self._ray = None
            cluster.leave()

    def _reported(self) -> Iterator[Report]:
        yield from self._ended
        yield from (worker.report for worker in self._running.values() if worker.report is not None)

    def _enter(self) -> None:
        if self._ray is None:
            self._ray = cluster.enter(self._workers.address, self._workers.total)
            self._began = time.monotonic()

    def _fill(self) -> None:
        """Start workers until all places are taken; a lost worker kept its place for the one that follows it."""
        while len(self._running) < self._workers.count:
            if self._kept:
                self._kept -= 1
            elif not self._workers.take(self):
                return
            try:
                self._start()
            except BaseException:
                self._kept += 1
                raise

    def _start(self) -> None:
        gpus = self._gpus()
        if not self._running:
            self._began = time.monotonic()
        actor = self._ray.remote(PoolWorker).options(
            num_cpus=0, num_gpus=gpus, max_concurrency=4, max_restarts=0, scheduling_strategy="SPREAD"
        )
        number = next(self._numbers)
        make = self._ray.cloudpickle.dumps(self._make)
        self._running[number] = _Worker(number, actor.remote(make, cluster.environment(), sys.path, os.getcwd()))

    def _gpus(self) -> int:
        """Return how many GPUs a worker asks for: none where the cluster has none; RequestError if it has too few."""
        wanted = self.gpus
        there = int(self._ray.cluster_resources().get("GPU", 0))
        if not there or not wanted:
            return 0
        needed = wanted * (self._workers.total if self._workers.address is None else 1)
        if there < needed:
            raise RequestError(
                f"`workers` {self._workers.total} of {wanted} GPU(s) each need {needed}, and there are {there}; ask "
                f"for {there // wanted} workers" + (", or set tensor_parallel_size lower" if wanted > 1 else "")
            )
        return wanted

    def _hand_out(self, left: _Left) -> None:
        """Send every worker that waits for a call what it needs now."""
        loaded = [worker for worker in self._running.values() if worker.loaded]
        share = math.inf
        if left.all_seen and loaded:
            share = math.ceil((len(left) + sum(len(worker.has) for worker in loaded)) / len(loaded))
        anyone_idle = any(worker.idle for worker in loaded)
        for worker in list(self._running.values()):
            if worker.call is not None:
                continue
            batch = left.take(_room(worker, share))
            if worker.idle and not batch:
                if not left and len(self._running) > 1 and (self.successor or self._workers.wanted):
                    self._release(worker)
                continue
            try:
                packed = self._packed(worker, batch)
            except self._ray.exceptions.RayError:
                packed = []
            sent, unsent = batch[: len(packed)], batch[len(packed) :]
            worker.has.update((request.key, request) for request in sent)
            for request in reversed(unsent):
                left.give_back(request)
            queued = worker.report is not None and worker.report.queued > 0
            worker.call = worker.actor.exchange.remote(
                packed,
                last=not left,
                hungry=bool(left) and len(worker.has) < share,
                withdraw=anyone_idle and queued and not left and not batch,
            )

    def _reports(self) -> Iterator[tuple[_Worker, Report | None]]:
        """Yield the workers that have news, with None for one that was lost."""
        calls = {worker.call: worker for worker in self._running.values() if worker.call is not None}
        if not calls:
            time.sleep(_POLL_S)
            return
        some, others = self._ray.wait(list(calls), num_returns=1, timeout=PATIENCE_S)
        more = self._ray.wait(others, num_returns=len(others), timeout=0)[0] if others else []
        if not some and not any(worker.report for worker in self._running.values()):
            self._refuse_lack_of_room()
        # While this process is stopped or busy, nobody is silent.
        looked, self._looked = self._looked, time.monotonic()
        for call, worker in calls.items():
            if call in some or call in more:
                worker.silent = 0.0
            elif worker.report is not None:
                worker.silent += min(self._looked - looked, 2 * PATIENCE_S)
                if worker.silent > (_SILENCE_S if worker.loaded else _ROOM_S):
                    self._last_words = f"it gave no sign of life for {worker.silent:.0f} s"
                    yield worker, None
        for call in (*some, *more):
            worker = calls[call]
            worker.call = None
            try:
                report = self._ray.get(call)
                if worker.report is None:
                    self._began = time.monotonic()
                    self._refuse_other_model(worker)
                yield worker, report
            except self._ray.exceptions.RayTaskError as error:
                raise RunError(f"worker {worker.number}: {one_line(str(error.cause or error))}") from error
            except self._ray.exceptions.RayError as error:
                if "creation task" in str(error):
                    raise RunError(
                        f"worker {worker.number} did not start: {one_line(_last_line(error), 600)}"
                    ) from error
                self._last_words = one_line(error, 200)
                yield worker, None

    def _refuse_lack_of_room(self) -> None:
        if time.monotonic() - self._began > _ROOM_S:
            raise RunError(
                f"the cluster started no worker in {_ROOM_S:.0f} s; `ray status` says what it has and what is wanted"
            )

    def _take(self, worker: _Worker, report: Report, left: _Left) -> Iterator[Response]:
        """Yield the responses of a report and note the rest."""
        worker.report = report
        if report.failure is not None:
            raise (RequestError if report.refused else RunError)(f"worker {worker.number}: {report.failure}")
        if report.starved:
            worker.depth = min(2 * worker.depth, _MOST_QUEUED)
        elif report.queued > worker.depth / 2:
            worker.depth = max(1, worker.depth - worker.depth // 8)
        for key in reversed(report.returned):
            left.give_back(worker.has.pop(key))
        for response in report.responses:
            worker.has.pop(response.key, None)
            worker.answered += 1
            self._fruitless = 0
            yield response

    def _refuse_other_model(self, worker: _Worker) -> None:
        """Raise RunError if a worker's model is not the driver's, such as one of another version."""
        theirs = self._ray.get(worker.actor.identity.remote(), timeout=_SILENCE_S)
        if theirs.digest == self.identity.digest:
            return
        ours, other = self.identity.as_public_dict(), theirs.as_public_dict()
        ours, other = ours | ours.pop("settings"), other | other.pop("settings")
        differing = [name for name in ours | other if ours.get(name) != other.get(name) and name != "digest"]
        told = "; ".join(f"{name} is {other.get(name)!r} there, {ours.get(name)!r} here" for name in differing[:3])
        raise RunError(
            f"worker {worker.number} would answer as another model ({told or 'an argument that is not written down'}); "
            "install the same versions on every machine"
        )

    def _give_back(self, worker: _Worker, left: _Left, strikes: dict[str, int]) -> Iterator[Response]:
        """Let the others have what a lost worker had; yield a failure for a request that was lost too often."""
        del self._running[worker.number]
        self._kept += 1
        self._end(worker)
        self.lost += 1
        if not any(node["Alive"] for node in self._ray.nodes()):
            raise RunError(
                "Ray has no machine left: its node manager died; what was answered is stored: give the same command "
                "again to go on"
            )
        self._fruitless += not worker.answered
        if self._fruitless > _FRUITLESS * self._workers.count:
            raise RunError(
                f"{self.identity.model}: {self._fruitless} workers were lost in a row without an answer "
                f"({self._last_words})"
            )
        for request in reversed(list(worker.has.values())):
            strikes[request.key] = strikes.get(request.key, 0) + 1
            if strikes[request.key] >= _STRIKES:
                yield failed(request, f"{_STRIKES} workers were lost with this request ({self._last_words})")
            else:
                self.given_back += 1
                left.give_back(request)

    def _release(self, worker: _Worker) -> None:
        """Stop a worker that has nothing left to do, without waiting for it, and let the successor have its place."""
        del self._running[worker.number]

        def stop() -> None:
            self._ended_well([worker])
            if self.successor is not None and not self._workers.wanted:
                with suppress(EquivoxError):  # it is met again, and told, when the successor is needed
                    self.successor.warm()

        thread = threading.Thread(target=stop, name="release", daemon=True)
        self._leaving.append(thread)
        thread.start()

    def _stop(self, workers: Sequence[_Worker]) -> None:
        for worker in workers:
            del self._running[worker.number]
        self._ended_well(workers)

    def _ended_well(self, workers: Sequence[_Worker]) -> None:
        """Let workers free their engines, then end their processes and give their places back."""
        stops = [worker.actor.stop.remote() for worker in workers if worker.report is not None]
        if stops:
            self._ray.wait(stops, num_returns=len(stops), timeout=_STOP_S)
        for worker in workers:
            self._end(worker)
            self._workers.give()

    def _end(self, worker: _Worker) -> None:
        self._ray.kill(worker.actor, no_restart=True)
        if worker.report is not None:
            self._ended.append(replace(worker.report, responses=()))

    def _packed(self, worker: _Worker, batch: Sequence[Request]) -> list[Request]:
        """Return the first requests of `batch` as they travel; a message that is full takes no more.

        Media travel by their names if the worker reads the same files, else by their bytes.
        """
        parcel, packed = Parcel(), list[Request]()
        for request in batch:
            if parcel.full:
                break
            if request.media and worker.reads is None:
                worker.reads = self._reads(worker, request.media[0])
            packed.append(request if worker.reads or not request.media else parcel.packed(request))
        return packed

    def _reads(self, worker: _Worker, part: MediaPart) -> bool:
        here = self._ray.get_runtime_context().get_node_id()
        if not travels(part):
            return False
        if worker.report is not None and worker.report.node == here:
            return True
        return bool(self._ray.get(worker.actor.reads.remote(part), timeout=_SILENCE_S))


class _Left:
    """The requests that no worker has: those given back first, then the others in their order."""

    def __init__(self, requests: Iterable[Request]) -> None:
        self._source = iter(requests)
        self._next: deque[Request] = deque()
        self.all_seen = False

    def __len__(self) -> int:
        return len(self._next)

    def look_ahead(self, count: int) -> None:
        """Read requests until `count` are known or there are no more (`all_seen`)."""
        while not self.all_seen and len(self._next) < count:
            request = next(self._source, None)
            if request is None:
                self.all_seen = True
            else:
                self._next.append(request)

    def take(self, count: int) -> list[Request]:
        """Remove and return the next `count` requests, or as many as there are."""
        return [self._next.popleft() for _ in range(min(count, len(self._next)))]

    def give_back(self, request: Request) -> None:
        """Put a request first."""
        self._next.appendleft(request)


def _room(worker: _Worker, share: float) -> int:
    """Return how many requests a worker should get now: none before its model is loaded."""
    report = worker.report
    if report is None or not worker.loaded:
        return 0
    room = min(worker.depth - report.queued, share - len(worker.has))
    # An engine that waits can do nothing else: it gets one whatever its share is.
    return int(max(room, 1 if report.blocked or report.idle else 0))


def _last_line(error: BaseException) -> str:
    """Return the last line of an error that Ray passes on; those before are its traceback."""
    return str(error).strip().splitlines()[-1]
