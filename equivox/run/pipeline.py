"""A run: plan → generate → annotate → score, each stage from files on disk, each resumable.

RUN/manifest.json   which run this is, and with what it was made
RUN/plan.parquet    every request with its group, cluster and stratum
RUN/responses/      what the model answered, as it came
RUN/annotations/A/  what annotator A read in each response
RUN/scores.json     the scores with their evidence
RUN/usage.json      requests, tokens and cost, where a server was asked
RUN/tasks/          copies of the task files of one's own
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from equivox.annotate import Annotator, open_annotator
from equivox.core.errors import RequestError, RunError
from equivox.core.progress import Progress, no_progress
from equivox.core.scores import Score, ScoringOptions
from equivox.core.segments import check_tools
from equivox.core.task import Task
from equivox.core.variants import AS_DECLARED, DECLARED, EVERY_ARM, declared_name, vary
from equivox.dataset_builders.corpus import Corpus, open_corpus
from equivox.engines import Engine, Request, Response, open_engine
from equivox.run.annotating import annotate, annotators_of, stored_responses
from equivox.run.manifest import differences, new_manifest, read_manifest, run_identity, write_manifest
from equivox.run.plan import Plan, PlannedRequest, make_plan
from equivox.run.scoring import follow_up, score
from equivox.run.store import Store, plan_schema, response_schema, write_table, write_text
from equivox.tasks.registry import builtin_tasks, open_task, resolve_tasks

DEFAULT_OPTIONS = ScoringOptions()
PATCHING = ("reference", "transformers")
"""The engines that can replace hidden states; reference models need not."""


@dataclass(frozen=True, kw_only=True)
class RunSpec:
    """What was asked for on the command line."""

    model: str
    tasks: str
    output: Path
    data: str | None = None
    limit: int | None = None
    seed: int = 0
    group: tuple[str, ...] | None = None
    arms: tuple[str, ...] = (DECLARED,)
    sampling: str = AS_DECLARED
    annotator: str = "rules"
    options: ScoringOptions = DEFAULT_OPTIONS
    retry_failed: bool = False


def execute(
    spec: RunSpec,
    *,
    engine: Engine | None = None,
    corpora: dict[str, Corpus] | None = None,
    progress: Progress = no_progress,
) -> list[Score]:
    """Run or resume `spec` and return its scores; everything is on disk when this returns.

    `engine` is used in place of the one that `spec.model` names, and stays open. `corpora` is a cache of opened corpora
    that several runs may share. Raises RequestError before anything is written
    when the request is wrong, RunError when a run cannot go on.
    """
    if spec.limit is not None and spec.limit < 1:
        raise RequestError(f"`limit` must be at least 1, got {spec.limit}; leave it out to use every item")
    tasks = vary(resolve_tasks(spec.tasks), group=spec.group, arms=spec.arms, sampling=spec.sampling)
    _check_output(spec.output)
    given, engine = engine, engine or open_engine(spec.model, tasks)
    with closing(open_annotator(spec.annotator)) as annotator, nullcontext() if given else closing(engine):
        opened = open_corpora(tasks, spec.data, {} if corpora is None else corpora)
        refuse_patches(tasks, engine)
        plan = make_plan(tasks, opened, engine.identity, limit=spec.limit, seed=spec.seed)
        identity = run_identity(engine=engine.identity, tasks=tasks, corpora=opened, limit=spec.limit, seed=spec.seed)
        _check_same_run(spec.output, identity)
        if spec.options.merge == "embedding":
            from equivox.annotate.embedding import load_encoder

            load_encoder(spec.options.encoder)
        if pending := pending_requests(spec.output, plan, retry_failed=spec.retry_failed):
            engine.check([planned.request for planned in pending if planned.problem is None])
            annotator.check(tasks)
            check_tools(tasks)
        with writing(spec.output):
            begin(spec, identity, plan, tasks, annotator.identity.name)
            try:
                generate(spec.output, plan, engine, retry_failed=spec.retry_failed, progress=progress)
            finally:
                add_usage(spec.output, engine)
            if given is None:
                # The target's memory is free before a model that annotates is loaded.
                engine.close()
            return read_and_score(spec.output, tasks, annotator, spec.options, progress=progress)


def read_and_score(
    folder: Path,
    tasks: Sequence[Task],
    annotator: Annotator,
    options: ScoringOptions,
    *,
    others: Sequence[str] = (),
    progress: Progress = no_progress,
) -> list[Score]:
    """Have `annotator` read what of the run in `folder` it has not read yet, and score by its readings."""
    annotate(folder, tasks, annotator, progress=progress)
    follow_up(folder, tasks, annotator, options, progress=progress)
    return score(folder, tasks, annotator.identity.name, options, others=others, progress=progress)


def reread(
    folder: Path, annotator: str, options: ScoringOptions = DEFAULT_OPTIONS, *, progress: Progress = no_progress
) -> list[Score]:
    """Have another annotator read a finished run and score by its readings; those of others stay untouched."""
    tasks = run_tasks(folder)
    with closing(open_annotator(annotator)) as reader:
        reader.check(tasks)
        check_tools(tasks)
        with writing(folder):
            others = _others(folder, reader.identity.name)
            return read_and_score(folder, tasks, reader, options, others=others, progress=progress)


def rescore(
    folder: Path,
    *,
    annotator: str | None = None,
    options: ScoringOptions = DEFAULT_OPTIONS,
    progress: Progress = no_progress,
) -> list[Score]:
    """Recompute every score of the run in `folder` from its stored responses and annotations.

    `annotator` names whose readings count; None means the run's own. Neither an engine nor an annotator is opened.
    """
    tasks = run_tasks(folder)
    name = annotator or str(read_manifest(folder)["command"]["annotator"])
    with writing(folder):
        return score(folder, tasks, name, options, others=_others(folder, name), progress=progress)


def _others(folder: Path, annotator: str) -> list[str]:
    return [name for name in annotators_of(folder) if name != annotator]


def run_tasks(folder: Path) -> list[Task]:
    """Return the tasks of the run in `folder`; RequestError when this version declares one of them otherwise."""
    manifest = read_manifest(folder)
    known = dict(builtin_tasks())
    for file in sorted((folder / "tasks").glob("*.y*ml")):
        known |= {task.name: task for task in resolve_tasks(str(file))}
    sampling = manifest["command"].get("sampling", AS_DECLARED)
    for name in manifest["identity"]["tasks"]:
        if task := open_task(declared_name(name, sampling)):
            known.setdefault(task.name, task)
    group = manifest["command"]["group"]
    every = vary(
        list(known.values()),
        group=tuple(group) if group else None,
        arms=(EVERY_ARM,),
        sampling=sampling,
    )
    known = {task.name: task for task in every}
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


def read_usage(folder: Path) -> dict[str, float]:
    """Return what the run in `folder` used of a server over all its starts: requests, tokens, cost; empty if none."""
    path = folder / "usage.json"
    return dict(json.loads(path.read_text("utf-8"))) if path.is_file() else {}


def add_usage(folder: Path, engine: Engine) -> None:
    """Add what `engine` says it used, if it does, to what earlier starts of the run used."""
    usage = getattr(engine, "usage", None)
    if usage is None or not usage.requests:
        return
    before = read_usage(folder)
    total = {name: value + before.get(name, 0) for name, value in vars(usage).items()}
    write_text(folder / "usage.json", json.dumps(total, indent=1) + "\n")


def count_failures(folder: Path) -> Counter[str]:
    """Count the stored failed responses of the run in `folder` by their errors."""
    return Counter(record["error"] for record in stored_responses(folder).values() if record["error"] is not None)


def generate(
    folder: Path, plan: Plan, engine: Engine, *, retry_failed: bool = False, progress: Progress = no_progress
) -> None:
    """Have `engine` answer what the store lacks; each response is stored as it finishes.

    An item whose media cannot be used is stored as a failed response and never sent. Raises RunError when the engine
    did not use the media it was given: such answers say nothing about the person.
    """
    pending = {planned.request.key: planned for planned in pending_requests(folder, plan, retry_failed=retry_failed)}
    total = len({planned.request.key for planned in plan.requests})
    finished = total - len(pending)
    progress("generate", finished, total)
    with Store(folder / "responses", response_schema()) as store:
        unanswered = set(pending)
        for response in _answers(pending.values(), engine):
            if response.key not in unanswered:
                raise RunError(f"{engine.identity.model} answered a request that was not made ({response.key[:12]})")
            _check_arrival(pending[response.key].request, response, engine)
            unanswered.remove(response.key)
            store.append(vars(response))
            finished += 1
            progress("generate", finished, total)
        for key in sorted(unanswered):
            store.append(vars(Response(key=key, text=None, error="the engine gave no response")))
        store.flush()
        store.compact()


def pending_requests(folder: Path, plan: Plan, *, retry_failed: bool = False) -> list[PlannedRequest]:
    """Return what `plan` requests and the run in `folder` has no response to, each key once."""
    responses = stored_responses(folder).values()
    done = {record["key"] for record in responses if not (retry_failed and record["error"] is not None)}
    wanted = {planned.request.key: planned for planned in plan.requests}
    return [planned for key, planned in wanted.items() if key not in done]


def _answers(pending: Iterable[PlannedRequest], engine: Engine) -> Iterator[Response]:
    sendable = []
    for planned in pending:
        if planned.problem is None:
            sendable.append(planned.request)
        else:
            yield Response(key=planned.request.key, text=None, error=f"unusable media: {planned.problem}")
    if sendable:  # a model is not loaded for nothing
        yield from engine.generate(sendable)


def _check_arrival(request: Request, response: Response, engine: Engine) -> None:
    if response.error is None and request.media and response.media_items < len(request.media):
        kinds = " and ".join(sorted({part.kind for part in request.media}))
        raise RunError(
            f"{engine.identity.model} used {response.media_items} of {len(request.media)} media items of "
            f"{request.item_id}: the {kinds} did not arrive, so nothing is scored; "
            f"use a model and an engine that take {kinds}"
        )


def open_corpora(tasks: Sequence[Task], data: str | None, cache: dict[str, Corpus]) -> dict[str, Corpus]:
    """Return the corpora of `tasks` by name, opened once each; `cache` keeps them."""
    for task in tasks:
        if task.data.corpus not in cache:
            cache[task.data.corpus] = open_corpus(task.data, data)
    return {task.data.corpus: cache[task.data.corpus] for task in tasks}


def refuse_patches(tasks: Sequence[Task], engine: Engine) -> None:
    """Raise RequestError for a task that replaces hidden states, on an engine that has none to show."""
    patched = [task.name for task in tasks if task.patch is not None]
    if patched and engine.identity.engine not in PATCHING:
        raise RequestError(
            f"{patched[0]} replaces hidden states, which {engine.identity.engine} does not show; "
            "use `equivox transformers`, or leave the task out"
        )


def _check_output(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise RequestError(f"`output` {folder} is a file; name a folder")
    if folder.is_dir() and not (folder / "manifest.json").exists() and any(_visible(folder)):
        raise RequestError(f"`output` {folder} holds other files and no run; name a new or empty folder")


def _visible(folder: Path) -> Iterator[Path]:
    return (entry for entry in folder.iterdir() if not entry.name.startswith("."))


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Hold the run's lock; RequestError when another process has it or the folder cannot be written."""
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


def _check_same_run(folder: Path, identity: Mapping[str, Any]) -> None:
    if not (folder / "manifest.json").exists():
        return
    found = differences(read_manifest(folder)["identity"], identity)
    if found:
        raise RequestError(
            f"`output` {folder} holds another run ({'; '.join(found[:4])}); "
            "repeat its arguments to resume it, or name another folder"
        )


def begin(spec: RunSpec, identity: Mapping[str, Any], plan: Plan, tasks: Sequence[Task], annotator: str) -> None:
    """Write the manifest and the plan of a run, unless they are there; `annotator` is the name of who reads it."""
    import pyarrow as pa

    folder = spec.output
    if not (folder / "manifest.json").exists():
        # The manifest comes first: it tells a folder with a run that was killed here from a folder with other files.
        left_out = {task.data.corpus: plan.left_out[task.name] for task in tasks if plan.left_out[task.name]}
        files = [file.name for file in _task_files(spec)]
        command = {
            "model": spec.model,
            "data": spec.data,
            "task_files": files,
            "group": spec.group,
            "arms": spec.arms,
            "sampling": spec.sampling,
            "annotator": annotator,
        }
        manifest = new_manifest(identity, command)
        write_manifest(folder, manifest | {"items_without_group": left_out})
    for file in _task_files(spec):
        write_text(folder / "tasks" / file.name, file.read_text("utf-8"))
    if not (folder / "plan.parquet").exists():
        write_table(folder / "plan.parquet", pa.Table.from_pylist(plan.table(), schema=plan_schema()))


def _task_files(spec: RunSpec) -> list[Path]:
    entries = [part.strip() for part in spec.tasks.split(",")]
    return [Path(entry) for entry in entries if entry.endswith((".yaml", ".yml"))]
