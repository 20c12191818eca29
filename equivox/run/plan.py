"""Plans: the requests of a run (sample × presentation × repeat), each with its key, its seed and its group.

A plan is a table. Requests are made from it when an engine needs them, so that a plan of a million requests is small.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from equivox.core.errors import RequestError
from equivox.core.files import read_table
from equivox.core.media import silent_wav
from equivox.core.requests import EngineIdentity, Exchange, Labels, MediaPart, Patching, Request, request_key
from equivox.core.task import PLACEHOLDER, Media, Task, digest, placeholders_of
from equivox.core.variants import SHUFFLED, SILENCE, TURN, VOICE, declared_condition, declared_name, dose_of
from equivox.core.voice import ALGORITHM, load_changed
from equivox.dataset_builders.corpus import Corpus, Sample

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

JOIN = " × "
PLAN_FILE = "plan.parquet"
COLUMN = "column."
"""What the names of the corpus's columns begin with in a plan."""
FOLLOWS = "follows"
"""The column with the keys of the turns before a request, in order; a plan without dialogues does not have it."""
MOST_GROUPS = 100
"""Columns of more values are no groups; a plan does not keep them."""


@dataclass(frozen=True, eq=False, slots=True)
class _Presented:
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


@dataclass(frozen=True, eq=False)
class Plan:
    """All requests of a run as a table, in the order of sending; neighbouring requests share their media.

    `left_out` counts, per task, the samples without a value of the compared dimension, which are in no group. `usable`
    says of each row whether its sample can be sent.
    """

    table: pa.Table
    left_out: Mapping[str, int]
    usable: NDArray[np.bool_]
    _presented: Sequence[_Presented] = field(repr=False)
    _places: NDArray[np.int64] = field(repr=False)

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def request(self, row: int) -> Request:
        """Return the request of one row of the table."""
        return self.requests([row])[0]

    def requests(
        self, rows: Sequence[int] | NDArray[np.int64] | None = None, answers: Mapping[str, str] | None = None
    ) -> Requests:
        """Return the requests of some rows, or of all; each is made when it is needed.

        `answers` are those of the turns before them, by key; without them, these answers are empty.
        """
        import numpy as np

        chosen = np.arange(len(self)) if rows is None else np.array(rows, dtype=np.int64)
        return Requests(self, chosen, answers or {})

    @property
    def has_turns(self) -> bool:
        """Whether the plan has requests that follow the answers to others."""
        return FOLLOWS in self.table.column_names

    def follows(self, rows: NDArray[np.int64]) -> list[Sequence[str]]:
        """Return, for each of some rows, the keys of the turns before it, in order."""
        if not self.has_turns:
            return [()] * len(rows)
        return [keys or () for keys in self.table[FOLLOWS].take(rows).to_pylist()]

    def described(self) -> Iterator[tuple[Mapping[str, Any], Request]]:
        """Yield each row's task, condition and group, and its request.

        The group differs from that of the request in the shuffled condition, and where another task asked it.
        """
        return zip(self.table.select(["task", "condition", "group"]).to_pylist(), self.requests(), strict=True)

    def problem(self, row: int) -> str | None:
        """Return why the sample of a row cannot be sent (unusable media or a missing text), or None."""
        one = self._presented[self._places[row]]
        return _problem(one.sample, one.task, {**one.sample.columns, **one.presentation})

    def part(self, rows: Sequence[int]) -> Plan:
        """Return a plan of some of the rows."""
        import numpy as np
        import pyarrow as pa

        chosen = np.array(rows, dtype=np.int64)
        table = self.table.take(pa.array(chosen))
        return replace(self, table=table, usable=self.usable[chosen], _places=self._places[chosen])

    @cached_property
    def distinct(self) -> NDArray[np.int64]:
        """The first row of every key; tasks with equal requests share a response."""
        import numpy as np

        codes = self.table["key"].combine_chunks().dictionary_encode().indices.to_numpy()
        # Codes are given in the order in which keys first occur, and so are the rows in order.
        return np.unique(codes, return_index=True)[1]

    def pending(self, done: pa.Array | pa.ChunkedArray) -> NDArray[np.int64]:
        """Return the rows whose keys are not among `done`, each key once."""
        import pyarrow as pa
        import pyarrow.compute as pc

        keys = self.table["key"].combine_chunks().take(pa.array(self.distinct))
        known = pc.is_in(keys, value_set=done).to_numpy(zero_copy_only=False)
        pending: NDArray[np.int64] = self.distinct[~known]
        return pending


class Requests(Sequence[Request]):
    """The requests of some rows of a plan, each made when it is read."""

    def __init__(self, plan: Plan, rows: NDArray[np.int64], answers: Mapping[str, str]) -> None:
        self._plan = plan
        self._rows = rows
        self._answers = answers

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, index: int) -> Request: ...

    @overload
    def __getitem__(self, index: slice) -> Requests: ...

    def __getitem__(self, index: int | slice) -> Request | Requests:
        if isinstance(index, slice):
            return Requests(self._plan, self._rows[index], self._answers)
        return next(iter(Requests(self._plan, self._rows[[index]], self._answers)))

    def __iter__(self) -> Iterator[Request]:
        # Columns are read in blocks: reading one cell of a table costs more than making the request.
        for start in range(0, len(self._rows), 4096):
            rows = self._rows[start : start + 4096]
            block = self._plan.table.select(["key", "seed", "repeat"]).take(rows).to_pydict()
            last, made = -1, None
            follows = self._plan.follows(rows)
            for place, keys, *cells in zip(self._plan._places[rows].tolist(), follows, *block.values(), strict=True):
                if made is None or place != last:
                    last, made = place, _unkeyed(self._plan._presented[place])
                request = Request(**vars(made) | dict(zip(block, cells, strict=True)))
                yield _with_answers(request, [self._answers.get(key, "") for key in keys]) if keys else request


def request_seed(seed: int, sample_id: str, repeat: int, *presentation: Mapping[str, str]) -> int:
    """Return the seed of one request, from that of the run; tasks with presentations name the one that was asked."""
    return int(digest([seed, sample_id, repeat, *presentation])[:8], 16)


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
    strata for each. The samples of a smaller limit are a subset of those of a larger one. A task that compares the
    answers of another one anew uses those of its samples that it has.

    The table also has the corpus's columns of few values as `column.NAME`, by which the answers can be compared later.

    Raises RequestError if a column is missing or fewer than two groups are left.
    """
    import numpy as np

    presented: list[tuple[tuple[str, int, int], _Presented]] = []
    left_out: dict[str, int] = {}
    positions: dict[str, dict[str, int]] = {}
    asking: dict[str, tuple[Task, tuple[str, ...], list[Sample]]] = {}
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
        check_clusters(_placed(grouped, task), task)
        if corpus.name not in positions:
            positions[corpus.name] = {sample.sample_id: place for place, sample in enumerate(corpus.samples)}
        blocks = blocks_of(task, ((_text(sample, (task.cluster,)), sample.columns) for sample in grouped))
        asked, asked_groups, chosen = asking.get(task.asked_as, (task, groups, grouped))
        chosen = spread(chosen, asked, limit)
        asking[task.name] = (task, groups, grouped)
        if asked is not task:
            chosen = [sample for sample in chosen if _label(sample, task.group) is not None]
        group_of = permuted_groups(_placed(chosen, task), task, seed) if task.condition == SHUFFLED else None
        presented += [
            (
                (task.data.corpus, positions[corpus.name][sample.sample_id], order),
                _Presented(task, sample, presentation, groups, group_of, (asked, asked_groups), blocks),
            )
            for sample in chosen
            for presentation in presentations_of(task, sample, seed)
        ]
    kept = dict.fromkeys(name for task in tasks for name in task.metadata)
    kept |= dict.fromkeys(name for _, one in presented for name in one.presentation)
    # A sample's presentations stay together, in their order.
    presented.sort(key=lambda entry: entry[0])
    columns, places = _expanded(presented, list(kept), identity, seed)
    every = [one for _, one in presented]
    told = _comparable(corpora.values(), every)
    usable = [_problem(one.sample, one.task, {**one.sample.columns, **one.presentation}) is None for one in every]
    table = _table(columns)
    for name, values in told.items():
        table = table.append_column(f"{COLUMN}{name}", values.take(places))
    return Plan(table, left_out, np.array(usable, dtype=bool)[places], every, places)


def _expanded(
    presented: Sequence[tuple[Any, _Presented]], kept: Sequence[str], identity: EngineIdentity, seed: int
) -> tuple[dict[str, list[Any]], NDArray[np.int64]]:
    """Return the plan's columns, a row per presentation and repeat, and the place in `presented` of each row.

    `presented` is sorted by the first members of its entries, which are equal for the presentations of one sample; each
    repeat has all of them. `kept` names the metadata.
    """
    import numpy as np

    named = (
        *("key", "task", "sample_id", "condition", "group", "cluster", "stratum", "block", "item"),
        *("repeat", "seed", "media_sha256", *(f"metadata.{name}" for name in kept)),
    )
    columns: dict[str, list[Any]] = {name: [] for name in named}
    follows: list[list[str] | None] = []
    places: list[int] = []
    for _, members in groupby(range(len(presented)), key=lambda place: presented[place][0]):
        made = [(place, presented[place][1], _unkeyed(presented[place][1])) for place in members]
        for repeat in range(made[0][1].task.sampling.repeats):
            for place, one, unkeyed in made:
                shown = [dict(one.presentation)] if one.task.prompt.presentations else []
                own_seed = request_seed(seed, one.sample.sample_id, repeat, *shown)
                labels = unkeyed.labels if one.asked[0] is one.task else _labels(one.task, one.sample, one.groups, {})
                cells = (
                    request_key(identity, unkeyed, own_seed),
                    one.task.name,
                    one.sample.sample_id,
                    one.task.condition,
                    one.group_of[labels.cluster, labels.group] if one.group_of else labels.group,
                    labels.cluster,
                    labels.stratum,
                    _text(one.sample, one.blocks),
                    labels.item,
                    repeat,
                    own_seed,
                    [part.sha256 for part in unkeyed.media],
                    *(unkeyed.labels.metadata.get(name) for name in kept),
                )
                places.append(place)
                follows.append([request_key(identity, turn, own_seed) for turn in _turns_before(unkeyed)] or None)
                for column, cell in zip(columns.values(), cells, strict=True):
                    column.append(cell)
    further = {FOLLOWS: follows} if any(follows) else {}
    return columns | further, np.array(places, dtype=np.int64)


def _comparable(corpora: Iterable[Corpus], presented: Sequence[_Presented]) -> dict[str, pa.DictionaryArray]:
    """Return, for each presented sample, the columns of few values by which answers can be compared."""
    import pyarrow as pa

    values: dict[str, set[str]] = defaultdict(set)
    for corpus in corpora:
        for sample in corpus.samples:
            for name, value in sample.columns.items():
                if value not in (None, "") and len(values[name]) <= MOST_GROUPS:
                    values[name].add(str(value))
    few = sorted(name for name, own in values.items() if 2 <= len(own) <= MOST_GROUPS)
    return {
        name: pa.array(
            [None if (value := one.sample.columns.get(name)) in (None, "") else str(value) for one in presented],
            pa.string(),
        ).dictionary_encode()
        for name in few
    }


def _table(columns: Mapping[str, list[Any]]) -> pa.Table:
    import pyarrow as pa

    texts = pa.list_(pa.string())
    kinds = {"repeat": pa.int32(), "seed": pa.int64(), "media_sha256": texts, FOLLOWS: texts}
    arrays = {}
    for name, cells in columns.items():
        array = pa.array(cells, kinds.get(name, pa.string()))
        # Many rows have few distinct texts; keys do not repeat.
        arrays[name] = array if name in kinds or name == "key" else array.dictionary_encode()
    return pa.table(arrays)


def read_plan(folder: Path) -> pa.Table:
    """Return the plan of the run in `folder`; RequestError if the run was stopped before it was written."""
    try:
        return read_table(folder / PLAN_FILE)
    except FileNotFoundError:
        raise RequestError(f"{folder} has no {PLAN_FILE}: the run was stopped before it began; run it again") from None


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
    """Return the columns that the prompt's `{column}` placeholders name, each once."""
    said = (*task.prompt.before, task.prompt.text)
    return list(dict.fromkeys(name for text in said for name in placeholders_of(text)))


def spread(samples: Sequence[Sample], task: Task, limit: int | None) -> list[Sample]:
    """Return at most `limit` samples, spread over strata, groups and clusters as evenly as they allow.

    In each round, each cluster gives one sample, clusters of different groups in turn; every cluster takes its
    strata in the same hashed order, so that in each round the groups say the same sentences. Units that are in every
    group give whole rounds, one sample of each group.
    """
    if limit is None or limit >= len(samples):
        return list(samples)
    groups_of = _groups_of_clusters(_placed(samples, task))
    if any(len(groups) > 1 for groups in groups_of.values()):
        return _whole_units(samples, task, limit)
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
        of_unit[_text(sample, (task.cluster,))][_label(sample, task.group) or ""].append(sample)
    units = sorted(of_unit, key=lambda unit: (digest(unit), unit))
    for own in of_unit.values():
        for members in own.values():
            members.sort(key=lambda sample: (digest(_text(sample, task.strata)), sample.sample_id))
    taken: list[Sample] = []
    for place in range(max(len(members) for own in of_unit.values() for members in own.values())):
        for unit in units:
            here = [members[place] for _, members in sorted(of_unit[unit].items()) if place < len(members)]
            if len(taken) + len(here) > limit:
                return taken
            taken += here
    return taken


def _label(sample: Sample, columns: Sequence[str]) -> str | None:
    values = [sample.columns[column] for column in columns]
    return None if None in values or "" in values else JOIN.join(map(str, values))


def _text(sample: Sample, columns: Sequence[str]) -> str:
    values = [sample.columns[column] for column in columns]
    return JOIN.join(["" if value is None else str(value) for value in values])


def _placed(samples: Iterable[Sample], task: Task) -> Iterator[tuple[str, str]]:
    """Yield the cluster and the group of each sample."""
    return ((_text(sample, (task.cluster,)), _label(sample, task.group) or "") for sample in samples)


def _groups_of_clusters(placed: Iterable[tuple[str, str]]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = defaultdict(set)
    for cluster, group in placed:
        found[cluster].add(group)
    return found


def check_clusters(placed: Iterable[tuple[str, str]], task: Task) -> None:
    """Raise RequestError unless every cluster is in one group, or every one is in all.

    `placed` has the cluster and group of each sample.
    """
    groups_of = _groups_of_clusters(placed)
    n_groups = len(set().union(*groups_of.values()))
    sizes = Counter(map(len, groups_of.values()))
    if set(sizes) <= {1} or set(sizes) == {n_groups}:
        return
    numbers = ", ".join(f"{count} in {size}" for size, count in sorted(sizes.items(), reverse=True))
    cluster, groups = min(groups_of.items(), key=lambda entry: (len(entry[1]) in (1, n_groups), entry[0]))
    if len(groups) == n_groups:
        cluster, groups = min(groups_of.items(), key=lambda entry: (len(entry[1]), entry[0]))
    raise RequestError(
        f"{task.name}: of {sum(sizes.values())} {task.cluster} units, {numbers} of {n_groups} groups of "
        f"{task.dimension} ({cluster!r} in {', '.join(sorted(groups))}); give every unit to one group, or every unit "
        "to all, or name as `cluster` what carries the group"
    )


def _unkeyed(one: _Presented) -> Request:
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
        condition=declared_condition(task) if shuffled else task.condition,
        media=tuple(_media_part(medium, sample, task.condition) for medium in task.media),
        text=_fill(task.prompt.text, filled),
        before=_before(task, filled),
        tools=task.prompt.tools,
        spoken=task.prompt.spoken,
        system=task.prompt.system,
        sampling=task.sampling,
        seed=0,
        labels=_labels(task, sample, groups, one.presentation),
        patch=_patching(task, filled),
    )


def _before(task: Task, filled: Mapping[str, Any]) -> tuple[Exchange, ...]:
    """Return the turns before the prompt, without their answers; the media belong to the first."""
    said = [_fill(text, filled) for text in task.prompt.before]
    return tuple(Exchange(text=text, n_media=0 if turn else len(task.media)) for turn, text in enumerate(said))


def _turns_before(request: Request) -> Iterator[Request]:
    """Yield the requests, without their keys, whose answers come before a request of a dialogue."""
    declared = request.task.partition("@")[0]
    for number, turn in enumerate(request.before, start=1):
        first = number == 1
        yield replace(
            request,
            text=turn.text,
            before=request.before[: number - 1],
            task=declared if first else f"{declared}@{TURN}{number}",
            condition=_first_condition(request) if first else f"{TURN}{number}",
        )


def _first_condition(request: Request) -> str:
    """Return the declared condition of the task that a turn belongs to: what its first turn sends."""
    return request.media[0].kind if request.media else "text"


def _with_answers(request: Request, answers: Sequence[str]) -> Request:
    """Return the request of a turn with the answers that were given before it."""
    turns = zip(request.before, answers, strict=True)
    return replace(request, before=tuple(replace(turn, answer=answer) for turn, answer in turns))


def _labels(task: Task, sample: Sample, groups: tuple[str, ...], presentation: Mapping[str, str]) -> Labels:
    """Return what a task says of a sample: its group among the task's `groups`, and the rest of its design."""
    kept = {column: str(sample.columns[column]) for column in task.metadata if sample.columns[column] is not None}
    return Labels(
        group=_label(sample, task.group) or "",
        groups=groups,
        cluster=_text(sample, (task.cluster,)),
        stratum=_text(sample, task.strata),
        block=_text(sample, task.blocks),
        item=_text(sample, task.items),
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
