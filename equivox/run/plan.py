"""Plans: the requests of a run (sample × presentation × repeat), each with its key, its seed and its group.

A plan is a table. Requests are made from it when an engine needs them, so that a plan of a million requests is small.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Any, overload

from equivox.core.columns import refuse_alike
from equivox.core.errors import UsageError
from equivox.core.files import read_table
from equivox.core.lazy import NDArray, np, pa, pc
from equivox.core.requests import EngineIdentity, Request, request_key
from equivox.core.task import Task, digest
from equivox.core.text import NO_SPACES
from equivox.core.variants import SHUFFLED
from equivox.dataset_builders.corpus import Corpus, Sample
from equivox.run.presented import (
    Presented,
    asked_alike,
    blocks_of,
    check_clusters,
    label_of,
    labels_of,
    permuted_groups,
    placed_in,
    placeholders,
    presentations_of,
    problem_of,
    refuse_other_braces,
    spread,
    text_of,
    turns_before,
    unkeyed,
    with_answers,
)

PLAN_FILE = "plan.parquet"
COLUMN = "column."
"""What the names of the corpus's columns begin with in a plan."""
WORDS, SECONDS = "words", "seconds"
"""What a request sends: the words of its texts, and the seconds of its one recording, null without one."""
FOLLOWS = "follows"
"""The column with the keys of the turns before a request, in order; a plan without dialogues does not have it."""
DESCRIBED = [
    *("task", "sample_id", "repeat", "condition", "group", "cluster", "stratum", "block", "item"),
    *("seed", "media_sha256"),
]
"""The columns that say which request a row is, and its place in the design."""
MOST_GROUPS = 100
"""Columns of more values are no groups; a plan does not keep them."""


@dataclass(frozen=True, eq=False)
class Plan:
    """All requests of a run as a table, in the order of sending; neighbouring requests share their media.

    `left_out` counts, per task, the samples without a value of the compared dimension, which are in no group. `usable`
    says of each row whether its sample can be sent. `alike` counts, per task, the units that are asked what another one
    is.
    """

    table: pa.Table
    left_out: Mapping[str, int]
    usable: NDArray[np.bool_]
    alike: Mapping[str, int]
    _presented: Sequence[Presented] = field(repr=False)
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
        """Yield each row, as the table has it (`DESCRIBED`), and its request.

        The group differs from that of the request in the shuffled condition, and where another task asked it.
        """
        return zip(self.table.select(DESCRIBED).to_pylist(), self.requests(), strict=True)

    def problem(self, row: int) -> str | None:
        """Return why the sample of a row cannot be sent (unusable media or a missing text), or None."""
        one = self._presented[self._places[row]]
        return problem_of(one.sample, one.task, {**one.sample.columns, **one.presentation})

    def part(self, rows: Sequence[int]) -> Plan:
        """Return a plan of some of the rows; it holds their samples alone."""
        chosen = np.array(rows, dtype=np.int64)
        needed, places = np.unique(self._places[chosen], return_inverse=True)
        return replace(
            self,
            table=self.table.take(pa.array(chosen)),
            usable=self.usable[chosen],
            _presented=[self._presented[place] for place in needed],
            _places=places,
        )

    @cached_property
    def distinct(self) -> NDArray[np.int64]:
        """The first row of every key; tasks with equal requests share a response."""
        codes = self.table["key"].combine_chunks().dictionary_encode().indices.to_numpy()
        # Codes are given in the order in which keys first occur, and so are the rows in order.
        return np.unique(codes, return_index=True)[1]

    def pending(self, done: pa.Array | pa.ChunkedArray) -> NDArray[np.int64]:
        """Return the rows whose keys are not among `done`, each key once."""
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
                    last, made = place, unkeyed(self._plan._presented[place])
                request = Request(**vars(made) | dict(zip(block, cells, strict=True)))
                yield with_answers(request, [self._answers.get(key, "") for key in keys]) if keys else request


def request_seed(seed: int, sample_id: str, repeat: int, *presentation: Mapping[str, str]) -> int:
    """Return the seed of one request, from that of the run; tasks with presentations name the one that was asked."""
    return int(digest([seed, sample_id, repeat, *presentation])[:8], 16)


def _grouped(corpus: Corpus, task: Task, limit: int | None) -> tuple[list[Sample], tuple[str, ...], int]:
    """Return the samples of a task that have a group, the groups, and how many samples have none.

    UsageError for too few samples or groups, for groups that are written alike, and for a `limit` below their number.
    """
    samples = samples_of(corpus, task)
    if not samples:
        where = ", ".join(f"{column} {value}" for column, value in task.data.where.items())
        raise UsageError(f"{task.name}: the corpus {corpus.name} has no sample with {where or 'anything in it'}")
    grouped = [sample for sample in samples if label_of(sample, task.group) is not None]
    groups = tuple(sorted({label_of(sample, task.group) or "" for sample in grouped}))
    if task.group and len(groups) < 2:
        raise UsageError(
            f"{task.name} compares groups by {task.dimension!r}, but the corpus {corpus.name} has "
            f"{len(groups)} ({', '.join(groups) or 'none'}); at least two are needed"
        )
    refuse_alike(task.dimension, groups)
    if limit is not None and limit < len(groups):
        raise UsageError(
            f"`limit` {limit} is too small for the {len(groups)} groups of {task.name} ({', '.join(groups)}); "
            f"give at least {len(groups)}, or several per speaker for an interval"
        )
    check_clusters(placed_in(grouped, task), task)
    return grouped, groups, len(samples) - len(grouped)


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

    Raises UsageError if a column is missing, fewer than two groups are left, or two differ in case or space alone.
    """
    presented: list[tuple[tuple[str, int, int], Presented]] = []
    left_out: dict[str, int] = {}
    alike: dict[str, int] = {}
    positions: dict[str, dict[str, int]] = {}
    asking: dict[str, tuple[Task, tuple[str, ...], list[Sample]]] = {}
    for order, task in enumerate(tasks):
        corpus = corpora[task.data.corpus]
        corpus.require(_columns(task, corpus, seed), task=task.name)
        refuse_other_braces(task, corpus.samples[0].columns if corpus.samples else ())
        grouped, groups, left_out[task.name] = _grouped(corpus, task, limit)
        if corpus.name not in positions:
            positions[corpus.name] = {sample.sample_id: place for place, sample in enumerate(corpus.samples)}
        blocks = blocks_of(task, ((text_of(sample, (task.cluster,)), sample.columns) for sample in grouped))
        asked, asked_groups, chosen = asking.get(task.asked_as, (task, groups, grouped))
        chosen = spread(chosen, asked, limit)
        asking[task.name] = (task, groups, grouped)
        if asked is not task:
            chosen = [sample for sample in chosen if label_of(sample, task.group) is not None]
        alike[task.name] = asked_alike(task, chosen)
        group_of = permuted_groups(placed_in(chosen, task), task, seed) if task.condition == SHUFFLED else None
        presented += [
            (
                (task.data.corpus, positions[corpus.name][sample.sample_id], order),
                Presented(task, sample, presentation, groups, group_of, (asked, asked_groups), blocks),
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
    usable = [problem_of(one.sample, one.task, {**one.sample.columns, **one.presentation}) is None for one in every]
    table = _table(columns)
    for name, values in told.items():
        table = table.append_column(f"{COLUMN}{name}", values.take(places))
    return Plan(table, left_out, np.array(usable, dtype=bool)[places], alike, every, places)


def _expanded(
    presented: Sequence[tuple[Any, Presented]], kept: Sequence[str], identity: EngineIdentity, seed: int
) -> tuple[dict[str, list[Any]], NDArray[np.int64]]:
    """Return the plan's columns, a row per presentation and repeat, and the place in `presented` of each row.

    `presented` is sorted by the first members of its entries, which are equal for the presentations of one sample; each
    repeat has all of them. `kept` names the metadata.
    """
    named = (
        *("key", "task", "sample_id", "condition", "group", "cluster", "stratum", "block", "item"),
        *("repeat", "seed", "media_sha256", WORDS, SECONDS, *(f"metadata.{name}" for name in kept)),
    )
    columns: dict[str, list[Any]] = {name: [] for name in named}
    follows: list[list[str] | None] = []
    places: list[int] = []
    for _, members in groupby(range(len(presented)), key=lambda place: presented[place][0]):
        own = [(place, presented[place][1], unkeyed(presented[place][1])) for place in members]
        made = [(place, one, request, *_measure_input(request)) for place, one, request in own]
        for repeat in range(made[0][1].task.sampling.repeats):
            for place, one, request, words, seconds in made:
                shown = [dict(one.presentation)] if one.task.prompt.presentations else []
                own_seed = request_seed(seed, one.sample.sample_id, repeat, *shown)
                labels = request.labels if one.asked[0] is one.task else labels_of(one.task, one.sample, one.groups, {})
                cells = (
                    request_key(identity, request, own_seed),
                    one.task.name,
                    one.sample.sample_id,
                    one.task.condition,
                    one.group_of[labels.cluster, labels.group] if one.group_of else labels.group,
                    labels.cluster,
                    labels.stratum,
                    text_of(one.sample, one.blocks),
                    labels.item,
                    repeat,
                    own_seed,
                    [part.sha256 for part in request.media],
                    words,
                    seconds,
                    *(request.labels.metadata.get(name) for name in kept),
                )
                places.append(place)
                follows.append([request_key(identity, turn, own_seed) for turn in turns_before(request)] or None)
                for column, cell in zip(columns.values(), cells, strict=True):
                    column.append(cell)
    further = {FOLLOWS: follows} if any(follows) else {}
    return columns | further, np.array(places, dtype=np.int64)


def count_words(text: str) -> int:
    """Return a number of words that no tokenizer undercuts: letters of scripts without spaces count a quarter each.

    >>> count_words("Who is she?"), count_words("她是一名优秀的护士吗")
    (3, 2)
    """
    rest, letters = re.subn(NO_SPACES, " ", text)
    return len(rest.split()) + letters // 4  # large vocabularies have tokens of several Chinese letters, never of four


def _measure_input(request: Request) -> tuple[int, float | None]:
    """Return the number of words that a request sends, and the seconds of its recording if it has exactly one.

    A patched request sends another text in place of its words: 0.
    """
    if request.patch is not None:
        return 0, None
    texts = (request.system, *(turn.text for turn in request.before), request.text)
    durations = [part.duration_s for part in request.media if part.kind == "audio"]
    return sum(map(count_words, texts)), durations[0] if len(durations) == 1 else None


def _comparable(corpora: Iterable[Corpus], presented: Sequence[Presented]) -> dict[str, pa.DictionaryArray]:
    """Return, for each presented sample, the columns of few values by which answers can be compared."""
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
    texts = pa.list_(pa.string())
    kinds = {"repeat": pa.int32(), "seed": pa.int64(), "media_sha256": texts, FOLLOWS: texts}
    kinds |= {WORDS: pa.int32(), SECONDS: pa.float64()}
    arrays = {}
    for name, cells in columns.items():
        array = pa.array(cells, kinds.get(name, pa.string()))
        # Many rows have few distinct texts; keys do not repeat.
        arrays[name] = array if name in kinds or name == "key" else array.dictionary_encode()
    return pa.table(arrays)


def without_group(task: Task) -> str:
    """Return the name under which a manifest counts the samples that have no value of what `task` compares."""
    return f"{task.data.corpus} by {task.dimension}" if task.asked_as else task.data.corpus


def read_plan(folder: Path) -> pa.Table:
    """Return the plan of the run in `folder`; UsageError if the run was stopped before it was written."""
    try:
        return read_table(folder / PLAN_FILE)
    except FileNotFoundError:
        raise UsageError(
            f"{folder} has no {PLAN_FILE}: the run stopped before its first request; run it again"
        ) from None


def samples_of(corpus: Corpus, task: Task) -> list[Sample]:
    """Return the samples of `corpus` that the task uses; a custom table was filtered when it was opened."""
    if task.data.table is not None or not task.data.where:
        return list(corpus.samples)
    corpus.require(list(task.data.where), task=task.name)
    wanted = task.data.wanted
    return [s for s in corpus.samples if all(str(s.columns[column]) in wanted[column] for column in wanted)]


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
