"""A run: plan → generate → annotate → score. Each stage reads files from disk and can be resumed.

RUN/manifest.json   identity, settings and versions of the run
RUN/plan.parquet    every request with its group, cluster and stratum
RUN/responses/      the model's responses, in order of arrival
RUN/annotations/A/  every annotation by annotator A, and the samples of each task as a table
RUN/scores.json     the scores with their evidence
RUN/live.json       how far a run is that is under way, or was stopped
RUN/usage.json      requests and tokens, if a server was used
RUN/tasks.json      the tasks
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from equivox.annotate import Annotator, evaluation_of, open_annotator
from equivox.core.errors import UsageError
from equivox.core.files import read_document, return_freed_memory, write_table
from equivox.core.foreign_files import refuse_unusable_folder
from equivox.core.media import IMAGES_SENT
from equivox.core.plugins import afterwards, check, close, freed
from equivox.core.progress import Progress, no_progress
from equivox.core.redact import remember_secrets
from equivox.core.requests import EngineIdentity
from equivox.core.scores import DEFAULT_OPTIONS, Score, ScoringOptions
from equivox.core.segments import Status, check_tools
from equivox.core.task import Task
from equivox.core.task_checks import refuse_unable
from equivox.core.variants import sampling_settings
from equivox.dataset_builders.corpus import Corpus
from equivox.dataset_builders.opening import open_corpus
from equivox.engines import Engine, Workers, open_engine, public_name
from equivox.run.annotating import annotate
from equivox.run.comparing import compare_further
from equivox.run.declarations import TASKS_FILE, give, read_tasks, write_tasks
from equivox.run.generating import IMPORTED, generate, note_served_models, pending_rows
from equivox.run.live import add_usage, noting
from equivox.run.manifest import (
    MANIFEST_FILE,
    differences,
    forget_hashes,
    new_manifest,
    read_manifest,
    run_identity,
    write_manifest,
)
from equivox.run.opening import note_made
from equivox.run.plan import PLAN_FILE, Plan, make_plan, samples_of, without_group
from equivox.run.presented import refuse_unseen_groups
from equivox.run.scoring import follow_up, open_samples, remove_scores, score, scores_path
from equivox.run.spec import RunSpec
from equivox.run.store import annotators_of


def execute(
    spec: RunSpec,
    *,
    engine: Engine | None = None,
    corpora: dict[str, Corpus] | None = None,
    progress: Progress = no_progress,
) -> list[Score]:
    """Run or resume `spec` and return its scores; everything is stored on disk.

    `engine` replaces the engine that `spec.model` names, and stays open. `corpora` is a cache of opened corpora that
    several runs can share. Raises UsageError for a wrong request, before anything is written, and RunError for a run
    that cannot go on.
    """
    with (
        freed(open_annotator(spec.annotator, spec.workers)) as annotator,
        prepared(spec, annotator, engine, corpora) as run,
    ):
        run.answer(progress)
        # The plan is stored; its memory is free from here on.
        run.plan = run.plan.part([])
        return_freed_memory()
        return annotate_and_score(
            spec.output, run.tasks, annotator, spec.options, redo=spec.redone_statuses, progress=progress
        )


@dataclass(kw_only=True)
class PreparedRun:
    """A run that was checked and whose folder is locked: nothing is written yet.

    `to_ask` is the number of requests that its engine will get.
    """

    spec: RunSpec
    tasks: Sequence[Task]
    plan: Plan
    identity: Mapping[str, Any]
    engine: Engine
    annotator: str
    keep_open: bool
    to_ask: int

    def answer(self, progress: Progress) -> None:
        """Generate the responses that are missing; the engine's memory is free afterwards, unless it was given."""
        spec = self.spec
        self._begin()
        with afterwards(self._note_use), noting(spec.output, progress) as noted:
            generate(
                spec.output, self.plan, self.engine,
                retry_failed=spec.retry_failed, stop_after=spec.stop_after, progress=noted,
            )  # fmt: skip
        if not self.keep_open:
            # The measured model's memory is freed before a model that annotates is loaded.
            close(self.engine)

    def _note_use(self) -> None:
        """Store what was used of a server, and under which names it answered."""
        add_usage(self.spec.output, self.engine.used)
        note_served_models(self.spec.output, self.engine)

    def _begin(self) -> None:
        """Write the manifest, the tasks and the plan if they do not exist; there are no hashes until it is scored."""
        spec, folder, plan, sent = self.spec, self.spec.output, self.plan, self.engine.audio_sent
        if (folder / TASKS_FILE).exists():
            read_document(folder / TASKS_FILE)  # a damaged one would not be noticed until somebody else reads the run
        if not (folder / MANIFEST_FILE).exists():
            # The manifest is written first, so that a folder of a run that was killed here is recognised as a run.
            left_out = {
                without_group(task): plan.left_out[task.name] for task in self.tasks if plan.left_out[task.name]
            }
            command = {
                "model": public_name(spec.model, also=self.engine.identity.public),
                "data": spec.data,
                "compare": spec.compare,
                "conditions": spec.conditions,
                "sampling": spec.sampling,
                "annotator": self.annotator,
            } | ({"system": dict(spec.system)} if spec.system else {})
            about: dict[str, Any] = {"samples_without_group": left_out}
            if alike := {name: n for name, n in plan.alike.items() if n}:
                about["asked_alike"] = alike
            kinds = {medium.kind for task in self.tasks for medium in task.media}
            if sent and "audio" in kinds:
                about["audio_sent"] = sent
            if "image" in kinds:
                about["images_sent"] = IMAGES_SENT
            write_manifest(folder, new_manifest(self.identity, command) | about)
        forget_hashes(folder)
        if not (folder / TASKS_FILE).exists():
            write_tasks(folder, self.tasks)
        if not (folder / PLAN_FILE).exists():
            write_table(folder / PLAN_FILE, plan.table)
            note_made(folder)


@contextmanager
def prepared(
    spec: RunSpec, annotator: Annotator, engine: Engine | None = None, corpora: dict[str, Corpus] | None = None
) -> Iterator[PreparedRun]:
    """Check `spec`, lock its folder and yield the run; UsageError for a wrong request, before anything is written.

    `annotator` is the one that will annotate it first; `engine` and `corpora` are those of `execute`.
    """
    with checked(spec, annotator, engine, corpora) as run, writing(spec.output):
        # Another process may have begun a run here since the first look.
        check_output(spec.output)
        _check_same_run(spec.output, run.identity)
        yield run


@contextmanager
def checked(
    spec: RunSpec, annotator: Annotator, engine: Engine | None = None, corpora: dict[str, Corpus] | None = None
) -> Iterator[PreparedRun]:
    """Check `spec` as `prepared` does, and yield the run without a lock; it must not answer."""
    tasks = spec.varied
    check_output(spec.output)
    given, engine = (
        engine,
        engine or open_engine(spec.model, tasks, spec.workers, trust_remote_code=spec.trust_remote_code),
    )
    with nullcontext() if given else freed(engine):
        remember_secrets(engine.identity.settings, engine.identity.public)
        refuse_overrides(engine.identity, spec.sampling)
        # Nothing but the run holds its plan and its samples while it goes on: of a million requests they are large.
        yield _checked(spec, tasks, annotator, engine, {} if corpora is None else corpora, keep_open=given is not None)


def _checked(
    spec: RunSpec,
    tasks: Sequence[Task],
    annotator: Annotator,
    engine: Engine,
    corpora: dict[str, Corpus],
    *,
    keep_open: bool,
) -> PreparedRun:
    opened = open_corpora(tasks, spec.data, corpora)
    if engine.identity.engine != IMPORTED:
        refuse_unable(tasks, engine.able, engine.identity.engine)
    give(tasks)
    plan = make_plan(tasks, opened, engine.identity, limit=spec.limit, seed=spec.seed)
    if engine.identity.engine != IMPORTED:  # what was asked elsewhere is not known
        for task in tasks:
            refuse_unseen_groups(task, samples_of(opened[task.data.corpus], task))
    identity = run_identity(engine=engine.identity, tasks=tasks, corpora=opened, limit=spec.limit, seed=spec.seed)
    _check_same_run(spec.output, identity)
    if spec.options.merge == "embedding":
        from equivox.annotate.merging import load_encoder

        load_encoder(spec.options.encoder)
    pending = pending_rows(spec.output, plan, retry_failed=spec.retry_failed)
    sendable = plan.requests(pending[plan.usable[pending]])
    if len(pending):
        check(engine, sendable)
    if len(pending) or spec.redo_judge:
        check(annotator, tasks)
        check_tools(tasks)
    return_freed_memory()
    return PreparedRun(
        spec=spec, tasks=tasks, plan=plan, identity=identity, engine=engine,
        annotator=annotator.identity.name, keep_open=keep_open, to_ask=len(sendable),
    )  # fmt: skip


def refuse_overrides(identity: EngineIdentity, sampling: str) -> None:
    """Raise UsageError for a run that asks for a decoding of a model whose arguments set another one."""
    settings = sampling_settings(sampling)
    for argument in ("generation_parameters", "extra_body"):
        given = identity.settings.get(argument)
        for name, value in given.items() if isinstance(given, Mapping) else ():
            if name in settings and value != settings[name]:
                raise UsageError(
                    f"`sampling` is {sampling}, but the model arguments set {argument}={{{name}: {value}}}, which "
                    f"would take its place; leave {name} out of them, or run with `--sampling as-declared`"
                )


def annotate_and_score(
    folder: Path,
    tasks: Sequence[Task],
    annotator: Annotator,
    options: ScoringOptions,
    *,
    others: Sequence[str] = (),
    redo: Collection[Status] = (),
    progress: Progress = no_progress,
) -> list[Score]:
    """Annotate the responses in `folder` that `annotator` has not annotated yet, then score its annotations.

    Annotations with a status in `redo` are made again.
    """
    annotate_responses(folder, tasks, annotator, options, redo=redo, progress=progress)
    return score(folder, tasks, annotator.identity.name, options, others=others, progress=progress)


def annotate_responses(
    folder: Path,
    tasks: Sequence[Task],
    annotator: Annotator,
    options: ScoringOptions,
    *,
    redo: Collection[Status] = (),
    progress: Progress = no_progress,
) -> None:
    """Annotate the responses in `folder` that `annotator` has not annotated yet, and ask it about the findings.

    Annotations with a status in `redo` are made again.
    """
    engine = str(read_manifest(folder)["identity"]["model"]["engine"])
    before = dict(annotator.usage)

    def note() -> None:
        # Of an annotator that read another run before, and was asked nothing here, the names belong to that one.
        if annotator.engine is not None and (not before or annotator.usage != before):
            note_served_models(folder, annotator.engine, annotator.identity.name)

    with afterwards(note), noting(folder, progress, annotator=annotator.identity.name) as noted:
        annotate(folder, tasks, annotator, engine=engine, redo=redo, progress=noted)
        follow_up(folder, tasks, annotator, options, redo=redo, progress=noted)


def annotate_run(
    folder: Path,
    annotator: str,
    options: ScoringOptions = DEFAULT_OPTIONS,
    *,
    redo: Collection[Status] = (),
    workers: Workers | None = None,
    progress: Progress = no_progress,
) -> list[Score]:
    """Annotate a finished run with another annotator and score its annotations; those of others stay unchanged.

    Annotations with a status in `redo` are made again.
    """
    tasks = read_tasks(folder)
    with freed(open_annotator(annotator, workers)) as opened:
        check(opened, tasks)
        check_tools(tasks)
        with writing(folder):
            others = _others(folder, opened.identity.name)
            return annotate_and_score(folder, tasks, opened, options, others=others, redo=redo, progress=progress)


def rescore(
    folder: Path,
    *,
    annotator: str | None = None,
    compare: Sequence[tuple[str, ...]] = (),
    options: ScoringOptions = DEFAULT_OPTIONS,
    progress: Progress = no_progress,
) -> list[Score]:
    """Recompute every score of the run in `folder` from its stored responses and annotations.

    `annotator` names the annotator whose annotations count; None means the run's. No engine or annotator is opened.
    `compare` names further comparisons of its answers, which the run has from now on.
    """
    if compare:
        with writing(folder):
            compare_further(folder, compare)
    tasks = read_tasks(folder)
    name = annotator or str(read_manifest(folder)["command"]["annotator"])
    with writing(folder):
        return score(folder, tasks, name, options, others=_others(folder, name), progress=progress)


def use_annotator(
    folder: Path,
    annotator: str,
    options: ScoringOptions = DEFAULT_OPTIONS,
    *,
    progress: Progress = no_progress,
) -> list[Score]:
    """Make `annotator` the run's own, whose scores stand in every table, and return its scores.

    The annotator before stays beside it as one of the others. UsageError if `annotator` has not annotated the run.
    """
    tasks = read_tasks(folder)
    open_samples(folder, tasks, annotator)  # refuses an annotator without annotations before anything is written
    manifest = read_manifest(folder)
    before = str(manifest["command"]["annotator"])
    if annotator != before:
        with writing(folder):
            # Between the two there are no scores, rather than those of another annotator under this one's name.
            for path in (scores_path(folder, before), scores_path(folder, annotator)):
                remove_scores(path)
            write_manifest(folder, manifest | {"command": manifest["command"] | {"annotator": annotator}})
            forget_hashes(folder)
        rescore(folder, annotator=before, options=options, progress=progress)
    return rescore(folder, annotator=annotator, options=options, progress=progress)


def _others(folder: Path, annotator: str) -> list[str]:
    """Return the other annotators of the run; of several evaluations by one annotator, those with the same number."""
    own, number = evaluation_of(annotator)
    others = []
    for name in annotators_of(folder):
        other, theirs = evaluation_of(name)
        if other != own and theirs in (number, None):
            others.append(name)
    return others


def open_corpora(tasks: Sequence[Task], data: str | None, cache: dict[str, Corpus]) -> dict[str, Corpus]:
    """Return the corpora of `tasks` by name; each is opened once and kept in `cache`."""
    for task in tasks:
        if task.data.corpus not in cache:
            cache[task.data.corpus] = open_corpus(task.data, data)
    return {task.data.corpus: cache[task.data.corpus] for task in tasks}


def check_output(folder: Path) -> None:
    """Raise UsageError for a folder that cannot hold a run: unusable, a file, or full of other files."""
    refuse_unusable_folder(folder, "output")
    visible = folder.is_dir() and any(not entry.name.startswith(".") for entry in folder.iterdir())
    if visible and not (folder / MANIFEST_FILE).exists():
        raise UsageError(f"`output` {folder} holds other files and no run; name a new or empty folder")


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Hold the run's lock; UsageError when another process has it or the folder cannot be written."""
    from filelock import FileLock, Timeout

    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder / ".lock", timeout=0)
        lock.acquire()
    except Timeout:
        raise UsageError(f"another process is writing {folder}; wait for it or name another folder") from None
    except OSError as error:
        why = error.strerror or error
        raise UsageError(f"cannot write to {folder}: {why}; name another folder, or copy the run to one") from None
    try:
        yield
    finally:
        lock.release()


def _check_same_run(folder: Path, identity: Mapping[str, Any]) -> None:
    if not (folder / MANIFEST_FILE).exists():
        return
    found = differences(read_manifest(folder)["identity"], identity)
    if len(found) == 1 and found[0].startswith("model.digest"):
        found = ["the model arguments differ (equivox does not store the differing one)"]
    if found:
        raise UsageError(
            f"`output` {folder} holds another run ({'; '.join(found[:4])}); "
            "repeat its arguments to resume it, or name another folder"
        )
