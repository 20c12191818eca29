"""Variants of a task: other comparisons, control conditions, interventions, and another sampling.

`declared`
    The task as declared; its condition is named after what it sends: `audio`, `image` or `text`.
`text_only`, `silence`, `shuffled`
    Controls: the transcript replaces the recording, and an image is left out; silence of the same length replaces the
    recording; the groups of the declared answers are permuted over clusters once: the scores without any effect.
`system=NAME`, `wording=NAME`, `spoken`
    Interventions: with the system prompt called NAME; in the other words called NAME; answered by voice.
`turn=N`
    The N-th turn of a dialogue: what a task says after its first answer, with all that was said before. `declared` has
    the turns, too.

Other wordings and `spoken` are sent only where they are named; `all` leaves them out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

from equivox.core.errors import UsageError, nearest
from equivox.core.fields import read_fields
from equivox.core.task import Sampling, Task
from equivox.core.yaml_files import parse_model_args

LONGEST = 20_000
"""The most characters of a system prompt; what is longer is rather another file, named by mistake."""

System = str | tuple[str, ...] | dict[str, str]
"""Text files with a system prompt each, or the prompts themselves by their names: a field of task and run files."""

TEXT_ONLY, SILENCE, SHUFFLED, SPOKEN = "text_only", "silence", "shuffled", "spoken"
SENDS = ("audio", "image", "text")
"""The names that the declared condition can have."""
SYSTEM, WORDING = "system=", "wording="
"""What the conditions that send a system prompt, and those that ask in other words, begin with; a name follows."""
TURN = "turn="
"""What the conditions begin with that ask the further turns of a dialogue; the number of the turn follows."""
MOST_TURNS = 50
DECLARED = "declared"
AS_DECLARED, GREEDILY = "as-declared", "greedy"
SAMPLINGS = (AS_DECLARED, GREEDILY)
"""The values of the option `sampling` that have a name; others are settings, such as temperature=0.7,repeats=3."""
EVERY_CONDITION = "all"
"""Stands for all conditions but other wordings, which would be asked for every task that has some."""
EVERY_WORDING = "wording"
"""Stands for all other wordings of a task."""


def parse_conditions(text: str) -> tuple[str, ...]:
    """Return the conditions named in `text`, in their usual order; `all` and `declared` are returned unchanged.

    >>> parse_conditions("all"), parse_conditions("silence,audio")
    (('all',), ('audio', 'silence'))
    """
    known = (DECLARED, *SENDS, TEXT_ONLY, SILENCE, SHUFFLED, EVERY_CONDITION)
    named = dict.fromkeys(filter(None, map(str.strip, text.split(","))))
    interventions = [name for name in named if is_intervention(name) or name == EVERY_WORDING]
    if unknown := [name for name in named if name not in known and name not in interventions]:
        every = ", ".join((*known, f"{SYSTEM}NAME", EVERY_WORDING, f"{WORDING}NAME", f"{TURN}N", SPOKEN))
        raise UsageError(f"unknown condition {unknown[0]!r}{nearest(unknown[0], known)}; known: {every}")
    if not named:
        raise UsageError(f"`conditions` names none; known: {', '.join(known)}")
    plain = [EVERY_CONDITION] if EVERY_CONDITION in named else [name for name in known if name in named]
    return (*plain, *interventions)


def turn_of(condition: str) -> int:
    """Return which turn of a dialogue a condition is, 2 or more; 0 for another condition.

    >>> turn_of("turn=3"), turn_of("turn=1"), turn_of("audio")
    (3, 0, 0)
    """
    number = condition.removeprefix(TURN) if condition.startswith(TURN) else ""
    return int(number) if number.isascii() and number.isdigit() and 2 <= int(number) <= MOST_TURNS else 0


def conditions_of(task: Task) -> tuple[str, ...]:
    """Return the conditions that `task` offers, the declared one first.

    Any task can be answered by voice, too.
    """
    turns = tuple(f"{TURN}{number}" for number, _ in enumerate(task.turns, start=2))
    if task.conditions:
        return (*task.conditions, *turns, *task.interventions)
    kinds = {medium.kind for medium in task.media}
    controls = (*((TEXT_ONLY,) if kinds else ()), *((SILENCE,) if "audio" in kinds else ()))
    return (task.condition, *controls, *((SHUFFLED,) if task.group else ()), *turns, *task.interventions)


def is_intervention(condition: str) -> bool:
    """Return whether a condition changes what is said to the model, or how it answers.

    That is a system prompt, other words, a further turn of a dialogue, or an answer by voice.

    >>> is_intervention("system=fair"), is_intervention("wording=2"), is_intervention("silence")
    (True, True, False)
    """
    return condition.startswith((SYSTEM, WORDING)) or condition == SPOKEN or bool(turn_of(condition))


def is_control(name: str, condition: str) -> bool:
    """Return whether a task of this name and condition asks without what tells the groups apart.

    >>> is_control("f:t@silence", "silence"), is_control("f:t@turn=2", "turn=2"), is_control("f:t", "audio")
    (True, False, False)
    """
    return "@" in name and not is_intervention(condition)


def parse_comparisons(text: str) -> tuple[tuple[str, ...], ...]:
    """Return the comparisons named in `text`, each as its columns, which × or * cross; UsageError for a doubled one.

    >>> parse_comparisons("gender, gender×accent")
    (('gender',), ('gender', 'accent'))
    """
    comparisons = []
    for entry in text.split(","):
        columns = tuple(filter(None, re.split(r"\s*[×*]\s*", entry.strip())))
        if not columns or len(set(columns)) < len(columns):
            raise UsageError(f"`group` names columns of the corpus, crossed by ×, each once; got {entry!r}")
        comparisons.append(columns)
    if len(set(map(frozenset, comparisons))) < len(comparisons):
        raise UsageError(f"`compare` names a comparison twice, got {text!r}; name each once")
    return tuple(comparisons)


def vary(
    tasks: Sequence[Task],
    *,
    compare: Sequence[tuple[str, ...]] = (),
    conditions: Sequence[str],
    sampling: str = AS_DECLARED,
) -> list[Task]:
    """Return every task in every condition and comparison; the variants of a task are adjacent.

    Without comparisons each task compares what it declares. The first comparison asks the model; the others compare the
    same answers. UsageError for a condition that a task does not offer, for an unknown sampling, and for a setting of
    the sampling that is out of its range.
    """
    varied = []
    for task in (with_sampling(task, sampling) for task in tasks):
        for condition in _choose_conditions(task, conditions):
            asking = with_condition(with_group(task, compare[0] if compare else None), condition)
            others = [with_condition(with_group(task, columns), condition) for columns in compare[1:]]
            varied += [asking, *(replace(other, asked_as=asking.name) for other in others)]
    return varied


def _choose_conditions(task: Task, named: Sequence[str]) -> list[str]:
    """Return the conditions of a task that `named` stands for, each once; UsageError for one that it does not offer."""
    offered = conditions_of(task)
    wordings = [condition for condition in offered if condition.startswith(WORDING)]
    turns = [condition for condition in offered if turn_of(condition)]
    stands_for = {
        DECLARED: [task.condition, *turns],
        EVERY_CONDITION: [condition for condition in offered if condition not in wordings],
        EVERY_WORDING: wordings,
        # A turn answers those before it, which are asked too.
        **{turn: [task.condition, *turns[: place + 1]] for place, turn in enumerate(turns)},
    }
    if EVERY_WORDING in named and not wordings:
        raise UsageError(f"{task.name} has no other wordings; give `wordings` to its question, or leave them out")
    chosen = list(dict.fromkeys(name for entry in named for name in stands_for.get(entry, [entry])))
    for condition in chosen:
        if condition not in offered and condition != SPOKEN:
            every = ", ".join((*offered, SPOKEN))
            raise UsageError(f"{task.name} has no condition {condition!r}; it offers {every}")
    return chosen


def with_system_prompts(task: Task, prompts: Mapping[str, str]) -> Task:
    """Return `task` with further system prompts by name; UsageError for a name that it has for another text."""
    further = {f"{SYSTEM}{name}": text for name, text in prompts.items()}
    for name, text in prompts.items():
        if task.interventions.get(f"{SYSTEM}{name}", text) != text:
            it = f"{task.name} has a system prompt {name!r} of its own, with another text"
            raise UsageError(f"{it}; give the file another name")
    return replace(task, interventions={**task.interventions, **further}) if further else task


def wordings_of(texts: Sequence[str] | Mapping[str, str]) -> dict[str, str]:
    """Return prompts in other words as interventions of a task; those without names are numbered from 1.

    >>> wordings_of(["Tell a story."]), wordings_of({"polite": "Please tell a story."})
    ({'wording=1': 'Tell a story.'}, {'wording=polite': 'Please tell a story.'})
    """
    named = texts if isinstance(texts, Mapping) else {str(n): text for n, text in enumerate(texts, start=1)}
    return {f"{WORDING}{name}": text for name, text in named.items()}


def asks_nothing(task: Task) -> bool:
    """Return whether a task sends no requests of its own: it compares the answers of another one anew."""
    return task.condition == SHUFFLED or bool(task.asked_as)


def with_group(task: Task, group: tuple[str, ...] | None) -> Task:
    """Return `task` comparing other columns, under a name that says so; None or the declared group changes nothing.

    What the task compares itself is held equal then, unless it is among the columns; a column that is compared is
    neither held equal nor an item.
    """
    if group is None or group == task.group:
        return task
    family, _, rest = task.name.partition(":")
    family = family.removesuffix(f"_by_{'_'.join(task.group)}")
    designs = task.blocks, tuple(dict.fromkeys((*task.strata, *task.group))), task.items
    blocks, strata, items = (tuple(column for column in own if column not in group) for own in designs)
    name = f"{family}_by_{'_'.join(group)}:{rest}"
    return replace(task, name=name, group=group, blocks=blocks, strata=strata, items=items)


def sampling_settings(sampling: str) -> Mapping[str, Any]:
    """Return the fields of a task's sampling that the option `sampling` sets; UsageError for a text that sets none.

    >>> sampling_settings("temperature=0.7,repeats=3"), sampling_settings("as-declared")
    ({'temperature': 0.7, 'repeats': 3}, {})
    """
    if sampling in SAMPLINGS:
        return {"temperature": 0.0, "top_p": 1.0, "top_k": 0, "repeats": 1} if sampling == GREEDILY else {}
    if "=" not in sampling:
        known = ", ".join(setting.name for setting in fields(Sampling))
        it = f"`sampling` is one of {', '.join(SAMPLINGS)}, or settings such as temperature=0.7,repeats=3"
        raise UsageError(f"{it}, got {sampling!r}{nearest(sampling, SAMPLINGS)}; known settings: {known}")
    return parse_model_args(sampling, what="sampling")


def with_sampling(task: Task, sampling: str) -> Task:
    """Return `task` decoded as declared, or otherwise under a name that says so.

    `greedy` is one answer, the likeliest tokens. Settings, such as temperature=0.7,repeats=3, replace those of the
    task. UsageError for a setting out of its range, and for repeats that would all say the same.
    """
    settings = sampling_settings(sampling)
    changed = read_fields(Sampling, {**asdict(task.sampling), **settings}, what=f"{task.name}: sampling")
    if changed == task.sampling:
        return task
    if changed.repeats > 1 and changed.temperature == 0:
        it = f"`sampling` asks for {changed.repeats} repeats with temperature 0, which all say the same"
        raise UsageError(f"{it}; give temperature=0.7, or leave the repeats out")
    family, _, rest = task.name.partition(":")
    suffix = "greedy" if sampling == GREEDILY else "sampled"
    return replace(task, name=f"{family}_{suffix}:{rest}", sampling=changed)


def with_condition(task: Task, condition: str) -> Task:
    """Return `task` in another condition, under a name that says so."""
    if condition == task.condition:
        return task
    prompt, media = task.prompt, task.media
    if condition.startswith(SYSTEM):
        # What the task says to the model in any case stays, so that the intervention alone is what changes.
        name = condition.removeprefix(SYSTEM)
        further = _check_prompt(name, task.interventions[condition], f"{name!r} of {task.name}")
        prompt = replace(prompt, system="\n\n".join(filter(None, (prompt.system, further))))
    elif condition.startswith(WORDING):
        source = f"equivox, after {prompt.source}" if prompt.source else ""
        prompt = replace(prompt, text=task.interventions[condition], source=source)
    elif turn := turn_of(condition):
        said = (prompt.text, *task.turns)
        media = (*media, *(replace(media[0], column=column) for column in task.turn_media[: turn - 1] if column))
        prompt = replace(prompt, text=said[turn - 1], before=said[: turn - 1])
    elif condition == SPOKEN:
        prompt = replace(prompt, spoken=True)
    elif condition == TEXT_ONLY:
        prompt, media = replace(prompt, text=f"{prompt.without_media}{prompt.text}"), ()
    return replace(task, name=f"{task.name}@{condition}", condition=condition, prompt=prompt, media=media)


def declared_name(name: str) -> str:
    """Return the name of a task as declared, without its condition.

    >>> declared_name("vibe_gender:story@silence"), declared_name("vibe_gender:story")
    ('vibe_gender:story', 'vibe_gender:story')
    """
    return name.partition("@")[0]


def read_system_prompts(given: System, folder: Path | None = None) -> dict[str, str]:
    """Return system prompts by their names, without the white space around them.

    `given` has them by name, or names text files, separated by commas; a file's name without its ending is that of its
    prompt. Paths begin in `folder`. UsageError for a file that is missing, empty, too long or no text, for a name that
    no condition can have, and for two files of one name.
    """
    if isinstance(given, Mapping):
        return {name: _check_prompt(name, text, f"{name!r}") for name, text in given.items()}
    prompts: dict[str, str] = {}
    for file in filter(None, map(str.strip, (given if isinstance(given, str) else ",".join(given)).split(","))):
        path = (folder or Path()) / file
        if path.stem in prompts:
            raise UsageError(f"`system` names two files called {path.stem!r} ({given}); rename one of them")
        try:
            with path.open(encoding="utf-8-sig") as opened:
                text = opened.read(100 * LONGEST)
        except (OSError, ValueError) as error:
            is_text = not isinstance(error, UnicodeDecodeError)
            reason = f"cannot be read: {getattr(error, 'strerror', None) or error}" if is_text else "is not a text"
            raise UsageError(f"`system` {path} {reason}; give a text file in UTF-8") from None
        prompts[path.stem] = _check_prompt(path.stem, text, str(path))
    if not prompts and given != ():
        raise UsageError(f"`system` names no file, got {given!r}; name text files, separated by commas")
    return prompts


def _check_prompt(name: str, text: str, where: str) -> str:
    """Return a system prompt without the white space around it; UsageError, naming `where`, for one that is none."""
    if problem := text_problem(name, text):
        raise UsageError(f"`system` {where}{problem}")
    return text.strip()


def text_problem(name: str, text: str) -> str:
    """Return what is wrong with the text of an intervention or with its name, to be put behind it; empty if nothing."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,59}", name):
        return f": a condition is called after {name!r}; use at most 60 letters (A to Z), digits, _ and -"
    if "\0" in text:
        return " is not a text; give a text file in UTF-8"
    if not text.strip():
        return " is empty; write what is to be said"
    if len(text) > LONGEST:
        return f" has {len(text):,} characters, more than the {LONGEST:,} of a prompt; shorten it, or check the path"
    return ""
