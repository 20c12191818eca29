"""The README says what is true: its commands run, its examples work."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from equivox.annotate import annotator_names
from equivox.core.task import Task
from equivox.engines import model_names
from equivox.run.run_files import open_run_file
from equivox.tasks.registry import resolve_tasks

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text("utf-8")
Cli = Callable[..., tuple[int, str, str]]


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)


def commands() -> list[str]:
    text = "\n".join(blocks("console")).replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line.startswith("$ equivox")]
    return [line.removeprefix("$ equivox ").partition("  #")[0] for line in lines]


def on_a_real_model(command: str) -> bool:
    return any(mark in command for mark in ("--data-dir", "runs/omni", "labels.csv"))


def test_commands_on_real_models_know_their_options_and_names(equivox: Cli) -> None:
    """Without the models: each option, task, annotator and model that is named exists."""
    ours = [command for command in commands() if on_a_real_model(command)]
    assert len(ours) == 6
    for command in ours:
        words = shlex.split(command)
        code, out, _ = equivox(*(words[:2] if words[0] == "audit" else words[:1]), "--help")
        assert code == 0
        assert all(word in out for word in words if word.startswith("--"))
        if words[0] == "run":
            assert words[1] in model_names()
        if "--annotator" in words:
            assert words[words.index("--annotator") + 1] in annotator_names()
        if words[0] == "reproduce":
            assert open_run_file(words[1])
        elif words[0] != "audit" and len(words) > 2:
            assert resolve_tasks(words[2])


def test_commands_on_the_sample_run_in_the_order_given(
    equivox: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    elsewhere = ("--source", "--data data", "my_voices")
    on_sample = [
        command
        for command in commands()
        if not on_a_real_model(command) and not any(word in command for word in elsewhere)
    ]
    assert len(on_sample) >= 6
    for command in on_sample:
        code, out, err = equivox(*shlex.split(command))
        assert code == 0, f"{command}: {err}"
        assert out


def test_building_the_corpora_as_written_and_running_on_them(
    equivox: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sample in the place of the distributions: the same layout, the same builders."""
    monkeypatch.chdir(tmp_path)
    sample = ROOT / "dataset_builders" / "sample"
    (tmp_path / "CREMA-D").symlink_to(sample / "crema_d")
    (tmp_path / "l2arctic_v5").symlink_to(sample / "l2_arctic")
    (tmp_path / "spoken_stereoset").symlink_to(sample / "spoken_stereoset")
    chosen = [command for command in commands() if "--source" in command or "--data data" in command]
    assert len(chosen) == 4
    for command in chosen:
        code, _, err = equivox(*shlex.split(command))
        assert code == 0, f"{command}: {err}"


def test_the_corpus_example_is_short_and_works(
    equivox: Cli, clip_corpus: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (example,) = blocks("yaml")
    assert len(example.splitlines()) < 15
    monkeypatch.chdir(tmp_path)
    clip_corpus()
    # The fixture keeps its clips in a folder of their own; everything else is as printed.
    Path("my_voices.yaml").write_text(example + "folder: clips\n")
    (command,) = [command for command in commands() if "my_voices.yaml" in command]
    code, out, err = equivox(*shlex.split(command))
    assert code == 0, err
    names = [f"my_voices_gender:{prompt}" for prompt in yaml.safe_load(example)["prompts"]]
    assert all(name in out for name in names)


def test_the_task_example_is_short_and_is_a_task() -> None:
    *_, example = blocks("python")
    assert len(example.splitlines()) < 25
    namespace: dict[str, object] = {}
    exec(compile(example, "README.md", "exec", dont_inherit=True), namespace)
    (task,) = namespace["TASKS"]  # type: ignore[misc]
    assert isinstance(task, Task)
    assert "Cannot say" in task.card


def test_the_python_example_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, Any] = {}
    exec(compile(blocks("python")[0], "README.md", "exec", dont_inherit=True), namespace)
    assert len(namespace["scores"]) > 5
    assert len(namespace["answers"]) == 288


def test_every_file_that_is_linked_exists() -> None:
    for target in re.findall(r"\]\((?!https?:)([^)]+)\)", README):
        assert (ROOT / target.partition("#")[0]).exists(), target


@pytest.mark.parametrize("page", sorted((ROOT / "docs" / "benchmarks").glob("*.md")), ids=lambda page: page.stem)
def test_a_benchmarks_page_names_commands_files_and_examples_that_exist(
    page: Path, equivox: Cli, clip_corpus: Callable[..., Path], tmp_path: Path
) -> None:
    text = page.read_text("utf-8")
    for command in re.findall(r"^\$ equivox (.*?)(?:  #.*)?$", text, flags=re.MULTILINE):
        words = shlex.split(command.replace("\\", ""))
        named = words[:2] if words[0] in {"data", "tasks", "audit"} else words[:1]
        code, out, _ = equivox(*named, "--help")
        assert code == 0, command
        assert all(word in out for word in words if word.startswith("--")), command
    for file in re.findall(r"`((?:tests|tasks|configs|dataset_builders|metrics)/[\w/.-]+)`", text):
        assert (ROOT / file).exists(), file
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", text):
        assert (page.parent / target).exists(), target
    for number, example in enumerate(re.findall(r"```yaml\n(.*?)```", text, flags=re.DOTALL)):
        if "questions:" in example:
            file = clip_corpus().parent / f"example-{number}.yaml"
            file.write_text(example)
            assert resolve_tasks(str(file))
