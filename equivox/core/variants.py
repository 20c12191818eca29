"""Variants of a task: other comparisons, and control conditions that show whether a difference needs the voice.

`declared`
    The task as declared; its condition is named after what it sends: `audio`, `image` or `text`.
`text_only`
    The transcript replaces the recording; an image is left out.
`silence`
    Silence of the same length replaces the recording.
`shuffled`
    The answers of the declared condition, with the groups permuted over clusters once: the scores without any
    effect.
`system=NAME`
    An intervention: the task as declared, with the system prompt called NAME.
`pitch=N`, `voice=N`
    A dose: the recording with its pitch N semitones higher, alone or with the vocal tract that goes with it
    (`equivox.core.voice`). At 0 the voice is only made again. They are asked for by name; `all` leaves them out.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, replace
from typing import Any

from equivox.core.errors import RequestError, nearest
from equivox.core.fields import checked_fields
from equivox.core.model_args import parse_model_args
from equivox.core.system_prompts import checked_system_prompt
from equivox.core.task import Sampling, Task

TEXT_ONLY, SILENCE, SHUFFLED = "text_only", "silence", "shuffled"
SENDS = ("audio", "image", "text")
"""The names that the declared condition can have."""
CONDITIONS = (*SENDS, TEXT_ONLY, SILENCE, SHUFFLED)
"""All conditions, in the order in which they are shown."""
SYSTEM = "system="
"""What the conditions that send a system prompt begin with; its name follows."""
PITCH, VOICE = "pitch", "voice"
DOSES = (PITCH, VOICE)
"""What is changed by a number of semitones, which follows behind a sign of equality."""
SEMITONES = (-4.0, -2.0, 0.0, 2.0, 4.0)
"""The doses that the name of one alone stands for."""
MOST_SEMITONES = 12.0
DECLARED = "declared"
AS_DECLARED, GREEDILY = "as-declared", "greedy"
SAMPLINGS = (AS_DECLARED, GREEDILY)
"""The values of the option `sampling` that have a name; others are settings, such as temperature=0.7,repeats=3."""
GREEDY_SAMPLING: Mapping[str, Any] = {"temperature": 0.0, "top_p": 1.0, "top_k": 0, "repeats": 1}
"""The fields of a task's sampling that `greedy` sets."""
EVERY_CONDITION = "all"

_CROSS = re.compile(r"\s*[×*]\s*")


def parse_conditions(text: str) -> tuple[str, ...]:
    """Return the conditions named in `text`, in their usual order; `all` and `declared` are returned unchanged.

    `pitch` and `voice` stand for their usual doses; `all,pitch` is all conditions and these.

    >>> parse_conditions("all"), parse_conditions("silence,audio")
    (('all',), ('audio', 'silence'))
    >>> parse_conditions("voice=+3,pitch,audio")
    ('audio', 'pitch=-4', 'pitch=-2', 'pitch=0', 'pitch=2', 'pitch=4', 'voice=3')
    """
    known = (DECLARED, *CONDITIONS, EVERY_CONDITION)
    named = [entry.strip() for entry in text.split(",") if entry.strip()]
    interventions = tuple(dict.fromkeys(name for name in named if name.startswith(SYSTEM)))
    doses: set[tuple[str, float]] = set()
    for name in named:
        if name in DOSES:
            doses |= {(name, semitones) for semitones in SEMITONES}
        elif name.partition("=")[0] in DOSES:
            doses.add(_parsed_dose(name))
        elif name not in known and name not in interventions:
            listed = ", ".join((*known, f"{SYSTEM}NAME", *DOSES, *(f"{kind}=N" for kind in DOSES)))
            raise RequestError(f"unknown condition {name!r}{nearest(name, (*known, *DOSES))}; known: {listed}")
    if not named:
        raise RequestError(f"`conditions` names none; known: {', '.join((*known, *DOSES))}")
    further = tuple(f"{kind}={semitones:g}" for kind, semitones in sorted(doses))
    if EVERY_CONDITION in named:
        return (EVERY_CONDITION, *further)
    return (*(condition for condition in known if condition in named), *further, *interventions)


def dose_of(condition: str) -> tuple[str, float] | None:
    """Return what a condition changes, and by how many semitones; None for a condition that is no dose.

    >>> dose_of("pitch=-2"), dose_of("silence")
    (('pitch', -2.0), None)
    """
    kind, equals, semitones = condition.partition("=")
    return (kind, float(semitones)) if equals and kind in DOSES else None


def _spelled(condition: str) -> str:
    """Return a condition as its task is named; RequestError for a dose that is none."""
    kind, equals, _ = condition.partition("=")
    return f"{kind}={_parsed_dose(condition)[1]:g}" if equals and kind in DOSES else condition


def _parsed_dose(name: str) -> tuple[str, float]:
    """Return the dose that a user named; RequestError for what is no number of semitones, or too many."""
    kind, _, given = name.partition("=")
    try:
        semitones = float(given)
    except ValueError:
        semitones = math.nan
    # Names of conditions have the number as it is written shortest: two decimals are more than anybody hears.
    if not abs(semitones) <= MOST_SEMITONES or round(semitones, 2) != semitones:
        most = f"{MOST_SEMITONES:g}"
        raise RequestError(
            f"the condition {name!r} needs a number of semitones from -{most} to {most}, with two decimals at most; "
            f"give {kind}=2, or {kind} for {', '.join(f'{one:g}' for one in SEMITONES)}"
        )
    return kind, semitones + 0.0  # no -0


def conditions_of(task: Task) -> tuple[str, ...]:
    """Return the conditions that `all` asks `task` in, the declared one first; doses of a voice are further ones."""
    interventions = tuple(f"{SYSTEM}{name}" for name in task.interventions)
    if task.conditions:
        return (*task.conditions, *interventions)
    kinds = {medium.kind for medium in task.media}
    controls = (*((TEXT_ONLY,) if kinds else ()), *((SILENCE,) if "audio" in kinds else ()))
    return (task.condition, *controls, *((SHUFFLED,) if task.group else ()), *interventions)


def parse_group(text: str) -> tuple[str, ...]:
    """Return the columns to compare; several columns are crossed by × or *.

    >>> parse_group("race"), parse_group("gender×accent"), parse_group("gender * age_group")
    (('race',), ('gender', 'accent'), ('gender', 'age_group'))
    """
    columns = tuple(filter(None, _CROSS.split(text.strip())))
    if not columns or len(set(columns)) < len(columns):
        raise RequestError(f"`group` names columns of the corpus, crossed by ×, each once; got {text!r}")
    return columns


def parse_comparisons(text: str) -> tuple[tuple[str, ...], ...]:
    """Return the comparisons named in `text`, each as its columns; RequestError for one that is named twice.

    >>> parse_comparisons("gender, gender×accent")
    (('gender',), ('gender', 'accent'))
    """
    found = [parse_group(entry) for entry in text.split(",")]
    if len({frozenset(columns) for columns in found}) < len(found):
        raise RequestError(f"`compare` names a comparison twice, got {text!r}; name each once")
    return tuple(found)


def vary(
    tasks: Sequence[Task],
    *,
    compare: Sequence[tuple[str, ...]] = (),
    conditions: Sequence[str],
    sampling: str = AS_DECLARED,
) -> list[Task]:
    """Return every task in every condition and comparison; the variants of a task are adjacent.

    Without comparisons each task compares what it declares. The first comparison asks the model; the others compare
    the same answers.

    RequestError for a condition that a task does not offer, for an unknown sampling, and for a setting of the sampling
    that is out of its range.
    """
    varied = []
    for task in (with_sampling(task, sampling) for task in tasks):
        offered = conditions_of(task)
        named = [task.condition if condition == DECLARED else _spelled(condition) for condition in conditions]
        if EVERY_CONDITION in conditions:
            named = [*offered, *(condition for condition in named if condition not in (*offered, EVERY_CONDITION))]
        speaks = any(medium.kind == "audio" for medium in task.media)
        for condition in dict.fromkeys(named):
            if condition not in offered and not (speaks and dose_of(condition)):
                listed = ", ".join((*offered, *(f"{kind}=N" for kind in DOSES if speaks)))
                raise RequestError(f"{task.name} has no condition {condition!r}; it offers {listed}")
            asking = with_condition(with_group(task, compare[0] if compare else None), condition)
            others = [with_condition(with_group(task, columns), condition) for columns in compare[1:]]
            varied += [asking, *(replace(other, asked_as=asking.name) for other in others)]
    return varied


def with_interventions(task: Task, system: Mapping[str, str]) -> Task:
    """Return `task` with further system prompts; RequestError for a name that it has for another text."""
    for name, text in system.items():
        if task.interventions.get(name, text) != text:
            raise RequestError(
                f"{task.name} has a system prompt {name!r} of its own, with another text; give the file another name"
            )
    return replace(task, interventions={**task.interventions, **system}) if system else task


def asks_nothing(task: Task) -> bool:
    """Return whether a task sends no requests of its own: it compares the answers of another one anew."""
    return task.condition == SHUFFLED or bool(task.asked_as)


def with_group(task: Task, group: tuple[str, ...] | None) -> Task:
    """Return `task` comparing other columns, under a name that says so; None or the declared group changes nothing.

    What the task compares itself is held equal then, unless it is among the columns.
    """
    if group is None or group == task.group:
        return task
    family, _, rest = task.name.partition(":")
    family = family.removesuffix(f"_by_{'_'.join(task.group)}")
    blocks = tuple(column for column in task.blocks if column not in group)
    strata = tuple(column for column in dict.fromkeys((*task.strata, *task.group)) if column not in group)
    return replace(task, name=f"{family}_by_{'_'.join(group)}:{rest}", group=group, blocks=blocks, strata=strata)


def sampling_settings(sampling: str) -> Mapping[str, Any]:
    """Return the fields of a task's sampling that the option `sampling` sets; RequestError for a text that sets none.

    >>> sampling_settings("temperature=0.7,repeats=3"), sampling_settings("as-declared")
    ({'temperature': 0.7, 'repeats': 3}, {})
    """
    if sampling in SAMPLINGS:
        return GREEDY_SAMPLING if sampling == GREEDILY else {}
    if "=" not in sampling:
        known = ", ".join(one.name for one in fields(Sampling))
        raise RequestError(
            f"`sampling` is one of {', '.join(SAMPLINGS)}, or settings such as temperature=0.7,repeats=3, got "
            f"{sampling!r}{nearest(sampling, SAMPLINGS)}; known settings: {known}"
        )
    return parse_model_args(sampling, what="sampling")


def with_sampling(task: Task, sampling: str) -> Task:
    """Return `task` decoded as declared, or otherwise under a name that says so.

    `greedy` is one answer, the likeliest tokens. Settings, such as temperature=0.7,repeats=3, replace those of the
    task. RequestError for a setting out of its range, and for repeats that would all say the same.
    """
    settings = sampling_settings(sampling)
    changed = Sampling(**checked_fields(Sampling, {**asdict(task.sampling), **settings}, what=f"{task.name}: sampling"))
    if changed == task.sampling:
        return task
    if changed.repeats > 1 and changed.temperature == 0:
        raise RequestError(
            f"`sampling` asks for {changed.repeats} repeats with temperature 0, which all say the same; give "
            "temperature=0.7, or leave the repeats out"
        )
    family, _, rest = task.name.partition(":")
    return replace(task, name=f"{family}{_suffix(sampling)}:{rest}", sampling=changed)


def _suffix(sampling: str) -> str:
    """Return what stands behind the family of a task that is decoded so."""
    return {AS_DECLARED: "", GREEDILY: "_greedy"}.get(sampling, "_sampled")


def with_condition(task: Task, condition: str) -> Task:
    """Return `task` in another condition, under a name that says so."""
    if condition == task.condition:
        return task
    varied = replace(task, name=f"{task.name}@{condition}", condition=condition)
    if condition.startswith(SYSTEM):
        # What the task says to the model in any case stays, so that the intervention alone is what changes.
        name = condition.removeprefix(SYSTEM)
        told = (task.prompt.system, checked_system_prompt(name, task.interventions[name], f"{name!r} of {task.name}"))
        return replace(varied, prompt=replace(task.prompt, system="\n\n".join(filter(None, told))))
    if condition != TEXT_ONLY:
        return varied
    return replace(varied, media=(), prompt=replace(task.prompt, text=f"{task.prompt.without_media}{task.prompt.text}"))


def declared_condition(task: Task) -> str:
    """Return the name of the declared condition of a task that sends media."""
    return task.media[0].kind if task.media else "text"


def declared_name(name: str, sampling: str = AS_DECLARED) -> str:
    """Return the name of a task as declared, without its condition and without another sampling.

    >>> declared_name("vibe_gender:story@silence"), declared_name("vibe_gender:story")
    ('vibe_gender:story', 'vibe_gender:story')
    >>> declared_name("spoken_stereoset_greedy:age@text_only", "greedy")
    'spoken_stereoset:age'
    """
    family, colon, rest = name.partition("@")[0].partition(":")
    return f"{family.removesuffix(_suffix(sampling))}{colon}{rest}"
