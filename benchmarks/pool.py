"""A pool of workers beside one engine, and how fast the driver is: `python -m benchmarks.pool`, on Ray.

First an engine that waits 50 ms for each answer, as a model on a GPU or a server does: one process beside pools of
one, two and four, several rounds in turn, with the ratios of each round. Then engines that answer at once: all that is
left is the driver's work, with and without storing each response as a run does. Ray's start is not counted.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path

from equivox.core.requests import EngineIdentity, Labels, Request, Response
from equivox.core.task import Sampling
from equivox.engines import Engine, Workers, cluster
from equivox.engines.pool import PoolEngine
from equivox.run.store import Store, response_schema

DELAY_S = 0.05
REQUESTS, ROUNDS = 120, 5
MANY = 40_000
LENGTH = 400
"""Characters of an answer."""


class Waiting(Engine):
    """Answers one request after the other, each after a while."""

    def __init__(self, delay: float) -> None:
        self._delay = delay
        self.identity = EngineIdentity(engine="benchmark", model="waiting", revision="1")

    def generate(self, requests: Iterable[Request]) -> Iterator[Response]:
        """Yield a long answer to each request."""
        source = iter(requests)
        while (first := next(source, None)) is not None:
            if self._delay:
                time.sleep(self._delay)
            yield Response(key=first.key, text="x" * LENGTH, finish_reason="stop", completion_tokens=100)


def requests(count: int) -> Iterator[Request]:
    for number in range(count):
        yield Request(
            key=f"{number:016x}",
            task="benchmark",
            sample_id=f"item{number}",
            repeat=0,
            condition="declared",
            media=(),
            text=f"Tell me a story about number {number}. " * 8,
            sampling=Sampling(),
            seed=number,
            labels=Labels(group="a", groups=("a", "b"), cluster="c", stratum="s"),
        )


def seconds(engine: Engine, count: int, store: Path | None = None) -> float:
    """Return the seconds that `count` requests take; with `store` each response is stored, as in a run."""
    begin, answered = time.perf_counter(), 0
    if store is None:
        answered = sum(1 for _ in engine.generate(requests(count)))
    else:
        with Store(store, response_schema()) as journal:
            for response in engine.generate(requests(count)):
                journal.append(vars(response))
                answered += 1
    if answered != count:
        raise RuntimeError(f"{answered} of {count} requests were answered")
    return time.perf_counter() - begin


def loaded(pool: PoolEngine, count: int) -> PoolEngine:
    """Return `pool` once all of its workers have answered, so that their start is not timed."""
    while pool.copies < count:
        seconds(pool, 8 * count)
    return pool


def latency() -> None:
    alone = Waiting(DELAY_S)
    pools = {
        count: loaded(PoolEngine(partial(Waiting, DELAY_S), Workers(count, "local")), count) for count in (1, 2, 4)
    }
    ratios: dict[int, list[float]] = {count: [] for count in pools}
    for _ in range(ROUNDS):
        one = seconds(alone, REQUESTS)
        for count, pool in pools.items():
            ratios[count].append(one / seconds(pool, REQUESTS))
    for count, pool in pools.items():
        pool.close()
        spread = f"{min(ratios[count]):.2f} to {max(ratios[count]):.2f}"
        say(
            f"{count} worker(s) beside one engine, {1000 * DELAY_S:.0f} ms an answer",
            f"{statistics.median(ratios[count]):5.2f} x ({spread})",
        )


def driver() -> None:
    pool = loaded(PoolEngine(partial(Waiting, 0.0), Workers(2, "local")), 2)
    for label, stored in (("handed out and received", False), ("the same, each stored", True)):
        rates, work = [], []
        for _ in range(3):
            with tempfile.TemporaryDirectory() as folder:
                begin = time.process_time()
                taken = seconds(pool, MANY, Path(folder) / "responses" if stored else None)
                work.append(MANY / (time.process_time() - begin))
                rates.append(MANY / taken)
        say(f"{label}, responses a second", f"{statistics.median(rates):8,.0f}")
        say("  of the driver's processor time alone", f"{statistics.median(work):8,.0f}")
    pool.close()


def say(what: str, value: str) -> None:
    sys.stdout.write(f"{what:<60}{value}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    cluster.start(None, 4)
    latency()
    driver()
    cluster.end()
