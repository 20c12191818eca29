"""All runs of a run file: first the models answer, then each annotator reads the answers of all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from equivox.annotate import Annotator, open_annotator, open_evaluations
from equivox.core.errors import EquivoxError
from equivox.core.progress import Progress
from equivox.core.scores import Score
from equivox.core.task import Task
from equivox.dataset_builders.corpus import Corpus
from equivox.run.pipeline import RunSpec, prepared, read_responses, rescore, writing
from equivox.run.run_files import Setting

ProgressOf = Callable[[str], AbstractContextManager[Progress]]


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


def run_all(settings: Sequence[Setting], output: Path, progress_of: ProgressOf) -> list[Finished]:
    """Run or resume every model of every setting under `output`; a run that fails does not stop the others.

    Each annotator is loaded once for all runs of a setting and its evaluations share it. Scores are computed at the
    end, so that those which need several annotators have them all.
    """
    corpora: dict[str, Corpus] = {}
    finished = []
    for setting in settings:
        runs = [Finished(setting, setting.spec(model, output)) for model in setting.file.models]
        for run in runs:
            with _noting(run), progress_of(run.label) as progress, closing(open_annotator(run.spec.annotator)) as first:
                with prepared(run.spec, first, corpora=corpora) as ready:
                    ready.answer(progress)
                run.tasks = ready.tasks
        for name in setting.file.annotators:
            _read(name, setting, [run for run in runs if run.error is None], progress_of)
        for run in runs:
            if run.error is None:
                with _noting(run), progress_of(run.label) as progress:
                    run.scores = _score(run, progress)
        finished += runs
    return finished


def _read(name: str, setting: Setting, runs: Sequence[Finished], progress_of: ProgressOf) -> None:
    """Let one annotator read the answers of all `runs`, as many times as the setting asks for."""
    n = setting.file.evaluations
    annotators: list[Annotator] = []
    for run in runs:
        with _noting(run), progress_of(f"{run.label}, read by {name}") as progress:
            if not annotators:
                annotators += [open_annotator(name)] if n == 1 else open_evaluations(name, range(1, n + 1))
            for annotator in annotators:
                annotator.check(run.tasks)
                with writing(run.folder):
                    read_responses(run.folder, run.tasks, annotator, run.spec.options, progress=progress)
    for annotator in annotators:
        annotator.close()


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
