"""The tasks of a run as data: what is stored is found again, and nothing else is."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from equivox.core.errors import UsageError
from equivox.run import declarations
from equivox.run.declarations import TASKS_FILE, find_code, read_tasks, write_tasks
from equivox.run.python_files import load_file
from equivox.tasks.files import load_task_file
from equivox.tasks.registry import builtin_tasks

YAML = """
name: offers
table: people.csv
group: gender
swap: {name: {male: [Jonas, Emil], female: [Anna, Olga]}}
where: {role: [nurse, "2"], place: home}
missing: [NA]
questions:
  - name: salary
    text: What does {name} earn?
    attributes: [{name: salary, asks: the pay, number: {unit: EUR, low: 0}}]
    examples: [{text: It is 100., values: {salary: 100}}]
    sampling: {temperature: 0.7, repeats: 3, stop: [END]}
    wordings: {plain: 'And what does {name} earn?'}
card: Made up.
"""


@pytest.mark.parametrize("source", [*builtin_tasks(), YAML])
def test_tasks_written_and_read_and_written_are_the_same_bytes(
    source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As in a process in which nobody named a task.
    monkeypatch.setattr(declarations, "_given", {})
    (tmp_path / "people.csv").write_text("text,role,place\nHello {name}.,nurse,home\n")
    (tmp_path / "mine.yaml").write_text(YAML)
    tasks = [builtin_tasks()[source]] if source != YAML else load_task_file(tmp_path / "mine.yaml")
    monkeypatch.setattr(declarations, "read_manifest", lambda folder: {})
    write_tasks(tmp_path, tasks)
    written = (tmp_path / TASKS_FILE).read_bytes()
    read = read_tasks(tmp_path)
    assert [task.fingerprint for task in read] == [task.fingerprint for task in tasks]
    write_tasks(tmp_path, read)
    assert (tmp_path / TASKS_FILE).read_bytes() == written


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
