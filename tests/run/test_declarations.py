"""The tasks of a run as data: what is stored is found again, and nothing else is."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from equivox.core.errors import UsageError
from equivox.run import declarations
from equivox.run.declarations import decode, encode, find_code, load_file
from equivox.tasks.registry import builtin_tasks


@pytest.mark.parametrize("task", ["vibe_gender:story", "genres:cs", "badf_two:gender", "spoken_stereoset:gender"])
def test_a_shipped_task_is_found_by_what_is_stored_of_it(task: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # As in a process in which nobody named a task.
    monkeypatch.setattr(declarations, "_given", {})
    stored = encode([builtin_tasks()[task]], {})
    assert encode(decode(json.loads(json.dumps(stored))), {}) == stored


def test_a_stored_metric_is_looked_up_without_the_registered_tasks() -> None:
    asked = """
import sys
from equivox.run.declarations import find_code
print(find_code("equivox.metrics.numbers.metric:METRIC").name, "equivox.tasks" in sys.modules)
"""
    told = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True).stdout
    assert told.split() == ["numbers", "False"]


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("equivox.metrics.numbers.metric:compare_means", "with settings that no registered task has"),
        ("equivox.metrics.numbers.scorer:METRIC", "with settings that no registered task has"),
        ("equivox.metrics.nothing.metric:METRIC", "with settings that no registered task has"),
        ("equivox_task_files.mine_0123456789abcdef:RULE", r"the run needs code of mine\.py, as it was"),
        ("equivox_task_files:RULE", "which is neither equivox nor an installed package"),
        ("pandas.core:RULE", "code of 'pandas.core', which is neither equivox nor an installed package"),
        ({"$type": "subprocess:Popen", "args": "x"}, "code of 'subprocess', which is neither"),
        ({"$type": ["subprocess:Popen"]}, "which is neither"),
        ({"args": "x"}, "which is neither"),
        (7, "which is neither"),
    ],
)
def test_code_that_is_not_registered_is_named_and_not_imported(code: object, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        find_code(code)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("TASK = (\n", "SyntaxError"),
        ("one = 1\nTASK = one / 0\n", "line 2: ZeroDivisionError"),
        ("exit()\n", "line 1: SystemExit: None"),
    ],
)
def test_a_task_file_that_fails_names_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(text)
    for file in (tmp_path / "mine.py", Path("mine.py"), Path("mine.py")):  # what failed is not taken for loaded
        with pytest.raises(UsageError, match=rf"task file .*mine\.py.* {words}"):
            load_file(file)
