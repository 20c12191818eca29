"""The scoring stage: from what is stored to scores; no engine and no annotator is opened."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from equivox.annotate import RULES
from equivox.core.annotation import Annotator
from equivox.core.errors import RequestError
from equivox.core.progress import Progress, no_progress
from equivox.core.scores import Row, Score, Scored, ScoringOptions, ScoringTable
from equivox.core.segments import WHOLE, Part, PartReading
from equivox.core.task import Task
from equivox.run.annotating import Answers, Readings, StoredRun, ask, stored_annotator
from equivox.run.manifest import read_manifest
from equivox.run.q_values import with_q
from equivox.run.store import write_table, write_text, write_whole

if TYPE_CHECKING:
    import pyarrow as pa

    from equivox.annotate.merging import MergedValue


def scoring_rows(folder: Path, tasks: Sequence[Task], annotator: str) -> dict[str, list[Row]]:
    """Return, for each of `tasks`, one row per planned request with what became of it."""
    return {task.name: list(rows) for task, rows in rows_by_task(folder, tasks, annotator)}


def rows_by_task(folder: Path, tasks: Sequence[Task], annotator: str) -> Iterator[tuple[Task, Iterator[Row]]]:
    """Yield each of `tasks` with one row per planned request; who lets the rows go holds one task at a time."""
    stored = StoredRun(folder, stored_annotator(folder, annotator))
    for task in tasks:
        yield task, _rows(task, *stored.of_task(task))


def _rows(
    task: Task, plan: Sequence[Mapping[str, Any]], texts: Mapping[str, str | None], readings: Readings
) -> Iterator[Row]:
    for planned in plan:
        text = texts.get(planned["key"])
        parts: Mapping[str, PartReading] = {}
        status = "failed" if planned["key"] in texts else "missing"
        if text is not None:
            parts = readings.settle(task, planned, text)[0]
            status = parts[WHOLE].status if WHOLE in parts else "unparsed"
        yield Row(
            group=planned["group"],
            cluster=planned["cluster"],
            stratum=planned["stratum"],
            status=status,
            values=parts[WHOLE].values if WHOLE in parts else {},
            key=planned["key"],
            item_id=planned["item_id"],
            repeat=planned["repeat"],
            facts=planned["facts"],
            text=text,
            parts=parts,
        )


def score(
    folder: Path,
    tasks: Sequence[Task],
    annotator: str,
    options: ScoringOptions,
    *,
    others: Sequence[str] = (),
    progress: Progress = no_progress,
) -> list[Score]:
    """Compute all scores of the run in `folder` from the readings of `annotator`, store them, and return them.

    `others` names further annotators whose readings scorers may use beside.
    """
    tables, merged = scoring_tables(folder, tasks, annotator, options, others=others)
    scores: list[Score] = []
    kept: dict[str, Mapping[str, Sequence[Mapping[str, Any]]]] = {}
    progress("score", 0, len(tasks))
    for number, task in enumerate(tasks, start=1):
        scored = _scored(task.scorer(task, tables[task.name]))
        scores += scored.scores
        kept[task.name] = scored.tables
        progress("score", number, len(tasks))
    for family, members in families(tasks).items():
        if members[0].overall is not None:
            scored = _scored(members[0].overall([(task, tables[task.name]) for task in members]))
            scores += scored.scores
            kept[family] = scored.tables
    scores = with_q(scores)
    document = {
        "annotator": stored_annotator(folder, annotator).as_dict(),
        "options": vars(options),
        # Tells scores of all responses from scores of those that there were before a run went on.
        "answered": len({row.key for table in tables.values() for row in table.rows if row.text is not None}),
        "scores": [entry.as_dict() for entry in scores],
    }
    text = json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False)
    path = scores_path(folder, annotator)
    if merged:
        kept[""] = {"open_values": [vars(value) for value in merged]}
    written = set()
    for name, members_ in kept.items():
        for table, records in members_.items():
            written |= _write_table(_tables_folder(path) / _file_name(name), table, records)
    # What an earlier scoring left and this one has not made would read as its result.
    for left in _tables_folder(path).rglob("*.*"):
        if left.suffix in {".parquet", ".csv"} and left not in written:
            left.unlink()
    write_text(path, text + "\n")
    return scores


def scoring_tables(
    folder: Path, tasks: Sequence[Task], annotator: str, options: ScoringOptions, *, others: Sequence[str] = ()
) -> tuple[dict[str, ScoringTable], list[MergedValue]]:
    """Return the table of each task as read by `annotator`, and which open values count as which."""
    from equivox.annotate.merging import merge_values

    how: dict[str, Any] = {"merge": options.merge, "encoder": options.encoder, "threshold": options.merge_threshold}
    rows, merged = merge_values(scoring_rows(folder, tasks, annotator), tasks, **how)
    beside = {name: merge_values(scoring_rows(folder, tasks, name), tasks, **how)[0] for name in others}
    answered = Answers(folder, stored_annotator(folder, annotator))
    tables = {
        task.name: ScoringTable(
            rows[task.name],
            options,
            {name: rows_[task.name] for name, rows_ in beside.items()},
            answered=answered.to,
            annotator=annotator,
        )
        for task in tasks
    }
    return tables, merged


def _scored(result: Sequence[Score] | Scored) -> Scored:
    return result if isinstance(result, Scored) else Scored(result)


def families(tasks: Sequence[Task]) -> dict[str, list[Task]]:
    """Group tasks by family and arm, under the name that such a group has: `family` or `family@arm`."""
    families: dict[str, list[Task]] = {}
    for task in tasks:
        _, at, arm = task.name.partition("@")
        families.setdefault(f"{task.family}{at}{arm}", []).append(task)
    return families


def table_path(folder: Path, task: str, table: str, annotator: str | None = None) -> Path:
    """Return where a table of `task` lies in the run in `folder`, as scored by its own annotator or another."""
    path = folder / "scores.json" if annotator is None else scores_path(folder, annotator)
    return _tables_folder(path) / _file_name(task) / f"{table}.parquet"


def _tables_folder(scores: Path) -> Path:
    return scores.parent / scores.stem.replace("scores", "tables", 1)


def _file_name(name: str) -> str:
    return name.replace(":", "-")


def _write_table(folder: Path, name: str, records: Sequence[Mapping[str, Any]]) -> set[Path]:
    """Write one table of plain values as parquet, and as CSV for whoever has no tool for that; return the files."""
    write_table(folder / f"{name}.parquet", _arrow_table(records))
    write_csv(folder / f"{name}.csv", records)
    return {folder / f"{name}.parquet", *([folder / f"{name}.csv"] if records else [])}


def _arrow_table(records: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Return rows as a table with every column that any of them has; pyarrow alone would take those of the first."""
    import pyarrow as pa

    columns = dict.fromkeys(column for record in records for column in record)
    return pa.Table.from_pylist([{column: record.get(column) for column in columns} for record in records])


def write_csv(path: Path, records: Sequence[Mapping[str, Any]]) -> None:
    """Write rows of plain values as CSV, whole or not at all; nothing at all where there are no rows."""
    from pyarrow import csv

    if records:
        table = _arrow_table(records)
        write_whole(path, lambda temporary: csv.write_csv(table, temporary))


def follow_up(
    folder: Path,
    tasks: Sequence[Task],
    annotator: Annotator,
    options: ScoringOptions,
    *,
    progress: Progress = no_progress,
) -> None:
    """Ask `annotator` what the tasks ask about their findings and is not answered yet; each answer is stored.

    Rules have no opinion about findings: the annotator `rules` is not asked.
    """
    asking = [members for members in families(tasks).values() if members[0].follow_up is not None]
    if not asking or annotator.identity.name == RULES:
        return
    tables, _ = scoring_tables(folder, tasks, annotator.identity.name, options)
    parts: list[Part] = []
    for members in asking:
        if members[0].follow_up is not None:
            parts += members[0].follow_up([(task, tables[task.name]) for task in members])
    ask(folder, parts, annotator, progress=progress)


def scores_path(folder: Path, annotator: str) -> Path:
    """Return where the scores by `annotator` lie: `scores.json` for the run's own, `scores-<name>.json` for others."""
    own = read_manifest(folder)["command"]["annotator"]
    return folder / ("scores.json" if annotator == own else f"scores-{annotator}.json")


def read_scores(folder: Path, annotator: str | None = None) -> list[Score]:
    """Return the scores that were last computed for the run in `folder`, by its own annotator or another."""
    path = folder / "scores.json" if annotator is None else scores_path(folder, annotator)
    try:
        document = json.loads(path.read_text("utf-8"))
    except OSError:
        raise RequestError(f"{folder} has no {path.name}; compute it with `equivox score {folder}`") from None
    return [Score.from_dict(record) for record in document["scores"]]
