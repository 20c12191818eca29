"""Two real vLLM engines in a pool: the answers of one, clips included, and nothing is lost when one is killed."""

from __future__ import annotations

import gc
import os
import signal
import time
import warnings
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

pytest.importorskip("vllm", reason="the engine tests need vLLM: make test-engine")
pytest.importorskip("ray", reason="pools need Ray: make test-engine")

from asking import SMALL, audio, request, tone

from equivox.engines import Request, Workers, engine_from_args


def asked(count: int) -> list[Request]:
    clips = [audio(tone(0.5 + number / 10, 200 + 40 * number)) for number in range(3)]
    return [request(number, f"Who is number {number}?", clips[number % 3], seed=number) for number in range(count)]


def children(process: int) -> set[int]:
    """Return the processes that `process` started, and those that they started."""
    try:
        tasks = list(Path(f"/proc/{process}/task").iterdir())
        own = {int(pid) for task in tasks for pid in (task / "children").read_text().split()}
    except OSError:
        return set()
    return own.union(*map(children, own))


def workers_here() -> list[int]:
    """Return the processes of the workers that this process started, by their titles."""
    found = []
    for process in children(os.getpid()):
        try:
            title = Path(f"/proc/{process}/cmdline").read_bytes()
        except OSError:
            continue
        if title.startswith(b"ray::") and b"PoolWorker" in title:
            found.append(process)
    return found


@pytest.mark.long  # four processes of vLLM: a minute on an idle machine, four beside other tests
@pytest.mark.timeout(500)
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_two_workers_answer_as_one_and_a_killed_one_loses_nothing(
    model: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = {"model_name": model("qwen2audio")} | SMALL | {"max_num_seqs": 8}
    with closing(engine_from_args("vllm", arguments)) as alone:
        expected = {response.key: response for response in alone.generate(asked(60))}
    # As in production, vLLM's core is a process of its own: it must not outlive a worker that is killed.
    monkeypatch.setenv("VLLM_ENABLE_V1_MULTIPROCESSING", "1")
    with closing(engine_from_args("vllm", arguments | {"data_parallel_size": 2}, Workers(1))) as pool:
        pool.check(asked(1))
        got = {response.key: response for response in pool.generate(asked(60))}
        assert {key: response.text for key, response in got.items()} == {k: r.text for k, r in expected.items()}
        assert {r.media_tokens for r in got.values()} == {r.media_tokens for r in expected.values()}
        while pool.copies < 2:
            list(pool.generate(asked(8)))
        workers = workers_here()
        assert len(workers) == 2
        killed = children(workers[0])
        answered = set()
        for response in pool.generate(asked(300)):
            assert response.error is None
            answered.add(response.key)
            if len(answered) == 20:
                os.kill(workers[0], signal.SIGKILL)
        assert len(answered) == 300
        assert pool.lost == 1  # type: ignore[attr-defined]
        everything = set(workers) | killed | set().union(*map(children, workers_here()))
    deadline = time.monotonic() + 60
    while (left := [pid for pid in everything if Path(f"/proc/{pid}").exists()]) and time.monotonic() < deadline:
        time.sleep(0.5)
    assert left == []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        gc.collect()
