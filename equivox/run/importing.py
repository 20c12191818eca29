"""Make a run of responses from elsewhere: each row of a table is the response to one request.

A row is matched to a sample of the task's corpus by `sample_id`, or by columns that identify samples. If no corpus is
named and the rows have all columns that the task needs, the samples are made from the rows. A request without a row is
a failed response, which is counted. Nothing is written before every row has its sample.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

from equivox.core.errors import UsageError, nearest
from equivox.core.hashing import digest
from equivox.core.progress import Progress, no_progress
from equivox.core.requests import EngineIdentity, Request, Response
from equivox.core.scores import Score
from equivox.core.task import Task
from equivox.core.task_checks import refuse_unable
from equivox.core.variants import SHUFFLED, TEXT_ONLY, asks_nothing, declared_name
from equivox.dataset_builders.corpus import Corpus, Sample
from equivox.engines.function import RecordedEngine
from equivox.run.generating import IMPORTED, count_failures
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
    table: Table, tasks: Mapping[str, Task], corpora: Mapping[str, Corpus], match: Sequence[str], seed: int
) -> dict[Slot, Response]:
    """Return the response of each row by its request; UsageError unless every row has a sample."""
    finders = {
        name: _Finder.of(table, task, corpora, match) for name, task in tasks.items() if task.data.corpus in corpora
    }
    found: dict[Slot, Response] = {}
    seen: Counter[tuple[str, str, Shown]] = Counter()
    unmatched: list[int] = []
    for row in range(len(table)):
        chosen = [task_named(table, row, tasks)] if TASK in table.columns else list(finders)
        fitting = [(name, sample) for name in chosen for sample in finders[name].samples(row)]
        if not fitting:
            unmatched.append(row)
            continue
        if len(fitting) > 1:
            several = list(dict.fromkeys(name for name, _ in fitting))
            fix = f"say which in a column `{TASK}`" if len(several) > 1 else "match by more columns (`--match`)"
            one = several if len(several) > 1 else [sample.sample_id for _, sample in fitting]
            raise UsageError(f"{table.at(row)} may be about {', '.join(one[:3])}; {fix}")
        name, sample = fitting[0]
        for column in (*tasks[name].group, tasks[name].cluster):
            told, known = table.cell(column, row), plain(sample.columns.get(column))
            if None not in (told, known) and told != known:
                raise UsageError(
                    f"{table.at(row)}: {column} is {told!r}, and the sample {sample.sample_id!r}, "
                    f"which the row names, has {known!r}; are the rows shifted? "
                    "If the column means something else, remove it"
                )
        shown = _shown(table, row, tasks[name], sample, seed)
        place = (name, sample.sample_id, shown)
        repeat = _repeat(table, row, seen[place])
        seen[place] += 1
        if (*place, repeat) in found:
            raise UsageError(
                f"{table.at(row)} is the second response of {sample.sample_id!r} with `{REPEAT}` "
                f"{repeat}; number the responses of a sample 0, 1, …"
            )
        found[*place, repeat] = table.answer(row)
    if unmatched:
        first = next(iter(finders.values()))
        raise UsageError(
            f"{len(unmatched):,} of {len(table):,} rows of {table.name} match no sample of {', '.join(tasks)} by "
            f"{', '.join(first.by)}, such as row {table.numbers[unmatched[0]]} ({first.told(unmatched[0])}); correct "
            "or remove them, or match by other columns (`--match`)"
        )
    return found


@dataclass(frozen=True)
class _Finder:
    """Finder of the sample of a row in one task, by their common columns."""

    table: Table
    by: tuple[str, ...]
    index: Mapping[tuple[str | None, ...], Sequence[Sample]]

    @classmethod
    def of(cls, table: Table, task: Task, corpora: Mapping[str, Corpus], match: Sequence[str]) -> _Finder:
        samples = samples_of(corpora[task.data.corpus], task)
        has = [*(samples[0].columns if samples else ())]
        usable = [name for name in table.columns if name in has and name != table.response]
        by = tuple(match) or ((SAMPLE,) if SAMPLE in table.columns else ())
        for name in by:
            if name not in table.columns or (name != SAMPLE and name not in has):
                where = table.name if name not in table.columns else f"the corpus of {task.name}"
                known = [*table.columns] if name not in table.columns else [SAMPLE, *has]
                raise UsageError(
                    f"`match` names the column {name!r}, which {where} lacks{nearest(name, known)}; it has "
                    f"{', '.join(known)}"
                )
        if not by:
            wanted = {*needed(task), *placeholders(task)}
            by = tuple(name for name in usable if name in wanted)
            # An `id` may be that of the answer: the rows are named by it where nothing else tells them apart.
            if "id" in usable and "id" not in by and max(map(len, _indexed(samples, by).values())) > 1:
                by = ("id", *by)
        if not by:
            raise UsageError(
                f"{table.name} does not say which sample a row is about: it has {', '.join(table.columns)}, and a "
                f"sample of {task.name} has {', '.join([SAMPLE, *has])}; name a column by `--column {SAMPLE}=COLUMN`"
            )
        return cls(table, by, _indexed(samples, by))

    def samples(self, row: int) -> Sequence[Sample]:
        """Return the samples that fit a row."""
        cells = tuple(self.table.cell(name, row) for name in self.by)
        if found := self.index.get(cells):
            return found
        # A sample with a file can be named by it: folder/nep_1.png is nep_1.
        pairs = zip(self.by, cells, strict=True)
        stems = (PurePosixPath(cell).stem if name == SAMPLE and cell else cell for name, cell in pairs)
        return self.index.get(tuple(stems), ())

    def told(self, row: int) -> str:
        """Return a row's values in the columns, in words."""
        return ", ".join(f"{name} {self.table.cell(name, row)!r:.60}" for name in self.by)


def _indexed(samples: Iterable[Sample], by: Sequence[str]) -> Mapping[tuple[str | None, ...], Sequence[Sample]]:
    """Return the samples by their values in columns."""
    index: dict[tuple[str | None, ...], list[Sample]] = {}
    for sample in samples:
        key = tuple(sample.sample_id if name == SAMPLE else plain(sample.columns[name]) for name in by)
        index.setdefault(key, []).append(sample)
    return index


def _shown(table: Table, row: int, task: Task, sample: Sample, seed: int) -> Shown:
    """Return the presentation of a row's sample; UsageError if the task does not have it."""
    if task.prompt.presentations is None:
        return ()
    ways = presentations_of(task, sample, seed)
    names = sorted({name for way in ways for name in way})
    given = [name for name in names if name in table.columns]
    told = tuple((name, table.cell(name, row) or "") for name in given)
    offered = [tuple((name, way[name]) for name in given) for way in ways]
    if len(set(offered)) < len(ways) or not given:
        raise UsageError(
            f"{task.name} presents a sample in {len(ways)} way{'s' * (len(ways) > 1)}, and {table.name} does not say "
            f"how; give the columns {', '.join(names)}"
        )
    if told not in offered:
        raise UsageError(
            f"{table.at(row)}: {task.name} does not present {sample.sample_id!r} with "
            f"{', '.join(f'{name} {value!r:.60}' for name, value in told)}; it does with "
            f"{', '.join(f'{name} {value!r:.60}' for name, value in offered[0])}"
        )
    return told


def _repeat(table: Table, row: int, next_one: int) -> int:
    if REPEAT not in table.columns:
        return next_one
    given = table.cell(REPEAT, row) or ""
    if not given.isdecimal():
        raise UsageError(f"{table.at(row)}: `{REPEAT}` is {given!r}; number repeats 0, 1, …")
    return int(given)


NO_ROW, NO_TEXT = "the table has no row for it", "its row has no text"
"""The errors of requests that a table does not answer."""

_MANY, _TOO_SPARSE = 100_000, 100
"""Requests from which on a table is refused that answers fewer than one of so many."""


def import_responses(
    responses: Any,
    spec: RunSpec,
    *,
    columns: Mapping[str, str] | None = None,
    match: Sequence[str] = (),
    progress: Progress = no_progress,
) -> tuple[list[Score], list[str]]:
    """Make the run `spec`, whose model is a name, from the responses in a table; annotate and score it.

    Return the scores, and sentences about how the rows met the requests.

    `responses` is a file (CSV, TSV, JSON, JSON lines, parquet, Excel) or a table in memory. `columns` maps our names to
    the table's (`{"response": "narrative"}`). `match` names the columns that identify the sample of a row; without it,
    `sample_id` or else the columns of the task that are in the table. Several rows of one sample are its repeats, in
    their order or as in the column `repeat`.

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
    own = described_corpora(table, tasks, match) if spec.data is None else None
    corpora = _opened(table, tasks, spec.data) if own is None else own
    if SAMPLE not in table.columns and not match and all(_asked_of(responses, task) for task in tasks.values()):
        samples = [sample.sample_id for corpus in corpora.values() for sample in corpus.samples]
        if len(samples) == table.numbers[-1]:
            table.columns[SAMPLE] = [samples[number - 1] for number in table.numbers]
    slots = match_rows(table, tasks, corpora, match, spec.seed)
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
    unanswered = count_failures(spec.output)[NO_ROW]
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
        found = answers.get((task, request.sample_id, shown, request.repeat), Response(key="", text=None, error=NO_ROW))
        # No medium is known to have arrived when the responses were made, so none is counted.
        return replace(found, key=request.key, error=None if found.text is not None else found.error or NO_TEXT)

    return RecordedEngine(EngineIdentity(engine=IMPORTED, model=model, revision=digest(content)), answer)


def _asked_of(responses: Any, task: Task) -> bool:
    """Return whether a file of responses is the very table that a task asks about, a row for each of its samples."""
    own = task.data.table if task.data.kind == "text" and not task.data.swap else None
    return own is not None and isinstance(responses, str | Path) and Path(responses).samefile(own)


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
