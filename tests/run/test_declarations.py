"""The tasks of a run as data: what is stored is found again, and nothing else is."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from equivox.core.errors import UsageError
from equivox.run import declarations
from equivox.run.declarations import decode, encode, load_file
from equivox.tasks.registry import builtin_tasks


@pytest.mark.parametrize("task", ["vibe_gender:story", "genres:cs", "badf_two:gender", "spoken_stereoset:gender"])
def test_a_shipped_task_is_found_by_what_is_stored_of_it(task: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # As in a process in which nobody named a task.
    monkeypatch.setattr(declarations, "_given", {})
    declared = builtin_tasks()[task]
    for own in (declared, declared.simulate):
        stored = json.loads(json.dumps(encode(own, {})))
        assert encode(decode(stored), {}) == stored


def test_a_stored_metric_is_looked_up_without_the_registered_tasks() -> None:
    asked = """
import sys
from equivox.run.declarations import decode
print(decode({"$code": "equivox.metrics.numbers.metric:METRIC"}).name, "equivox.tasks" in sys.modules)
"""
    told = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True).stdout
    assert told.split() == ["numbers", "False"]


@pytest.mark.parametrize("code", ["numbers.metric:compare_means", "numbers.scorer:METRIC", "nothing.metric:METRIC"])
def test_a_run_names_no_code_but_metrics(code: str) -> None:
    with pytest.raises(UsageError, match="with settings that no registered task has"):
        decode({"$code": f"equivox.metrics.{code}"})


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("equivox_task_files.mine_0123456789abcdef:RULE", r"the run needs code of mine\.py, as it was"),
        ("equivox_task_files:RULE", "which is neither equivox nor an installed package"),
        ("pandas.core:RULE", "code of 'pandas.core', which is neither equivox nor an installed package"),
    ],
)
def test_code_that_is_not_there_is_told_by_where_it_comes_from(code: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        decode({"$code": code})


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
