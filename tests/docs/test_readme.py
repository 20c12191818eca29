"""The README is short, starts with what a newcomer needs, and leads to every page."""

from __future__ import annotations

import re

from docs_pages import PAGES, ROOT, blocks

TEXT = (ROOT / "README.md").read_text("utf-8")


def test_it_is_short_and_its_first_screen_holds_what_a_newcomer_needs() -> None:
    assert len(TEXT.split()) <= 500
    first = "\n".join(TEXT.splitlines()[:36])
    assert all(text in first for text in ("pip install", "$ equivox run", "DIFFERENCE FOUND"))


def test_the_two_commands_stand_in_it() -> None:
    (block,) = (block for block in blocks(ROOT / "README.md", "console") if "make" in block)
    assert [line.split("#")[0].strip() for line in block.splitlines()] == ["$ make demo", "$ make test"]
    makefile = (ROOT / "Makefile").read_text("utf-8")
    assert all(f"\n{target}:" in makefile for target in ("demo", "test", "check", "docs"))


def test_it_leads_to_every_page() -> None:
    linked = set(re.findall(r"\]\((docs/[\w/]+\.md)\)", TEXT))
    pages = {page.relative_to(ROOT).as_posix() for page in PAGES}
    assert pages - linked == {"docs/reference.md", "docs/benchmarks/fairdialogue.md"}
