"""From tasks and corpora to requests: row × prompt × repeat, each with its key, seed and labels."""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from equivox.core.errors import RequestError
from equivox.core.media import silent_wav
from equivox.core.requests import EngineIdentity, Labels, MediaPart, Patching, Request, request_key
from equivox.core.task import Media, Task, digest
from equivox.core.variants import SHUFFLED, SILENCE, declared_arm, declared_name
from equivox.dataset_builders.corpus import Corpus, Item

_PLACEHOLDER = re.compile(r"\{([a-z_][a-z0-9_]*)\}")
_JOIN = " × "


@dataclass(frozen=True)
class PlannedRequest:
    """A request of one task, the group it counts for, and why its item cannot be sent (None when it can).

    Only in the shuffled arm does `group` differ from the group that the request's item belongs to.
    """

    task: str
    arm: str
    group: str
    request: Request
    problem: str | None


@dataclass(frozen=True)
class Plan:
    """All requests of a run, media by media, so that caches hit.

    `left_out` counts, per task, the items that carry no value of the dimension compared: they cannot be in any group.
    """

    requests: tuple[PlannedRequest, ...]
    left_out: Mapping[str, int]

    def table(self) -> list[dict[str, Any]]:
        """Return the plan as rows: what scoring needs to know of each request, without engine or media."""
        return [
            {
                "key": planned.request.key,
                "task": planned.task,
                "item_id": planned.request.item_id,
                "repeat": planned.request.repeat,
                "arm": planned.arm,
                "seed": planned.request.seed,
                "media_sha256": [part.sha256 for part in planned.request.media],
                "group": planned.group,
                "cluster": planned.request.labels.cluster,
                "stratum": planned.request.labels.stratum,
                "facts": dict(planned.request.labels.facts),
            }
            for planned in self.requests
        ]


def make_plan(
    tasks: Sequence[Task],
    corpora: Mapping[str, Corpus],
    identity: EngineIdentity,
    *,
    limit: int | None = None,
    seed: int = 0,
) -> Plan:
    """Return the requests of `tasks` on their `corpora` (by corpus name).

    With `limit`, each task uses that many items, spread evenly: every group and every cluster in turn, the same
    strata for each. A smaller limit's items are among a larger one's.

    Raises RequestError when a column is missing or fewer than two groups are left.
    """
    planned: list[tuple[tuple[str, int, int], PlannedRequest]] = []
    left_out: dict[str, int] = {}
    for order, task in enumerate(tasks):
        corpus = corpora[task.data.corpus]
        corpus.require(_columns(task, corpus, seed), task=task.name)
        items = items_of(corpus, task)
        if not items:
            where = ", ".join(f"{column} {value}" for column, value in task.data.where.items())
            raise RequestError(f"{task.name}: the corpus {corpus.name} has no item with {where or 'anything in it'}")
        grouped = [item for item in items if _label(item, task.group) is not None]
        left_out[task.name] = len(items) - len(grouped)
        groups = tuple(sorted({_label(item, task.group) or "" for item in grouped}))
        if task.group and len(groups) < 2:
            raise RequestError(
                f"{task.name} compares groups by {task.dimension!r}, but the corpus {corpus.name} has "
                f"{len(groups)} ({', '.join(groups) or 'none'}); at least two are needed"
            )
        if limit is not None and limit < len(groups):
            raise RequestError(
                f"`limit` {limit} is too small for the {len(groups)} groups of {task.name} ({', '.join(groups)}); "
                f"give at least {len(groups)}, or several per speaker for an interval"
            )
        _check_clusters(grouped, task)
        position = {item.item_id: place for place, item in enumerate(corpus.items)}
        chosen = spread(grouped, task, limit)
        group_of = _shuffled_groups(chosen, task, seed) if task.arm == SHUFFLED else None
        for item in chosen:
            ways = _presentations(task, item, seed)
            for repeat in range(task.sampling.repeats):
                for presentation in ways:
                    request = _request(task, item, groups, identity, presentation, repeat=repeat, seed=seed)
                    group = group_of[request.labels.cluster] if group_of else request.labels.group
                    place = (corpus.name, position[item.item_id], order)
                    problem = _problem(item, task, presentation)
                    planned.append((place, PlannedRequest(task.name, task.arm, group, request, problem)))
    planned.sort(key=lambda entry: entry[0])
    return Plan(tuple(entry[1] for entry in planned), left_out)


def _shuffled_groups(items: Sequence[Item], task: Task, seed: int) -> dict[str, str]:
    """Deal the groups to the clusters anew, as many clusters to each as before; one deal for all tasks of a family."""
    true = {_text(item, (task.cluster,)): _label(item, task.group) or "" for item in items}
    clusters = sorted(true)
    dealt = [true[cluster] for cluster in clusters]
    random.Random(digest([seed, task.family, "shuffled"])).shuffle(dealt)
    return dict(zip(clusters, dealt, strict=True))


def items_of(corpus: Corpus, task: Task) -> list[Item]:
    """Return the items of `corpus` that the task is about; a table of one's own was filtered when it was opened."""
    if task.data.table is not None or not task.data.where:
        return list(corpus.items)
    corpus.require(list(task.data.where), task=task.name)
    wanted = {column: [v] if isinstance(v, str) else v for column, v in task.data.where.items()}
    return [i for i in corpus.items if all(str(i.columns[column]) in wanted[column] for column in wanted)]


def _presentations(task: Task, item: Item, seed: int) -> Sequence[Mapping[str, str]]:
    """Return the ways in which `item` is asked: once, as it is, unless the task says otherwise."""
    if task.presentations is None:
        return [{}]
    return task.presentations(item.columns, random.Random(digest([seed, item.item_id, "presentations"])))


def _columns(task: Task, corpus: Corpus, seed: int) -> list[str]:
    """Return the columns that `task` needs of its corpus; what a presentation fills in is not among them."""
    filled_in = {name for item in corpus.items[:1] for way in _presentations(task, item, seed) for name in way}
    return [
        *task.group,
        task.cluster,
        *task.strata,
        *task.keeps,
        *(n for n in placeholders(task) if n not in filled_in),
    ]


def _problem(item: Item, task: Task, presentation: Mapping[str, str]) -> str | None:
    """Say why `item` cannot be sent in `task`: media that it needs and cannot use, or a text that is not there."""
    if task.media and task.arm != SILENCE and item.problem is not None:
        return item.problem
    if task.arm == SILENCE and item.duration_s is None:
        return item.problem or f"{item.file_name}: its length is not known"
    filled = {**item.columns, **presentation}
    missing = [column for column in placeholders(task) if filled[column] in (None, "")]
    return f"{item.item_id}: the column {missing[0]} is empty" if missing else None


def placeholders(task: Task) -> list[str]:
    """Return the columns that the prompt's `{column}` placeholders name."""
    return _PLACEHOLDER.findall(task.prompt.text)


def spread(items: Sequence[Item], task: Task, limit: int | None) -> list[Item]:
    """Return at most `limit` items, spread over strata, groups and clusters as evenly as they allow.

    Round by round, each cluster gives one item, clusters of different groups in turn; every cluster takes its
    strata in the same hashed order, so that round for round the groups say the same thing.
    """
    if limit is None or limit >= len(items):
        return list(items)
    by_cluster: dict[str, list[Item]] = defaultdict(list)
    for item in items:
        by_cluster[_text(item, (task.cluster,))].append(item)
    for members in by_cluster.values():
        members.sort(key=lambda item: (digest(_text(item, task.strata)), item.item_id))
    by_group: dict[str, list[str]] = defaultdict(list)
    # Where nothing tells clusters apart, the names of neighbours mean likeness: a hashed order mixes them.
    order = sorted(by_cluster.items(), key=lambda entry: (entry[0] if task.group else digest(entry[0]), entry[0]))
    for cluster, members in order:
        by_group[_label(members[0], task.group) or ""].append(cluster)
    turns = [cluster for row in _transposed(list(by_group.values())) for cluster in row]
    taken: list[Item] = []
    for place in range(max(map(len, by_cluster.values()))):
        for cluster in turns:
            if place < len(by_cluster[cluster]):
                taken.append(by_cluster[cluster][place])
            if len(taken) == limit:
                return taken
    return taken


def _transposed(rows: list[list[str]]) -> Iterable[list[str]]:
    for place in range(max(map(len, rows))):
        yield [row[place] for row in rows if place < len(row)]


def _label(item: Item, columns: Sequence[str]) -> str | None:
    values = [item.columns[column] for column in columns]
    return None if None in values or "" in values else _JOIN.join(str(value) for value in values)


def _text(item: Item, columns: Sequence[str]) -> str:
    return _JOIN.join("" if item.columns[column] is None else str(item.columns[column]) for column in columns)


def _check_clusters(items: Iterable[Item], task: Task) -> None:
    group_of: dict[str, str] = {}
    for item in items:
        cluster, group = _text(item, (task.cluster,)), _label(item, task.group) or ""
        if group_of.setdefault(cluster, group) != group:
            raise RequestError(
                f"{task.name}: the {task.cluster} {cluster!r} belongs to two groups of {task.dimension} "
                f"({group_of[cluster]} and {group}); name as `cluster` the unit that carries the group"
            )


def _request(
    task: Task,
    item: Item,
    groups: tuple[str, ...],
    identity: EngineIdentity,
    presentation: Mapping[str, str],
    *,
    repeat: int,
    seed: int,
) -> Request:
    kept = {column: str(item.columns[column]) for column in task.keeps if item.columns[column] is not None}
    labels = Labels(
        group=_label(item, task.group) or "",
        groups=groups,
        cluster=_text(item, (task.cluster,)),
        stratum=_text(item, task.strata),
        facts={**kept, **presentation},
    )
    parts = tuple(_media_part(medium, item, task.arm) for medium in task.media)
    filled = {**item.columns, **presentation}
    text, patch = _fill(task.prompt.text, filled), _patching(task, filled)
    asked = [presentation] if task.presentations else []
    request_seed = int(digest([seed, item.item_id, repeat, *asked])[:8], 16)
    # Shuffling changes what an answer counts for, not the answer: it is the same request as without.
    name, arm = (declared_name(task.name), declared_arm(task)) if task.arm == SHUFFLED else (task.name, task.arm)
    key = request_key(
        identity,
        task=name,
        text=text,
        media=parts,
        sampling=task.sampling,
        seed=request_seed,
        arm=arm,
        labels=labels,
        patch=patch,
    )
    return Request(
        key=key,
        task=name,
        item_id=item.item_id,
        repeat=repeat,
        arm=arm,
        media=parts,
        text=text,
        sampling=task.sampling,
        seed=request_seed,
        labels=labels,
        patch=patch,
    )


def _patching(task: Task, filled: Mapping[str, Any]) -> Patching | None:
    """Return where in the filled-in prompt the hidden states of the patch are taken from."""
    if task.patch is None:
        return None
    places = []
    for mark in task.patch.source_span:
        before, found, _ = task.prompt.text.partition(mark)
        if not found:
            raise RequestError(
                f"{task.name}: `patch.source_span` names {mark}, which its prompt lacks; name two of its placeholders"
            )
        start = len(_fill(before, filled))
        places.append((start, start + len(_fill(mark, filled))))
    return Patching(patch=task.patch, start=places[0][0], end=places[1][1])


def _fill(text: str, filled: Mapping[str, Any]) -> str:
    return _PLACEHOLDER.sub(lambda match: str(filled[match.group(1)]), text)


def _media_part(medium: Media, item: Item, arm: str) -> MediaPart:
    if arm == SILENCE and medium.kind == "audio":
        seconds = item.duration_s or 0.0
        return MediaPart(
            kind="audio",
            sha256=digest(["silence", seconds]),
            name=f"silence of {item.file_name}",
            duration_s=seconds,
            load=lambda: silent_wav(seconds),
        )
    return MediaPart(
        kind=medium.kind, sha256=item.sha256, name=item.file_name, duration_s=item.duration_s, load=item.load
    )
