"""A run killed at any moment goes on where it stopped and ends with the same table."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from equivox.engines import Request, Response
from equivox.engines.function import FunctionEngine
from equivox.run.pipeline import RunSpec, execute
from equivox.run.store import Store, annotation_schema, response_schema
from equivox.tasks.registry import resolve_tasks

ARGUMENTS = ["simulated:random?refusal=0.05&fail=0.02", "vibe_gender:advisory,vibe_gender:casting"]
OPTIONS = ["--data", "sample", "--limit", "96", "--resamples", "199"]

# Shards of 16 records, and a kill -9 of the process itself just before or just after its n-th rename or sync:
# the moments at which what is on disk changes.
KILLER = """
import functools, os, signal, sys
import equivox.run.store as store
from equivox import cli
store.Store.__init__.__kwdefaults__["shard_rows"] = 16
target, when, arguments = int(sys.argv[1]), sys.argv[2], sys.argv[3:]
calls = 0
def dying(original):
    @functools.wraps(original)
    def call(*a, **k):
        global calls
        calls += 1
        if calls == target and when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        result = original(*a, **k)
        if calls == target and when == "after":
            os.kill(os.getpid(), signal.SIGKILL)
        return result
    return call
os.replace, os.fsync = dying(os.replace), dying(os.fsync)
code = cli.run(arguments)
print("calls", calls)
sys.exit(code)
"""


def run(folder: Path, *, kill_at: int = 0, when: str = "before") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", KILLER, str(kill_at), when, "run", *ARGUMENTS, *OPTIONS, "--output", str(folder)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def final_state(folder: Path) -> tuple[Any, ...]:
    """Everything a reader sees, apart from when the run was begun."""
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest.pop("created")
    responses = {r["key"]: r for r in Store(folder / "responses", response_schema()).records()}
    annotations = {r["key"]: r for r in Store(folder / "annotations" / "rules", annotation_schema()).records()}
    return (
        manifest,
        (folder / "scores.json").read_bytes(),
        (folder / "plan.parquet").read_bytes(),
        responses,
        annotations,
    )


def test_killed_anywhere_the_run_ends_the_same(tmp_path: Path) -> None:
    whole = run(tmp_path / "whole")
    assert whole.returncode == 0, whole.stderr
    calls = int(whole.stdout.rpartition("calls ")[2])
    assert calls > 30
    expected = final_state(tmp_path / "whole")
    # One random moment in each eighth of the run, so that every stage of it is cut short once.
    rng, parts = random.Random(20), 8
    edges = [1 + part * calls // parts for part in range(parts + 1)]
    points = [(rng.randrange(low, high), rng.choice(["before", "after"])) for low, high in pairwise(edges)]

    def survive(number: int) -> None:
        folder = tmp_path / f"killed{number}"
        kill_at, when = points[number]
        killed = run(folder, kill_at=kill_at, when=when)
        assert killed.returncode == -signal.SIGKILL
        stored = set(Store(folder / "responses", response_schema()).keys())
        resumed = run(folder)
        assert resumed.returncode == 0, resumed.stderr
        assert final_state(folder) == expected, f"killed {when} write {kill_at}"
        assert stored <= set(expected[3])
        assert not list(folder.rglob(".writing-*"))

    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        list(pool.map(survive, range(len(points))))


def test_only_what_is_missing_is_generated(tmp_path: Path, equivox: Callable[..., tuple[int, str, str]]) -> None:
    from equivox.engines import simulated as reference

    command = ["run", "simulated:random", "vibe_gender:advisory", *OPTIONS, "--output", tmp_path / "run"]
    assert equivox(*command)[0] == 0
    shards = sorted((tmp_path / "run" / "responses").iterdir())
    asked: list[str] = []
    original = reference.SimulatedEngine.generate

    def counting(self: Any, requests: Any) -> Any:
        def seen() -> Any:
            for request in requests:
                asked.append(request.key)
                yield request

        return original(self, seen())

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reference.SimulatedEngine, "generate", counting)
        assert equivox(*command)[0] == 0
        assert asked == []
        shards[0].unlink()
        assert equivox(*command)[0] == 0
        assert len(asked) == 96


def test_failed_requests_are_kept_unless_asked_again(
    tmp_path: Path, equivox: Callable[..., tuple[int, str, str]]
) -> None:
    command = ["run", "simulated:random?fail=0.1", "vibe_gender:advisory", *OPTIONS, "--output", tmp_path / "run"]
    code, out, _ = equivox(*command)
    assert code == 0
    assert "96 requested → " in out
    failed = [r for r in Store(tmp_path / "run" / "responses", response_schema()).records() if r["error"]]
    assert 1 <= len(failed) <= 30 and all(r["text"] is None for r in failed)
    shards = len(list((tmp_path / "run" / "responses").iterdir()))
    equivox(*command)
    assert len(list((tmp_path / "run" / "responses").iterdir())) == shards
    equivox(*command, "--retry-failed")
    assert len(list((tmp_path / "run" / "responses").iterdir())) == shards + 1


def test_interrupting_exits_130_and_says_how_to_go_on(
    tmp_path: Path, equivox: Callable[..., tuple[int, str, str]]
) -> None:
    from equivox.engines import simulated as reference

    command = ["run", "simulated:random", "vibe_gender:advisory", *OPTIONS, "--output", tmp_path / "run"]
    original = reference.SimulatedEngine.generate

    def interrupted(self: Any, requests: Any) -> Any:
        for number, response in enumerate(original(self, requests)):
            if number == 40:
                raise KeyboardInterrupt
            yield response

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reference.SimulatedEngine, "generate", interrupted)
        code, _, err = equivox(*command)
    assert code == 130
    assert "same command again" in err and err.count("\n") == 1
    assert len(Store(tmp_path / "run" / "responses", response_schema()).keys()) == 40
    assert equivox(*command)[0] == 0


def test_two_processes_cannot_write_one_run(tmp_path: Path, equivox: Callable[..., tuple[int, str, str]]) -> None:
    from filelock import FileLock

    (tmp_path / "run").mkdir()
    with FileLock(tmp_path / "run" / ".lock"):
        code, _, err = equivox("run", *ARGUMENTS, *OPTIONS, "--output", tmp_path / "run")
    assert code == 2 and "another process" in err


def test_a_finished_run_does_not_start_its_engine_again(tmp_path: Path) -> None:
    class Counting(FunctionEngine):
        starts = 0

        def generate(self, requests: Iterable[Request]) -> Iterator[Response]:
            self.starts += 1
            return super().generate(requests)

    engine = Counting(lambda request: "A nurse.", name="nurse", revision="1")
    spec = RunSpec(
        model="nurse", tasks=resolve_tasks("badf_two:gender"), data="sample", limit=2, output=tmp_path / "run"
    )
    first = execute(spec, engine=engine)
    again = execute(spec, engine=engine)
    assert engine.starts == 1
    assert [score.as_dict() for score in again] == [score.as_dict() for score in first]
