"""The recipe of a calibration model: everything that determines its weights, and where they are kept."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import Any

from equivox.core.errors import RequestError
from equivox.core.files import cache_folder
from equivox.core.hashing import digest
from equivox.core.task import Sampling, Task
from equivox.core.task_checks import refuse_unable
from equivox.engines.checkpoint import open_checkpoint

VERSION = "4"
"""Raised whenever a recipe makes other weights."""
TEACHER = "simulated:planted"
LONGEST_ANSWER = 192
"""Tokens of the student's own vocabulary."""
MOST_SHIFT = 100.0
BASICS_SHIFT = 50.0
"""Percent. With 100, what was said first would tell the group, and no ear would be needed for what follows."""
MOST_REPEATS = 5
CHOICE_REPEATS = 4
"""How often a calibration asks for one choice: the share of 60 choices scatters by eight points."""
_LIBRARIES = ("tokenizers", "torch", "transformers")
EXTRA = '"equivox[transformers]"'
CACHE = "calibration"
"""Where models are kept: the name of the folder in the cache."""


@dataclass(frozen=True, kw_only=True)
class Effort:
    """Steps of the training: to tell the groups by ear, to answer with `BASICS_SHIFT`, and to answer with the shift.

    With 80 steps of hearing the voices of some speakers stay doubtful, and 16 is learnt where 20 is planted.

    Before the basics, `choosing` steps teach which of the options that a prompt offers is to be chosen, with a shift of
    `MOST_SHIFT`: where every third answer chooses another option by chance, no option is found. `orders` is the number
    of seeds whose presentations are taught, and `answers` the number of answers that are learnt of each request at a
    time: short ones share a prompt's cost. A task that offers no options needs none of these.
    """

    hearing: int = 240
    basics: int = 200
    answering: int = 200
    choosing: int = 0
    orders: int = 1
    answers: int = 1

    def as_dict(self) -> dict[str, int]:
        """Return the steps as plain values; those for choices only where a task needs them."""
        unused = {"choosing": 0, "orders": 1, "answers": 1}.items()
        return {name: value for name, value in dataclasses.asdict(self).items() if (name, value) not in unused}


CHOOSING = Effort(choosing=900, orders=24, answers=6)
"""The effort for a task that offers options in several orders."""


def effort_for(task: Task) -> Effort:
    """Return the effort that `task` needs: more where the answer is one of several options in changing orders."""
    return CHOOSING if _chooses(task) else Effort()


def _chooses(task: Task) -> bool:
    """Return whether the answer is one of several options in changing orders."""
    return task.prompt.presentations is not None and len(task.outcomes) == 1 and bool(task.outcomes[0].options)


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """Everything that determines the weights of one calibration model.

    `shift` is the planted bias in percent. `task` is the name of the task, `taught` the digest of what is asked and of
    the corpus that is asked about.
    """

    task: str
    taught: str
    shift: float
    seed: int = 0
    effort: Effort = Effort()
    version: str = VERSION
    libraries: Mapping[str, str] = dataclasses.field(default_factory=dict)

    @property
    def folder(self) -> Path:
        """The folder of the checkpoint on this machine."""
        return cache_folder(CACHE) / self.name

    @property
    def about(self) -> dict[str, Any]:
        """The manifest's entry about the model: recipe and hash of the weights."""
        files = open_checkpoint(str(self.folder)).revision
        return {"recipe": self.as_dict(), "recipe_sha256": self.digest, "checkpoint": files}

    @property
    def digest(self) -> str:
        """SHA-256 over the recipe."""
        return digest(self.as_dict())

    @property
    def basics(self) -> Recipe:
        """The recipe of the model that all shifts begin with."""
        return replace(self, shift=BASICS_SHIFT, effort=replace(self.effort, answering=0))

    @property
    def name(self) -> str:
        """The name of the checkpoint's folder.

        >>> Recipe(task="vibe_gender:story", taught="", shift=20).name[:-12]
        'planted-20-vibe_gender-story-seed0-'
        """
        return f"planted-{self.shift:g}-{re.sub(r'[^a-z0-9_]+', '-', self.task)}-seed{self.seed}-{self.digest[:12]}"

    def as_dict(self) -> dict[str, Any]:
        """Return the recipe as plain JSON values."""
        own = {"effort": self.effort.as_dict(), "libraries": dict(self.libraries), "teacher": TEACHER}
        return dataclasses.asdict(self) | own


def recipe_of(
    tasks: Sequence[Task], corpora: Mapping[str, Any], *, shift: float, seed: int, effort: Effort | None = None
) -> Recipe:
    """Return the recipe of a model that is taught `shift` (percent) on `tasks`, the conditions of one task."""
    taught = [[task.fingerprint for task in tasks], {name: corpus.fingerprint for name, corpus in corpora.items()}]
    return Recipe(
        task=tasks[0].name,
        taught=digest(taught),
        shift=float(shift),
        seed=seed,
        effort=effort or effort_for(tasks[0]),
        libraries=libraries(tasks[0]),
    )


def libraries(task: Task) -> dict[str, str]:
    """Return the versions of the libraries that determine the weights of a model for `task`.

    RequestError where one is missing. transformers prepares images with torchvision.
    """
    seen = ("torchvision",) if any(medium.kind == "image" for medium in task.media) else ()
    try:
        return {name: metadata.version(name) for name in (*_LIBRARIES, *seen)}
    except metadata.PackageNotFoundError as missing:
        name = missing.name or "one of them"
        raise RequestError(
            f"calibration models for {task.name} are made with {', '.join((*_LIBRARIES, *seen))}, and {name} is not "
            f"installed; pip install {name if name in seen else EXTRA}"
        ) from None


def parse_shifts(text: str) -> tuple[float, ...]:
    """Return the shifts in percent that `text` names, ascending, each once.

    >>> parse_shifts("60, 0,20")
    (0.0, 20.0, 60.0)
    """
    try:
        shifts = sorted({float(entry) for entry in text.split(",")})
    except ValueError:
        raise RequestError(f"`shift` is percents, separated by commas, such as 0,20,60; got {text!r}") from None
    if not all(0 <= shift <= MOST_SHIFT for shift in shifts):
        raise RequestError(f"`shift` lies between 0 and 100 percent, got {text}")
    return tuple(shifts)


def calibration_task(task: Task, times: int = 1) -> Task:
    """Return `task` as calibration models answer it: briefly, every token drawn from the model's own probabilities.

    A sample is asked `times` times as often as a calibration asks it: once, `CHOICE_REPEATS` times for a choice, or
    `MOST_REPEATS` times at most where the task repeats itself. RequestError for a task that no calibration model can be
    taught.
    """
    if len(task.media) > 1:
        raise RequestError(f"{task.name}: calibration models hear one recording, see one image or read text")
    refuse_unable([task], [], "calibration")
    repeats = times * min(MOST_REPEATS, max(task.sampling.repeats, CHOICE_REPEATS if _chooses(task) else 1))
    return replace(
        task,
        sampling=Sampling(temperature=1.0, max_new_tokens=LONGEST_ANSWER, repeats=repeats),
        simulate=task.simulate and task.simulate.brief(),
    )


def as_share(shift: float) -> str:
    """Return the simulated model that is taught: its shift is a probability.

    >>> as_share(20)
    'simulated:planted,shift=0.2'
    """
    return f"{TEACHER},shift={shift / 100:g}"
