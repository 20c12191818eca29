"""All runs of a run file: first the models answer, one after the other, then each annotator annotates all answers.

What a run file still needs before: data, word lists and parsers, models and servers, keys, memory.
"""

from __future__ import annotations

import os
import subprocess
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from equivox.annotate import RULES, Annotator, AnnotatorFile, annotator_name, open_annotator, open_evaluations
from equivox.annotate.merging import load_encoder
from equivox.configs import config_names, read_config_file
from equivox.core.errors import EquivoxError
from equivox.core.plugins import check, freed
from equivox.core.progress import Event, Progress, keeping_first
from equivox.core.scores import Score
from equivox.core.task import Task
from equivox.core.task_checks import refuse_unable
from equivox.dataset_builders.corpus import Corpus
from equivox.dataset_builders.opening import open_corpus
from equivox.engines import Workers, engine_of, model_file, open_engine, public_name, refuse_remote_code, retirement
from equivox.run.pipeline import annotate_responses, check_output, prepared, rescore, writing
from equivox.run.plan import make_plan
from equivox.run.run_files import Setting
from equivox.run.spec import RunSpec, scoring_of

LOCAL = frozenset({"localhost", "127.0.0.1", "::1"})
"""Hosts of servers that run on this machine, which need no key."""

ProgressOf = Callable[[str], AbstractContextManager[Progress]]
"""Function of a run's name that opens a progress callback."""


@dataclass
class Finished:
    """One run of a run file: its scores by its first annotator, or the reason why there are none."""

    setting: Setting
    spec: RunSpec
    scores: Sequence[Score] = ()
    error: str | None = None
    tasks: Sequence[Task] = field(default=(), repr=False)
    first: list[Event] = field(default_factory=list, repr=False)
    """The first event of this start, which says how many responses were there before."""

    @property
    def label(self) -> str:
        """The run's model, with its setting if the run file has several."""
        model = public_name(self.spec.model)
        return f"{model} ({self.setting.name})" if self.setting.name else model

    @property
    def annotator(self) -> str:
        """The annotator whose scores these are: the first one of the run file."""
        return self.setting.names_of(self.setting.file.annotators[0])[0]

    @property
    def folder(self) -> Path:
        """The folder of the run."""
        return self.spec.output


def run_all(
    settings: Sequence[Setting],
    output: Path,
    progress_of: ProgressOf,
    *,
    workers: Workers | None = None,
) -> list[Finished]:
    """Run or resume every model of every setting under `output`; a run that fails does not stop the others.

    Each annotator is loaded once for all runs of a setting and its evaluations share it. Scores are computed at the
    end, so that those which need several annotators have them all.

    With several `workers`, each model and each annotator answers on all of them.
    """
    workers = workers or Workers()
    refuse_remote_code(
        dict.fromkeys(model for setting in settings if not setting.trust_remote_code for model in setting.file.models)
    )
    opened_in: defaultdict[str | None, dict[str, Corpus]] = defaultdict(dict)
    finished = []
    for setting in settings:
        corpora = opened_in[setting.file.data]
        runs = [
            Finished(setting, replace(setting.spec(model, output), workers=workers)) for model in setting.file.models
        ]
        for run in runs:
            _answer(run, corpora, progress_of)
        for name in setting.file.annotators:
            _read([run for run in runs if run.error is None], name, setting.file.evaluations, workers, progress_of)
        for run in runs:
            if run.error is None:
                with _noting(run), progress_of(run.label) as progress:
                    run.scores = _score(run, progress)
        finished += runs
    return finished


def _answer(run: Finished, corpora: dict[str, Corpus], progress_of: ProgressOf) -> None:
    """Let the model of a run answer."""
    with (
        _noting(run),
        progress_of(run.label) as progress,
        freed(open_annotator(run.spec.annotator)) as first,
        prepared(run.spec, first, corpora=corpora) as ready,
    ):
        ready.answer(keeping_first(progress, run.first))
        run.tasks = ready.tasks


def _read(runs: Sequence[Finished], name: str, evaluations: int, workers: Workers, progress_of: ProgressOf) -> None:
    """Let an annotator read the answers of `runs` so many times; what fails for one of them is noted there.

    It is opened when it is first needed.
    """
    annotators: list[Annotator] = []
    with ExitStack() as opened:
        for run in runs:
            with _noting(run), progress_of(f"{run.label}, read by {annotator_name(name)}") as progress:
                if not annotators:
                    annotators += (
                        [open_annotator(name, workers)]
                        if evaluations == 1
                        else open_evaluations(name, range(1, evaluations + 1), workers)
                    )
                    for annotator in annotators:
                        opened.enter_context(freed(annotator))
                for annotator in annotators:
                    check(annotator, run.tasks)
                    with writing(run.folder):
                        annotate_responses(
                            run.folder, run.tasks, annotator, run.spec.options,
                            redo=run.spec.redone_statuses, progress=progress,
                        )  # fmt: skip


def _score(run: Finished, progress: Progress) -> list[Score]:
    """Score the annotations of every annotator and evaluation; return the scores by the first."""
    names = [name for annotator in run.setting.file.annotators for name in run.setting.names_of(annotator)]
    found = [rescore(run.folder, annotator=name, options=run.spec.options, progress=progress) for name in names]
    return found[0]


@contextmanager
def _noting(run: Finished) -> Iterator[None]:
    """Note why a run failed instead of stopping the others."""
    try:
        yield
    except EquivoxError as error:
        run.error = str(error)


FIRST_SAMPLES = 4
"""The number of samples whose requests are shown to an engine; those of one task are alike."""


def missing(settings: Sequence[Setting], output: Path) -> dict[tuple[str, str], list[str]]:
    """Return everything that `settings` need and this machine lacks; servers get one short request.

    Each thing has its kind and the reason, with what helps, and what waits for it. The weights of models and annotators
    are not loaded; the sentence encoder is, if a setting merges by meaning. Nothing is written. If nothing is missing,
    all runs can start.
    """
    found: dict[tuple[str, str], list[str]] = {}

    def note(kind: str, why: str, who: str) -> None:
        waiting = found.setdefault((kind, why), [])
        if who not in waiting:
            waiting.append(who)

    opened_in: defaultdict[str | None, dict[str, Corpus]] = defaultdict(dict)
    for setting in settings:
        corpora = opened_in[setting.file.data]
        for task in setting.varied:
            with _noted(note, "data", task.name):
                corpora[task.data.corpus] = corpora.get(task.data.corpus) or open_corpus(task.data, setting.file.data)
            for why in task.annotation.missing_tools():
                note("word lists and tools", why, task.name)
        options = scoring_of(setting.file.scoring)
        if options.merge == "embedding":
            with _noted(note, "word lists and tools", "merging by meaning"):
                load_encoder(options.encoder)
        ready = [task for task in setting.varied if task.data.corpus in corpora]
        for model in setting.file.models:
            declared = model_file(model)
            served = declared is not None and declared.serve
            hint = f"; serve it: {' '.join(served.split())}" if served else ""
            named = public_name(model)
            with _noted(note, "models", named, hint):
                _check_model(model, setting, ready, corpora)
            for kind, why in _lacking(model):
                note(kind, why, named)
            with _noted(note, "output", named):
                check_output(setting.spec(model, output).output)
        for annotator in setting.file.annotators:
            with _noted(note, "annotators", public_name(annotator)), freed(open_annotator(annotator)) as opened:
                check(opened, setting.varied)
            if annotator in config_names("annotators") and annotator != RULES:
                file = read_config_file(AnnotatorFile, annotator, "annotators")
                for why in _key(file.engine, file.model_parameters):
                    note("keys", why, annotator)
    return found


def _check_model(model: str, setting: Setting, tasks: Sequence[Task], corpora: dict[str, Corpus]) -> None:
    """Raise an error if `model` could not answer the tasks whose data are there."""
    with freed(open_engine(model, setting.varied, trust_remote_code=setting.trust_remote_code)) as engine:
        refuse_unable(setting.varied, engine.able, engine.identity.engine)
        few = {}
        for task in tasks:  # as many samples as have every group
            samples = corpora[task.data.corpus].samples
            groups = {tuple(sample.columns.get(name) for name in task.group) for sample in samples}
            few[task.name] = max(FIRST_SAMPLES, len(groups))
        plans = [
            make_plan([task], corpora, engine.identity, limit=few[task.name], seed=setting.file.seed) for task in tasks
        ]
        check(engine, [request for plan in plans for request in plan.requests()])


def _lacking(model: str) -> Iterator[tuple[str, str]]:
    """Yield what its file says that `model` needs and that is not there: the model itself, memory of a GPU, a key."""
    declared = model_file(model)
    told = None if declared is None else declared.retires
    if told is not None and date.today() >= date.fromisoformat(told.date):
        yield "models", retirement(model)
    needed = None if declared is None or declared.engine not in ("vllm", "transformers") else declared.gpu_memory_gb
    if needed is not None:
        there = gpu_memory_gb()
        if there is None:
            yield "GPU memory", f"no GPU was found; {model} needs about {needed:g} GB"
        elif there < needed:
            size = f"the GPU has {there:.0f} GB; {model} needs about {needed:g} GB"
            yield "GPU memory", f"{size}: give it several (tensor_parallel_size)"
    yield from (("keys", why) for why in _key(*engine_of(model)))


def _key(scheme: str, arguments: Mapping[str, Any] | str) -> Iterator[str]:
    """Yield why a server that is not on this machine would refuse the requests: the key is in no variable."""
    if scheme != "endpoint" or isinstance(arguments, str):
        return
    variable = str(arguments.get("api_key_env", "OPENAI_API_KEY"))
    urls = arguments.get("base_url", "")
    for host in dict.fromkeys(
        urlsplit(str(url)).hostname or "" for url in (urls if isinstance(urls, list | tuple) else [urls])
    ):
        if host not in LOCAL and not os.environ.get(variable):
            yield f"{variable} is not set: put the key of {host} into it"


@cache
def gpu_memory_gb() -> float | None:
    """Return the memory of the first NVIDIA GPU in GB, as its driver tells; None without one."""
    command = ["nvidia-smi", "--query-gpu=memory.total", "--format=csv,noheader,nounits"]
    try:
        told = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True).stdout
        return float(told.splitlines()[0]) * 2**20 / 1e9
    except (OSError, subprocess.SubprocessError, IndexError, ValueError):
        return None


@contextmanager
def _noted(note: Callable[[str, str, str], None], kind: str, who: str, hint: str = "") -> Iterator[None]:
    """Note an error as something that is missing; `hint` says what helps."""
    try:
        yield
    except EquivoxError as error:
        note(kind, f"{error}{hint}", who)
