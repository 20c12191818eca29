"""All runs of a run file: first the models answer, one after the other, then each annotator annotates all answers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from equivox.annotate import Annotator, open_annotator, open_evaluations
from equivox.core.errors import EquivoxError
from equivox.core.progress import Progress
from equivox.core.scores import Score
from equivox.core.task import Task
from equivox.dataset_builders.corpus import Corpus
from equivox.engines import Workers, refuse_remote_code
from equivox.run.pipeline import annotate_responses, prepared, rescore, writing
from equivox.run.run_files import Setting
from equivox.run.spec import RunSpec

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
        first, *others = (_SharedAnnotator(name, setting, workers) for name in setting.file.annotators)
        with first:
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


def _answer(run: Finished, corpora: dict[str, Corpus], progress_of: ProgressOf) -> None:
    """Let the model of a run answer."""
    with (
        _noting(run),
        progress_of(run.label) as progress,
        closing(open_annotator(run.spec.annotator)) as first,
        prepared(run.spec, first, corpora=corpora) as ready,
    ):
        ready.answer(progress)
        run.tasks = ready.tasks


class _SharedAnnotator:
    """One annotator of a setting, which reads the answers of all its runs, as many times as the setting asks for.

    It is opened when it is first needed.
    """

    def __init__(self, name: str, setting: Setting, workers: Workers) -> None:
        self._name = name
        self._evaluations = setting.file.evaluations
        self._workers = workers
        self._annotators: list[Annotator] = []
        self._opened = ExitStack()

    def __enter__(self) -> _SharedAnnotator:
        return self

    def __exit__(self, *error: object) -> None:
        self._opened.close()

    def read(self, runs: Sequence[Finished], progress_of: ProgressOf) -> None:
        """Annotate the answers of `runs`; what fails for one of them is noted there."""
        for run in runs:
            with _noting(run), progress_of(f"{run.label}, read by {self._name}") as progress:
                for annotator in self._open():
                    annotator.check(run.tasks)
                    with writing(run.folder):
                        annotate_responses(run.folder, run.tasks, annotator, run.spec.options, progress=progress)

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
