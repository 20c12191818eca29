"""The README says what is true: its commands run, its table is what they print, its task is a task."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from commands import Cli
from docs_pages import DOCS, ROOT, blocks, commands, unknown_options

from equivox.annotate import annotator_names
from equivox.dataset_builders import sample_source
from equivox.engines import model_names
from equivox.run.run_files import open_run_file
from equivox.tasks.registry import resolve_tasks

README = ROOT / "README.md"
QUICKSTART = DOCS / "quickstart.md"


def on_a_real_model(words: list[str]) -> bool:
    return any(mark in words for mark in ("--data-dir", "labels.csv"))


def of_ones_own(words: list[str]) -> bool:
    return any("applications" in word for word in words)


def test_it_is_short_and_its_first_screen_holds_what_a_newcomer_needs() -> None:
    lines = README.read_text("utf-8").splitlines()
    assert len(lines) <= 120
    first = "\n".join(lines[:45])
    assert "pip install" in first and "$ equivox run" in first and "```python" in first and "VIBE" in first


def test_the_two_commands_stand_in_it() -> None:
    (block,) = (block for block in blocks(README, "console") if "make" in block)
    assert [line.split("#")[0].strip() for line in block.splitlines()] == ["$ make demo", "$ make test"]
    makefile = (ROOT / "Makefile").read_text("utf-8")
    assert all(f"\n{target}:" in makefile for target in ("demo", "test", "check", "docs"))


@pytest.mark.parametrize("page", [README, QUICKSTART], ids=lambda page: page.stem)
def test_commands_on_real_models_know_their_options_and_names(page: Path) -> None:
    """Without the models: each option, task, annotator and model that is named exists."""
    ours = [words for words in commands(page) if on_a_real_model(words)]
    assert len(ours) >= 2
    for words in ours:
        assert not unknown_options(words), words
        if words[0] == "run":
            assert words[1] in model_names() or words[1].startswith("endpoint:")
        if "--annotator" in words:
            assert words[words.index("--annotator") + 1] in annotator_names()
        if words[0] == "reproduce":
            assert open_run_file(words[1])
        elif words[0] != "label":
            assert resolve_tasks(words[2])


def test_the_screen_is_what_the_command_prints(equivox: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (command,) = (
        words
        for words in commands(README)
        if words[0] == "run" and not on_a_real_model(words) and not of_ones_own(words)
    )
    printed = equivox.done(*command)
    assert blocks(README, "text")[0].rstrip() in printed
    assert blocks(QUICKSTART, "text")[0].rstrip() in printed


def test_the_python_example_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, Any] = {}
    example = blocks(README, "python")[0]
    assert len([line for line in example.splitlines() if line]) <= 5
    exec(compile(example, "README.md", "exec", dont_inherit=True), namespace)
    assert len(namespace["scores"]) > 5
    assert len(namespace["answers"]) == 288


def test_a_table_of_ones_own_runs_as_printed(
    equivox: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chat_server: Callable[..., str]
) -> None:
    """The simulated run, then a model and a judge on servers, here on one that answers both."""
    monkeypatch.chdir(tmp_path)
    rows = [f"a{n},{{name}} has {n % 9} years of experience." for n in range(24)]
    Path("applications.csv").write_text("\n".join(["id,application", *rows]) + "\n")
    new, simulated, served = (words for words in commands(README) if any("applications" in word for word in words))
    equivox.done(*new)
    code, out, error = equivox(*simulated, "--scoring", "n_resamples=99")
    assert code == 0 and "DIFFERENCE FOUND" in out, error

    def reply(body: dict[str, Any]) -> tuple[int, str]:
        judged = "response_format" in body
        return 200, '{"refusal": "no", "tone": "neutral"}' if judged else "A fine application."

    address = f"http://{chat_server(reply)}"
    words = [re.sub(r"http://127\.0\.0\.1:\d+", address, word) for word in served]
    code, out, error = equivox(*words, "--scoring", "n_resamples=99")
    # A server that says the same to everybody: the rule of three bounds what 20 units leave possible, without an error.
    assert code == 0 and "TOO FEW DATA" in out and "all 48 answers could be read" in out, (out, error)


def test_building_the_corpora_as_written_and_running_on_them(
    equivox: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sample in the place of the distributions: the same layout, the same builders."""
    monkeypatch.chdir(tmp_path)
    for name, corpus in (
        ("CREMA-D", "crema_d"),
        ("l2arctic_v5", "l2_arctic"),
        ("spoken_stereoset", "spoken_stereoset"),
    ):
        (tmp_path / name).symlink_to(sample_source(corpus))
    chosen = [
        words
        for words in commands(QUICKSTART)
        if "--source" in words or ("--data" in words and words[words.index("--data") + 1] == "data")
    ]
    assert len(chosen) == 4
    for words in chosen:
        equivox.done(*words, *(["--scoring", "n_resamples=199"] if words[0] == "run" else []))


def test_every_file_that_is_linked_exists() -> None:
    for target in re.findall(r"\]\((?!https?:)([^)]+)\)", README.read_text("utf-8")):
        file, _, anchor = target.partition("#")
        assert (ROOT / file).exists(), target
        if anchor:
            headings = re.findall(r"^#+ (.*)$", (ROOT / file).read_text("utf-8"), flags=re.MULTILINE)
            assert anchor in {re.sub(r"[^\w]+", "-", heading.lower()).strip("-") for heading in headings}, target


@pytest.mark.parametrize("page", sorted((DOCS / "benchmarks").glob("*.md")), ids=lambda page: page.stem)
def test_the_examples_of_a_benchmarks_page_are_task_files(page: Path, clip_corpus: Callable[..., Path]) -> None:
    for number, example in enumerate(blocks(page, "yaml")):
        if "questions:" in example:
            file = clip_corpus().parent / f"example-{number}.yaml"
            file.write_text(example)
            assert resolve_tasks(str(file))
