"""What contributors are told, what hooks run and what continuous integration runs are the same commands."""

from __future__ import annotations

import re

import pytest
import yaml
from docs_pages import PAGES, ROOT

from equivox.core.version import __version__

MAKEFILE = (ROOT / "Makefile").read_text("utf-8")


def recipe(target: str) -> list[str]:
    (found,) = re.findall(rf"^{target}:.*\n((?:\t.*\n)+)", MAKEFILE, flags=re.MULTILINE)
    return [line.strip() for line in found.splitlines()]


def test_the_hooks_run_what_make_lint_runs() -> None:
    (repository,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text("utf-8"))["repos"]
    assert repository["repo"] == "local"
    assert all(hook["language"] == "system" and not hook["pass_filenames"] for hook in repository["hooks"])
    entries = [hook["entry"].replace(".venv/bin/", "$(BIN)/") for hook in repository["hooks"]]
    assert entries == recipe("lint")


def test_continuous_integration_runs_make_alone() -> None:
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "test.yml").read_text("utf-8"))["jobs"]
    runs = {name: [step["run"] for step in job["steps"] if "run" in step] for name, job in jobs.items()}
    assert runs == {"check": ["make check"], "test": ["make test"], "long": ["make test-long"]}
    assert jobs["long"]["if"] == "github.event_name == 'schedule'"
    assert jobs["check"]["strategy"]["matrix"]["python"] == ["3.11", "3.13"]
    assert "make test" in (ROOT / ".ci" / "run").read_text("utf-8")


def test_the_targets_that_pages_name_exist() -> None:
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    named = {
        name
        for page in pages
        for name in re.findall(r"(?<!equivox data)[`$ ]make ([a-z][a-z-]+)`", page.read_text("utf-8"))
    }
    assert {"check", "test", "lint"} <= named
    for name in named:
        assert re.search(rf"^{name}:", MAKEFILE, flags=re.MULTILINE), name


NAMED = ("README.md", "CONTRIBUTING.md", "SECURITY.md", *(page.relative_to(ROOT).as_posix() for page in PAGES))


@pytest.mark.parametrize("page", NAMED)
def test_files_that_a_page_names_or_links_exist(page: str) -> None:
    text = (ROOT / page).read_text("utf-8")
    folders = "equivox|tests|tasks|configs|dataset_builders|metrics|docs|examples"
    for file in re.findall(rf"`((?:{folders})/[\w/.-]+)`", text):
        assert (ROOT / file).exists(), file
    for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", text):
        generated = target.startswith("metrics/") or target in {"changelog.md", "commands.md", "index.md"}
        assert generated or ((ROOT / page).parent / target).exists(), target


def test_the_changelog_has_the_headings_of_keep_a_changelog() -> None:
    _, *versions = (ROOT / "CHANGELOG.md").read_text("utf-8").split("\n## ")
    latest = next(version for version in versions if not version.startswith("[Unreleased]"))
    assert __version__.endswith(".dev0") or latest.startswith(f"[{__version__}] - ")
    for version in versions:
        headings = re.findall(r"^### (\w+)$", version, flags=re.MULTILINE)
        assert headings == [name for name in ("Added", "Changed", "Removed", "Fixed") if name in headings] != []


def test_test_files_have_names_of_their_own() -> None:
    """Pytest imports them by their bare names, so two of one name cannot be collected together."""
    names = [path.name for path in (ROOT / "tests").rglob("test_*.py")]
    assert sorted(names) == sorted(set(names))
