"""Variants of a task: other groups, and arms that show whether a difference survives without the voice.

`declared`
    The task as declared; its arm is called by what it sends: `audio`, `image` or `text`.
`text_only`
    The transcript replaces the recording; an image is left out.
`silence`
    Silence of the same length replaces the recording.
`shuffled`
    The answers of the declared arm, with the groups dealt to other clusters once: what the scores show where
    nothing can be.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from equivox.core.errors import RequestError, nearest
from equivox.core.task import Task

TEXT_ONLY, SILENCE, SHUFFLED = "text_only", "silence", "shuffled"
SENDS = ("audio", "image", "text")
"""What the declared arm may be called."""
ARMS = (*SENDS, TEXT_ONLY, SILENCE, SHUFFLED)
"""Every arm, in the order in which they are shown."""
DECLARED = "declared"
AS_DECLARED, GREEDILY = "as-declared", "greedy"
SAMPLINGS = (AS_DECLARED, GREEDILY)
"""How a task may be decoded."""
EVERY_ARM = "all"

_CROSS = re.compile(r"\s*[×*]\s*")


def parse_arms(text: str) -> tuple[str, ...]:
    """Return the arms named in `text`, in their usual order; `all` and `declared` stand for themselves.

    >>> parse_arms("all"), parse_arms("silence,audio")
    (('all',), ('audio', 'silence'))
    """
    known = (DECLARED, *ARMS, EVERY_ARM)
    named = [entry.strip() for entry in text.split(",") if entry.strip()]
    for name in named:
        if name not in known:
            raise RequestError(f"unknown arm {name!r}{nearest(name, known)}; known: {', '.join(known)}")
    if not named:
        raise RequestError(f"`arms` names none; known: {', '.join(known)}")
    return (EVERY_ARM,) if EVERY_ARM in named else tuple(arm for arm in known if arm in named)


def arms_of(task: Task) -> tuple[str, ...]:
    """Return the arms that `task` offers, the declared one first.

    >>> from equivox.tasks.vibe import TASKS
    >>> arms_of(TASKS[0])
    ('audio', 'text_only', 'silence', 'shuffled')
    """
    if task.arms:
        return task.arms
    kinds = {medium.kind for medium in task.media}
    controls = (*((TEXT_ONLY,) if kinds else ()), *((SILENCE,) if "audio" in kinds else ()))
    return (task.arm, *controls, *((SHUFFLED,) if task.group else ()))


def parse_group(text: str) -> tuple[str, ...]:
    """Return the columns to be compared, several of them crossed by × or *.

    >>> parse_group("race"), parse_group("gender×accent"), parse_group("gender * age_group")
    (('race',), ('gender', 'accent'), ('gender', 'age_group'))
    """
    columns = tuple(filter(None, _CROSS.split(text.strip())))
    if not columns or len(set(columns)) < len(columns):
        raise RequestError(f"`group` names columns of the corpus, crossed by ×, each once; got {text!r}")
    return columns


def vary(
    tasks: Sequence[Task], *, group: tuple[str, ...] | None, arms: Sequence[str], sampling: str = AS_DECLARED
) -> list[Task]:
    """Return every task in every arm, comparing `group` where it is given; arms of one task stand side by side.

    RequestError for an arm that a task does not offer, and for a sampling that there is not.
    """
    varied = []
    for task in (with_sampling(task, sampling) for task in tasks):
        offered = arms_of(task)
        chosen = offered if EVERY_ARM in arms else [task.arm if arm == DECLARED else arm for arm in arms]
        for arm in chosen:
            if arm not in offered:
                raise RequestError(f"{task.name} has no arm {arm!r}; it offers {', '.join(offered)}")
            varied.append(with_arm(with_group(task, group), arm))
    return varied


def with_group(task: Task, group: tuple[str, ...] | None) -> Task:
    """Return `task` comparing other columns, under a name that says so; None, or its own group, changes nothing."""
    if group is None or group == task.group:
        return task
    family, _, rest = task.name.partition(":")
    return replace(task, name=f"{family}_by_{'_'.join(group)}:{rest}", group=group)


def with_sampling(task: Task, sampling: str) -> Task:
    """Return `task` decoded as declared, or greedily under a name that says so: one answer, always the likeliest token.

    >>> from equivox.tasks.spoken_stereoset import TASKS
    >>> greedy = with_sampling(TASKS[0], "greedy")
    >>> greedy.name, greedy.sampling.temperature, greedy.sampling.max_new_tokens == TASKS[0].sampling.max_new_tokens
    ('spoken_stereoset_greedy:gender', 0.0, True)
    """
    if sampling not in SAMPLINGS:
        raise RequestError(
            f"`sampling` is one of {', '.join(SAMPLINGS)}, got {sampling!r}{nearest(sampling, SAMPLINGS)}"
        )
    greedy = replace(task.sampling, temperature=0.0, top_p=1.0, top_k=0, repeats=1)
    if sampling == AS_DECLARED or greedy == task.sampling:
        return task
    family, _, rest = task.name.partition(":")
    return replace(task, name=f"{family}_greedy:{rest}", sampling=greedy)


def with_arm(task: Task, arm: str) -> Task:
    """Return `task` in another arm, under a name that says so."""
    if arm == task.arm:
        return task
    varied = replace(task, name=f"{task.name}@{arm}", arm=arm)
    if arm != TEXT_ONLY:
        return varied
    return replace(varied, media=(), prompt=replace(task.prompt, text=f"{task.without_media}{task.prompt.text}"))


def declared_arm(task: Task) -> str:
    """Return what the declared arm of a task that sends media is called."""
    return task.media[0].kind if task.media else "text"


def declared_name(name: str, sampling: str = AS_DECLARED) -> str:
    """Return the name of a task without its arm, and as it is declared when it is decoded otherwise.

    >>> declared_name("vibe_gender:story@silence"), declared_name("vibe_gender:story")
    ('vibe_gender:story', 'vibe_gender:story')
    >>> declared_name("spoken_stereoset_greedy:age@text_only", "greedy")
    'spoken_stereoset:age'
    """
    family, colon, rest = name.partition("@")[0].partition(":")
    return f"{family.removesuffix('_greedy') if sampling == GREEDILY else family}{colon}{rest}"
