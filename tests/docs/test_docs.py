"""The documentation is true: its code runs, its commands exist and run where they can, its site builds."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
import yaml
from commands import Cli
from docs_pages import (
    DOCS,
    PAGES,
    ROOT,
    WORKED,
    all_blocks,
    blocks,
    commands,
    commands_in,
    file_named,
    install,
    uninstall,
    unknown_options,
)

ELSEWHERE = (
    *("--push", "--data data", "--data-dir data", "--hub", "--source ", "pip install", "labels"),
    *("--workers", "--ray-address"),
)
"""What needs a model, a corpus, an account, labels or Ray and does not run here; its options are checked."""


QUICKLY = {
    "run": ("--scoring", "n_resamples=199"),
    "score": ("--scoring", "n_resamples=199"),
    "compare": ("--resamples", "199"),
    "power": ("--design", "simulations=200"),
}


RUN_ELSEWHERE = (*WORKED, DOCS / "experiments.md", DOCS / "reproduce.md")
"""Pages with a test of their commands: below, in `test_experiments.py` and in `test_miniatures.py`."""


def serves(words: list[str]) -> bool:
    """Return whether a command answers until it is interrupted; it has tests of its own."""
    return words[0] == "view"


def name_of(page: Path) -> str:
    return page.relative_to(ROOT / "docs").as_posix()


def can_run(words: list[str]) -> bool:
    """Return whether all that a command needs is here: simulated models, the sample, runs made before on the page."""
    if serves(words) or any(mark in f"{' '.join(words)} " for mark in ELSEWHERE):
        return False
    runs = [word for word in words[1:] if re.match(r"(runs|hub)/", word) and not _is_output(words, word)]
    if words[0] == "run":
        return words[1].startswith("simulated:") and "sample" in words
    if words[0] == "reproduce":
        return "sample" in words and "simulated:biased" in words
    if words[0] in {"vllm", "annotate", "label"}:
        return False
    if words[0] == "data":
        listed = words == ["data", "build"]
        return listed or (words[1] == "push" and ("sample" in words or bool(runs)) and _are_here(runs))
    return bool(runs) and _are_here(runs)


def _is_output(words: list[str], word: str) -> bool:
    place = words.index(word)
    return place > 0 and words[place - 1] in {"--output", "-o"}


def _are_here(runs: list[str]) -> bool:
    return all(Path(run).exists() for run in runs)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_commands(page: Path, equivox: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    for words in commands(page):
        assert not unknown_options(words), words
        if page not in RUN_ELSEWHERE and can_run(words):
            fewer = ["12" if before == "--limit" else word for before, word in pairwise(["", *words])]
            code, _, error = equivox(*fewer, *QUICKLY.get(words[0], ()))
            # Simulated models that say one thing only leave scores undefined: 1 is an answer, 2 is a wrong command.
            assert code in {0, 1}, f"{words}: {error}"


def test_no_shell_expands_a_printed_command() -> None:
    """zsh, the shell of macOS, refuses a word with ? or [ that no file matches; bash and zsh both expand {."""
    for page in [*PAGES, ROOT / "README.md"]:
        for line in [line for block in blocks(page, "console") for line in block.splitlines() if line.startswith("$ ")]:
            bare = re.sub(r"\"[^\"]*\"|'[^']*'|  #.*", "", line)
            assert not re.search(r"[?\[\]{}]", bare), f"{page.name}: {line}"


def test_enough_commands_run() -> None:
    runnable = [
        words
        for page in PAGES
        for words in commands(page)
        if words[0] == "run" and words[1].startswith("simulated:") and (page in WORKED or can_run(words))
    ]
    assert len(runnable) >= 10


@pytest.mark.parametrize("page", WORKED, ids=name_of)
def test_worked_pages(page: Path, equivox: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worked change works as printed: its files, its Python and its commands, from top to bottom."""
    install(page, tmp_path, monkeypatch)
    namespace: dict[str, object] = {}
    done = 0
    try:
        for language, block in all_blocks(page):
            if language == "python" and not file_named(block):
                exec(compile(block, str(page), "exec", dont_inherit=True), namespace)
                done += 1
            for words in commands_in(block) if language == "console" else []:
                if serves(words) or any(mark in f"{' '.join(words)} " for mark in ELSEWHERE):
                    continue
                out = equivox.done(*words, *QUICKLY.get(words[0], ()))
                assert out, words
                done += 1
    finally:
        uninstall(page)
    assert done >= 2


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p, "python") and p not in WORKED], ids=name_of)
def test_python(page: Path, equivox: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every block runs, in order; one that the text says stops with an error does."""
    pytest.importorskip("evaluate")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "cache"))
    (tmp_path / "metrics").symlink_to(ROOT / "metrics")
    monkeypatch.chdir(tmp_path)
    for words in commands(page):
        if words[:2] == ["data", "push"] and "sample" in words:
            equivox.done(*words)
    namespace: dict[str, object] = {}
    text = page.read_text("utf-8")
    for block in blocks(page, "python"):
        following = text[text.index(block) + len(block) :].removeprefix("```").strip()
        code = compile(block, str(page), "exec", dont_inherit=True)
        if following.startswith("This one stops with an error"):
            with pytest.raises(Exception, match="used 0 of 1 media items"):
                exec(code, namespace)
        else:
            exec(code, namespace)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_yaml_is_yaml(page: Path) -> None:
    for block in blocks(page, "yaml"):
        assert yaml.safe_load(block)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("mkdocs")
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return folder


def test_the_site_has_every_page_and_needs_no_network(site: Path) -> None:
    for page in PAGES:
        assert (site / page.relative_to(ROOT / "docs").with_suffix(".html")).is_file()
    for page in ("index", "commands", "changelog", "metrics/ntvd", "metrics/genres"):
        assert (site / f"{page}.html").is_file()
    for notebook in (ROOT / "docs" / "examples").glob("*.ipynb"):
        page = (site / "examples" / f"{notebook.stem}.html").read_text("utf-8")
        pictures = re.findall(r'<img[^>]+src="?([\w.]+\.png)', page)
        assert len(pictures) == notebook.read_text("utf-8").count('"image/png"')
        assert all((site / "examples" / picture).is_file() for picture in pictures)
    for html in site.rglob("*.html"):
        loaded = re.findall(r"<(?:script|link|img)[^>]+(?:src|href)=\"?(https?:[^\" >]+)", html.read_text("utf-8"))
        assert loaded == [], html


def test_every_command_is_in_the_reference(site: Path, equivox: Cli) -> None:
    text = (site / "commands.html").read_text("utf-8")
    out = equivox("--help")[1]
    names = re.findall(r"^│ (\w+)", out, flags=re.MULTILINE)
    assert len(names) >= 15
    for name in names:
        assert f"equivox {name}" in text


def test_every_public_name_is_in_the_reference(site: Path) -> None:
    import equivox as package

    text = (site / "reference.html").read_text("utf-8")
    for name in ("measure", "load_task", "open_run", "FunctionEngine", "Result", "ScoringOptions", "RequestError"):
        assert name in package.__all__
        assert f">{name}<" in text or f'id="equivox.api.{name}"' in text or f".{name}" in text
