"""`equivox vllm` as a user gives it: a speech model, then a model that annotates, in one process."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("vllm", reason="the engine tests need vLLM: make test-engine")

from asking import SMALL, annotator_file

from equivox import cli
from equivox.run.store import stored_annotations, stored_responses

TASKS = "vibe_gender:advisory,vibe_gender:candidate"


def arguments(folder: str, **more: object) -> str:
    return ",".join(f"{key}={value}" for key, value in ({"model_name": folder} | SMALL | more).items())


def test_target_then_annotator_then_a_second_one_then_scores_without_any(
    model: Callable[[str], str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = (
        annotator_file(tmp_path / f"{name}.yaml", model("llama_long"), attempts=3, max_new_tokens=400)
        for name in ("first", "second")
    )
    run = tmp_path / "run"
    command = [
        *("vllm", arguments(model("qwen2audio")), TASKS, "--data", "sample", "--limit", "6"),
        *("--annotator", str(first), "--output", str(run), "--scoring", "n_resamples=199,min_coverage=0"),
    ]
    assert cli.run(command) in (0, 1)
    out = capsys.readouterr().out
    assert "2 tasks, 12 answers" in out
    responses = list(stored_responses(run).values())
    assert len(responses) == 12
    assert all(record["error"] is None and record["media_tokens"] > 20 for record in responses)
    readings = list(stored_annotations(run, "first").values())
    assert len(readings) == 12
    # Noise read by noise: the values mean nothing, but constrained decoding made every form valid at once.
    assert {record["status"] for record in readings} <= {"parsed", "refused", "empty"}
    assert {record["attempts"] for record in readings if record["status"] != "empty"} == {1}
    kept = (run / "scores.json").read_bytes()

    assert cli.run(["annotate", str(run), "--annotator", str(second)]) in (0, 1)
    out = capsys.readouterr().out
    assert "Agreement of first, second" in out
    assert (run / "scores.json").read_bytes() == kept
    stated = json.loads(kept)["scores"]

    # Everything again from what is stored: nothing is loaded, and the same command asks nothing new.
    (run / "scores.json").unlink()
    assert cli.run(["score", str(run), "--scoring", "n_resamples=199,min_coverage=0"]) in (0, 1)
    # The document now names the second annotator, which metrics could have used; the numbers are the same.
    assert json.loads((run / "scores.json").read_text())["scores"] == stated
    capsys.readouterr()
    assert cli.run(["status", str(run)]) == 0
    assert "annotated by first" in capsys.readouterr().out
    assert cli.run(command) in (0, 1)
    assert len(stored_responses(run)) == 12


@pytest.mark.parametrize(
    ("given", "hint"),
    [
        ("model_name=nobody/nothing", "nobody/nothing"),
        ("model_nam=x", "model_name"),
        ("dtype=bfloat16", "model_name"),
        ("{}", "key=value"),
    ],
)
def test_a_wrong_model_is_one_line_exit_2(
    given: str, hint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run(["vllm", given, TASKS, "--data", "sample", "-o", str(tmp_path / "run")]) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1 and hint in err
    assert not (tmp_path / "run").exists()


@pytest.mark.usefixtures("kept")
def test_the_identity_of_a_local_model_is_its_content(
    model: Callable[[str], str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    command = ["vllm", arguments(model("qwen2audio")), TASKS.partition(",")[0], "--data", "sample", "--limit", "4"]
    command += ["--annotator", "rules"]
    cli.run([*command, "--output", str(run)])
    identity = json.loads((run / "manifest.json").read_text())["identity"]["model"]
    assert len(identity["revision"]) >= 12
    capsys.readouterr()
    changed = [*command[:1], command[1].replace("bfloat16", "float32"), *command[2:]]
    assert cli.run([*changed, "--output", str(run)]) == 2
    assert "dtype" in capsys.readouterr().err
