"""Variants of a task: other groups, and arms that show whether a difference survives without the voice.

`audio`
    The task as declared.
`text_only`
    The transcript replaces the recording.
`silence`
    Silence of the same length replaces the recording.
`shuffled`
    The answers of `audio`, with the groups dealt to other clusters once: what the scores show where nothing can be.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from equivox.errors import RequestError, nearest
from equivox.task import Task

AUDIO_ARM, TEXT_ONLY, SILENCE, SHUFFLED = "audio", "text_only", "silence", "shuffled"
ARMS = (AUDIO_ARM, TEXT_ONLY, SILENCE, SHUFFLED)
"""Every arm, in the order in which they are shown."""

_TRANSCRIPT = 'Transcript of the recording: "{text}"'
_CROSS = re.compile(r"\s*[×*]\s*")


def parse_arms(text: str) -> tuple[str, ...]:
    """Return the arms named in `text`, comma-separated or `all`, in their usual order.

    >>> parse_arms("all"), parse_arms("silence,audio")
    (('audio', 'text_only', 'silence', 'shuffled'), ('audio', 'silence'))
    """
    named = [entry.strip() for entry in text.split(",") if entry.strip()]
    for name in named:
        if name not in (*ARMS, "all"):
            raise RequestError(f"unknown arm {name!r}{nearest(name, ARMS)}; known: {', '.join(ARMS)}, or all")
    if not named:
        raise RequestError(f"`arms` names none; known: {', '.join(ARMS)}, or all")
    return ARMS if "all" in named else tuple(arm for arm in ARMS if arm in named)


def parse_group(text: str) -> tuple[str, ...]:
    """Return the columns to be compared, several of them crossed by × or *.

    >>> parse_group("race"), parse_group("gender×accent"), parse_group("gender * age_group")
    (('race',), ('gender', 'accent'), ('gender', 'age_group'))
    """
    columns = tuple(filter(None, _CROSS.split(text.strip())))
    if not columns or len(set(columns)) < len(columns):
        raise RequestError(f"`group` names columns of the corpus, crossed by ×, each once; got {text!r}")
    return columns


def vary(tasks: Sequence[Task], *, group: tuple[str, ...] | None, arms: Sequence[str]) -> list[Task]:
    """Return every task in every arm, comparing `group` where it is given; arms of one task stand side by side."""
    return [with_arm(with_group(task, group), arm) for task in tasks for arm in arms]


def with_group(task: Task, group: tuple[str, ...] | None) -> Task:
    """Return `task` comparing other columns, under a name that says so; None, or its own group, changes nothing."""
    if group is None or group == task.group:
        return task
    family, _, rest = task.name.partition(":")
    return replace(task, name=f"{family}_by_{'_'.join(group)}:{rest}", group=group)


def with_arm(task: Task, arm: str) -> Task:
    """Return `task` in another arm, under a name that says so."""
    if arm == AUDIO_ARM:
        return task
    varied = replace(task, name=f"{task.name}@{arm}", arm=arm)
    if arm != TEXT_ONLY:
        return varied
    prompt = replace(task.prompt, text=f"{_TRANSCRIPT}\n\n{task.prompt.text}")
    return replace(varied, media=(), prompt=prompt)


def audio_name(name: str) -> str:
    """Return the name of a task without its arm.

    >>> audio_name("vibe_gender:story@silence"), audio_name("vibe_gender:story")
    ('vibe_gender:story', 'vibe_gender:story')
    """
    return name.partition("@")[0]
