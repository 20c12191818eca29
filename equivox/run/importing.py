"""Make a run of responses from elsewhere: each row of a table is the response to one request.

A row is matched to a sample of the task's corpus by `sample_id`, or by all columns that the task and the table share.
If no corpus is named and the rows have all columns that the task needs, the samples are made from the rows. A request
without a row is a failed response, which is counted. Nothing is written before every row has its sample.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from equivox.core.errors import UsageError
from equivox.core.hashing import digest
from equivox.core.notes import ErrorKind
from equivox.core.progress import Progress, no_progress
from equivox.core.requests import EngineIdentity, Request, Response
from equivox.core.scores import Score
from equivox.core.task import Task
from equivox.core.task_checks import refuse_unable
from equivox.core.variants import SHUFFLED, TEXT_ONLY, asks_nothing, declared_name
from equivox.dataset_builders.corpus import Corpus, Sample
from equivox.engines.function import RecordedEngine
from equivox.run.generating import IMPORTED, count_failure_kinds
from equivox.run.pipeline import execute, open_corpora
from equivox.run.plan import samples_of
from equivox.run.presented import placeholders, presentations_of
from equivox.run.response_table import (
    REPEAT,
    SAMPLE,
    TASK,
    Table,
    described_corpora,
    lacking,
    needed,
    plain,
    task_named,
)
from equivox.run.spec import RunSpec

Shown = tuple[tuple[str, str], ...]
"""The presentation of a sample, as far as it is in the table."""

Slot = tuple[str, str, Shown, int]
"""The request of a row: the task without its condition, the sample, its presentation, and the repeat."""


def match_rows(
    table: Table, tasks: Mapping[str, Task], corpora: Mapping[str, Corpus], seed: int
) -> dict[Slot, Response]:
    """Return the response of each row by its request; UsageError unless every row has a single request."""
    indexes = {
        name: _Index.of(table, task, corpora[task.data.corpus], seed)
        for name, task in tasks.items()
        if task.data.corpus in corpora
    }
    answers: dict[Slot, Response] = {}
    seen: Counter[tuple[str, str, Shown]] = Counter()
    for row in range(len(table)):
        chosen = [task_named(table, row, tasks)] if TASK in table.columns else list(indexes)
        fitting = [(name, sample, shown) for name in chosen for sample, shown in indexes[name].find(row)]
        if not fitting:
            raise UsageError(
                f"{table.at(row)} matches no sample of {', '.join(chosen)} by {indexes[chosen[0]].describe(row)}; "
                "correct the row or remove it"
            )
        name, sample, shown = fitting[0]
        if len(fitting) > 1:
            named = list(dict.fromkeys(name for name, _, _ in fitting))
            fix = f"say which in a column `{TASK}`" if len(named) > 1 else f"name it in a column `{SAMPLE}`"
            several = named if len(named) > 1 else [sample.sample_id for _, sample, _ in fitting]
            raise UsageError(f"{table.at(row)} may be about {', '.join(several[:3])}; {fix}")
        _refuse_other_group(table, row, tasks[name], sample)
        repeat = _repeat(table, row, seen[name, sample.sample_id, shown])
        seen[name, sample.sample_id, shown] += 1
        if (name, sample.sample_id, shown, repeat) in answers:
            raise UsageError(
                f"{table.at(row)} is the second response of {sample.sample_id!r} with `{REPEAT}` {repeat}; number the "
                "responses of a sample 0, 1, …"
            )
        answers[name, sample.sample_id, shown, repeat] = table.answer(row)
    return answers


@dataclass(frozen=True)
class _Index:
    """The samples of a task, and how each is shown, by their values in columns of a table of responses."""

    table: Table
    by: Sequence[str]
    shown: Sequence[str]
    entries: Mapping[tuple[str | None, ...], Sequence[tuple[Sample, Shown]]]

    @classmethod
    def of(cls, table: Table, task: Task, corpus: Corpus, seed: int) -> _Index:
        """Return the index by `sample_id`, or by all columns that the task needs and the table has."""
        samples = samples_of(corpus, task)
        has = [*(samples[0].columns if samples else ())]
        wanted = dict.fromkeys((*needed(task), *placeholders(task)))
        shared = [name for name in wanted if name in table.columns and name in has and name != table.response]
        by = [SAMPLE] if SAMPLE in table.columns else shared
        if not by:
            raise UsageError(
                f"{table.name} does not say which sample a row is about: it has {', '.join(table.columns)}, and a "
                f"sample of {task.name} has {', '.join([SAMPLE, *has])}; name a column by `--column {SAMPLE}=COLUMN`"
            )
        entries: dict[tuple[str | None, ...], list[tuple[Sample, Shown]]] = {}
        names: Sequence[str] = ()
        for sample in samples:
            ways = presentations_of(task, sample, seed)
            names = [name for name in sorted(ways[0]) if name in table.columns]
            shown = [tuple((name, way.get(name, "")) for name in names) for way in ways]
            if len(set(shown)) < len(ways) or (ways[0] and not names):
                raise UsageError(
                    f"{task.name} shows each sample in some way, and {table.name} does not say how; give the "
                    f"columns {', '.join(sorted(ways[0]))}"
                )
            cells = [sample.sample_id if name == SAMPLE else plain(sample.columns[name]) for name in by]
            for way in shown:
                entries.setdefault((*cells, *(value for _, value in way)), []).append((sample, way))
        return cls(table, by, names, entries)

    def find(self, row: int) -> Sequence[tuple[Sample, Shown]]:
        """Return the samples that fit a row, and how they were shown."""
        return self.entries.get(tuple(self.table.cell(name, row) for name in (*self.by, *self.shown)), ())

    def describe(self, row: int) -> str:
        """Return a row's values in the columns, in words."""
        return ", ".join(f"{name} {self.table.cell(name, row)!r:.60}" for name in (*self.by, *self.shown))


def _refuse_other_group(table: Table, row: int, task: Task, sample: Sample) -> None:
    """Raise UsageError for a row whose group or cluster is not that of its sample."""
    for column in (*task.group, task.cluster):
        stated, known = table.cell(column, row), plain(sample.columns.get(column))
        if None not in (stated, known) and stated != known:
            raise UsageError(
                f"{table.at(row)}: {column} is {stated!r}, and the sample {sample.sample_id!r}, which the row names, "
                f"has {known!r}; are the rows shifted? If the column means something else, remove it"
            )


def _repeat(table: Table, row: int, next_number: int) -> int:
    if REPEAT not in table.columns:
        return next_number
    text = table.cell(REPEAT, row) or ""
    if not text.isdecimal():
        raise UsageError(f"{table.at(row)}: `{REPEAT}` is {text!r}; number repeats 0, 1, …")
    return int(text)


NO_ROW, NO_TEXT = "the table has no row for it", "its row has no text"
"""The errors of requests that a table does not answer."""

_MANY, _TOO_SPARSE = 100_000, 100
"""Requests from which on a table is refused that answers fewer than one of so many."""


def import_responses(
    responses: Any,
    spec: RunSpec,
    *,
    columns: Mapping[str, str] | None = None,
    progress: Progress = no_progress,
) -> tuple[list[Score], list[str]]:
    """Make the run `spec`, whose model is a name, from the responses in a table; annotate and score it.

    Return the scores, and sentences about how the rows met the requests.

    `responses` is a file (CSV, TSV, JSON, JSON lines, parquet, Excel) or a table in memory. `columns` maps our names to
    the table's (`{"response": "narrative"}`). A row is matched by `sample_id`, or by all columns that the task and the
    table share. Several rows of a sample are its repeats, in their order or as in the column `repeat`.

    A repeated call resumes the run. Raises UsageError, before anything is written, for a table that cannot be read,
    for rows that fit no sample or several, and for a row whose group or cluster is not its sample's.
    """
    table = Table.of(responses, columns or {})
    tasks = _declared(spec)
    for task in tasks.values():
        if task.condition != TEXT_ONLY and table.response in placeholders(task):
            raise UsageError(
                f"{table.name}: `{table.response}` is what {task.name} asks about, not the response; say which column "
                "holds the responses: `--column response=COLUMN`"
            )
    if missing := {text for task in tasks.values() for text in task.data.missing}:
        for name in table.columns.keys() - {table.response}:
            table.columns[name] = [None if plain(cell) in missing else cell for cell in table.columns[name]]
    own = described_corpora(table, tasks) if spec.data is None else None
    corpora = _opened(table, tasks, spec.data) if own is None else own
    slots = match_rows(table, tasks, corpora, spec.seed)
    repeats: dict[str, int] = {}
    for name, _, _, repeat in slots:
        repeats[name] = max(repeats.get(name, 1), repeat + 1)
    _refuse_sparse(table, tasks, corpora, slots, repeats)
    refuse_unable([task for name, task in tasks.items() if name in repeats], ["hidden states"], "import")
    asked = [
        replace(base, sampling=replace(base.sampling, repeats=repeats[name]))
        for base, name in zip(spec.tasks, tasks, strict=True)
        if name in repeats
    ]
    scores = execute(
        replace(spec, model=f"{IMPORTED}:{spec.model}", tasks=asked),
        engine=_engine(spec.model, slots),
        corpora=dict(corpora),
        progress=progress,
    )
    unanswered = count_failure_kinds(spec.output)[ErrorKind.NO_ROW]
    told = [
        f"{len(slots):,} responses of {table.name}, "
        f"{'matched to the corpus' if own is None else 'the rows describe their samples'}"
        f"{f'; requests without a row, which count as failed: {unanswered:,}' if unanswered else ''}."
    ]
    if without := [name for name in tasks if name not in repeats]:
        told.append(f"No row is about {', '.join(without)}: not in this run.")
    if any(task.media for task in spec.tasks):
        told.append("Whether the media reached the model cannot be known of responses made elsewhere.")
    return scores, told


def _refuse_sparse(
    table: Table,
    tasks: Mapping[str, Task],
    corpora: Mapping[str, Corpus],
    slots: Mapping[Slot, Response],
    repeats: Mapping[str, int],
) -> None:
    """Raise UsageError where the repeats of a few samples ask for very many requests that no row answers."""
    planned = sum(len(samples_of(corpora[tasks[name].data.corpus], tasks[name])) * n for name, n in repeats.items())
    if planned > _MANY and planned > _TOO_SPARSE * len(slots):
        raise UsageError(
            f"{table.name} has {max(repeats.values()):,} responses of one sample, so every sample needs as many: "
            f"{planned:,} requests, and it has {len(slots):,} rows; check `{SAMPLE}`, or what the rows are matched by"
        )


def _engine(model: str, answers: Mapping[Slot, Response]) -> RecordedEngine:
    """Return an engine that answers each request with its row; without one, by a failed response."""
    if not model:
        raise UsageError("`model` is empty; name the model that gave the responses")
    # The task determines the presentations, so all its slots have the same columns.
    columns = {task: tuple(name for name, _ in shown) for task, _, shown, _ in answers}
    content = sorted(
        [*map(str, slot), own.text or "", own.error or "", *filter(None, [own.finish_reason])]
        for slot, own in answers.items()
    )

    def answer(request: Request) -> Response:
        task = declared_name(request.task)
        shown = tuple((name, request.labels.metadata[name]) for name in columns.get(task, ()))
        lacking = Response(key="", text=None, error=NO_ROW, error_kind=ErrorKind.NO_ROW)
        found = answers.get((task, request.sample_id, shown, request.repeat), lacking)
        # No medium is known to have arrived when the responses were made, so none is counted.
        return replace(found, key=request.key, error=None if found.text is not None else found.error or NO_TEXT)

    return RecordedEngine(EngineIdentity(engine=IMPORTED, model=model, revision=digest(content)), answer)


def _declared(spec: RunSpec) -> dict[str, Task]:
    """Return the tasks as they were answered, by their names without the condition, in the order of `spec.tasks`."""
    answered = [task for task in spec.varied if not asks_nothing(task)]
    if len(answered) != len(spec.tasks):
        raise UsageError(
            f"`conditions` {', '.join(spec.conditions)}: a table holds the responses of one condition; name one, and "
            f"`{SHUFFLED}` beside it if you like"
        )
    return {declared_name(task.name): task for task in answered}


def _opened(table: Table, tasks: Mapping[str, Task], data: str | None) -> Mapping[str, Corpus]:
    try:
        return open_corpora(list(tasks.values()), data, {})
    except UsageError as error:
        if data is not None:
            raise
        told = ", ".join(dict.fromkeys(name for task in tasks.values() for name in lacking(table, task)))
        raise UsageError(f"{error}. Or describe the samples in {table.name}, which lacks the columns {told}") from None
