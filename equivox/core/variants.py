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
`wording=NAME`
    An intervention: the task as declared, asked in the other words called NAME.
`turn=N`
    The N-th turn of a dialogue: what a task says after its first answer, with all that was said before. The turns of a
    task belong to it as declared: whoever asks for `declared` gets them.
`spoken`
    The task as declared, answered by voice.

Other wordings and `spoken` are asked for by name; `all` leaves them out.

Texts that change what is said to a model, as interventions: system prompts in files, and other wordings.
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

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,59}")


def read_system_prompts(files: str, folder: Path | None = None) -> dict[str, str]:
    """Return the texts of the files that commas separate, by their names without ending; white space around is removed.

    Paths begin in `folder`. UsageError for a file that is missing, empty, too long or no text, for a name that no
    condition can have, and for two files of one name.
    """
    found: dict[str, str] = {}
    for file in filter(None, map(str.strip, files.split(","))):
        path = (folder or Path()) / file
        name = path.stem
        if name in found:
            raise UsageError(f"`system` names two files called {name!r} ({files}); rename one of them")
        found[name] = checked_system_prompt(name, _read(path), str(path))
    if not found:
        raise UsageError(f"`system` names no file, got {files!r}; name text files, separated by commas")
    return found


def system_prompts_in(given: str | tuple[str, ...] | Mapping[str, str], path: Path) -> dict[str, str]:
    """Return the system prompts that a task or run file at `path` names or holds, by their names.

    Paths begin in its folder. UsageError as `read_system_prompts`.
    """
    if isinstance(given, Mapping):
        return {name: checked_system_prompt(name, text, f"in the file {path}") for name, text in given.items()}
    files = given if isinstance(given, str) else ",".join(given)
    return read_system_prompts(files, path.parent) if given else {}


def checked_system_prompt(name: str, text: str, where: str) -> str:
    """Return a system prompt without the white space around it; UsageError, naming `where`, for one that is none."""
    if problem := text_problem(name, text):
        raise UsageError(f"`system` {where}{problem}")
    return text.strip()


def text_problem(name: str, text: str) -> str:
    """Return what is wrong with the text of an intervention or with its name, to be put behind it; empty if nothing."""
    if not _NAME.fullmatch(name):
        return f": a condition is called after {name!r}; use at most 60 letters (A to Z), digits, _ and -"
    if "\0" in text:
        return " is not a text; give a text file in UTF-8"
    if not text.strip():
        return " is empty; write what is to be said"
    if len(text) > LONGEST:
        return f" has {len(text):,} characters, more than the {LONGEST:,} of a prompt; shorten it, or check the path"
    return ""


def _read(path: Path) -> str:
    """Return the text of a prompt file, read just beyond the limit of its size."""
    try:
        with path.open(encoding="utf-8-sig") as file:
            text = file.read(LONGEST + 1)
            return text if len(text) <= LONGEST else text + file.read(100 * LONGEST)
    except UnicodeDecodeError:
        raise UsageError(f"`system` {path} is not a text; give a text file in UTF-8") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UsageError(f"`system` {path} cannot be read: {reason}; name a text file") from None


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

_CROSS = re.compile(r"\s*[×*]\s*")


def parse_conditions(text: str) -> tuple[str, ...]:
    """Return the conditions named in `text`, in their usual order; `all` and `declared` are returned unchanged.

    >>> parse_conditions("all"), parse_conditions("silence,audio")
    (('all',), ('audio', 'silence'))
    """
    known = (DECLARED, *SENDS, TEXT_ONLY, SILENCE, SHUFFLED, EVERY_CONDITION)
    named = [entry.strip() for entry in text.split(",") if entry.strip()]
    interventions = tuple(dict.fromkeys(name for name in named if is_intervention(name) or name == EVERY_WORDING))
    for name in named:
        if name not in known and name not in interventions:
            listed = ", ".join((*known, f"{SYSTEM}NAME", EVERY_WORDING, f"{WORDING}NAME", f"{TURN}N", SPOKEN))
            raise UsageError(f"unknown condition {name!r}{nearest(name, known)}; known: {listed}")
    if not named:
        raise UsageError(f"`conditions` names none; known: {', '.join(known)}")
    if EVERY_CONDITION in named:
        return (EVERY_CONDITION, *interventions)
    return (*(condition for condition in known if condition in named), *interventions)


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


def parse_group(text: str) -> tuple[str, ...]:
    """Return the columns to compare; several columns are crossed by × or *.

    >>> parse_group("race"), parse_group("gender×accent"), parse_group("gender * age_group")
    (('race',), ('gender', 'accent'), ('gender', 'age_group'))
    """
    columns = tuple(filter(None, _CROSS.split(text.strip())))
    if not columns or len(set(columns)) < len(columns):
        raise UsageError(f"`group` names columns of the corpus, crossed by ×, each once; got {text!r}")
    return columns


def parse_comparisons(text: str) -> tuple[tuple[str, ...], ...]:
    """Return the comparisons named in `text`, each as its columns; UsageError for one that is named twice.

    >>> parse_comparisons("gender, gender×accent")
    (('gender',), ('gender', 'accent'))
    """
    found = [parse_group(entry) for entry in text.split(",")]
    if len({frozenset(columns) for columns in found}) < len(found):
        raise UsageError(f"`compare` names a comparison twice, got {text!r}; name each once")
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

    UsageError for a condition that a task does not offer, for an unknown sampling, and for a setting of the sampling
    that is out of its range.
    """
    varied = []
    for task in (with_sampling(task, sampling) for task in tasks):
        offered = conditions_of(task)
        for condition in _chosen(task, conditions, offered):
            if condition not in offered and condition != SPOKEN:
                listed = ", ".join((*offered, SPOKEN))
                raise UsageError(f"{task.name} has no condition {condition!r}; it offers {listed}")
            asking = with_condition(with_group(task, compare[0] if compare else None), condition)
            others = [with_condition(with_group(task, columns), condition) for columns in compare[1:]]
            varied += [asking, *(replace(other, asked_as=asking.name) for other in others)]
    return varied


def _chosen(task: Task, conditions: Sequence[str], offered: Sequence[str]) -> list[str]:
    """Return the conditions of a task that `conditions` name, each once; UsageError for one that it has not."""
    wordings = [condition for condition in offered if condition.startswith(WORDING)]
    turns = [condition for condition in offered if turn_of(condition)]
    stands_for = {
        DECLARED: [task.condition, *turns],
        EVERY_CONDITION: [condition for condition in offered if condition not in wordings],
        EVERY_WORDING: wordings,
    }
    if EVERY_WORDING in conditions and not wordings:
        raise UsageError(f"{task.name} has no other wordings; give `wordings` to its question, or leave them out")
    # A turn answers those before it, which are asked too.
    stands_for |= {turn: [task.condition, *turns[: place + 1]] for place, turn in enumerate(turns)}
    return list(dict.fromkeys(name for given in conditions for name in stands_for.get(given, [given])))


def with_system_prompts(task: Task, prompts: Mapping[str, str]) -> Task:
    """Return `task` with further system prompts by name; UsageError for a name that it has for another text."""
    further = {f"{SYSTEM}{name}": text for name, text in prompts.items()}
    for condition, text in further.items():
        if task.interventions.get(condition, text) != text:
            name = condition.removeprefix(SYSTEM)
            raise UsageError(
                f"{task.name} has a system prompt {name!r} of its own, with another text; give the file another name"
            )
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
        known = ", ".join(one.name for one in fields(Sampling))
        raise UsageError(
            f"`sampling` is one of {', '.join(SAMPLINGS)}, or settings such as temperature=0.7,repeats=3, got "
            f"{sampling!r}{nearest(sampling, SAMPLINGS)}; known settings: {known}"
        )
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
        raise UsageError(
            f"`sampling` asks for {changed.repeats} repeats with temperature 0, which all say the same; give "
            "temperature=0.7, or leave the repeats out"
        )
    family, _, rest = task.name.partition(":")
    suffix = "greedy" if sampling == GREEDILY else "sampled"
    return replace(task, name=f"{family}_{suffix}:{rest}", sampling=changed)


def with_condition(task: Task, condition: str) -> Task:
    """Return `task` in another condition, under a name that says so."""
    if condition == task.condition:
        return task
    varied = replace(task, name=f"{task.name}@{condition}", condition=condition)
    if condition.startswith(SYSTEM):
        # What the task says to the model in any case stays, so that the intervention alone is what changes.
        name = condition.removeprefix(SYSTEM)
        own = checked_system_prompt(name, task.interventions[condition], f"{name!r} of {task.name}")
        system = "\n\n".join(filter(None, (task.prompt.system, own)))
        return replace(varied, prompt=replace(task.prompt, system=system))
    if condition.startswith(WORDING):
        source = f"equivox, after {task.prompt.source}" if task.prompt.source else ""
        prompt = replace(task.prompt, text=task.interventions[condition], source=source)
        return replace(varied, prompt=prompt)
    if turn := turn_of(condition):
        said = (task.prompt.text, *task.turns)
        further = tuple(replace(task.media[0], column=column) for column in task.turn_media[: turn - 1] if column)
        prompt = replace(task.prompt, text=said[turn - 1], before=said[: turn - 1])
        return replace(varied, media=(*task.media, *further), prompt=prompt)
    if condition == SPOKEN:
        return replace(varied, prompt=replace(task.prompt, spoken=True))
    if condition != TEXT_ONLY:
        return varied
    return replace(varied, media=(), prompt=replace(task.prompt, text=f"{task.prompt.without_media}{task.prompt.text}"))


def declared_name(name: str) -> str:
    """Return the name of a task as declared, without its condition.

    >>> declared_name("vibe_gender:story@silence"), declared_name("vibe_gender:story")
    ('vibe_gender:story', 'vibe_gender:story')
    """
    return name.partition("@")[0]
