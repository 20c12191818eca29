"""A run: plan → generate → annotate → score, each stage from files on disk, each resumable.

RUN/manifest.json   which run this is, and with what it was made
RUN/plan.parquet    every request with its group, cluster and stratum
RUN/responses/      what the model answered, as it came
RUN/annotations/A/  what annotator A read in each response
RUN/scores.json     the scores with their evidence
RUN/tasks/          copies of the task files of one's own
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from equivox.annotate import Annotator, Job, annotation_key, open_annotator
from equivox.corpus import Corpus, open_corpus
from equivox.engines import Engine, Request, Response, open_engine
from equivox.errors import RequestError, RunError
from equivox.manifest import (
    differences,
    new_manifest,
    read_manifest,
    run_identity,
    write_manifest,
)
from equivox.plan import Plan, PlannedRequest, make_plan
from equivox.registry import builtin_tasks, resolve_tasks
from equivox.scores import Row, Score, ScoringOptions, ScoringTable
from equivox.store import (
    Store,
    annotation_schema,
    plan_schema,
    response_schema,
    write_table,
    write_text,
)
from equivox.task import Task

Progress = Callable[[str, int, int], None]
"""Called with the stage's name, how much is done and how much there is."""


DEFAULT_OPTIONS = ScoringOptions()


def no_progress(stage: str, done: int, total: int) -> None:
    """Show nothing."""


@dataclass(frozen=True, kw_only=True)
class RunSpec:
    """What was asked for on the command line."""

    model: str
    tasks: str
    output: Path
    data: str | None = None
    limit: int | None = None
    seed: int = 0
    annotator: str = "rules"
    options: ScoringOptions = DEFAULT_OPTIONS
    retry_failed: bool = False


def execute(
    spec: RunSpec, *, corpora: dict[str, Corpus] | None = None, progress: Progress = no_progress
) -> list[Score]:
    """Run or resume `spec` and return its scores; everything is on disk when this returns.

    `corpora` is a cache of opened corpora that several runs may share. Raises RequestError before anything is written
    when the request is wrong, RunError when a run cannot go on.
    """
    if spec.limit is not None and spec.limit < 1:
        raise RequestError(f"`limit` must be at least 1, got {spec.limit}; leave it out to use every item")
    tasks = resolve_tasks(spec.tasks)
    _check_output(spec.output)
    annotator = open_annotator(spec.annotator)
    annotator.check(tasks)
    engine = open_engine(spec.model, tasks)
    try:
        opened = _open_corpora(tasks, spec.data, {} if corpora is None else corpora)
        plan = make_plan(tasks, opened, engine.identity, limit=spec.limit, seed=spec.seed)
        engine.check([planned.request for planned in plan.requests])
        identity = run_identity(engine=engine.identity, tasks=tasks, corpora=opened, limit=spec.limit, seed=spec.seed)
        with _writing(spec.output):
            _begin(spec, identity, plan, tasks)
            generate(spec.output, plan, engine, retry_failed=spec.retry_failed, progress=progress)
            annotate(spec.output, tasks, annotator, progress=progress)
            return score(spec.output, tasks, annotator, spec.options, progress=progress)
    finally:
        engine.close()


def rescore(
    folder: Path,
    *,
    annotator: str = "rules",
    options: ScoringOptions = DEFAULT_OPTIONS,
    progress: Progress = no_progress,
) -> list[Score]:
    """Recompute every score of the run in `folder` from its stored responses and annotations; no engine is opened.

    Responses that `annotator` has not read yet, or whose reading no longer fits the task, are read first.
    """
    tasks = run_tasks(folder)
    reader = open_annotator(annotator)
    reader.check(tasks)
    with _writing(folder):
        annotate(folder, tasks, reader, progress=progress)
        return score(folder, tasks, reader, options, progress=progress)


def run_tasks(folder: Path) -> list[Task]:
    """Return the tasks of the run in `folder`; RequestError when this version declares one of them otherwise."""
    manifest = read_manifest(folder)
    known = dict(builtin_tasks())
    for file in sorted((folder / "tasks").glob("*.y*ml")):
        known |= {task.name: task for task in resolve_tasks(str(file))}
    tasks = []
    for name, fingerprint in manifest["identity"]["tasks"].items():
        task = known.get(name)
        if task is None or task.fingerprint != fingerprint:
            raise RequestError(
                f"{folder} was made with another {name} than this version has "
                f"({'no such task' if task is None else f'version {task.version}'} here); "
                f"score it with equivox {manifest['equivox']}"
            )
        tasks.append(task)
    return tasks


def read_scores(folder: Path) -> list[Score]:
    """Return the scores that were last computed for the run in `folder`."""
    try:
        document = json.loads((folder / "scores.json").read_text("utf-8"))
    except OSError:
        raise RequestError(f"{folder} has no scores.json; compute it with `equivox score {folder}`") from None
    return [Score.from_dict(record) for record in document["scores"]]


def count_failures(folder: Path) -> Counter[str]:
    """Count the stored failed responses of the run in `folder` by their errors."""
    return Counter(record["error"] for record in _responses(folder).values() if record["error"] is not None)


def generate(
    folder: Path, plan: Plan, engine: Engine, *, retry_failed: bool = False, progress: Progress = no_progress
) -> None:
    """Have `engine` answer what the store lacks; each response is stored as it finishes.

    An item whose media cannot be used is stored as a failed response and never sent. Raises RunError when the engine
    did not use the media it was given: such answers say nothing about the person.
    """
    with Store(folder / "responses", response_schema()) as store:
        done = (
            {record["key"] for record in store.records() if record["error"] is None} if retry_failed else store.keys()
        )
        wanted = {planned.request.key: planned for planned in plan.requests}
        pending = {key: planned for key, planned in wanted.items() if key not in done}
        finished = len(wanted) - len(pending)
        progress("generate", finished, len(wanted))
        unanswered = set(pending)
        for response in _answers(pending.values(), engine):
            if response.key not in unanswered:
                raise RunError(f"{engine.identity.model} answered a request that was not made ({response.key[:12]})")
            _check_arrival(pending[response.key].request, response, engine)
            unanswered.remove(response.key)
            store.append(vars(response))
            finished += 1
            progress("generate", finished, len(wanted))
        for key in sorted(unanswered):
            store.append(vars(Response(key=key, text=None, error="the engine gave no response")))
        store.flush()
        store.compact()


def _answers(pending: Iterable[PlannedRequest], engine: Engine) -> Iterator[Response]:
    sendable = []
    for planned in pending:
        if planned.problem is None:
            sendable.append(planned.request)
        else:
            yield Response(key=planned.request.key, text=None, error=f"unusable media: {planned.problem}")
    yield from engine.generate(sendable)


def _check_arrival(request: Request, response: Response, engine: Engine) -> None:
    if response.error is None and request.media and response.media_items < len(request.media):
        kinds = " and ".join(sorted({part.kind for part in request.media}))
        raise RunError(
            f"{engine.identity.model} used {response.media_items} of {len(request.media)} media items of "
            f"{request.item_id}: the {kinds} did not arrive, so nothing is scored; "
            f"use a model and an engine that take {kinds}"
        )


def annotate(folder: Path, tasks: Sequence[Task], annotator: Annotator, *, progress: Progress = no_progress) -> None:
    """Have `annotator` read every stored response that it has not read yet."""
    by_name = {task.name: task for task in tasks}
    texts = {record["key"]: record["text"] for record in _responses(folder).values() if record["text"] is not None}
    with Store(folder / "annotations" / annotator.identity.name, annotation_schema()) as store:
        done = store.keys()
        jobs = []
        for row in _plan_rows(folder):
            text = texts.get(row["key"])
            if text is None:
                continue
            task = by_name[row["task"]]
            key = annotation_key(annotator.identity, task, row["key"], text)
            if key not in done:
                done.add(key)
                jobs.append(Job(key=key, response_key=row["key"], task=task, text=text))
        progress("annotate", 0, len(jobs))
        for number, annotation in enumerate(annotator.annotate(jobs), start=1):
            store.append(annotation.as_record())
            progress("annotate", number, len(jobs))
        store.flush()
        store.compact()


def scoring_rows(folder: Path, tasks: Sequence[Task], annotator: Annotator) -> dict[str, list[Row]]:
    """Return, for each task, one row per planned request with what became of it."""
    by_name = {task.name: task for task in tasks}
    responses = _responses(folder)
    annotations = {
        record["key"]: record
        for record in Store(folder / "annotations" / annotator.identity.name, annotation_schema()).records()
    }
    rows: dict[str, list[Row]] = {task.name: [] for task in tasks}
    for planned in _plan_rows(folder):
        response = responses.get(planned["key"])
        status, values = "missing", {}
        if response is not None and response["text"] is None:
            status = "failed"
        elif response is not None:
            task = by_name[planned["task"]]
            key = annotation_key(annotator.identity, task, planned["key"], response["text"])
            annotation = annotations.get(key)
            status = annotation["status"] if annotation else "unparsed"
            values = _by_attribute(annotation["values"]) if annotation else {}
        rows[planned["task"]].append(
            Row(
                group=planned["group"],
                cluster=planned["cluster"],
                stratum=planned["stratum"],
                status=status,
                values=values,
            )
        )
    return rows


def score(
    folder: Path,
    tasks: Sequence[Task],
    annotator: Annotator,
    options: ScoringOptions,
    *,
    progress: Progress = no_progress,
) -> list[Score]:
    """Compute all scores of the run in `folder`, write `scores.json`, and return them."""
    from equivox.families import with_q

    rows = scoring_rows(folder, tasks, annotator)
    scores: list[Score] = []
    progress("score", 0, len(tasks))
    for number, task in enumerate(tasks, start=1):
        scores += task.scorer(task, ScoringTable(rows[task.name], options))
        progress("score", number, len(tasks))
    scores = with_q(scores)
    document = {
        "annotator": annotator.identity.as_dict(),
        "options": vars(options),
        "scores": [entry.as_dict() for entry in scores],
    }
    write_text(folder / "scores.json", json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
    return scores


def _by_attribute(values: Sequence[Mapping[str, str]]) -> dict[str, tuple[str, ...]]:
    grouped: dict[str, tuple[str, ...]] = {}
    for value in values:
        grouped[value["attribute"]] = (*grouped.get(value["attribute"], ()), value["value"])
    return grouped


def _responses(folder: Path) -> dict[str, dict[str, Any]]:
    return {record["key"]: record for record in Store(folder / "responses", response_schema()).records()}


def _plan_rows(folder: Path) -> list[dict[str, Any]]:
    import pyarrow.parquet as pq

    path = folder / "plan.parquet"
    if not path.is_file():
        raise RequestError(f"{folder} has no plan.parquet: the run was stopped before it began; run it again")
    return list(pq.read_table(path).to_pylist())


def _open_corpora(tasks: Sequence[Task], data: str | None, cache: dict[str, Corpus]) -> dict[str, Corpus]:
    for task in tasks:
        if task.data.corpus not in cache:
            cache[task.data.corpus] = open_corpus(task.data, data)
    return {task.data.corpus: cache[task.data.corpus] for task in tasks}


def _check_output(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise RequestError(f"`output` {folder} is a file; name a folder")
    if folder.is_dir() and not (folder / "manifest.json").exists() and any(_visible(folder)):
        raise RequestError(f"`output` {folder} holds other files and no run; name a new or empty folder")


def _visible(folder: Path) -> Iterator[Path]:
    return (entry for entry in folder.iterdir() if not entry.name.startswith("."))


@contextmanager
def _writing(folder: Path) -> Iterator[None]:
    from filelock import FileLock, Timeout

    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder / ".lock", timeout=0)
        lock.acquire()
    except Timeout:
        raise RequestError(f"another process is writing {folder}; wait for it or name another folder") from None
    except OSError as error:
        raise RequestError(f"cannot write to {folder}: {error.strerror or error}; name another folder") from None
    try:
        yield
    finally:
        lock.release()


def _begin(spec: RunSpec, identity: Mapping[str, Any], plan: Plan, tasks: Sequence[Task]) -> None:
    import pyarrow as pa

    folder = spec.output
    # Through JSON, so that a stored identity and a fresh one compare alike (tuples become lists).
    fresh = json.loads(json.dumps(identity))
    if (folder / "manifest.json").exists():
        found = differences(read_manifest(folder)["identity"], fresh)
        if found:
            raise RequestError(
                f"`output` {folder} holds another run ({'; '.join(found[:4])}); "
                "repeat its arguments to resume it, or name another folder"
            )
    else:
        # The manifest comes first: it tells a folder with a run that was killed here from a folder with other files.
        left_out = {task.data.corpus: plan.left_out[task.name] for task in tasks if plan.left_out[task.name]}
        files = [file.name for file in _task_files(spec)]
        manifest = new_manifest(fresh, model=spec.model, data=spec.data, task_files=files)
        write_manifest(folder, manifest | {"items_without_group": left_out})
    for file in _task_files(spec):
        write_text(folder / "tasks" / file.name, file.read_text("utf-8"))
    if not (folder / "plan.parquet").exists():
        write_table(folder / "plan.parquet", pa.Table.from_pylist(plan.table(), schema=plan_schema()))


def _task_files(spec: RunSpec) -> list[Path]:
    entries = [part.strip() for part in spec.tasks.split(",")]
    return [Path(entry) for entry in entries if entry.endswith((".yaml", ".yml"))]
