"""Plans: the requests of a run (sample × presentation × repeat), each with its key, its seed and its group.

A plan is a table. Requests are made from it when an engine needs them, so that a plan of a million requests is small.
"""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from equivox.core.errors import RequestError
from equivox.core.files import read_table
from equivox.core.media import silent_wav
from equivox.core.requests import EngineIdentity, Labels, MediaPart, Patching, Request, request_key
from equivox.core.task import Media, Task, digest
from equivox.core.variants import SHUFFLED, SILENCE, declared_condition, declared_name
from equivox.dataset_builders.corpus import Corpus, Sample

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

_PLACEHOLDER = re.compile(r"\{([a-z_][a-z0-9_]*)\}")
_JOIN = " × "
PLAN_FILE = "plan.parquet"


@dataclass(frozen=True)
class PlannedRequest:
    """A request of one task, its group, and the reason why its sample cannot be sent (None if it can).

    `group` differs from the group of the request's sample only in the shuffled condition.
    """

    task: str
    condition: str
    group: str
    request: Request
    problem: str | None


@dataclass(frozen=True, eq=False)
class Plan:
    """All requests of a run as a table, in the order of sending; neighbouring requests share their media.

    `left_out` counts, per task, the samples without a value of the compared dimension, which are in no group.
    """

    table: pa.Table
    left_out: Mapping[str, int]
    _presented: _Presented = field(repr=False)
    _order: NDArray[np.int64] = field(repr=False)

    def __len__(self) -> int:
        return int(self.table.num_rows)

    @property
    def requests(self) -> PlannedRequests:
        """All planned requests, each made when it is read."""
        import numpy as np

        return PlannedRequests(self, np.arange(len(self)))

    def request(self, row: int) -> PlannedRequest:
        """Return the request of one row of the table."""
        place, repeat = divmod(int(self._order[row]), _REPEATS)
        key, seed = str(self.table["key"][row].as_py()), int(self.table["seed"][row].as_py())
        return self._presented.ask(place).planned(repeat, key, seed)

    def part(self, rows: Sequence[int]) -> Plan:
        """Return a plan of some of the rows."""
        import numpy as np
        import pyarrow as pa

        chosen = np.array(rows, dtype=np.int64)
        return Plan(self.table.take(pa.array(chosen)), self.left_out, self._presented, self._order[chosen])

    @cached_property
    def distinct(self) -> NDArray[np.int64]:
        """The first row of every key; tasks with equal requests share a response."""
        import numpy as np

        codes = self.table["key"].combine_chunks().dictionary_encode().indices.to_numpy()
        return np.sort(np.unique(codes, return_index=True)[1])

    def pending(self, done: pa.Array | pa.ChunkedArray) -> PlannedRequests:
        """Return the requests whose keys are not among `done`, each key once."""
        import pyarrow as pa
        import pyarrow.compute as pc

        keys = self.table["key"].combine_chunks().take(pa.array(self.distinct))
        known = pc.is_in(keys, value_set=done).to_numpy(zero_copy_only=False)
        return PlannedRequests(self, self.distinct[~known])


class PlannedRequests(Sequence[PlannedRequest]):
    """Planned requests for some rows of a plan, each made when it is read."""

    def __init__(self, plan: Plan, rows: NDArray[np.int64]) -> None:
        self._plan = plan
        self.rows = rows

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, index: int) -> PlannedRequest: ...

    @overload
    def __getitem__(self, index: slice) -> PlannedRequests: ...

    def __getitem__(self, index: int | slice) -> PlannedRequest | PlannedRequests:
        if isinstance(index, slice):
            return PlannedRequests(self._plan, self.rows[index])
        return self._plan.request(int(self.rows[index]))

    def __iter__(self) -> Iterator[PlannedRequest]:
        # Columns are read in blocks: reading one cell of a table costs more than making the request.
        for start in range(0, len(self.rows), 4096):
            rows = self.rows[start : start + 4096]
            block = self._plan.table.select(["key", "seed"]).take(rows)
            keys, seeds = block["key"].to_pylist(), block["seed"].to_pylist()
            last, asked = -1, None
            for row, key, seed in zip(rows.tolist(), keys, seeds, strict=True):
                place, repeat = divmod(int(self._plan._order[row]), _REPEATS)
                if asked is None or place != last:
                    last, asked = place, self._plan._presented.ask(place)
                yield asked.planned(repeat, key, seed)

    def sendable(self) -> Requests:
        """Return the requests of samples that can be sent."""
        return Requests(PlannedRequests(self._plan, self.rows[self._usable]))

    def unusable(self) -> Iterator[PlannedRequest]:
        """Yield the requests of samples that cannot be sent."""
        return iter(PlannedRequests(self._plan, self.rows[~self._usable]))

    @property
    def _usable(self) -> NDArray[np.bool_]:
        return self._plan._presented.usable[self._plan._order[self.rows] // _REPEATS]


class Requests(Sequence[Request]):
    """The requests that an engine receives, each made from a planned request when it is read."""

    def __init__(self, planned: PlannedRequests) -> None:
        self._planned = planned

    def __len__(self) -> int:
        return len(self._planned)

    @overload
    def __getitem__(self, index: int) -> Request: ...

    @overload
    def __getitem__(self, index: slice) -> Requests: ...

    def __getitem__(self, index: int | slice) -> Request | Requests:
        if isinstance(index, slice):
            return Requests(self._planned[index])
        return self._planned[index].request

    def __iter__(self) -> Iterator[Request]:
        return (planned.request for planned in self._planned)


_REPEATS = 1 << 20
"""An upper bound of the repeats of a sample; place and repeat are stored in one number."""


@dataclass(frozen=True, eq=False)
class _TaskPlan:
    """One task of a plan: its groups, and the permuted group of each cluster in the shuffled condition."""

    task: Task
    groups: tuple[str, ...]
    group_of: Mapping[str, str] | None


@dataclass(frozen=True, eq=False)
class _Presented:
    """Every sample of every task in every presentation, by its place; the request is made when it is read."""

    tasks: Sequence[_TaskPlan]
    task_of: NDArray[np.int64]
    samples: Sequence[Sample]
    presentations: Sequence[Mapping[str, str]]
    usable: NDArray[np.bool_]

    def ask(self, place: int) -> _Asked:
        """Return the sample, presentation and task at one place."""
        own = self.tasks[self.task_of[place]]
        return _ask(own.task, self.samples[place], own.groups, self.presentations[place], own.group_of)


def request_seed(seed: int, sample_id: str, repeat: int, *presentation: Mapping[str, str]) -> int:
    """Return the seed of one request, from that of the run; tasks with presentations name the one that was asked."""
    return int(digest([seed, sample_id, repeat, *presentation])[:8], 16)


@dataclass(frozen=True, eq=False, slots=True)
class _Asked:
    """One sample in one presentation of one task; all its repeats share it."""

    task: Task
    sample: Sample
    group: str
    labels: Labels
    media: tuple[MediaPart, ...]
    text: str
    patch: Patching | None
    problem: str | None
    presentation: Mapping[str, str]

    def seed(self, seed: int, repeat: int) -> int:
        asked = [dict(self.presentation)] if self.task.prompt.presentations else []
        return request_seed(seed, self.sample.sample_id, repeat, *asked)

    @property
    def named(self) -> tuple[str, str]:
        """The task's name and condition as they enter the request."""
        # Shuffling changes the group of an answer, not the request.
        task = self.task
        if task.condition == SHUFFLED:
            return declared_name(task.name), declared_condition(task)
        return task.name, task.condition

    def key(self, identity: EngineIdentity, seed: int) -> str:
        name, condition = self.named
        return request_key(
            identity,
            task=name,
            text=self.text,
            media=self.media,
            sampling=self.task.sampling,
            seed=seed,
            condition=condition,
            labels=self.labels,
            patch=self.patch,
        )

    def planned(self, repeat: int, key: str, seed: int) -> PlannedRequest:
        name, condition = self.named
        request = Request(
            key=key,
            task=name,
            sample_id=self.sample.sample_id,
            repeat=repeat,
            condition=condition,
            media=self.media,
            text=self.text,
            sampling=self.task.sampling,
            seed=seed,
            labels=self.labels,
            patch=self.patch,
        )
        return PlannedRequest(self.task.name, self.task.condition, self.group, request, self.problem)


def make_plan(
    tasks: Sequence[Task],
    corpora: Mapping[str, Corpus],
    identity: EngineIdentity,
    *,
    limit: int | None = None,
    seed: int = 0,
) -> Plan:
    """Return the requests of `tasks` on their `corpora` (by corpus name).

    With `limit`, each task uses that many samples, spread evenly: every group and every cluster in turn, the same
    strata for each. The samples of a smaller limit are a subset of those of a larger one.

    Raises RequestError if a column is missing or fewer than two groups are left.
    """
    import numpy as np

    planned_tasks: list[_TaskPlan] = []
    task_of: list[int] = []
    chosen_samples: list[Sample] = []
    presented: list[Mapping[str, str]] = []
    places: list[tuple[int, int, int]] = []
    left_out: dict[str, int] = {}
    ranks = {name: rank for rank, name in enumerate(sorted({task.data.corpus for task in tasks}))}
    positions: dict[str, dict[str, int]] = {}
    for order, task in enumerate(tasks):
        corpus = corpora[task.data.corpus]
        corpus.require(_columns(task, corpus, seed), task=task.name)
        samples = samples_of(corpus, task)
        if not samples:
            where = ", ".join(f"{column} {value}" for column, value in task.data.where.items())
            raise RequestError(f"{task.name}: the corpus {corpus.name} has no sample with {where or 'anything in it'}")
        grouped = [sample for sample in samples if _label(sample, task.group) is not None]
        left_out[task.name] = len(samples) - len(grouped)
        groups = tuple(sorted({_label(sample, task.group) or "" for sample in grouped}))
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
        if corpus.name not in positions:
            positions[corpus.name] = {sample.sample_id: place for place, sample in enumerate(corpus.samples)}
        chosen = spread(grouped, task, limit)
        group_of = _permuted_groups(chosen, task, seed) if task.condition == SHUFFLED else None
        planned_tasks.append(_TaskPlan(task, groups, group_of))
        for sample in chosen:
            place = (ranks[task.data.corpus], positions[corpus.name][sample.sample_id], order)
            for presentation in presentations_of(task, sample, seed):
                task_of.append(order)
                chosen_samples.append(sample)
                presented.append(presentation)
                places.append(place)
    usable = np.ones(len(places), dtype=bool)
    every = _Presented(planned_tasks, np.array(task_of, dtype=np.int64), chosen_samples, presented, usable)
    columns, entries = _expanded(every, identity, seed)
    corpus_rank, position, task_order = np.array(places, dtype=np.int64).reshape(-1, 3).T
    # Within a sample, repeats come before presentations, in the order of their numbers.
    place_of, repeat_of = np.divmod(entries, _REPEATS)
    ways = _way_numbers(places)
    sequence = np.lexsort((ways[place_of], repeat_of, task_order[place_of], position[place_of], corpus_rank[place_of]))
    return Plan(_table(columns, sequence), left_out, every, entries[sequence])


def _way_numbers(places: Sequence[tuple[int, int, int]]) -> NDArray[np.int64]:
    """Return the number of each entry's presentation within its sample: 0, 1, …"""
    import numpy as np

    ways, before, number = [], None, 0
    for place in places:
        number = number + 1 if place == before else 0
        ways.append(number)
        before = place
    return np.array(ways, dtype=np.int64)


def _expanded(
    presented: _Presented, identity: EngineIdentity, seed: int
) -> tuple[dict[str, list[Any]], NDArray[np.int64]]:
    """Return the plan's columns, a row per presentation and repeat, and place × _REPEATS + repeat of each row.

    Sets `presented.usable` to False for a sample that cannot be sent.
    """
    import numpy as np

    names = (
        *("key", "task", "sample_id", "condition", "group", "cluster", "stratum", "block", "item"),
        *("repeat", "seed", "media_sha256"),
    )
    columns: dict[str, list[Any]] = {name: [] for name in names}
    kept = list(
        dict.fromkeys(
            [name for own in presented.tasks for name in own.task.metadata]
            + list(dict.fromkeys(name for way in presented.presentations for name in way))
        )
    )
    columns |= {f"metadata.{name}": [] for name in kept}
    entries: list[int] = []
    for place in range(len(presented.samples)):
        one = presented.ask(place)
        presented.usable[place] = one.problem is None
        media = [part.sha256 for part in one.media]
        metadata = [one.labels.metadata.get(name) for name in kept]
        for repeat in range(one.task.sampling.repeats):
            own_seed = one.seed(seed, repeat)
            entries.append(place * _REPEATS + repeat)
            cells = (
                one.key(identity, own_seed),
                one.task.name,
                one.sample.sample_id,
                one.task.condition,
                one.group,
                one.labels.cluster,
                one.labels.stratum,
                one.labels.block,
                one.labels.item,
                repeat,
                own_seed,
                media,
                *metadata,
            )
            for column, cell in zip(columns.values(), cells, strict=True):
                column.append(cell)
    return columns, np.array(entries, dtype=np.int64)


def _table(columns: Mapping[str, list[Any]], sequence: NDArray[np.int64]) -> pa.Table:
    import pyarrow as pa

    kinds = {"repeat": pa.int32(), "seed": pa.int64(), "media_sha256": pa.list_(pa.string())}
    arrays = {}
    for name, cells in columns.items():
        array = pa.array(cells, kinds.get(name, pa.string()))
        # Many rows have few distinct texts; keys do not repeat.
        arrays[name] = array if name in kinds or name == "key" else array.dictionary_encode()
    return pa.table(arrays).take(pa.array(sequence))


def read_plan(folder: Path) -> pa.Table:
    """Return the plan of the run in `folder`; RequestError if the run was stopped before it was written."""
    try:
        return read_table(folder / PLAN_FILE)
    except FileNotFoundError:
        raise RequestError(f"{folder} has no {PLAN_FILE}: the run was stopped before it began; run it again") from None


def _permuted_groups(samples: Sequence[Sample], task: Task, seed: int) -> dict[str, str]:
    """Permute the groups over the clusters; group sizes stay, and all tasks of a family get the same permutation."""
    true = {_text(sample, (task.cluster,)): _label(sample, task.group) or "" for sample in samples}
    clusters = sorted(true)
    permuted = [true[cluster] for cluster in clusters]
    random.Random(digest([seed, task.family, "shuffled"])).shuffle(permuted)
    return dict(zip(clusters, permuted, strict=True))


def samples_of(corpus: Corpus, task: Task) -> list[Sample]:
    """Return the samples of `corpus` that the task uses; a custom table was filtered when it was opened."""
    if task.data.table is not None or not task.data.where:
        return list(corpus.samples)
    corpus.require(list(task.data.where), task=task.name)
    wanted = {column: [v] if isinstance(v, str) else v for column, v in task.data.where.items()}
    return [s for s in corpus.samples if all(str(s.columns[column]) in wanted[column] for column in wanted)]


def presentations_of(task: Task, sample: Sample, seed: int) -> Sequence[Mapping[str, str]]:
    """Return the presentations of `sample`: one, without changes, unless the prompt declares others."""
    if task.prompt.presentations is None:
        return [{}]
    return task.prompt.presentations(sample.columns, random.Random(digest([seed, sample.sample_id, "presentations"])))


def _columns(task: Task, corpus: Corpus, seed: int) -> list[str]:
    """Return the corpus columns that `task` needs, without the placeholders that a presentation fills in."""
    filled_in = {name for sample in corpus.samples[:1] for way in presentations_of(task, sample, seed) for name in way}
    return [
        *task.group,
        task.cluster,
        *task.strata,
        *task.blocks,
        *task.items,
        *task.metadata,
        *(n for n in placeholders(task) if n not in filled_in),
    ]


def _problem(sample: Sample, task: Task, filled: Mapping[str, Any]) -> str | None:
    """Return why `sample` cannot be sent in `task` (unusable media or a missing text), or None."""
    if task.media and task.condition != SILENCE and sample.problem is not None:
        return sample.problem
    if task.condition == SILENCE and sample.duration_s is None:
        return sample.problem or f"{sample.file_name}: its length is not known"
    missing = [column for column in placeholders(task) if filled[column] in (None, "")]
    return f"{sample.sample_id}: the column {missing[0]} is empty" if missing else None


def placeholders(task: Task) -> Sequence[str]:
    """Return the columns that the prompt's `{column}` placeholders name."""
    return _placeholders(task.prompt.text)


@cache
def _placeholders(text: str) -> tuple[str, ...]:
    return tuple(_PLACEHOLDER.findall(text))


def spread(samples: Sequence[Sample], task: Task, limit: int | None) -> list[Sample]:
    """Return at most `limit` samples, spread over strata, groups and clusters as evenly as they allow.

    In each round, each cluster gives one sample, clusters of different groups in turn; every cluster takes its
    strata in the same hashed order, so that in each round the groups say the same sentences.
    """
    if limit is None or limit >= len(samples):
        return list(samples)
    by_cluster: dict[str, list[Sample]] = defaultdict(list)
    for sample in samples:
        by_cluster[_text(sample, (task.cluster,))].append(sample)
    for members in by_cluster.values():
        members.sort(key=lambda sample: (digest(_text(sample, task.strata)), sample.sample_id))
    by_group: dict[str, list[str]] = defaultdict(list)
    # Clusters with neighbouring names may be alike, so a hashed order mixes them.
    order = sorted(by_cluster.items(), key=lambda entry: (entry[0] if task.group else digest(entry[0]), entry[0]))
    for cluster, members in order:
        by_group[_label(members[0], task.group) or ""].append(cluster)
    turns = [cluster for row in _transposed(list(by_group.values())) for cluster in row]
    taken: list[Sample] = []
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


def _label(sample: Sample, columns: Sequence[str]) -> str | None:
    values = [sample.columns[column] for column in columns]
    return None if None in values or "" in values else _JOIN.join(map(str, values))


def _text(sample: Sample, columns: Sequence[str]) -> str:
    values = [sample.columns[column] for column in columns]
    return _JOIN.join(["" if value is None else str(value) for value in values])


def _check_clusters(samples: Iterable[Sample], task: Task) -> None:
    group_of: dict[str, str] = {}
    for sample in samples:
        cluster, group = _text(sample, (task.cluster,)), _label(sample, task.group) or ""
        if group_of.setdefault(cluster, group) != group:
            raise RequestError(
                f"{task.name}: the {task.cluster} {cluster!r} belongs to two groups of {task.dimension} "
                f"({group_of[cluster]} and {group}); name as `cluster` the unit that carries the group"
            )


def _ask(
    task: Task,
    sample: Sample,
    groups: tuple[str, ...],
    presentation: Mapping[str, str],
    group_of: Mapping[str, str] | None,
) -> _Asked:
    kept = {column: str(sample.columns[column]) for column in task.metadata if sample.columns[column] is not None}
    labels = Labels(
        group=_label(sample, task.group) or "",
        groups=groups,
        cluster=_text(sample, (task.cluster,)),
        stratum=_text(sample, task.strata),
        block=_text(sample, task.blocks),
        item=_text(sample, task.items),
        metadata={**kept, **presentation} if presentation else kept,
    )
    filled = {**sample.columns, **presentation} if presentation else sample.columns
    return _Asked(
        task=task,
        sample=sample,
        group=group_of[labels.cluster] if group_of else labels.group,
        labels=labels,
        media=tuple(_media_part(medium, sample, task.condition) for medium in task.media),
        text=_fill(task.prompt.text, filled),
        patch=_patching(task, filled),
        problem=_problem(sample, task, filled),
        presentation=presentation,
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
    return _PLACEHOLDER.sub(lambda match: str(filled[match.group(1)]), text) if "{" in text else text


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
