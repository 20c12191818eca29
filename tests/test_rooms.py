"""Rooms: the machinery reaches metrics and tasks through their objects and the registry, never by name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "equivox"
ROOMS = ("report", "compare", "cli")
"""The rooms that keep to it so far; core, statistics, engines, annotate, run and integrations are to follow."""

FAMILIES = sorted(path.name for path in (PACKAGE / "metrics").iterdir() if (path / "__init__.py").is_file())
BENCHMARKS = ("vibe", "genres", "badf", "spoken_stereoset")
NAMED = re.compile(
    rf"equivox\.metrics\.(?:{'|'.join(FAMILIES)})\b"
    rf"|equivox\.tasks\.(?:{'|'.join(BENCHMARKS)})\b"
    rf"|from equivox\.metrics import\b.*\b(?:{'|'.join(FAMILIES)})\b"
    rf"|from equivox\.tasks import\b.*\b(?:{'|'.join(BENCHMARKS)})\b"
)


def test_the_families_are_found() -> None:
    assert {"ntvd", "genres", "badf", "spoken_stereoset"} <= set(FAMILIES)


@pytest.mark.parametrize("room", ROOMS)
def test_no_room_of_the_machinery_imports_a_benchmark_or_a_metric(room: str) -> None:
    files = [path for path in (PACKAGE / room).rglob("*") if path.suffix in {".py", ".j2", ".js", ".tex"}]
    assert files
    found = [
        f"{path.relative_to(PACKAGE)}:{number}: {line.strip()}"
        for path in files
        for number, line in enumerate(path.read_text("utf-8").splitlines(), start=1)
        if NAMED.search(line)
    ]
    assert found == []


@pytest.mark.parametrize("room", ("report", "compare"))
def test_reports_and_comparisons_name_no_benchmark_and_no_measure(room: str) -> None:
    from equivox.tasks.registry import builtin_tasks

    tasks = builtin_tasks().values()
    metrics = {task.metric.name: task.metric for task in tasks}
    # Of several words or with a digit or capital inside; "associations" alone is a word like any other.
    measures = {
        m.name for metric in metrics.values() for m in metric.measures if not m.name.islower() or len(m.name) < 6
    }
    names = "|".join(sorted({*map(re.escape, measures), *BENCHMARKS, *(name.upper() for name in BENCHMARKS), "TBS"}))
    for path in (PACKAGE / room).rglob("*"):
        if path.suffix in {".py", ".j2", ".js"}:
            assert re.findall(rf"(?<![#\w-])(?:{names})\b", path.read_text("utf-8")) == [], path
