"""A whole run on vLLM: coverage, arrival, what a kill leaves, and the death of vLLM's own process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("vllm", reason="the engine tests need vLLM: make test-engine")

from asking import vllm_model
from made_requests import plan_rows

from equivox.core.errors import RunError, UsageError
from equivox.engines import open_engine
from equivox.run.generating import generate
from equivox.run.pipeline import execute
from equivox.run.plan import make_plan
from equivox.run.spec import RunSpec
from equivox.run.store import stored_responses
from equivox.tasks.registry import resolve_tasks

TASK = "vibe_gender:advisory"

# Shards of four, so that a kill falls between them.
RUN = """
import sys
from pathlib import Path
import equivox.run.store
from equivox.run.pipeline import execute
from equivox.run.spec import RunSpec
from equivox.tasks.registry import resolve_tasks
equivox.run.store.Store.__init__.__kwdefaults__["shard_rows"] = 4
if __name__ == "__main__":
    tasks = resolve_tasks(sys.argv[2])
    execute(RunSpec(model=sys.argv[1], tasks=tasks, data="sample", limit=24, output=Path(sys.argv[3])))
"""

DEATH = """
import json, os, signal, sys
sys.path[:0] = json.loads(sys.argv[2])
from asking import SMALL, request
from equivox.engines.vllm import VLLMEngine
import psutil

def core():
    alive = [p for p in psutil.Process().children(recursive=True) if p.status() != psutil.STATUS_ZOMBIE]
    return [p for p in alive if p.name().startswith("VLLM::EngineCor")]

if __name__ == "__main__":
    engine = VLLMEngine.from_args({"model_name": sys.argv[1]} | SMALL | {"max_num_seqs": 4})
    told = []
    for number, response in enumerate(engine.generate(request(n, max_new_tokens=32) for n in range(24))):
        told.append([response.key, response.error])
        if number in (2, 5):
            (process,) = core()
            process.kill()
    left = core()
    engine.close()
    print(json.dumps({"told": told, "running": len(left), "closed": len(core())}))
"""


def spec_of(folder: str, output: Path) -> RunSpec:
    return RunSpec(model=vllm_model(folder), tasks=resolve_tasks(TASK), data="sample", limit=24, output=output)


@pytest.mark.usefixtures("kept")
def test_a_run_from_clips_to_scores(model: Callable[[str], str], tmp_path: Path) -> None:
    spec = spec_of(model("qwen2audio"), tmp_path)
    scores = execute(spec)
    stored = stored_responses(tmp_path)
    assert len(stored) == 24
    assert all(record["error"] is None and record["text"] is not None for record in stored.values())
    assert all(record["media_items"] == 1 and record["media_tokens"] > 20 for record in stored.values())
    # Noise answers nothing: everything was generated, next to nothing parsed, so that no score is given.
    outcome = scores[0]
    assert (outcome.coverage.requested, outcome.coverage.generated) == (24, 24)
    assert outcome.coverage.used < 24 and not outcome.defined
    identity = json.loads((tmp_path / "manifest.json").read_text())["identity"]["model"]
    assert (identity["engine"], identity["model"]) == ("vllm", "qwen2audio")
    settings = identity["settings"]
    assert settings.pop("vllm").startswith("0.32.")
    short = {"max_tokens": 32}
    assert settings == {"dtype": "bfloat16", "max_model_length": 2048, "generation_parameters": short}
    # The same again asks for nothing and scores the same.
    assert [score.coverage for score in execute(spec)] == [score.coverage for score in scores]


def test_a_model_that_cannot_hear_is_refused_and_never_scored(model: Callable[[str], str], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="llama does not take audio"):
        execute(spec_of(model("llama"), tmp_path / "run"))
    assert not (tmp_path / "run").exists()


def test_clips_that_did_not_arrive_stop_the_run(model: Callable[[str], str], tmp_path: Path) -> None:
    """The transformers engine, asked without a check, drops a clip its model has no place for: this must not score."""
    from equivox.dataset_builders.opening import open_corpus
    from equivox.tasks.registry import resolve_tasks

    tasks = resolve_tasks(TASK)
    deaf = open_engine(f"transformers:model_name={model('llama')},generation_parameters={{max_new_tokens: 4}}", tasks)
    plan = make_plan(tasks, {"crema_d": open_corpus(tasks[0].data, "sample")}, deaf.identity, limit=4)
    with pytest.raises(RunError, match=r"llama used 0 of 1 media items.*did not arrive"):
        generate(tmp_path, plan, deaf)
    deaf.close()


@pytest.mark.long
def test_killed_at_any_moment_a_run_ends_the_same(model: Callable[[str], str], tmp_path: Path) -> None:
    command = [sys.executable, "-c", RUN, vllm_model(model("qwen2audio"), max_num_seqs=2), TASK]
    with (tmp_path / "log").open("w") as log:
        killed = subprocess.Popen([*command, str(tmp_path / "killed")], stdout=log, stderr=log)
        while killed.poll() is None and not list((tmp_path / "killed").glob("responses/shard-*")):
            time.sleep(0.02)
        killed.send_signal(signal.SIGKILL)
        assert killed.wait() == -signal.SIGKILL, (tmp_path / "log").read_text()
    before = stored_responses(tmp_path / "killed")
    assert 0 < len(before) < 24
    execute(RunSpec(model=command[3], tasks=resolve_tasks(TASK), data="sample", limit=24, output=tmp_path / "killed"))
    after = stored_responses(tmp_path / "killed")
    assert after.keys() == {row["key"] for row in plan_rows(tmp_path / "killed")} and len(after) == 24
    assert {key: after[key] for key in before} == before
    assert all(record["error"] is None and record["media_tokens"] > 20 for record in after.values())


@pytest.mark.long
def test_vllm_is_started_again_when_its_process_dies(model: Callable[[str], str]) -> None:
    # Any number but 0 gives vLLM's engine its own process. On a CPU, 1 gives the model one more process, which a model
    # on one GPU does not have either; each start of it imports vLLM once more.
    environment = os.environ | {"VLLM_ENABLE_V1_MULTIPROCESSING": "2"}
    command = [sys.executable, "-c", DEATH, model("llama"), json.dumps(sys.path)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False, timeout=400)
    assert done.returncode == 0, done.stderr[-3000:]
    report = json.loads(done.stdout.splitlines()[-1])
    assert len(report["told"]) == len({key for key, _ in report["told"]}) == 24
    # The window holds sixteen requests. What was in it at the first death goes in again one by one, so that the next
    # death fails one request, with its reason; all others are answered.
    errors = [error for _, error in report["told"] if error is not None]
    assert len(errors) == 1
    assert all("vLLM died twice with this request: RuntimeError: the engine process was" in error for error in errors)
    assert (report["running"], report["closed"]) == (1, 0)
