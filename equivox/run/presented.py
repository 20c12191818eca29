"""Build requests from samples: assign group and unit, choose the presentation, render the prompt."""

from __future__ import annotations

import itertools
import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from equivox.core.columns import refuse_alike
from equivox.core.errors import UsageError
from equivox.core.media import silent_wav
from equivox.core.plain import split_by
from equivox.core.plugins import told_in_one_line
from equivox.core.requests import Exchange, Labels, MediaPart, Request
from equivox.core.task import CROSSED, PLACEHOLDER, Media, Task, digest, placeholders_of
from equivox.core.text import folded
from equivox.core.variants import SHUFFLED, SILENCE, TURN, declared_name
from equivox.dataset_builders.corpus import Sample


def label_of(sample: Sample, columns: Sequence[str]) -> str | None:
    """Return the group of a sample by some columns, crossed; None if any of them says nothing."""
    values = [sample.columns[column] for column in columns]
    return None if None in values or "" in values else CROSSED.join(map(str, values))


def text_of(sample: Sample, columns: Sequence[str]) -> str:
    """Return some columns of a sample as one text; a column that says nothing is empty."""
    values = [sample.columns[column] for column in columns]
    return CROSSED.join(["" if value is None else str(value) for value in values])


def placed_in(samples: Iterable[Sample], task: Task) -> Iterator[tuple[str, str]]:
    """Yield the cluster and the group of each sample."""
    return ((text_of(sample, (task.cluster,)), label_of(sample, task.group) or "") for sample in samples)


def _groups_of_clusters(placed: Iterable[tuple[str, str]]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = defaultdict(set)
    for cluster, group in placed:
        found[cluster].add(group)
    return found


def check_clusters(placed: Iterable[tuple[str, str]], task: Task) -> None:
    """Raise UsageError unless every cluster is in one group, or every one is in all, and has one spelling.

    `placed` has the cluster and group of each sample.
    """
    groups_of = _groups_of_clusters(placed)
    refuse_alike(task.cluster, groups_of, case=False)
    n_groups = len(set().union(*groups_of.values()))
    sizes = Counter(map(len, groups_of.values()))
    if set(sizes) <= {1} or set(sizes) == {n_groups}:
        return
    numbers = ", ".join(f"{count} in {size}" for size, count in sorted(sizes.items(), reverse=True))
    cluster, groups = min(groups_of.items(), key=lambda entry: (len(entry[1]) in (1, n_groups), entry[0]))
    if len(groups) == n_groups:
        cluster, groups = min(groups_of.items(), key=lambda entry: (len(entry[1]), entry[0]))
    unnamed = " (the rows without one are one of them)" if "" in groups_of else ""
    raise UsageError(
        f"{task.name}: of {sum(sizes.values())} {task.cluster} units{unnamed}, {numbers} of {n_groups} groups of "
        f"{task.dimension} ({cluster!r} in {', '.join(sorted(groups))}); give every unit to one group, or every unit "
        "to all, or name as `cluster` what carries the group"
    )


def permuted_groups(placed: Iterable[tuple[str, str]], task: Task, seed: int) -> dict[tuple[str, str], str]:
    """Permute the groups over the clusters, or within units that are in every group, by cluster and true group.

    `placed` has the cluster and group of each sample. Group sizes stay, and all tasks of a family get the same
    permutation.
    """
    groups_of = _groups_of_clusters(placed)
    clusters = sorted(groups_of)
    rng = random.Random(digest([seed, task.family, "shuffled"]))
    if any(len(groups) > 1 for groups in groups_of.values()):
        return {
            (cluster, true): dealt
            for cluster in clusters
            for true, dealt in zip(
                sorted(groups_of[cluster]), rng.sample(sorted(groups_of[cluster]), len(groups_of[cluster])), strict=True
            )
        }
    true_groups = [*itertools.chain.from_iterable(groups_of[cluster] for cluster in clusters)]
    permuted = list(true_groups)
    rng.shuffle(permuted)
    return {(cluster, true): dealt for cluster, true, dealt in zip(clusters, true_groups, permuted, strict=True)}


def blocks_of(task: Task, placed: Iterable[tuple[str, Mapping[str, Any]]]) -> tuple[str, ...]:
    """Return the columns that hold clusters: the task's blocks, and those of its strata that describe a cluster.

    `placed` has the cluster and the columns of each sample. Strata that no cluster spans are held as they are; beside
    strata that clusters span, such as sentences, each column counts by itself.
    """
    first: dict[str, Mapping[str, Any]] = {}
    spanned: set[str] = set()
    for cluster, columns in placed:
        own = first.setdefault(cluster, columns)
        spanned |= {name for name in task.strata if columns[name] != own[name]}
    if not spanned:
        return task.blocks
    return (*task.blocks, *(name for name in task.strata if name not in spanned and name not in task.blocks))


def spread(samples: Sequence[Sample], task: Task, limit: int | None) -> list[Sample]:
    """Return at most `limit` samples, spread over strata, groups and clusters as evenly as they allow.

    In each round, each cluster gives one sample, clusters of different groups in turn; every cluster takes its
    strata in the same hashed order, so that in each round the groups say the same sentences. Units that are in every
    group give whole rounds, one sample of each group.
    """
    if limit is None or limit >= len(samples):
        return list(samples)
    groups_of = _groups_of_clusters(placed_in(samples, task))
    if any(len(groups) > 1 for groups in groups_of.values()):
        return _whole_units(samples, task, limit)
    by_cluster = split_by(samples, lambda sample: text_of(sample, (task.cluster,)))
    for members in by_cluster.values():
        members.sort(key=lambda sample: (digest(text_of(sample, task.strata)), sample.sample_id))
    # Clusters with neighbouring names may be alike, so a hashed order mixes them.
    order = sorted(by_cluster, key=lambda cluster: cluster if task.group else digest(cluster))
    by_group = split_by(order, lambda cluster: label_of(by_cluster[cluster][0], task.group) or "")
    rounds = itertools.zip_longest(*by_group.values())
    turns = [cluster for clusters in rounds for cluster in clusters if cluster is not None]
    taken: list[Sample] = []
    for place in range(max(map(len, by_cluster.values()))):
        for cluster in turns:
            if place < len(by_cluster[cluster]):
                taken.append(by_cluster[cluster][place])
            if len(taken) == limit:
                return taken
    return taken


def _whole_units(samples: Sequence[Sample], task: Task, limit: int) -> list[Sample]:
    """Return at most `limit` samples of units that are in every group: as many of each group, unit by unit."""
    of_unit: dict[str, dict[str, list[Sample]]] = defaultdict(lambda: defaultdict(list))
    for sample in samples:
        of_unit[text_of(sample, (task.cluster,))][label_of(sample, task.group) or ""].append(sample)
    units = sorted(of_unit, key=lambda unit: (digest(unit), unit))
    for own in of_unit.values():
        for members in own.values():
            members.sort(key=lambda sample: (digest(text_of(sample, task.strata)), sample.sample_id))
    taken: list[Sample] = []
    for place in range(max(len(members) for own in of_unit.values() for members in own.values())):
        for unit in units:
            here = [members[place] for _, members in sorted(of_unit[unit].items()) if place < len(members)]
            if len(taken) + len(here) > limit:
                return taken
            taken += here
    return taken


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
        media=tuple(_media_part(medium, sample.sent(medium.column), task.condition) for medium in task.media),
        text=_fill(task.prompt.text, filled),
        before=_before(task, filled),
        spoken=task.prompt.spoken,
        system=task.prompt.system,
        sampling=task.sampling,
        seed=0,
        labels=labels_of(task, sample, groups, one.presentation),
        patch=task.prompt.patch,
        patched_span=_patched_span(task, filled),
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


def _patched_span(task: Task, filled: Mapping[str, Any]) -> tuple[int, int]:
    """Return where in the filled-in prompt the hidden states of its patch are taken from; (0, 0) without one."""
    if task.prompt.patch is None:
        return 0, 0
    places = []
    for mark in task.prompt.patch.source_span:
        before, found, _ = task.prompt.text.partition(mark)
        if not found:
            raise UsageError(
                f"{task.name}: `patch.source_span` names {mark}, which its prompt lacks; name two of its placeholders"
            )
        start = len(_fill(before, filled))
        places.append((start, start + len(_fill(mark, filled))))
    return places[0][0], places[1][1]


def _fill(text: str, filled: Mapping[str, Any]) -> str:
    return PLACEHOLDER.sub(lambda match: str(filled[match.group(1)]), text) if "{" in text else text


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
        sent = [sample.sent(medium.column) for medium in task.media]
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


def refuse_other_braces(task: Task, columns: Iterable[str]) -> None:
    """Raise UsageError for a column in braces whose name no placeholder can have: it would be sent as it stands."""
    said = " ".join((*task.prompt.before, task.prompt.text))
    for name in columns:
        if f"{{{name}}}" in said and name not in placeholders(task):
            raise UsageError(
                f"{task.name}: {{{name}}} in the prompt is no placeholder, whose name has letters, digits and _ alone, "
                f"but a column is called so; give the column another name, by `columns: {{question: {name!r}}}`"
            )


def _is_plain(task: Task) -> bool:
    """Return whether a task compares groups of samples that it sends as they are, each in one way."""
    return task.condition == _sent_first(task.media) and bool(task.group) and task.prompt.presentations is None


def _content(task: Task, sample: Sample) -> tuple[Any, ...]:
    """Return what a task sends of a sample: its media by their bytes, and the texts that fill its placeholders."""
    media = [sample.sent(medium.column).sha256 for medium in task.media]
    return (*media, *(sample.columns[name] for name in placeholders(task)))


def asked_alike(task: Task, samples: Iterable[Sample]) -> int:
    """Return how many units of a task are asked what another one of their groups is, as far as that is known.

    Answers to one request are repeats of one unit, whatever its copies are called and however they are spaced.
    """
    if not _is_plain(task):
        return 0
    sent: dict[str, set[tuple[Any, ...]]] = defaultdict(set)
    unknown: set[str] = set()
    none = (None, "", *(f"{{{name}}}" for name in placeholders(task)))
    for sample in samples:
        content, unit = _content(task, sample), text_of(sample, (task.cluster,))
        # What was asked elsewhere may not be in a table of answers, and a clip that cannot be read has no bytes.
        if any(part in none for part in content):
            unknown.add(unit)
        words = (" ".join(folded(str(part)).split()) for part in content)
        sent[unit].add((label_of(sample, task.group), *words))
    known = [frozenset(own) for unit, own in sent.items() if unit not in unknown]
    return len(known) - len(set(known))


def refuse_unseen_groups(task: Task, samples: Iterable[Sample]) -> None:
    """Raise UsageError where a task sends the same texts and media about every group: no answer can tell them.

    Media are the same by their bytes, whatever the files are called. Controls, which send other media, are not checked.
    """
    if not _is_plain(task):
        return
    names = placeholders(task)
    sent: dict[str, set[tuple[Any, ...]]] = defaultdict(set)
    for sample in samples:
        if (group := label_of(sample, task.group)) is not None:
            sent[group].add(_content(task, sample))
    if len(sent) > 1 and len(set(map(frozenset, sent.values()))) == 1:
        what = f"texts and {task.media[0].kind} files" if task.media else "texts"
        asked = f"fills in {', '.join(f'{{{name}}}' for name in names)}" if names else "has no {column}"
        fix = "give each group files of its own, or " if task.media else ""
        raise UsageError(
            f"{task.name}: the model would get the same {what} for every group of {task.dimension} "
            f"(the question {asked}); {fix}name a column with the person in the question, or `swap` a word of the texts"
        )


def presentations_of(task: Task, sample: Sample, seed: int) -> Sequence[Mapping[str, str]]:
    """Return the presentations of `sample`: one, without changes, unless the prompt declares others."""
    if task.prompt.presentations is None:
        return [{}]
    with told_in_one_line(f"`presentations` of {task.name}"):
        rng = random.Random(digest([seed, sample.sample_id, "presentations"]))
        shown = list(task.prompt.presentations(sample.columns, rng))
        # Without any the sample would be asked nothing, and be missing nowhere.
        if not shown or not all(isinstance(text, str) for one in shown for text in one.values()):
            told = f"gave {shown!r:.60} for {sample.sample_id}; give one or more mappings of names to texts"
            raise UsageError(f"`presentations` of {task.name} {told}")
    return shown
