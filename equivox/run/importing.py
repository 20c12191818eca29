"""Make a run of responses from elsewhere: each row of a table is the response to one request.

A row is matched to a sample of the task's corpus by `sample_id`, or by columns that identify samples. If no corpus is
named and the rows have all columns that the task needs, the samples are made from the rows. A request without a row is
a failed response, which is counted. Nothing is written before every row has its sample.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from equivox.core.errors import RequestError
from equivox.core.hashing import digest
from equivox.core.progress import Progress, no_progress
from equivox.core.requests import EngineIdentity, Request, Response
from equivox.core.scores import Score
from equivox.core.task import Task
from equivox.core.task_checks import refuse_unable
from equivox.core.variants import SHUFFLED, asks_nothing, declared_name
from equivox.dataset_builders.corpus import Corpus
from equivox.engines.function import RecordedEngine
from equivox.run.generating import IMPORTED, count_failures
from equivox.run.pipeline import execute, open_corpora
from equivox.run.plan import samples_of
from equivox.run.response_table import SAMPLE, Table, described_corpora, lacking
from equivox.run.row_matching import Answer, Slot, match_rows
from equivox.run.spec import RunSpec

NO_ROW, NO_TEXT = "the table has no row for it", "its row has no text"
"""The errors of requests that a table does not answer."""

_MANY, _TOO_SPARSE = 100_000, 100
"""Requests from which on a table is refused that answers fewer than one of so many."""


@dataclass(frozen=True, kw_only=True)
class Imported:
    """The result of an import: the scores of the run, and the counts of rows and requests.

    Attributes
    ----------
    n_rows, n_missing
        The numbers of rows that are responses, and of requests without a row.
    described
        Whether the samples were made from the rows instead of a corpus.
    without_rows
        The tasks without rows; they are not in the run.
    """

    scores: Sequence[Score]
    n_rows: int
    n_missing: int
    described: bool
    without_rows: tuple[str, ...]


def import_responses(
    responses: Any,
    spec: RunSpec,
    *,
    columns: Mapping[str, str] | None = None,
    match: Sequence[str] = (),
    progress: Progress = no_progress,
) -> Imported:
    """Make the run `spec`, whose model is a name, from the responses in a table; annotate and score it.

    `responses` is a file (CSV, TSV, JSON, JSON lines, parquet) or a table in memory. `columns` maps our column names to
    the table's (`{"response": "narrative"}`). `match` names the columns that identify the sample of a row; without it,
    `sample_id` or else the columns of the task that are in the table. Several rows of one sample are its repeats, in
    their order or as in the column `repeat`.

    A repeated call resumes the run. Raises RequestError, before anything is written, for a table that cannot be read,
    and for rows that fit no sample or several.
    """
    table = Table.of(responses, columns or {})
    tasks = _declared(spec)
    own = described_corpora(table, tasks, match) if spec.data is None else None
    corpora = _opened(table, tasks, spec.data) if own is None else own
    slots = match_rows(table, tasks, corpora, match, spec.seed)
    repeats: dict[str, int] = {}
    for name, _, _, repeat in slots:
        repeats[name] = max(repeats.get(name, 1), repeat + 1)
    _refuse_sparse(table, tasks, corpora, slots, repeats)
    refuse_unable([task for name, task in tasks.items() if name in repeats], ["tools", "hidden states"], "import")
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
    return Imported(
        scores=scores,
        n_rows=len(slots),
        n_missing=count_failures(spec.output)[NO_ROW],
        described=own is not None,
        without_rows=tuple(name for name in tasks if name not in repeats),
    )


def _refuse_sparse(
    table: Table,
    tasks: Mapping[str, Task],
    corpora: Mapping[str, Corpus],
    slots: Mapping[Slot, Answer],
    repeats: Mapping[str, int],
) -> None:
    """Raise RequestError where the repeats of a few samples ask for very many requests that no row answers."""
    planned = sum(len(samples_of(corpora[tasks[name].data.corpus], tasks[name])) * n for name, n in repeats.items())
    if planned > _MANY and planned > _TOO_SPARSE * len(slots):
        raise RequestError(
            f"{table.name} has {max(repeats.values()):,} responses of one sample, so every sample is asked as often: "
            f"{planned:,} requests, and it has {len(slots):,} rows; check `{SAMPLE}`, or what the rows are matched by"
        )


def _engine(model: str, answers: Mapping[Slot, Answer]) -> RecordedEngine:
    """Return an engine that answers each request with its row; without one, by a failed response."""
    if not model:
        raise RequestError("`model` is empty; say which model gave the responses")
    # The task determines the presentations, so all its slots have the same columns.
    columns = {task: tuple(name for name, _ in shown) for task, _, shown, _ in answers}
    content = sorted([*map(str, slot), text or "", error or ""] for slot, (text, error) in answers.items())

    def answer(request: Request) -> Response:
        task = declared_name(request.task)
        shown = tuple((name, request.labels.metadata[name]) for name in columns.get(task, ()))
        text, error = answers.get((task, request.sample_id, shown, request.repeat), (None, NO_ROW))
        # No medium is known to have arrived when the responses were made, so none is counted.
        return Response(key=request.key, text=text, error=None if text is not None else error or NO_TEXT)

    return RecordedEngine(EngineIdentity(engine=IMPORTED, model=model, revision=digest(content)), answer)


def _declared(spec: RunSpec) -> dict[str, Task]:
    """Return the tasks as they were answered, by their names without the condition, in the order of `spec.tasks`."""
    answered = [task for task in spec.varied if not asks_nothing(task)]
    if len(answered) != len(spec.tasks):
        raise RequestError(
            f"`conditions` {', '.join(spec.conditions)}: a table holds the responses of one condition; name one, and "
            f"`{SHUFFLED}` beside it if you like"
        )
    return {declared_name(task.name): task for task in answered}


def _opened(table: Table, tasks: Mapping[str, Task], data: str | None) -> Mapping[str, Corpus]:
    try:
        return open_corpora(list(tasks.values()), data, {})
    except RequestError as error:
        if data is not None:
            raise
        told = ", ".join(dict.fromkeys(name for task in tasks.values() for name in lacking(table, task)))
        raise RequestError(
            f"{error}. Or describe the samples in {table.name}, which lacks the columns {told}"
        ) from None
