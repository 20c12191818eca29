"""The README says what is true: its commands run, its examples work."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from equivox.task import Task

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text("utf-8")
Cli = Callable[..., tuple[int, str, str]]


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)


def commands() -> list[str]:
    lines = [line for block in blocks("console") for line in block.splitlines() if line.startswith("$ equivox")]
    return [line.removeprefix("$ equivox ").partition("  #")[0] for line in lines]


def test_commands_on_the_sample_run_in_the_order_given(
    equivox: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ran = [command for command in commands() if "--source" not in command and "data " not in command.split("--")[0]]
    on_sample = [command for command in ran if "--data data" not in command and "my_voices" not in command]
    assert len(on_sample) >= 4
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
    chosen = [command for command in commands() if "--source" in command or "--data data" in command]
    assert len(chosen) == 3
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
    (example,) = blocks("python")
    assert len(example.splitlines()) < 25
    namespace: dict[str, object] = {}
    exec(compile(example, "README.md", "exec", dont_inherit=True), namespace)
    (task,) = namespace["TASKS"]  # type: ignore[misc]
    assert isinstance(task, Task)
    assert "Cannot say" in task.card


def test_every_file_that_is_linked_exists() -> None:
    for target in re.findall(r"\]\((?!https?:)([^)]+)\)", README):
        assert (ROOT / target).exists(), target
