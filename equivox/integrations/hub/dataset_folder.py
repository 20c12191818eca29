"""A corpus as a data set to share: a folder for `datasets.load_dataset`, with one configuration per task.

README.md        the card, with configurations, columns, licence and, for restricted corpora, the gate's text
eval.yaml        the tasks, in the Hub's format for a benchmark's repository
croissant.json   the responsible-AI fields, in the format Croissant
equivox.json     content hashes: of the corpus, of each file; versions
data/<set>/      parquet shards with the recordings or images inside, shared by the tasks that use the same rows
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from equivox.core.errors import RunError, StorageError, UsageError, nearest
from equivox.core.foreign_files import refuse_unusable_folder
from equivox.core.lazy import datasets
from equivox.core.media import sha256
from equivox.core.plain import split_by
from equivox.core.plugins import told_in_one_line
from equivox.core.progress import Event, Progress, no_progress
from equivox.core.scores import NAN, Score
from equivox.core.task import Task, digest
from equivox.core.version import __version__
from equivox.dataset_builders import builders
from equivox.dataset_builders.base import Column, CorpusFacts, published_facts
from equivox.dataset_builders.corpus import Corpus, Sample, build_folder, builder_of, read_build
from equivox.dataset_builders.opening import open_corpus
from equivox.dataset_builders.parquet import whole_folder, write_shards
from equivox.integrations.hub.dataset_card import CROISSANT, config_name, croissant, dataset_card, eval_file
from equivox.run.plan import samples_of
from equivox.tasks.registry import builtin_tasks, resolve_tasks

SPLIT = "test"
RECORD = "equivox.json"
CARD = "README.md"
EVAL = "eval.yaml"

_IN_THE_PACKAGE = ("badf", "profiles")
"""The corpora that are part of the package."""


@dataclass(frozen=True)
class RowSet:
    """Rows that several tasks share: their configurations refer to the same files."""

    name: str
    tasks: tuple[Task, ...]
    samples: tuple[Sample, ...]


def scalar(task: Task, score: Score) -> float:
    """Return the number that is submitted for a score; NaN if the score is undefined."""
    measure = task.metric.by_name[score.metric]
    if not score.defined or measure.published is None:
        return NAN
    with told_in_one_line(f"`published` of {measure.name}, on {task.name},"):
        return float(measure.published(score)) + 0.0  # no -0.0


def corpus_tasks(name: str) -> list[Task]:
    """Return the tasks on the corpus `name` or on its parts, or those of a task file; UsageError for other names."""
    if name.endswith((".yaml", ".yml")):
        return resolve_tasks(name)
    # Tasks with stand-ins for tools are for simulated models; those without a scalar have nothing to submit.
    tasks = [
        task
        for task in builtin_tasks().values()
        if source_corpus(task) == name and "standin" not in task.family
        if any(measure.published for measure in task.metric.measures)
    ]
    if not tasks:
        known = sorted({source_corpus(task) for task in builtin_tasks().values()})
        raise UsageError(
            f"no task reads a corpus {name!r}{nearest(name, known)}; known: {', '.join(known)}, a task file, or a run"
        )
    return tasks


def source_corpus(task: Task) -> str:
    """Return the name of the corpus that is built: `genres` for a task on its part `genres_cs`."""
    corpus = task.data.corpus
    return next((name for name in builders() if corpus.startswith(f"{name}_") and task.data.table is None), corpus)


def write_dataset(
    name: str, data: str | Path | None, output: Path, *, repo: str, progress: Progress = no_progress
) -> tuple[dict[str, int], CorpusFacts]:
    """Write the corpus `name`, found through `data`, to the folder `output`, whole or not at all.

    Returns the number of rows of each configuration, and the facts about the corpus. Raises UsageError if `output`
    contains anything that was not written by this function.
    """
    tasks = corpus_tasks(name)
    corpora = {task.data.corpus: open_corpus(task.data, data) for task in tasks}
    facts = corpus_facts(tasks[0], data)
    with folder_being_written(output) as partial:
        sets = [
            rows
            for corpus in corpora.values()
            for rows in row_sets(corpus, [task for task in tasks if task.data.corpus == corpus.name])
        ]
        total = sum(len(rows.samples) for rows in sets)
        done = 0
        features: dict[str, datasets.Features] = {}
        files: dict[str, dict[str, Any]] = {}
        sizes: dict[str, int] = {}
        for rows in sets:
            columns, written, sizes[rows.name] = _write_rows(partial / "data" / rows.name, rows, done, total, progress)
            features[rows.name] = columns
            files |= {f"data/{rows.name}/{file}": facts_of for file, facts_of in written.items()}
            done += len(rows.samples)
        record: dict[str, Any] = {
            "equivox": __version__,
            "corpora": {corpus.name: corpus.fingerprint for corpus in corpora.values()},
            "content_hash": digest({file: entry["sha256"] for file, entry in files.items()}),
            "notes": list(dict.fromkeys(note for corpus in corpora.values() for note in corpus.notes)),
            "configs": {
                config_name(task.name): {
                    "task": task.name,
                    "version": task.version,
                    "fingerprint": task.fingerprint,
                    "rows": len(rows.samples),
                    "files": f"data/{rows.name}",
                }
                for rows in sets
                for task in rows.tasks
            },
            "files": files,
        }
        (partial / RECORD).write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", "utf-8")
        (partial / CARD).write_text(dataset_card(repo, facts, sets, features, sizes, record), "utf-8")
        (partial / EVAL).write_text(eval_file(facts.title, tasks), "utf-8")
        (partial / CROISSANT).write_text(croissant(repo, facts, sets, record), "utf-8")
    return {config_name(task.name): len(rows.samples) for rows in sets for task in rows.tasks}, facts


def row_sets(corpus: Corpus, tasks: Sequence[Task]) -> list[RowSet]:
    """Group tasks by the rows that they use."""
    chosen = {task.name: tuple(samples_of(corpus, task)) for task in tasks}
    if empty := next((name for name, samples in chosen.items() if not samples), None):
        raise UsageError(f"{empty}: the corpus {corpus.name} has no sample for it; there is nothing to publish")
    found = split_by(tasks, lambda task: tuple(sample.sample_id for sample in chosen[task.name])).values()
    return [
        RowSet(corpus.name if len(found) == 1 else config_name(first.name), (first, *others), chosen[first.name])
        for first, *others in found
    ]


def corpus_facts(task: Task, data: str | Path | None) -> CorpusFacts:
    """Return the facts about the corpus of `task` from its build or its source."""
    if task.data.corpus in _IN_THE_PACKAGE:
        return published_facts(task.data.corpus)
    name = source_corpus(task)
    if task.data.kind == "text" or (task.data.table is None and name not in builders()):
        # A table of texts, or rows that a function returned: nobody states more of them than the task does.
        compared = tuple(Column(name=column, meaning="what the tasks compare") for column in task.group)
        facts = CorpusFacts(name=name, title=name, licence="not stated", language="", columns=compared)
        return facts if task.data.table is None else facts.with_file(task.data.table.parent)
    builder = builder_of(replace(task.data, corpus=name), data)
    if builder is None:
        return CorpusFacts.of(read_build(build_folder(name, data))["facts"])
    if task.data.table is not None:
        return replace(builder.facts, language="")  # a table does not state its language
    return builder.facts


def _write_rows(
    folder: Path, rows: RowSet, done: int, total: int, progress: Progress
) -> tuple[datasets.Features, dict[str, dict[str, Any]], int]:
    folder.mkdir(parents=True)
    kind = next((medium.kind for task in rows.tasks for medium in task.media), None)
    columns = _features(rows.samples, kind)

    def read() -> Iterator[dict[str, Any]]:
        for number, sample in enumerate(rows.samples, start=1):
            yield _row(sample, kind)
            progress(Event("rows", done + number, total))

    return columns, *write_shards(folder, columns, kind, read(), split=SPLIT)


def _features(samples: Sequence[Sample], kind: str | None) -> datasets.Features:
    string = datasets.Value("string")
    media = {} if kind is None else {
        kind: datasets.Audio(decode=False) if kind == "audio" else datasets.Image(decode=False),
        f"{kind}_sha256": string,
        f"{kind}_problem": string,
        **({"duration_s": datasets.Value("float64")} if kind == "audio" else {}),
    }  # fmt: skip
    types = {name: _dtype(samples, name) for name in samples[0].columns}
    return datasets.Features(
        {"sample_id": string, **media, **{name: datasets.Value(dtype) for name, dtype in types.items()}}
    )


def _dtype(samples: Sequence[Sample], column: str) -> str:
    kinds = {type(sample.columns[column]) for sample in samples} - {type(None)}
    if kinds == {int}:
        return "int64"
    return "float64" if kinds and kinds <= {int, float} else "string"


def _row(sample: Sample, kind: str | None) -> dict[str, Any]:
    row: dict[str, Any] = {"sample_id": sample.sample_id, **sample.columns}
    if kind is None:
        return row
    try:
        content = sample.load()
    except FileNotFoundError:
        content = None
    if content is not None and sha256(content) != sample.sha256:
        raise RunError(f"{sample.file_name} changed during reading; push again")
    return {
        **row,
        kind: {"bytes": content, "path": sample.file_name},
        f"{kind}_sha256": None if content is None else sample.sha256,
        f"{kind}_problem": sample.problem,
        **({"duration_s": sample.duration_s} if kind == "audio" else {}),
    }


@contextlib.contextmanager
def folder_being_written(output: Path, *, apart_from: Path | None = None) -> Iterator[Path]:
    """Yield an empty folder that becomes `output` in the end; it is deleted after an error.

    It replaces the folder of an earlier push. UsageError if `output` exists and is not from one, is or contains the
    folder `apart_from`, or if the disk refuses a write.
    """
    target = output.absolute()
    if not target.name or target.name == "..":
        raise UsageError(f"`output` {output} is not a named folder; name a new folder")
    if apart_from is not None and apart_from.resolve().is_relative_to(target.resolve()):
        raise UsageError(f"`output` {output} holds the run itself; name another folder")
    refuse_unusable_folder(output, "output")
    if output.is_dir() and any(output.iterdir()) and not (output / RECORD).is_file():
        raise UsageError(f"`output` {output} holds files that were not written here; name a new or empty folder")
    try:
        with whole_folder(target) as partial:
            yield partial
    except (StorageError, OSError) as error:
        cause = error if isinstance(error, OSError) else error.__cause__
        reason = (cause.strerror if isinstance(cause, OSError) else None) or error
        raise UsageError(f"`output`: cannot write {output} ({reason}); choose another folder") from error
