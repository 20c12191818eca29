"""Make calibration models, or take them from the cache."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from equivox.calibration.recipe import CACHE, MOST_SHIFT, Effort, Recipe, recipe_of
from equivox.calibration.student import Student, answer_of, teacher_of
from equivox.core.errors import RequestError
from equivox.core.files import cache_folder, whole_folder
from equivox.core.lazy import torch
from equivox.core.requests import EngineIdentity, Request
from equivox.core.task import Task
from equivox.core.variants import SHUFFLED
from equivox.engines.transformers_loading import import_transformers
from equivox.run.plan import make_plan

RECIPE_FILE = "calibration.json"
_MOST_TEXTS = 4000
BASICS_RATE, ANSWERING_RATE = 3e-3, 1e-3
"""Learning rates."""
CHOSEN_RATE = 2e-3
"""The learning rate of what follows after a model has learnt to choose."""
_NOBODY = EngineIdentity(engine="simulated", model="planted", revision="calibration", reads_labels=True)


def taught_requests(tasks: Sequence[Task], corpora: Mapping[str, Any], orders: int = 1) -> list[Request]:
    """Return the requests of all conditions of a task, each presentation of a sample once.

    Presentations depend on the seed of a plan, so those of `orders` seeds are taught: a model that knows one order only
    takes the group from the order. Shuffled conditions ask nothing of their own.
    """
    asked = [task for task in tasks if task.condition != SHUFFLED]
    found: list[Request] = []
    known: set[tuple[str, str, str]] = set()
    for seed in range(orders):
        plan = make_plan(asked, corpora, _NOBODY, seed=seed)
        requests = list(plan.requests(plan.usable.nonzero()[0]))
        found += [request for request in requests if _presented(request) not in known]
        known |= set(map(_presented, requests))
    return found


def _presented(request: Request) -> tuple[str, str, str]:
    return request.condition, request.sample_id, request.text


def models(
    tasks: Sequence[Task],
    corpora: Mapping[str, Any],
    shifts: Sequence[float],
    *,
    seed: int = 0,
    effort: Effort | None = None,
    told: Callable[[str], None] = lambda text: None,
) -> list[Recipe]:
    """Return a calibration model for each shift in percent, trained or taken from the cache.

    RequestError, before anything is trained, where torch or transformers is missing or a shift cannot be planted.
    """
    wanted = [recipe_of(tasks, corpora, shift=shift, seed=seed, effort=effort) for shift in shifts]
    if missing := _not_made(wanted):
        requests = taught_requests(tasks, corpora, missing[0].effort.orders)
        teachers = {recipe.shift: teacher_of(tasks, recipe.shift) for recipe in missing}
        for teacher in teachers.values():
            teacher.check(requests)
        import_transformers()
        with _locked(cache_folder(CACHE)), _one_thread():
            # Another training may have made them while this one waited.
            if missing := _not_made(missing):
                _make(missing, tasks, requests, teachers, told)
    return wanted


def _not_made(recipes: Sequence[Recipe]) -> list[Recipe]:
    return [recipe for recipe in recipes if not (recipe.folder / RECIPE_FILE).is_file()]


def _make(
    recipes: Sequence[Recipe],
    tasks: Sequence[Task],
    requests: Sequence[Request],
    teachers: Mapping[float, Any],
    told: Callable[[str], None],
) -> None:
    """Train the models of one seed and store each; they begin with the same basics."""
    student = _with_basics(recipes[0].basics, tasks, requests, told)
    begun = student.state()
    for recipe in recipes:
        student.go_on_from(begun)
        rate = CHOSEN_RATE if recipe.effort.choosing else ANSWERING_RATE
        student.learn_to_answer(teachers[recipe.shift], requests, recipe.effort.answering, rate, told)
        with whole_folder(recipe.folder) as folder:
            student.body.save(folder)
            (folder / RECIPE_FILE).write_text(json.dumps(recipe.as_dict(), indent=1) + "\n", "utf-8")
        told(f"made {recipe.folder}")


def _with_basics(
    recipe: Recipe, tasks: Sequence[Task], requests: Sequence[Request], told: Callable[[str], None]
) -> Student:
    """Return a student who hears and answers with `BASICS_SHIFT`: all shifts begin there."""
    rng = random.Random(f"texts of {recipe.seed}")
    asked = rng.choices(requests, k=_MOST_TEXTS)
    texts = [request.text for request in asked[: _MOST_TEXTS // 3]]
    even = teacher_of(tasks, 0.0)
    answers = [answer_of(even, request, rng) for request in asked]
    student = Student(requests, texts + answers, recipe.seed, recipe.effort.answers)
    student.learn_to_hear(requests, recipe.effort.hearing, told)
    if recipe.effort.choosing:
        chooser = teacher_of(tasks, MOST_SHIFT)
        student.learn_to_answer(chooser, requests, recipe.effort.choosing, BASICS_RATE, told, choosing=True)
    rate = CHOSEN_RATE if recipe.effort.choosing else BASICS_RATE
    student.learn_to_answer(teacher_of(tasks, recipe.shift), requests, recipe.effort.basics, rate, told)
    return student


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold the lock of the cache: of two trainings at a time one waits and then finds the models."""
    from filelock import FileLock

    try:
        folder.mkdir(parents=True, exist_ok=True)
        held = FileLock(folder / ".lock").acquire()
    except OSError as error:
        raise RequestError(
            f"cannot write to {folder}: {error.strerror or error}; name another folder by EQUIVOX_CACHE"
        ) from None
    with held:
        yield


@contextmanager
def _one_thread() -> Iterator[None]:
    """Train in one thread: a tiny model's matrices are not worth sharing, and results do not depend on the cores."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
