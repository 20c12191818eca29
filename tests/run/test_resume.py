"""A run killed at any moment goes on where it stopped and ends with the same table."""

from __future__ import annotations

import json
import multiprocessing
import random
import signal
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from commands import Cli
from killed_run import run_killed
from made_requests import sample_spec

from equivox.core.errors import UsageError
from equivox.core.scores import ScoringOptions
from equivox.engines import Request, Response
from equivox.engines.function import FunctionEngine
from equivox.run import pipeline
from equivox.run.manifest import hashes_of
from equivox.run.pipeline import execute
from equivox.run.spec import RunSpec
from equivox.run.store import Store, response_schema, stored_annotations, stored_responses
from equivox.tasks.registry import resolve_tasks

ARGUMENTS = ["simulated:random,refusal=0.05,fail=0.02", "vibe_gender:advisory,vibe_gender:casting"]
SAMPLE = ["--data", "sample", "--scoring", "n_resamples=99"]
OPTIONS = [*SAMPLE, "--limit", "96"]

CONTEXT = multiprocessing.get_context("forkserver")
# What every run imports is imported once.
CONTEXT.set_forkserver_preload(
    [
        "equivox.run.pipeline",
        "equivox.cli.run_commands",
        "equivox.tasks.vibe",
        "equivox.metrics.ntvd",
        "equivox.annotate.merging",
        "scipy.stats",
        "pandas",
        "pyarrow.parquet",
        "soundfile",
        "simplemma",
        "pydantic",
        "filelock",
        "typer",
    ]
)


def run(folder: Path, *, kill_at: int = 0, when: str = "before") -> tuple[int, int]:
    """Return the exit code of a run (minus the signal that killed it) and how often it changed what is on disk."""
    counted = CONTEXT.Value("i", 0)
    arguments = ["run", *ARGUMENTS, *SAMPLE, "--limit", "60", "--output", str(folder)]
    process = CONTEXT.Process(target=run_killed, args=(arguments, kill_at, when, counted))
    process.start()
    process.join()
    assert process.exitcode is not None
    return process.exitcode, counted.value


def final_state(folder: Path) -> tuple[Any, ...]:
    """Everything a reader sees, apart from when the run was begun and how its responses are spread over files."""
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest.pop("files") == hashes_of(folder)
    for entry in ("created", "sha256"):
        manifest.pop(entry)
    responses = stored_responses(folder)
    annotations = stored_annotations(folder, "rules")
    return (
        manifest,
        (folder / "scores.json").read_bytes(),
        (folder / "plan.parquet").read_bytes(),
        responses,
        annotations,
    )


@pytest.mark.parametrize("parts", [5, pytest.param(50, marks=(pytest.mark.long, pytest.mark.timeout(3600)))])
def test_killed_anywhere_the_run_ends_the_same(tmp_path: Path, parts: int) -> None:
    code, calls = run(tmp_path / "whole")
    assert code == 0
    assert calls > 120  # each response, and the annotations of rules as a block
    expected = final_state(tmp_path / "whole")
    # One random moment in each part of the run, so that every stage of it is cut short.
    rng = random.Random(20)
    edges = [1 + part * calls // parts for part in range(parts + 1)]
    points = [(rng.randrange(low, high), rng.choice(["before", "torn", "after"])) for low, high in pairwise(edges)]
    for number, (kill_at, when) in enumerate(points):
        folder = tmp_path / f"killed{number}"
        assert run(folder, kill_at=kill_at, when=when)[0] == -signal.SIGKILL
        stored = stored_responses(folder)
        assert run(folder)[0] == 0
        assert final_state(folder) == expected, f"killed {when} change {kill_at}"
        assert stored.items() <= expected[3].items()
        left = [path.name for path in folder.rglob("*") if path.name.startswith((".writing-", "journal-"))]
        assert left == []


def test_only_what_is_missing_is_generated(tmp_path: Path, equivox: Cli) -> None:
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


def test_failed_requests_are_kept_unless_asked_again(tmp_path: Path, equivox: Cli) -> None:
    command = ["run", "simulated:random,fail=0.1", "vibe_gender:advisory", *OPTIONS, "--output", tmp_path / "run"]
    shown = equivox.done(*command)
    failed = [r for r in stored_responses(tmp_path / "run").values() if r["error"]]
    assert f"{len(failed)} of 96 answers do not count" in shown
    assert 1 <= len(failed) <= 30 and all(r["text"] is None for r in failed)
    shards = len(list((tmp_path / "run" / "responses").iterdir()))
    equivox(*command)
    assert len(list((tmp_path / "run" / "responses").iterdir())) == shards
    equivox(*command, "--retry-failed")
    assert len(list((tmp_path / "run" / "responses").iterdir())) == shards + 1


def test_interrupting_exits_130_and_says_how_to_go_on(tmp_path: Path, equivox: Cli) -> None:
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
    assert "repeat the command" in err and err.count("\n") == 1
    assert len(Store(tmp_path / "run" / "responses", response_schema()).table(("key",))) == 40
    assert equivox(*command)[0] == 0


def test_two_processes_cannot_write_one_run(tmp_path: Path, equivox: Cli) -> None:
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
    spec = sample_spec("nurse", "badf_two:gender", tmp_path / "run", limit=2)
    first = execute(spec, engine=engine)
    again = execute(spec, engine=engine)
    assert engine.starts == 1
    assert [score.as_dict() for score in again] == [score.as_dict() for score in first]


def test_what_is_checked_is_checked_under_the_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def spec(seed: int) -> RunSpec:
        tasks = resolve_tasks("vibe_gender:advisory")
        return sample_spec(
            "simulated:random", tasks, tmp_path / "run", limit=48, seed=seed, options=ScoringOptions(n_resamples=99)
        )

    locked = pipeline.writing

    @contextmanager
    def late(folder: Path) -> Iterator[None]:
        # Between the first look at the folder and the lock, another process makes a run there.
        monkeypatch.setattr(pipeline, "writing", locked)
        execute(spec(seed=1))
        with locked(folder):
            yield

    monkeypatch.setattr(pipeline, "writing", late)
    with pytest.raises(UsageError, match=r"holds another run \(seed: 1 there, 2 here\)"):
        execute(spec(seed=2))
    assert len(Store(tmp_path / "run" / "responses", response_schema()).table(("key",))) == 48
