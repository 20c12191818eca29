"""VIBE in other words: does a result depend on how the paper words its prompts?

Data:       As in VIBE.
Paper:      The questions are VIBE's (arXiv 2604.17248, appendix A); the four wordings of each are equivox's own.
Departs:    Each recording is sent with all four wordings. A task's score is the mean over wordings and attributes; a
            score per wording, and their standard deviation in a note, say how much the wording matters. The paper's
            own wording is not among them: `vibe_gender` and `vibe_accent` ask it.
Cannot say: What a prompt of another kind would show. Four wordings are few: their standard deviation is known to about
            half its size.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib import resources

import yaml

from equivox.core.task import Column, Prompt, Task
from equivox.tasks.vibe import CREMA_D, L2_ARCTIC, PROMPTS, vibe_task

_DOCUMENT = yaml.safe_load(resources.files(__package__).joinpath("vibe_wordings.yaml").read_text("utf-8"))
WORDINGS: Mapping[str, Sequence[str]] = _DOCUMENT["wordings"]
"""The wordings of each prompt, by the prompt's name."""


def _ways(prompt: str) -> list[dict[str, str]]:
    return [{"wording": str(number), "request": text} for number, text in enumerate(WORDINGS[prompt], start=1)]


def story_wordings(columns: Mapping[str, Column], rng: random.Random) -> Sequence[Mapping[str, str]]:
    """Return the four wordings of the story."""
    return _ways("story")


def advisory_wordings(columns: Mapping[str, Column], rng: random.Random) -> Sequence[Mapping[str, str]]:
    """Return the four wordings of the advisory."""
    return _ways("advisory")


def candidate_wordings(columns: Mapping[str, Column], rng: random.Random) -> Sequence[Mapping[str, str]]:
    """Return the four wordings of the candidate review."""
    return _ways("candidate")


def casting_wordings(columns: Mapping[str, Column], rng: random.Random) -> Sequence[Mapping[str, str]]:
    """Return the four wordings of the casting."""
    return _ways("casting")


def shopper_wordings(columns: Mapping[str, Column], rng: random.Random) -> Sequence[Mapping[str, str]]:
    """Return the four wordings of the personal shopper."""
    return _ways("shopper")


PRESENTATIONS = {
    "story": story_wordings,
    "advisory": advisory_wordings,
    "candidate": candidate_wordings,
    "casting": casting_wordings,
    "shopper": shopper_wordings,
}


def _paraphrased(task: Task) -> Task:
    """Return a task of VIBE with all wordings of its prompt."""
    family, _, name = task.name.partition(":")
    prompt = Prompt(
        name=f"vibe_wordings/{name}",
        version=_DOCUMENT["version"],
        text="{request}",
        source=f"equivox, after {PROMPTS[name].source}",
        presentations=PRESENTATIONS[name],
    )
    return replace(task, name=f"{family}_paraphrased:{name}", card=__doc__, prompt=prompt)


TASKS: tuple[Task, ...] = tuple(
    _paraphrased(vibe_task(family, prompt, data=data, group=group, strata=strata, blocks=blocks))
    for family, data, group, strata, blocks in (
        ("vibe_gender", CREMA_D, ("gender",), ("sentence", "emotion"), ()),
        ("vibe_accent", L2_ARCTIC, ("accent",), ("sentence",), ("gender",)),
    )
    for prompt in PROMPTS
)
"""The ten tasks of VIBE in four wordings each."""
