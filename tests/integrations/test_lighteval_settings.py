"""What equivox's side of lighteval does without it: settings, errors, and a table that costs nothing to have."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from equivox.core.errors import EquivoxError, UsageError
from equivox.integrations.lighteval.runs import Settings, Stop, one_line


def test_settings_come_from_the_environment() -> None:
    given = {
        "EQUIVOX_DATA": "sample",
        "EQUIVOX_ANNOTATOR": "judge.yaml",
        "EQUIVOX_LIMIT": "24",
        "EQUIVOX_SEED": "7",
        "EQUIVOX_RUNS": "elsewhere",
        "EQUIVOX_MODEL_CONFIG": "tiny.yaml",
    }
    assert Settings.from_environment(given) == Settings(
        data="sample", annotator="judge.yaml", limit=24, seed=7, runs=Path("elsewhere"), model="tiny.yaml"
    )


def test_what_is_not_set_or_empty_is_as_in_equivox_run() -> None:
    assert Settings.from_environment({}) == Settings.from_environment({"EQUIVOX_DATA": "", "EQUIVOX_LIMIT": ""})
    assert Settings.from_environment({}) == Settings(data=None, annotator="rules", limit=None, seed=0, model=None)


@pytest.mark.parametrize(("name", "value"), [("EQUIVOX_LIMIT", "0"), ("EQUIVOX_LIMIT", "2.5"), ("EQUIVOX_SEED", "x")])
def test_a_number_that_is_none_is_refused(name: str, value: str) -> None:
    with pytest.raises(UsageError, match=f"{name} must be a whole number from . up, got {value!r}"):
        Settings.from_environment({name: value})


def test_an_error_is_one_line_on_a_foreign_command_line_and_ordinary_in_python() -> None:
    program = (
        "from equivox.core.errors import UsageError\n"
        "from equivox.integrations.lighteval.runs import one_line\n"
        "with one_line():\n"
        "    raise UsageError('two\\n lines')\n"
    )
    called = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (called.returncode, called.stdout, called.stderr) == (1, "", "equivox: two lines\n")
    try:
        with one_line():
            raise UsageError("not here")
    except Exception as error:
        assert isinstance(error, EquivoxError)
        assert str(error) == "not here"
    # What is not ours keeps its traceback.
    with pytest.raises(ZeroDivisionError), one_line():
        _ = 1 / 0
    with pytest.raises(Stop, match="once"), one_line():
        raise Stop("once")


def test_tasks_are_imported_without_lighteval_and_the_table_says_what_to_install() -> None:
    program = (
        "import sys\n"
        "sys.modules['lighteval'] = None\n"
        "import equivox.tasks\n"
        "assert len(equivox.tasks.ALL_TASKS) > 30\n"
        "assert not hasattr(equivox.tasks, 'TASKS')\n"
        "equivox.tasks.TASKS_TABLE\n"
    )
    called = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert called.stderr.rstrip().endswith('pip install -c constraints-lighteval.txt ".[lighteval]"')


def test_the_tasks_alone_import_nothing_heavy() -> None:
    program = (
        "import sys, equivox.tasks; print([m for m in ('lighteval', 'torch', 'transformers') if m in sys.modules])"
    )
    called = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert called.stdout.strip() == "[]"
