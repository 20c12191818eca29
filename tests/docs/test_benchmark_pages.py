"""The pages of the benchmarks are true: what they print comes out of their commands."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import Cli
from docs_pages import DOCS, all_blocks, commands_in, file_named

PAGES = sorted((DOCS / "benchmarks").glob("*.md"))


def runs_here(words: list[str]) -> bool:
    """Return whether a command needs neither a corpus nor a model."""
    return words[0] == "tasks" or (words[0] == "run" and words[1].startswith("simulated:"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_prints_what_its_commands_print(
    page: Path, equivox: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    printed, shown = "", 0
    namespace: dict[str, object] = {}
    for language, block in all_blocks(page):
        if name := file_named(block):
            Path(name).write_text(block)
        elif language == "python":
            exec(compile(block, str(page), "exec", dont_inherit=True), namespace)
        elif language == "console":
            printed += "".join(equivox.done(*words) for words in commands_in(block) if runs_here(words))
        elif language == "text":
            assert block in printed
            shown += 1
    assert shown
