"""Run files: what they take before anything runs, and many models in one command."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from equivox.configs import config_names
from equivox.run.manifest import read_manifest
from equivox.run.run_files import Estimate, RunFile, estimate, open_run_file
from equivox.tasks.registry import resolve_tasks

Cli = Callable[..., tuple[int, str, str]]


def reckoned(file: RunFile) -> Estimate:
    return estimate(file, resolve_tasks(file.tasks))


def test_what_reproducing_vibe_takes(equivox: Cli) -> None:
    found = reckoned(open_run_file("vibe"))
    assert len(found.models) == 11
    # 7,442 clips and 24 speakers × 600 sentences, five prompts each, every response read once.
    per_model = 5 * (7_442 + 24 * 600)
    assert {(m.responses, m.annotator_calls) for m in found.models} == {(per_model, per_model)}
    hours = {m.model: m.gpu_hours for m in found.models}
    assert hours["qwen2-audio-7b-instruct"] == pytest.approx(per_model * 300 / 2500 / 3600)
    assert hours["gemini-2.5-flash"] == 0
    code, out, _ = equivox("plan", "configs/runs/vibe.yaml")
    assert code == 0
    assert f"{11 * per_model:,}" in out
    assert "7,442 samples as published" in out


def test_items_are_counted_where_the_data_are_there() -> None:
    found = reckoned(open_run_file("vibe", data="sample", limit=48))
    assert {m.responses for m in found.models} == {10 * 48}


RUN_FILE = """\
models: [simulated:oracle, "simulated:biased"]
tasks: [vibe_gender:candidate, vibe_gender:casting]
conditions: [audio, shuffled]
data: sample
limit: 48
"""


def test_many_models_in_one_command(equivox: Cli, tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(RUN_FILE)
    found = reckoned(open_run_file(str(file)))
    # Shuffling deals the groups anew and asks nothing.
    assert {(m.responses, m.annotator_calls) for m in found.models} == {(96, 0)}
    code, out, err = equivox("reproduce", file, "--output", tmp_path / "runs")
    assert code == 0, err
    assert "vibe_gender:candidate@shuffled" in out
    for name in ("oracle", "biased"):
        assert read_manifest(tmp_path / "runs" / name)["identity"]["limit"] == 48


def test_a_model_that_cannot_be_run_stops_no_other_and_shows(equivox: Cli, tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(RUN_FILE.replace('"simulated:biased"', "simulated:bised, simulated:random"))
    code, out, _ = equivox("reproduce", file, "--output", tmp_path / "runs")
    assert code == 1
    assert "simulated:bised was not run: unknown simulated model" in out
    assert (tmp_path / "runs" / "random" / "scores.json").is_file()


@pytest.mark.parametrize(
    ("old", "new", "hint"),
    [("limit: 48", "limit: 0", "limit"), ("models", "modles", "models"), ("data: sample", "dta: sample", "dta")],
)
def test_a_wrong_run_file_is_one_line(old: str, new: str, hint: str, equivox: Cli, tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(RUN_FILE.replace(old, new))
    code, _, err = equivox("plan", file)
    assert (code, err.count("\n")) == (2, 1)
    assert hint in err
    code, _, err = equivox("plan", "vibr")
    assert (code, "did you mean" in err) == (2, True)


@pytest.mark.parametrize("name", config_names("runs"))
def test_every_packaged_run_file_can_be_reckoned(name: str) -> None:
    assert reckoned(open_run_file(name)).models
