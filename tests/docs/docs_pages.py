"""The pages of the documentation: their blocks, their commands and their packages."""

from __future__ import annotations

import importlib.util
import re
import shlex
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType

from typer.testing import CliRunner

from equivox.core import plugins
from equivox.dataset_builders import opening
from equivox.tasks import registry

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
_FILE = re.compile(r"# (?P<path>[\w/]+\.(?:py|yaml))\n")
_CACHES = (plugins.added, plugins.plugin_packages, registry._added_tasks, opening.openers)
GROUPS_OF_COMMANDS = frozenset({"data", "tasks", "label"})


def blocks(page: Path, language: str) -> list[str]:
    return [content for found, content in all_blocks(page) if found == language]


def all_blocks(page: Path) -> Iterator[tuple[str, str]]:
    """Yield the fenced blocks of a page with their languages, in order."""
    yield from re.findall(r"```(\w*)\n(.*?)```", page.read_text("utf-8"), flags=re.DOTALL)


def commands_in(block: str) -> list[list[str]]:
    """Return the words of each `$ equivox …` of a console block."""
    lines = block.replace("\\\n", " ").splitlines()
    return [
        shlex.split(line.removeprefix("$ equivox ").partition("  #")[0].strip())
        for line in lines
        if line.startswith("$ equivox ")
    ]


def commands(page: Path) -> list[list[str]]:
    return [words for block in blocks(page, "console") for words in commands_in(block)]


@cache
def _help(*named: str) -> tuple[int, str]:
    from equivox.cli.app import app

    done = CliRunner().invoke(app, [*named, "--help"], env={"COLUMNS": "200", "TERM": "dumb"})
    return done.exit_code, done.output


def unknown_options(words: list[str]) -> list[str]:
    """Return the options that the command has not; the command itself must exist."""
    code, out = _help(*words[: 2 if words[0] in GROUPS_OF_COMMANDS else 1])
    assert code == 0, words
    return [word for word in words if word.startswith("--") and word.partition("=")[0] not in out]


def script(name: str) -> ModuleType:
    """Return a script of `docs/` as a module."""
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def file_named(block: str) -> str | None:
    """Return the path that the first line of a block gives it; such a block is a file, not a script."""
    found = _FILE.match(block)
    return found["path"] if found else None


def install_package(declared: str, folder: Path) -> None:
    """Make the package that a block of TOML declares an installed one, whose modules lie in `folder`."""
    project = tomllib.loads(declared)["project"]
    assert set(project["entry-points"]) <= set(plugins.GROUPS)
    info = folder / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    groups = (
        "\n".join([f"[{group}]", *(f"{name} = {target}" for name, target in entries.items())])
        for group, entries in project["entry-points"].items()
    )
    (info / "entry_points.txt").write_text("\n\n".join(groups) + "\n")
    _clear_caches()


def forget_package(page: Path) -> None:
    """Forget the modules and entry points of a page."""
    for _, block in all_blocks(page):
        if name := file_named(block):
            top = name.removesuffix(".py").partition("/")[0]
            for module in [known for known in sys.modules if known.partition(".")[0] == top]:
                del sys.modules[module]
    _clear_caches()


def _clear_caches() -> None:
    for cached in _CACHES:
        cached.cache_clear()
