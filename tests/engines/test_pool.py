"""Pools of workers on real Ray: every request is answered once, whatever happens to the workers."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import os
import pickle
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import closing
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pool_engines as engines
import pytest
from made_requests import made_request as request

from equivox.core.errors import RunError, UsageError
from equivox.core.requests import MediaPart
from equivox.core.scores import ScoringOptions
from equivox.engines import Workers, cluster, engine_from_args, open_engine
from equivox.engines import pool as pool_module
from equivox.engines.endpoint import EndpointEngine
from equivox.engines.pool import PoolEngine, with_media
from equivox.run.pipeline import execute
from equivox.run.spec import RunSpec
from equivox.tasks.registry import resolve_tasks

ray = pytest.importorskip("ray")
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")


def answers(pool: PoolEngine, count: int) -> dict[str, str]:
    """Return the texts of `count` requests by key; every key was answered exactly once, without an error."""
    responses = list(pool.generate(request(number) for number in range(count)))
    assert Counter(response.key for response in responses) == Counter(f"key{number}" for number in range(count))
    assert [response.error for response in responses if response.error is not None] == []
    return {response.key: str(response.text) for response in responses}


def pooled(make: Any, workers: int) -> closing[PoolEngine]:
    """Return a pool that is closed where its block ends."""
    return closing(PoolEngine(make, Workers(workers)))


def test_workers_are_counted() -> None:
    workers = Workers(3)
    assert (workers.count, workers.pooled, Workers().pooled, Workers(1, "auto").pooled) == (3, True, False, True)
    with pytest.raises(UsageError, match="`workers` must be a whole number of 1 or more, got 0"):
        Workers(0)


def test_all_workers_answer(connected: None) -> None:
    deadline = time.monotonic() + 120
    with pooled(partial(engines.Answering, 0.05), 3) as pool:
        while len(set(answers(pool, 30).values())) < 3:
            assert time.monotonic() < deadline
        assert pool.copies == 3


def test_an_engine_that_gathers_requests_is_not_held(connected: None) -> None:
    with pooled(engines.Batching, 2) as pool:
        for count in (1, 3, 30):
            answers(pool, count)


def test_a_request_without_an_answer_has_failed(connected: None) -> None:
    with pooled(engines.Forgetful, 2) as pool:
        responses = {response.key: response for response in pool.generate(map(request, range(40)))}
    assert len(responses) == 40
    failed = sorted(key for key, response in responses.items() if response.error is not None)
    assert failed == ["key17", "key27", "key37", "key7"]
    assert responses["key7"].error == "the engine gave no response"


def test_a_slow_worker_does_not_hold_the_others(connected: None, tmp_path: Path) -> None:
    with pooled(partial(engines.FirstIsSlow, str(tmp_path)), 2) as pool:
        made_by = Counter(answers(pool, 200).values())
    assert min(made_by.values()) < 30


@pytest.mark.timeout(120)
@pytest.mark.parametrize("deadly", [engines.Deadly, engines.DeadlyBatching])
@pytest.mark.parametrize("once", [True, False])
def test_a_request_that_kills_workers_goes_to_others_and_fails_alone(
    connected: None, tmp_path: Path, deadly: type[engines.Deadly], once: bool
) -> None:
    with pooled(partial(deadly, "Question 23?", str(tmp_path), once=once), 2) as pool:
        for count in (200, 60):  # what failed may be repeated
            responses = list(pool.generate(map(request, range(count))))
            assert Counter(response.key for response in responses) == Counter(f"key{number}" for number in range(count))
            failed = {response.key: str(response.error) for response in responses if response.error is not None}
            assert once or "3 workers were lost with this request" in failed.pop("key23")
            assert failed == {}
        assert (pool.lost, pool.given_back >= pool.lost - 2) == (1 if once else 6, True)
        assert pool.usage == {"retries": pool.given_back}


@pytest.mark.parametrize("how", [signal.SIGSTOP, pytest.param(signal.SIGKILL, marks=pytest.mark.long)])
def test_a_worker_that_is_stopped_or_killed_from_outside(
    connected: None, monkeypatch: pytest.MonkeyPatch, how: signal.Signals
) -> None:
    monkeypatch.setattr(pool_module, "_SILENCE_S", 10.0)
    gone, keys = 0, []
    with pooled(partial(engines.Answering, 0.02), 2) as pool:
        for response in pool.generate(map(request, range(300))):
            assert response.error is None
            keys.append(response.key)
            if len(keys) == 50:
                gone = int(str(response.text))
                os.kill(gone, how)
        assert pool.lost >= 1  # on a busy machine another worker can be silent for as long
    assert Counter(keys) == Counter(f"key{number}" for number in range(300))
    deadline = time.monotonic() + 60
    while alive(gone) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not alive(gone)  # it cannot answer late


def test_a_driver_that_was_stopped_itself_gives_no_worker_up(connected: None, monkeypatch: pytest.MonkeyPatch) -> None:
    hours = itertools.count(0, 3600)
    # Each look at the clock finds an hour gone, as after Ctrl-Z and `fg`.
    monkeypatch.setattr(pool_module, "time", SimpleNamespace(monotonic=lambda: next(hours), sleep=time.sleep))
    monkeypatch.setattr(pool_module, "_ROOM_S", math.inf)
    with pooled(partial(engines.Answering, 0.05), 2) as pool:
        answers(pool, 40)
        assert pool.lost == 0


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (engines.Leaving, RunError, r"^worker \d: SystemExit: 0"),
        (engines.CannotLoad, UsageError, r"^worker \d: tiny needs 80 GB, the GPU has 24"),
        (partial(engines.OtherModel, os.getpid()), RunError, r"another model \(vllm is '2.0' there, '1.0' here\);"),
        (engines.Dying, RunError, r"^tiny: 4 workers were lost in a row without an answer \("),
    ],
)
def test_a_worker_that_cannot_go_on_says_why(connected: None, make: Any, error: type[Exception], message: str) -> None:
    with pooled(make, 2) as pool, pytest.raises(error, match=message):
        list(pool.generate(map(request, range(10))))


def test_media_travel_to_workers_that_lack_them(connected: None) -> None:
    contents = [f"clip {number}".encode() * 1000 for number in range(5)]
    parts = [
        MediaPart(
            kind="audio", sha256=hashlib.sha256(content).hexdigest(), name="clip.wav", load=engines.HereAlone(content)
        )
        for content in contents
    ]
    answered = 0
    with pooled(engines.Answering, 2) as pool:
        for response in pool.generate(request(number, parts[number % 5]) for number in range(40)):
            number = int(response.key.removeprefix("key"))
            assert response.error is None
            assert str(response.text).split()[1] == parts[number % 5].sha256
            answered += 1
    assert answered == 40


def test_equal_media_of_a_message_travel_once() -> None:
    content = os.urandom(100_000)
    # Each reading gives another object, as that of a file does.
    part = MediaPart(kind="audio", sha256="0", name="clip.wav", load=lambda: bytes(bytearray(content)))
    sent = pickle.dumps(with_media([request(number, part) for number in range(9)]))
    assert 100_000 < len(sent) < 110_000
    # No Ray is needed to read them: bytes travel, not references that a worker would have to resolve.
    assert [one.media[0].load() for one in pickle.loads(sent)] == [content] * 9


def test_a_medium_that_the_driver_cannot_read_fails_at_the_worker() -> None:
    gone = MediaPart(kind="image", sha256="0", name="face.png", load=Path("no-such-folder/face.png").read_bytes)
    (sent,) = pickle.loads(pickle.dumps(with_media([request(0, gone)])))
    with pytest.raises(OSError, match=r"No such file or directory: 'no-such-folder/face.png'"):
        sent.media[0].load()


@pytest.mark.parametrize("count", [pytest.param(1, marks=pytest.mark.long), 2, pytest.param(4, marks=pytest.mark.long)])
def test_the_scores_are_those_of_one_worker(connected: None, tmp_path: Path, count: int) -> None:
    def scores(folder: Path, workers: Workers) -> str:
        model = "simulated:planted,shift=0.3,speaker=0.2,refusal=0.05,fail=0.02"
        tasks = resolve_tasks("vibe_gender:story,badf_two:gender")
        given = {"data": "sample", "limit": 20, "options": ScoringOptions(n_resamples=199)}
        execute(RunSpec(model=model, tasks=tasks, output=folder, workers=workers, **given))
        return (folder / "scores.json").read_text()

    assert scores(tmp_path / "pool", Workers(count, "local")) == scores(tmp_path / "alone", Workers())


def test_data_parallel_size_means_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("equivox.engines._one_engine", lambda scheme, arguments: engines.Answering(len(arguments)))
    pool = engine_from_args("vllm", {"model_name": "org/tiny", "data_parallel_size": 4})
    assert isinstance(pool, PoolEngine)
    assert (pool.waiting, pool._here.delay) == ("0 of 4 workers", 1)  # type: ignore[attr-defined]
    with pytest.raises(UsageError, match="data_parallel_size=4 and `workers` 2 mean the same; give one of them"):
        engine_from_args("vllm", {"model_name": "org/tiny", "data_parallel_size": 4}, Workers(2))
    assert not isinstance(open_engine("simulated:oracle", [], Workers(1)), PoolEngine)


def test_a_server_is_asked_by_one_engine_whatever_the_workers() -> None:
    asked = engine_from_args("endpoint", {"model_name": "m", "base_url": "http://127.0.0.1:9/v1"}, Workers(8))
    assert isinstance(asked, EndpointEngine)


def test_a_cluster_that_is_not_there_is_one_line_and_at_once() -> None:
    with pytest.raises(UsageError, match=r"no suitable Ray cluster answers at `ray-address` 127.0.0.1:9 \("):
        cluster._connect(ray, "127.0.0.1:9", 2)


DRIVER = """
import os, signal, sys, tempfile
from functools import partial
from pathlib import Path
from equivox.engines import Workers
from equivox.engines.endpoint import EndpointEngine
from equivox.engines.pool import PoolEngine
import pool_engines as engines
from made_requests import made_request
# A process that was started in the background ignores interrupts, and so do those that it starts.
signal.signal(signal.SIGINT, signal.default_int_handler)
pool = PoolEngine(partial(engines.Answering, 0.05), Workers(2))
pool.check([])
print(next(Path(tempfile.gettempdir()).glob(f"equivox-ray-{os.getpid()}-*")), flush=True)
for response in pool.generate(map(made_request, range(100_000))):
    print(response.text, flush=True)
"""


def processes_of(folder: str) -> dict[int, str]:
    """Return Ray's processes that name the folder of a cluster, with their command lines."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
            except OSError:
                continue
            if folder in line:
                found[int(entry.name)] = line
    return found


def alive(process: int) -> bool:
    """Whether a process is there that is no zombie."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.long
@pytest.mark.skipif(not Path("/proc").is_dir(), reason="processes are found in /proc, which this system lacks")
def test_a_run_whose_node_manager_dies_ends_with_one_line() -> None:
    program = DRIVER.replace("pool.check([])", "pool_module._SILENCE_S = 20.0\npool.check([])").replace(
        "import pool_engines", "import equivox.engines.pool as pool_module\nimport pool_engines"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    driver = subprocess.Popen(
        [sys.executable, "-c", program], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    folder = driver.stdout.readline().strip()
    assert driver.stdout.readline()
    manager = next(process for process, line in processes_of(folder).items() if "/raylet/raylet " in line)
    os.kill(manager, signal.SIGKILL)
    _, told = driver.communicate(timeout=240)
    assert driver.returncode == 1
    assert told.splitlines()[-1].endswith(
        "RunError: Ray has no machine left: its node manager died; stored responses are kept: repeat the command "
        "to resume"
    )


@pytest.mark.parametrize("how", [signal.SIGINT, pytest.param(signal.SIGKILL, marks=pytest.mark.long)])
@pytest.mark.skipif(not Path("/proc").is_dir(), reason="processes are counted in /proc, which this system lacks")
def test_a_stopped_driver_leaves_no_process(how: signal.Signals) -> None:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    driver = subprocess.Popen(
        [sys.executable, "-c", DRIVER], env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    folder = driver.stdout.readline().strip()
    workers = {int(driver.stdout.readline()) for _ in range(30)}
    assert processes_of(folder)
    driver.send_signal(how)
    driver.wait(60)
    driver.stdout.close()
    deadline = time.monotonic() + 60
    while (left := [*processes_of(folder), *filter(alive, workers)]) and time.monotonic() < deadline:
        time.sleep(0.5)
    assert left == []
    if how is signal.SIGKILL:
        # The next driver removes the files that this one had no time to remove.
        assert Path(folder).exists()
        shutil.rmtree(cluster._new_folder())
    assert not Path(folder).exists()


@pytest.mark.long
def test_a_machine_that_goes_gives_its_requests_back(tmp_path: Path) -> None:
    """Two nodes of one cluster; the second goes while it answers."""
    script = tmp_path / "two_nodes.py"
    script.write_text(TWO_NODES)
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(sys.path),
        "RAY_health_check_period_ms": "500",
        "RAY_health_check_failure_threshold": "3",
        "RAY_health_check_initial_delay_ms": "0",
        "RAY_USAGE_STATS_ENABLED": "0",
    }
    done = subprocess.run(
        [sys.executable, str(script)], env=environment, capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["answered"] == told["asked"] == 400
    assert told["errors"] == 0
    assert told["nodes_before"] == 2
    assert told["lost"] >= 1
    assert told["given_back"] >= 1


TWO_NODES = """
import json, sys
from functools import partial
from ray.cluster_utils import Cluster
from equivox.engines import Workers
from equivox.engines.cluster import end
from equivox.engines.endpoint import EndpointEngine
from equivox.engines.pool import PoolEngine
import pool_engines as engines
from made_requests import made_request

if __name__ == "__main__":
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 2, "num_gpus": 1, "include_dashboard": False})
    other = cluster.add_node(num_cpus=2, num_gpus=1)
    cluster.wait_for_nodes()
    pool = PoolEngine(partial(engines.OnGpu, 0.02), Workers(2, cluster.address))
    number = 1000
    while pool.copies < 2:  # the only GPU that is left is on the other node
        number += 1
        list(pool.generate([made_request(number)]))
    keys, errors, nodes, gone = [], 0, set(), False
    for response in pool.generate(map(made_request, range(400))):
        keys.append(response.key)
        errors += response.error is not None
        if not gone:
            nodes.add(response.text)
            if len(nodes) == 2 and len(keys) > 50:
                cluster.remove_node(other, allow_graceful=False)
                gone = True
    pool.close()
    end()
    cluster.shutdown()
    print(json.dumps({"asked": 400, "answered": len(set(keys)), "errors": errors, "nodes_before": len(nodes),
                      "lost": pool.lost, "given_back": pool.given_back}))
"""
