"""No decision is made by the words of a note or an error: codes decide."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import equivox

PACKAGE = Path(equivox.__file__).parent
WORDS = ("note", "notes", "error", "errors", "reason", "undefined", "undefined_reason", "why", "message")
MATCHES = ("startswith", "endswith", "search", "match", "fullmatch")


def find_word_matches(source: str) -> list[int]:
    """Return the lines that match the words of a note, a reason or an error."""
    lines = []
    for node in ast.walk(ast.parse(source)):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in MATCHES):
            continue
        of = [node.func.value, *node.args] if node.func.attr in MATCHES[:2] else node.args
        names = {n.id for one in of for n in ast.walk(one) if isinstance(n, ast.Name)}
        names |= {n.attr for one in of for n in ast.walk(one) if isinstance(n, ast.Attribute)}
        if names & set(WORDS):
            lines.append(node.lineno)
    return lines


def test_the_search_sees_what_it_looks_for() -> None:
    assert find_word_matches('if note.startswith("read by"): ...') == [1]
    assert find_word_matches('re.search("damaged", error)') == [1]
    assert find_word_matches('name.startswith("values.")') == []


@pytest.mark.parametrize("folder", ["audit", "labels", "compare", "core", "metrics", "report", "run", "statistics"])
def test_no_decision_matches_words(folder: str) -> None:
    matches = {
        f"{path.relative_to(PACKAGE)}:{line}"
        for path in (PACKAGE / folder).rglob("*.py")
        for line in find_word_matches(path.read_text("utf-8"))
    }
    assert matches == set()
