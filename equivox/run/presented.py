"""A sample in one presentation of a task, and the request that it becomes."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from equivox.core.errors import RequestError
from equivox.core.media import silent_wav
from equivox.core.requests import Exchange, Labels, MediaPart, Patching, Request
from equivox.core.task import PLACEHOLDER, Media, Task, digest, placeholders_of
from equivox.core.variants import SHUFFLED, SILENCE, TURN, VOICE, declared_name, dose_of
from equivox.core.voice import ALGORITHM, load_changed
from equivox.dataset_builders.corpus import Sample
from equivox.run.units import label_of, text_of


@dataclass(frozen=True, eq=False, slots=True)
class Presented:
    """One sample in one presentation of one task; all its repeats share it.

    `groups` are the task's, and `group_of` is the permuted group of each cluster and group in the shuffled condition.
    `asked` is the task whose request it is, with its groups: another one where the task compares its answers anew.
    `blocks` are the columns that describe clusters and are held equal.
    """

    task: Task
    sample: Sample
    presentation: Mapping[str, str]
    groups: tuple[str, ...]
    group_of: Mapping[tuple[str, str], str] | None
    asked: tuple[Task, tuple[str, ...]]
    blocks: tuple[str, ...]


def unkeyed(one: Presented) -> Request:
    """Return the request of a sample without its key, seed and repeat."""
    sample, (task, groups) = one.sample, one.asked
    filled = {**sample.columns, **one.presentation} if one.presentation else sample.columns
    # Shuffling changes the group of an answer, not the request.
    shuffled = task.condition == SHUFFLED
    return Request(
        key="",
        task=declared_name(task.name) if shuffled else task.name,
        sample_id=sample.sample_id,
        repeat=0,
        condition=_sent_first(task.media) if shuffled else task.condition,
        media=tuple(_media_part(medium, _clip(sample, medium), task.condition) for medium in task.media),
        text=_fill(task.prompt.text, filled),
        before=_before(task, filled),
        tools=task.prompt.tools,
        spoken=task.prompt.spoken,
        system=task.prompt.system,
        sampling=task.sampling,
        seed=0,
        labels=labels_of(task, sample, groups, one.presentation),
        patch=_patching(task, filled),
    )


def _sent_first(media: Sequence[Media | MediaPart]) -> str:
    """Return the declared condition of a task that sends some media: what its first turn sends."""
    return media[0].kind if media else "text"


def _before(task: Task, filled: Mapping[str, Any]) -> tuple[Exchange, ...]:
    """Return the turns before the prompt, without their answers, each with the number of its own media."""
    said = [_fill(text, filled) for text in task.prompt.before]
    later = [int(bool(column)) for column in task.turn_media] or [0] * len(said)
    first = len(task.media) - sum(later[: len(said)])
    return tuple(Exchange(text=text, n_media=n) for text, n in zip(said, [first, *later], strict=False))


def turns_before(request: Request) -> Iterator[Request]:
    """Yield the requests, without their keys, whose answers come before a request of a dialogue."""
    declared = request.task.partition("@")[0]
    for number, turn in enumerate(request.before, start=1):
        first = number == 1
        yield replace(
            request,
            text=turn.text,
            before=request.before[: number - 1],
            media=request.media[: sum(one.n_media for one in request.before[:number])],
            task=declared if first else f"{declared}@{TURN}{number}",
            condition=_sent_first(request.media) if first else f"{TURN}{number}",
        )


def with_answers(request: Request, answers: Sequence[str]) -> Request:
    """Return the request of a turn with the answers that were given before it."""
    turns = zip(request.before, answers, strict=True)
    return replace(request, before=tuple(replace(turn, answer=answer) for turn, answer in turns))


def labels_of(task: Task, sample: Sample, groups: tuple[str, ...], presentation: Mapping[str, str]) -> Labels:
    """Return what a task says of a sample: its group among the task's `groups`, and the rest of its design."""
    kept = {column: str(sample.columns[column]) for column in task.metadata if sample.columns[column] is not None}
    return Labels(
        group=label_of(sample, task.group) or "",
        groups=groups,
        cluster=text_of(sample, (task.cluster,)),
        stratum=text_of(sample, task.strata),
        block=text_of(sample, task.blocks),
        item=text_of(sample, task.items),
        metadata={**kept, **presentation} if presentation else kept,
    )


def _patching(task: Task, filled: Mapping[str, Any]) -> Patching | None:
    """Return where in the filled-in prompt the hidden states of the patch are taken from."""
    patch = task.prompt.patch
    if patch is None:
        return None
    places = []
    for mark in patch.source_span:
        before, found, _ = task.prompt.text.partition(mark)
        if not found:
            raise RequestError(
                f"{task.name}: `patch.source_span` names {mark}, which its prompt lacks; name two of its placeholders"
            )
        start = len(_fill(before, filled))
        places.append((start, start + len(_fill(mark, filled))))
    return Patching(patch=patch, start=places[0][0], end=places[1][1])


def _fill(text: str, filled: Mapping[str, Any]) -> str:
    return PLACEHOLDER.sub(lambda match: str(filled[match.group(1)]), text) if "{" in text else text


def _clip(sample: Sample, medium: Media) -> Sample:
    """Return the sample whose file is sent: itself, or that of a further turn."""
    return sample.clips.get(medium.column, sample)


def _media_part(medium: Media, sample: Sample, condition: str) -> MediaPart:
    if condition == SILENCE and medium.kind == "audio":
        seconds = sample.duration_s or 0.0
        return MediaPart(
            kind="audio",
            sha256=digest(["silence", seconds]),
            name=f"silence of {sample.file_name}",
            duration_s=seconds,
            load=partial(silent_wav, seconds),
        )
    if (dose := dose_of(condition)) is not None and medium.kind == "audio":
        kind, semitones = dose
        name = f"{condition} of {sample.file_name}"
        # The digest is known before the voice is made: what determines it, and not its bytes.
        return MediaPart(
            kind="audio",
            sha256=digest([ALGORITHM, kind, semitones, sample.sha256]),
            name=name,
            duration_s=sample.duration_s,
            load=partial(load_changed, sample.load, semitones, kind == VOICE, name),
        )
    return MediaPart(
        kind=medium.kind,
        sha256=sample.sha256,
        name=sample.file_name,
        duration_s=sample.duration_s,
        load=sample.load,
    )


def problem_of(sample: Sample, task: Task, filled: Mapping[str, Any]) -> str | None:
    """Return why `sample` cannot be sent in `task` (unusable media or a missing text), or None."""
    if task.media and task.condition != SILENCE:
        sent = [_clip(sample, medium) for medium in task.media]
        if problem := next((one.problem for one in sent if one.problem is not None), None):
            return problem
    if task.condition == SILENCE and sample.duration_s is None:
        return sample.problem or f"{sample.file_name}: its length is not known"
    missing = [column for column in placeholders(task) if filled[column] in (None, "")]
    return f"{sample.sample_id}: the column {missing[0]} is empty" if missing else None


def placeholders(task: Task) -> Sequence[str]:
    """Return the columns that the prompt's `{column}` placeholders name, each once."""
    said = (*task.prompt.before, task.prompt.text)
    return list(dict.fromkeys(name for text in said for name in placeholders_of(text)))


def presentations_of(task: Task, sample: Sample, seed: int) -> Sequence[Mapping[str, str]]:
    """Return the presentations of `sample`: one, without changes, unless the prompt declares others."""
    if task.prompt.presentations is None:
        return [{}]
    return task.prompt.presentations(sample.columns, random.Random(digest([seed, sample.sample_id, "presentations"])))
