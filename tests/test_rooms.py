"""Rooms: what import-linter cannot say of them (its contracts stand in pyproject.toml)."""

from __future__ import annotations

import re
from graphlib import TopologicalSorter
from pathlib import Path

import grimp
import pytest

PACKAGE = Path(__file__).parent.parent / "equivox"
BENCHMARKS = ("vibe", "genres", "badf", "spoken_stereoset")


def test_no_files_need_each_other_in_a_circle() -> None:
    """Lazy imports count; those of types alone do not."""
    graph = grimp.build_graph("equivox", exclude_type_checking_imports=True, cache_dir=None)
    imported = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    assert len(imported) > 250
    # Where lighteval enters, as in the contracts.
    imported["equivox.tasks"] = imported["equivox.tasks"] - {"equivox.integrations.lighteval.table"}
    TopologicalSorter(imported).prepare()  # CycleError names the files of a circle


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
