"""Recipes: everything that determines weights is in the hash; shifts, tasks and the cache's place."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from importlib import metadata
from pathlib import Path

import pytest

from equivox.calibration import recipe as recipes
from equivox.calibration import training
from equivox.calibration.recipe import (
    CHOOSING,
    Effort,
    Recipe,
    calibration_task,
    effort_for,
    parse_shifts,
    recipe_of,
)
from equivox.core.errors import RequestError
from equivox.core.variants import vary
from equivox.run.pipeline import open_corpora
from equivox.tasks.registry import builtin_tasks

ONE = Recipe(task="vibe_gender:candidate", taught="abc", shift=20.0, libraries={"torch": "2.13.0"})


@pytest.mark.parametrize(
    "change",
    [
        {"task": "vibe_gender:story"},
        {"taught": "abd"},
        {"shift": 21.0},
        {"seed": 1},
        {"effort": Effort(answering=301)},
        {"effort": Effort(choosing=1)},
        {"effort": Effort(orders=2)},
        {"effort": Effort(answers=2)},
        {"version": "0"},
        {"libraries": {"torch": "2.13.1"}},
    ],
)
def test_whatever_determines_the_weights_changes_the_name(change: dict[str, object]) -> None:
    other = replace(ONE, **change)  # type: ignore[arg-type]
    assert other.digest != ONE.digest
    assert other.name != ONE.name


def test_options_in_changing_orders_need_more_effort() -> None:
    tasks = builtin_tasks()
    assert effort_for(tasks["spoken_stereoset:gender"]) == effort_for(tasks["spoken_stereoset_orders:age"]) == CHOOSING
    for name in ("vibe_gender:candidate", "vibe_gender:advisory", "badf_single:gender"):
        assert effort_for(tasks[name]) == Effort()
    # Other recipes, and so the models in users' caches, stay as they were.
    assert Effort().as_dict() == {"hearing": 240, "basics": 200, "answering": 200}


def test_all_shifts_begin_with_the_same_basics() -> None:
    assert replace(ONE, shift=60.0).basics == ONE.basics
    assert replace(ONE, seed=1).basics != ONE.basics


def test_what_is_taught_follows_the_task(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recipes, "libraries", lambda task: {})
    task = calibration_task(builtin_tasks()["vibe_gender:candidate"])
    other = replace(task, prompt=replace(task.prompt, text=task.prompt.text + "!"))
    found = set()
    for one in (task, other):
        tasks = vary([one], conditions=("all",))
        found.add(recipe_of(tasks, open_corpora(tasks, "sample", {}), shift=20, seed=0).taught)
    assert len(found) == 2


def test_without_torch_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", missing)
    with pytest.raises(RequestError, match=r"equivox\[transformers\]"):
        recipes.libraries(builtin_tasks()["vibe_gender:candidate"])


def test_images_need_torchvision_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def version(name: str) -> str:
        if name == "torchvision":
            raise metadata.PackageNotFoundError(name)
        return "1"

    monkeypatch.setattr(metadata, "version", version)
    assert "torchvision" not in recipes.libraries(builtin_tasks()["vibe_gender:candidate"])
    with pytest.raises(RequestError, match="pip install torchvision"):
        recipes.libraries(builtin_tasks()["vibe_face_gender:candidate"])


@pytest.mark.parametrize("shift", ["twenty", "", "-1", "101", "nan", "20;60"])
def test_a_shift_is_a_percent(shift: str) -> None:
    with pytest.raises(RequestError, match="`shift`"):
        parse_shifts(shift)


@pytest.mark.parametrize("task", ["genres_describe", "badf_openbox:gender"])
def test_tasks_that_cannot_be_taught_are_refused(task: str) -> None:
    chosen = [declared for name, declared in builtin_tasks().items() if name.startswith(task)]
    for declared in chosen:
        with pytest.raises(RequestError):
            calibration_task(declared)


def test_answers_are_drawn_at_temperature_one_whatever_the_task_says() -> None:
    declared = builtin_tasks()["badf_single:gender"]
    sampling = calibration_task(declared).sampling
    assert (sampling.temperature, sampling.top_p, sampling.top_k, sampling.frequency_penalty) == (1.0, 1.0, 0, 0.0)
    assert sampling.repeats == recipes.MOST_REPEATS < declared.sampling.repeats


@pytest.mark.parametrize(
    ("name", "once"), [("vibe_gender:candidate", 1), ("spoken_stereoset:gender", 4), ("badf_single:gender", 5)]
)
def test_one_choice_is_asked_for_several_times(name: str, once: int) -> None:
    task = builtin_tasks()[name]
    assert [calibration_task(task, times).sampling.repeats for times in (1, 3)] == [once, 3 * once]


def test_a_training_that_waited_takes_what_the_other_one_made(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("EQUIVOX_CACHE", str(tmp_path))
    monkeypatch.setattr(metadata, "version", lambda name: "1")
    tasks = [builtin_tasks()["vibe_gender:candidate"]]
    corpora = open_corpora(tasks, "sample", {})
    monkeypatch.setattr(training, "import_transformers", lambda: None)
    monkeypatch.setattr(training, "_one_thread", nullcontext)
    recipe = recipe_of(tasks, corpora, shift=20.0, seed=0)

    @contextmanager
    def made_meanwhile(folder: Path) -> Iterator[None]:
        recipe.folder.mkdir(parents=True)
        (recipe.folder / training.RECIPE_FILE).write_text("{}")
        yield

    monkeypatch.setattr(training, "_locked", made_meanwhile)
    monkeypatch.setattr(training, "_make", lambda *arguments: pytest.fail("trained again"))
    assert training.models(tasks, corpora, [20.0]) == [recipe]
