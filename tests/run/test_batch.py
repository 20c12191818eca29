"""Run files: what they take before anything runs, and many models in one command."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from equivox.configs import config_names
from equivox.core.errors import RequestError
from equivox.run.cost import Estimate, estimate
from equivox.run.live import Speed, add_speed
from equivox.run.manifest import read_manifest
from equivox.run.run_files import RunFile, open_run_file, settings_of
from equivox.tasks.registry import resolve_tasks

Cli = Callable[..., tuple[int, str, str]]


def reckoned(file: RunFile) -> Estimate:
    return estimate(settings_of(file, resolve_tasks))


def test_what_reproducing_vibe_takes(equivox: Cli) -> None:
    found = reckoned(open_run_file("vibe"))
    # 7,442 clips and 24 speakers × 600 sentences, five prompts each; 2,847 contexts in six orders.
    per_model, choices = 5 * (7_442 + 24 * 600), 6 * 2_847
    counted = {setting: [m for m in found.models if m.setting == setting] for setting in ("open_ended", "choices")}
    assert [len(models) for models in counted.values()] == [11, 10]  # Table 2 has the open models alone
    assert {(m.target.calls, m.annotator_calls) for m in counted["open_ended"]} == {(per_model, per_model)}
    assert {(m.target.calls, m.annotator_calls) for m in counted["choices"]} == {(choices, choices)}
    hours = {m.target.name: m.target.gpu_hours for m in counted["open_ended"]}
    assert hours["qwen2-audio-7b-instruct"] == pytest.approx(per_model * 300 / 2500 / 3600)
    assert hours["gemini-2.5-flash"] == 0
    # Its server answers eight at a time, each at 40 tokens a second.
    assert hours["desta2.5-audio-llama-3.1-8b"] == pytest.approx(per_model * 300 / 320 / 3600)
    code, out, _ = equivox("reproduce", "configs/runs/vibe.yaml", "--dry-run")
    assert code == 1 and "missing" in out
    assert f"{11 * per_model + 10 * choices:,}" in out
    assert "7,442 samples as published" in out
    assert "gemini-2.5-flash: from 2026-12-01 on the provider lets gemini-3.5-flash-lite answer" in out


def test_items_are_counted_where_the_data_are_there() -> None:
    found = reckoned(open_run_file("vibe", data="sample", limit=48))
    assert {(m.setting, m.target.calls) for m in found.models} == {("open_ended", 10 * 48), ("choices", 6 * 48)}
    assert "crema_d: 288 samples in sample" in found.sources


def test_repeats_of_published_items_are_requests_too(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    text = "models: [simulated:oracle]\ntasks: [vibe_gender:story]\n"
    calls = []
    for more in ("", "sampling: temperature=0.5,repeats=3\n", "limit: 10\n"):
        file.write_text(text + more)
        (model,) = reckoned(open_run_file(str(file))).models
        calls.append(model.target.calls)
    assert calls == [7_442, 3 * 7_442, 10]


RUN_FILE = """\
models: [simulated:oracle, "simulated:biased"]
tasks: [vibe_gender:candidate, vibe_gender:casting]
conditions: [audio, shuffled]
data: sample
limit: 48
"""


def test_system_prompts_of_a_file_and_of_its_settings(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    (tmp_path / "fair.txt").write_text("Be fair.")
    file.write_text(
        f"{RUN_FILE}system: fair.txt\nsettings: {{plain: {{limit: 24}}, kind: {{system: {{kind: Be kind.}}}}}}\n"
    )
    plain, kind = settings_of(open_run_file(str(file)), resolve_tasks)
    asked = {task.condition: task.prompt.system for task in plain.varied}
    assert asked == {"audio": "", "shuffled": "", "system=fair": "Be fair."}
    assert {task.condition for task in kind.varied} == {"audio", "shuffled", "system=kind"}
    file.write_text(f"{RUN_FILE}system: [missing.txt]\n")
    with pytest.raises(RequestError, match=r"missing\.txt cannot be read"):
        open_run_file(str(file))


def test_annotations_are_found_by_the_names_that_a_run_stores(tmp_path: Path) -> None:
    judge, file = "endpoint:model_name=org/judge,base_url=http://127.0.0.1:9/v1", tmp_path / "mine.yaml"
    for evaluations, names in ((1, ["endpoint-org-judge"]), (2, ["endpoint-org-judge@1", "endpoint-org-judge@2"])):
        file.write_text(f"{RUN_FILE}annotators: ['{judge}']\nevaluations: {evaluations}\n")
        (setting,) = settings_of(open_run_file(str(file)), resolve_tasks)
        assert setting.names_of(judge) == names


def test_many_models_in_one_command(equivox: Cli, tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(RUN_FILE)
    found = reckoned(open_run_file(str(file)))
    # Shuffling deals the groups anew and asks nothing.
    assert {(m.target.calls, m.annotator_calls) for m in found.models} == {(96, 0)}
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
    code, _, err = equivox("reproduce", file, "--dry-run")
    assert (code, err.count("\n")) == (2, 1)
    assert hint in err
    code, _, err = equivox("reproduce", "vibr")
    assert (code, "did you mean" in err) == (2, True)


# BADF's, of which every request is planned, is reckoned once, with its numbers, in tests/metrics/badf/test_overlap.py.
@pytest.mark.parametrize("name", [name for name in config_names("runs") if name != "badf"])
def test_every_packaged_run_file_can_be_reckoned(name: str) -> None:
    assert reckoned(open_run_file(name)).models


def test_a_plan_takes_the_speed_of_runs_and_marks_guesses(equivox: Cli, tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    model = "vllm:model_name=org/model"
    file.write_text(f"models: ['{model}']\ntasks: vibe_gender:story\ndata: sample\nlimit: 48\n")
    (setting,) = settings_of(open_run_file(str(file)), resolve_tasks)
    (guess,) = estimate([setting], tmp_path / "runs").models
    assert (guess.target.tokens_per_second, guess.target.measured) == (2500, False)
    assert "2,500?" in equivox("reproduce", file, "--dry-run", "--output", tmp_path / "runs")[1]
    folder = setting.spec(model, tmp_path / "runs").output
    # Two starts of 40 and 60 responses, 10,000 tokens in 50 seconds: 200 a second, 100 a response.
    add_speed(folder, Speed(responses=40, tokens=6_000, seconds=20.0))
    add_speed(folder, Speed(responses=60, tokens=4_000, seconds=30.0))
    (found,) = estimate([setting], tmp_path / "runs").models
    assert (found.target.tokens_per_second, found.target.measured) == (200, True)
    assert found.target.gpu_hours == pytest.approx(48 * 100 / 200 / 3600)
