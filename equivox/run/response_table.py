"""A table of responses that were made elsewhere, and the samples that its rows describe."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from equivox.core.endings import WITHHELD, settle
from equivox.core.errors import UsageError, nearest
from equivox.core.hashing import digest
from equivox.core.reasoning import split_reasoning
from equivox.core.requests import Response
from equivox.core.samples import ENDED
from equivox.core.task import Column, Task
from equivox.dataset_builders import builders
from equivox.dataset_builders.corpus import Corpus, text_sample
from equivox.dataset_builders.tables import Columns, convert_to_columns, list_paths, refuse_large, rename_columns
from equivox.engines.completions import count, withheld
from equivox.run.presented import placeholders

SAMPLE, TASK, REPEAT, ERROR = "sample_id", "task", "repeat", "error"
RESPONSE = ("response", "text")
"""The columns that may hold the responses: the first that is there does."""


@dataclass(frozen=True)
class Table:
    """A table with the name by which messages call it, the column that holds the responses, and the responses.

    An entry with several responses is as many rows of one number. The keys of the responses are not known yet.
    """

    columns: Columns
    name: str
    response: str
    answers: Sequence[Response]
    numbers: Sequence[int]

    @classmethod
    def of(cls, given: Any, names: Mapping[str, str]) -> Table:
        """Return the table of a file, or one in memory; `names` is our name of a column → the table's.

        Raises UsageError where it has no rows or no responses, and where a response is no text.
        """
        name = Path(given).name if isinstance(given, str | Path) else "the table"
        every = rename_columns(convert_to_columns(given), names, where=name, option="--column {}=…")
        if name.lower().endswith(".xlsx"):  # which makes numbers of answers and names that look like some
            every = {
                column: [entry if isinstance(entry, str) else plain(entry) for entry in entries]
                for column, entries in every.items()
            }
        # A column without an entry says nothing, as if it were not there.
        told = {column for column, entries in every.items() if any(plain(entry) is not None for entry in entries)}
        columns = {column: entries for column, entries in every.items() if column in {*told, *RESPONSE}}
        if not columns or not next(iter(columns.values())):
            raise UsageError(f"{name} has no rows; give a row per response")
        response = next((entry for entry in RESPONSE if entry in columns), None)
        if response is None:
            raise UsageError(
                f"{name} has no column `response`; say which one holds the responses: `--column response=COLUMN`; "
                f"it has {list_paths(columns)}"
            )
        answers, numbers = [], []
        for row, entry in enumerate(columns[response], start=1):
            own = _answers(entry)
            if own is None:
                part = "give the response"
                if (parts := list_paths({response: [entry]})) != response:
                    part = f"name its part that is the response: `--column {response}=PATH`; it has {parts}"
                raise UsageError(f"{name}, row {row}: `{response}` holds {entry!r:.40}, not text; {part}")
            answers += own or [_NO_ANSWER]
            numbers += [row] * len(own or [_NO_ANSWER])
        refuse_large(name, len(columns), len(numbers))
        rows = {column: [entries[row - 1] for row in numbers] for column, entries in columns.items()}
        return cls(rows, name, response, answers, numbers)

    def __len__(self) -> int:
        return len(self.columns[self.response])

    def at(self, row: int) -> str:
        """Return where an entry stands, as messages say it."""
        return f"{self.name}, row {self.numbers[row]}"

    def cell(self, column: str, row: int) -> str | None:
        """Return an entry as text, None where it is missing or the column is not there."""
        return plain(self.columns[column][row]) if column in self.columns else None

    def answer(self, row: int) -> Response:
        """Return the response of a row, with its error and why it ended where columns say so."""
        answer = self.answers[row]
        if answer.error is None and ERROR in self.columns:
            answer = _of_error(self.columns[ERROR][row], answer)
        return settle(replace(answer, finish_reason=answer.finish_reason or self.cell(ENDED, row)))


_NO_ANSWER = Response(key="", text=None)
_NOTHING = ("nan", "NaN", "<NA>", "#N/A")
"""What libraries and spreadsheets write for a missing text, and no model does; one may answer None, N/A, or Nan."""


def _answers(entry: Any, depth: int = 8) -> list[Response] | None:
    """Return the responses in an entry: a text, lists of texts, or what a server sent; None for anything else.

    What lies deeper than `depth` lists and objects is nothing that a server sends.
    """
    if isinstance(entry, str):
        if entry.strip() in _NOTHING:
            return [_NO_ANSWER]
        text, thinking = split_reasoning(entry)
        return [Response(key="", text=text, thinking=thinking)]
    if plain(entry) is None:
        return [_NO_ANSWER]
    if hasattr(entry, "tolist"):
        entry = entry.tolist()  # pandas reads lists of parquet files as arrays
    if depth and isinstance(entry, list):
        several = [_answers(one, depth - 1) for one in entry]
        return None if None in several else [answer for own in several for answer in own or ()]
    if not depth or not isinstance(entry, Mapping):
        return None
    if ENDED in entry:
        return _of_choice(entry)
    # A completion as OpenAI's API has it stands in the body of a line of a batch file.
    body = entry.get("body", entry)
    if not isinstance(body, Mapping):
        return None
    if "choices" in body:
        found = _answers(body["choices"], depth - 1)
        usage = body.get("usage")
        tokens = count(usage.get("prompt_tokens")) if isinstance(usage, Mapping) else 0
        return found and [replace(answer, prompt_tokens=tokens or None) for answer in found]
    return [_of_error(body["error"])] if body.get("error") else None


def _of_choice(choice: Mapping[str, Any]) -> list[Response] | None:
    """Return the response in a choice of a completion; None where its content is no text."""
    message = choice["message"] if isinstance(choice.get("message"), Mapping) else {"content": choice.get("text")}
    refusal = message.get("refusal")
    found = _answers(message.get("content") or refusal or "", depth=0)
    if found is None:
        return None
    return [replace(one, finish_reason=plain(choice[ENDED])) for one in found]


def _of_error(error: Any, answer: Response = _NO_ANSWER) -> Response:
    """Return a response with the error beside it, as a service words it; withheld where the error is of a filter."""
    if withheld(error):
        return replace(answer, text=answer.text or "", finish_reason=WITHHELD)
    return replace(answer, error=plain(error.get("message") or error if isinstance(error, Mapping) else error))


def plain(value: Any) -> str | None:
    """Return an entry as text, as it is compared; None where it is missing."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, bool):
        return str(value).lower()  # as tables of samples have it
    # A column of whole numbers becomes one of floats as soon as one of them is missing.
    text = str(int(value) if isinstance(value, float) and value.is_integer() else value).strip()
    return text or None


def task_named(table: Table, row: int, tasks: Mapping[str, Task]) -> str:
    """Return the task that the column `task` names."""
    given = table.cell(TASK, row) or ""
    known = {name: name for name in tasks} | {task.name: name for name, task in tasks.items()}
    if given not in known:
        raise UsageError(
            f"{table.at(row)}: `{TASK}` is {given!r}{nearest(given, known)}; this run has "
            f"{', '.join(tasks)}: name that task too, or take the row out"
        )
    return known[given]


def needed(task: Task) -> list[str]:
    """Return the columns of its samples that scoring and annotating a task take, each once."""
    design = [*task.group, task.cluster, *task.strata, *task.blocks, *task.items]
    return list(dict.fromkeys([*design, *task.metadata, *task.data.where]))


def lacking(table: Table, task: Task) -> list[str]:
    """Return the columns that the first row would need to describe its sample."""
    record = _describe(table, 0, task)
    return [name for name in needed(task) if name not in record]


def described_corpora(table: Table, tasks: Mapping[str, Task]) -> dict[str, Corpus] | None:
    """Return the corpora that the rows describe; None where they do not have all columns.

    The rows then have the columns `sample_id` and `task`, too.
    """
    if any(task.prompt.presentations is not None for task in tasks.values()):
        return None
    # A table about a single task need not say which part of a corpus it is about.
    implied = [name for task in tasks.values() for name in task.data.where] if len(tasks) == 1 else []
    if any(name not in implied for task in tasks.values() for name in lacking(table, task)):
        return None
    owners = [_find_task(table, row, tasks) for row in range(len(table))]
    n_tasks = Counter(tasks[name].data.corpus for name in set(owners))
    members: dict[str, dict[str, Mapping[str, Column]]] = {}
    ids = []
    for row, name in enumerate(owners):
        task, number = tasks[name], table.numbers[row]
        record = _describe(table, row, task)
        sample_id = plain(record.get(SAMPLE))
        if sample_id is None and (SAMPLE in record or n_tasks[task.data.corpus] > 1):
            raise UsageError(f"{table.at(row)}: `{SAMPLE}` is missing; name the sample in every row")
        ids.append(sample_id or f"row {number}")
        columns = _sample_columns(table, row, task)
        known = members.setdefault(task.data.corpus, {}).setdefault(ids[-1], columns)
        for column in columns.keys() & known.keys():
            if known[column] != columns[column]:
                raise UsageError(
                    f"{table.at(row)}: the sample {ids[-1]!r} has {column} {columns[column]!r} here and "
                    f"{known[column]!r} in a row before; give each sample its own `{SAMPLE}`"
                )
        members[task.data.corpus][ids[-1]] = {**known, **columns}
    table.columns[SAMPLE], table.columns[TASK] = ids, list(owners)
    return {
        corpus: Corpus(
            name=corpus,
            fingerprint=digest(sorted([sample_id, dict(columns)] for sample_id, columns in samples.items())),
            samples=tuple(text_sample(sample_id, columns) for sample_id, columns in samples.items()),
        )
        for corpus, samples in members.items()
    }


def _describe(table: Table, row: int, task: Task) -> dict[str, Any]:
    """Return a row with what it implies of its sample, by the builder of the task's corpus."""
    record = {name: column[row] for name, column in table.columns.items()}
    builder = builders().get(task.data.builder or task.data.corpus)
    return record if builder is None else {**record, **builder.described(record)}


def _find_task(table: Table, row: int, tasks: Mapping[str, Task]) -> str:
    """Return the name of the task that a row is about, where the rows describe their samples."""
    if TASK in table.columns:
        return task_named(table, row, tasks)
    fitting = []
    for name, task in tasks.items():
        record = _describe(table, row, task)
        if all(plain(record.get(column, next(iter(any_of)))) in any_of for column, any_of in task.data.wanted.items()):
            fitting.append(name)
    if len(fitting) != 1:
        what = f"may be about {', '.join(fitting)}" if fitting else f"is about none of {', '.join(tasks)}"
        raise UsageError(f"{table.at(row)} {what}; say which in a column `{TASK}`")
    return fitting[0]


def _sample_columns(table: Table, row: int, task: Task) -> dict[str, Column]:
    """Return the columns of a sample that its row describes; what the prompt alone needs stays a placeholder."""
    record = _describe(table, row, task)
    columns: dict[str, Column] = {}
    for name in needed(task):
        value = plain(record.get(name))
        if value is None and name in task.data.where and name not in record:
            value = next(iter(task.data.wanted[name]))
        if value is None and (name in table.columns or name not in record):
            raise UsageError(
                f"{table.at(row)}: `{name}` is missing, which {task.name} needs; fill it in, or leave the row out"
            )
        columns[name] = value
    return {**{name: plain(record.get(name)) or f"{{{name}}}" for name in placeholders(task)}, **columns}
