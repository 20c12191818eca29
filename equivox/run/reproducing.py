"""All runs of a run file: first the models answer, then each annotator reads the answers of all of them.

With several workers the models of a setting answer side by side, in threads. All of them and the annotators draw from
the same places, so that a place which one no longer needs goes to the next.
"""

from __future__ import annotations

import math
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from equivox.annotate import Annotator, open_annotator, open_evaluations
from equivox.core.errors import EquivoxError, RequestError
from equivox.core.progress import Progress
from equivox.core.scores import Score
from equivox.core.task import Task
from equivox.dataset_builders.corpus import Corpus
from equivox.engines import Engine, Workers, cluster, refuse_remote_code
from equivox.run.pipeline import PreparedRun, RunSpec, prepared, read_responses, rescore, writing
from equivox.run.run_files import Setting

ProgressOf = Callable[[str], AbstractContextManager[Progress]]
"""Function of a run's name that opens a progress callback; with several workers it is called in several threads."""


@dataclass
class Finished:
    """One run of a run file: its scores by its first annotator, or the reason why there are none."""

    setting: Setting
    spec: RunSpec
    scores: Sequence[Score] = ()
    error: str | None = None
    tasks: Sequence[Task] = field(default=(), repr=False)

    @property
    def label(self) -> str:
        """The run's model, with its setting if the run file has several."""
        return f"{self.spec.model} ({self.setting.name})" if self.setting.name else self.spec.model

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
    side_by_side: int = 1,
) -> list[Finished]:
    """Run or resume every model of every setting under `output`; a run that fails does not stop the others.

    Each annotator is loaded once for all runs of a setting and its evaluations share it. Scores are computed at the
    end, so that those which need several annotators have them all.

    With several `workers`, `side_by_side` models of a setting answer at a time, each with an equal part of the workers,
    rounded up. One more is prepared; it takes the places that those before it no longer need, and the first annotator
    takes those of the last models. RequestError if `side_by_side` does not fit the workers or the number of models.
    """
    workers = workers or Workers()
    _refuse_crowd(settings, workers, side_by_side)
    refuse_remote_code(
        dict.fromkeys(model for setting in settings if not setting.trust_remote_code for model in setting.file.models)
    )
    if workers.pooled:
        cluster.start(workers.address, workers.total)  # before there are threads: it holds signals back
    opened_in: defaultdict[str | None, dict[str, Corpus]] = defaultdict(dict)
    finished = []
    for setting in settings:
        corpora = opened_in[setting.file.data]
        runs = [Finished(setting, setting.spec(model, output)) for model in setting.file.models]
        first, *others = (_Reader(name, setting, workers) for name in setting.file.annotators)
        with first:
            if workers.pooled:
                _answer_side_by_side(runs, corpora, progress_of, workers, side_by_side, first)
            else:
                for run in runs:
                    _answer(run, corpora, progress_of)
            first.read([run for run in runs if run.error is None], progress_of)
        for reader in others:
            with reader:
                reader.read([run for run in runs if run.error is None], progress_of)
        for run in runs:
            if run.error is None:
                with _noting(run), progress_of(run.label) as progress:
                    run.scores = _score(run, progress)
        finished += runs
    return finished


def most_side_by_side(settings: Sequence[Setting], workers: Workers) -> int:
    """Return how many runs can be answered at a time: as many as a setting has models, and no more than workers."""
    return min(workers.total, max(len(setting.file.models) for setting in settings))


def _refuse_crowd(settings: Sequence[Setting], workers: Workers, side_by_side: int) -> None:
    most = max(len(setting.file.models) for setting in settings)
    if side_by_side < 1:
        raise RequestError(f"`side-by-side` must be 1 or more, got {side_by_side}")
    if side_by_side > workers.total:
        raise RequestError(
            f"`side-by-side` {side_by_side} needs as many workers or more, and there are {workers.total}; "
            f"give `--workers {side_by_side}`, or a smaller number"
        )
    if side_by_side > most:
        raise RequestError(f"`side-by-side` {side_by_side} is more than the {most} models of a setting; give {most}")


def _answer_side_by_side(
    runs: Sequence[Finished],
    corpora: dict[str, Corpus],
    progress_of: ProgressOf,
    workers: Workers,
    side_by_side: int,
    reader: _Reader,
) -> None:
    """Let the models of `runs` answer, so many at a time and the next one prepared; all end if one is interrupted."""
    part = workers.at_most(math.ceil(workers.total / min(side_by_side, len(runs))))
    turns = _Turns(runs, reader)
    with ThreadPoolExecutor(max_workers=side_by_side + 1, thread_name_prefix="run") as threads:
        futures = []
        for run in runs:
            run.spec = replace(run.spec, workers=part)
            futures.append(threads.submit(_answer, run, corpora, progress_of, turns))
        try:
            for future in futures:
                future.result()
        except BaseException:
            workers.stopped.set()
            threads.shutdown(wait=False, cancel_futures=True)
            raise


class _Turns:
    """Runs are prepared one after the other, in their order, because preparing shares corpora and stderr.

    A run that was prepared takes its places before the next one can. After the last one, the annotator may take over
    the places that no model needs.
    """

    def __init__(self, runs: Sequence[Finished], reader: _Reader) -> None:
        self._over = {run.folder: threading.Event() for run in runs}
        self._before = dict(zip(list(self._over)[1:], self._over.values(), strict=False))
        self._last = runs[-1].folder
        self._reader = reader
        self._engines: list[Engine] = []

    @contextmanager
    def of(self, run: Finished) -> Iterator[None]:
        """Wait for the turn of `run`; it is over when the `with` block is left."""
        if run.folder in self._before:
            self._before[run.folder].wait()
        try:
            yield
        finally:
            if run.folder == self._last:
                for engine in self._engines:
                    engine.successor = self._reader.engine
            self._over[run.folder].set()

    def begin(self, ready: PreparedRun) -> None:
        """Let a run that was prepared have its places, and those that the runs before it no longer need."""
        if ready.to_ask:
            for engine in self._engines:
                engine.successor = ready.engine
            ready.engine.warm()
        self._engines.append(ready.engine)


def _answer(run: Finished, corpora: dict[str, Corpus], progress_of: ProgressOf, turns: _Turns | None = None) -> None:
    """Let the model of a run answer; with `turns`, others answer meanwhile in other threads."""
    with _noting(run), ExitStack() as opened:
        with nullcontext() if turns is None else turns.of(run):
            progress = opened.enter_context(progress_of(run.label))
            first = opened.enter_context(closing(open_annotator(run.spec.annotator)))
            ready = opened.enter_context(prepared(run.spec, first, corpora=corpora))
            if turns is not None:
                turns.begin(ready)
        ready.answer(progress)
        run.tasks = ready.tasks


class _Reader:
    """One annotator of a setting, which reads the answers of all its runs, as many times as the setting asks for.

    It is opened when it is first needed.
    """

    def __init__(self, name: str, setting: Setting, workers: Workers) -> None:
        self._name = name
        self._evaluations = setting.file.evaluations
        self._workers = workers
        self._annotators: list[Annotator] = []
        self._opened = ExitStack()

    def __enter__(self) -> _Reader:
        return self

    def __exit__(self, *error: object) -> None:
        self._opened.close()

    @property
    def engine(self) -> Engine | None:
        """Its engine; None if it has none, or cannot be opened, which its runs say when they are read."""
        with suppress(EquivoxError):
            return self._open()[0].engine
        return None

    def read(self, runs: Sequence[Finished], progress_of: ProgressOf) -> None:
        """Annotate the answers of `runs`; what fails for one of them is noted there."""
        for run in runs:
            with _noting(run), progress_of(f"{run.label}, read by {self._name}") as progress:
                for annotator in self._open():
                    annotator.check(run.tasks)
                    with writing(run.folder):
                        read_responses(run.folder, run.tasks, annotator, run.spec.options, progress=progress)

    def _open(self) -> Sequence[Annotator]:
        if not self._annotators:
            n = self._evaluations
            self._annotators += (
                [open_annotator(self._name, self._workers)]
                if n == 1
                else open_evaluations(self._name, range(1, n + 1), self._workers)
            )
            for annotator in self._annotators:
                self._opened.enter_context(closing(annotator))
        return self._annotators


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
