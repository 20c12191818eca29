"""lighteval's own registry finds every task, and refuses early what cannot be evaluated."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("lighteval.pipeline", reason="these tests need lighteval: make test-lighteval")

from lighteval.tasks.lighteval_task import LightevalTask
from lighteval.tasks.registry import Registry

from equivox.core.errors import EquivoxError
from equivox.integrations.lighteval import table
from equivox.integrations.lighteval.table import lighteval_tasks
from equivox.tasks import ALL_TASKS


@pytest.fixture(autouse=True)
def settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [name for name in os.environ if name.startswith("EQUIVOX_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)


def registry(tasks: str) -> Any:
    return Registry(tasks=tasks, custom_tasks="equivox.tasks")


def test_every_task_is_there_and_families_expand() -> None:
    found = registry("vibe_gender,badf_two:gender")
    asked = {task.name for task in ALL_TASKS if "speech" not in task.prompt.needs}
    assert asked <= found._task_registry.keys()
    assert sorted(found.task_to_configs) == [
        "badf_two:gender",
        *sorted(t for t in lighteval_tasks() if "vibe_gender:" in t),
    ]
    for name in lighteval_tasks():
        assert not set(name) & set("|/@,")
    # What is decoded greedily as declared has no second name.
    assert {"badf_two_greedy:race", "spoken_stereoset_greedy:age"} <= lighteval_tasks().keys()
    assert "vibe_gender_greedy:story" not in lighteval_tasks()


def test_tasks_of_installed_packages_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    task = replace(ALL_TASKS[0], name="letters:praise")
    monkeypatch.setattr(table, "builtin_tasks", lambda: {task.name: task})
    assert list(lighteval_tasks()) == ["letters:praise"]


def test_documents_are_the_requests_of_the_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EQUIVOX_DATA", "sample")
    monkeypatch.setenv("EQUIVOX_LIMIT", "4")
    task = registry("spoken_stereoset_orders:gender").load_tasks()["spoken_stereoset_orders:gender|0"]
    LightevalTask.load_datasets({"t": task})
    docs = task.get_docs()
    # 4 items in 6 orders
    assert sorted(doc.specific["position"] for doc in docs) == list(range(24))
    assert {doc.generation_size for doc in docs} == {128}
    assert {doc.specific["needs"] for doc in docs} == {"audio"}
    with pytest.raises(EquivoxError, match="needs audio, which this backend of lighteval does not send"):
        _ = docs[0].query
    docs[0].arrived = True
    assert "A" in docs[0].query


def test_what_is_cached_by_configuration_changes_with_the_requests_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def configuration(limit: str) -> str:
        monkeypatch.setenv("EQUIVOX_DATA", "sample")
        monkeypatch.setenv("EQUIVOX_LIMIT", limit)
        return str(registry("badf_two:gender").task_to_configs["badf_two:gender"][0].__str__(lite=True))

    assert configuration("2") == configuration("2")
    assert configuration("2") != configuration("3")


def test_data_are_never_chosen_silently() -> None:
    found = registry("vibe_gender:story")
    with pytest.raises(EquivoxError, match="vibe_gender:story reads the corpus crema_d: set EQUIVOX_DATA=sample") as e:
        found.load_tasks()
    # One line and exit code 1 where lighteval's command line lets it through, an ordinary error in Python.
    assert isinstance(e.value, SystemExit)
    assert isinstance(e.value.code, str)
    assert "\n" not in e.value.code


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("EQUIVOX_LIMIT", "many", "EQUIVOX_LIMIT must be a whole number from 1 up, got 'many'"),
        ("EQUIVOX_SEED", "-1", "EQUIVOX_SEED must be a whole number from 0 up, got '-1'"),
        ("EQUIVOX_ANNOTATOR", "ruls", "unknown `annotator` 'ruls'; did you mean rules"),
    ],
)
def test_settings_are_checked_before_a_model_is_loaded(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, message: str
) -> None:
    monkeypatch.setenv("EQUIVOX_DATA", "sample")
    monkeypatch.setenv(name, value)
    with pytest.raises(EquivoxError, match=message):
        registry("vibe_gender:story").load_tasks()


def test_examples_in_the_prompt_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EQUIVOX_DATA", "sample")
    with pytest.raises(
        EquivoxError, match=r"asks for 2 examples, which would answer for the model; give badf_two:race"
    ):
        registry("badf_two:race|2").load_tasks()
