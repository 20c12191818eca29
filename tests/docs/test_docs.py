"""The documentation is true: its code runs, its commands exist and run where they can, its site builds."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from commands import Cli
from docs_pages import (
    PAGES,
    ROOT,
    blocks,
)


def test_no_shell_expands_a_printed_command() -> None:
    """zsh, the shell of macOS, refuses a word with ? or [ that no file matches; bash and zsh both expand {."""
    for page in [*PAGES, ROOT / "README.md"]:
        for line in [line for block in blocks(page, "console") for line in block.splitlines() if line.startswith("$ ")]:
            bare = re.sub(r"\"[^\"]*\"|'[^']*'|  #.*", "", line)
            assert not re.search(r"[?\[\]{}]", bare), f"{page.name}: {line}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
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
    names = re.findall(r"^  ([a-z]+)  ", out, flags=re.MULTILINE)
    assert len(names) >= 15
    for name in names:
        assert f"equivox {name}" in text


def test_every_public_name_is_in_the_reference(site: Path) -> None:
    import equivox as package

    text = (site / "reference.html").read_text("utf-8")
    for name in ("measure", "load_task", "open_run", "FunctionEngine", "Result", "ScoringOptions", "UsageError"):
        assert name in package.__all__
        assert f">{name}<" in text or f'id="equivox.api.{name}"' in text or f".{name}" in text
