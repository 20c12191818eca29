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
        closing(open_annotator(run.spec.annotator)) as first,
        prepared(run.spec, first, corpora=corpora) as ready,
    ):
        ready.answer(progress)
        run.tasks = ready.tasks


def _read(runs: Sequence[Finished], name: str, evaluations: int, workers: Workers, progress_of: ProgressOf) -> None:
    """Let an annotator read the answers of `runs` so many times; what fails for one of them is noted there.

    It is opened when it is first needed.
    """
    annotators: list[Annotator] = []
    with ExitStack() as opened:
        for run in runs:
            with _noting(run), progress_of(f"{run.label}, read by {name}") as progress:
                if not annotators:
                    annotators += (
                        [open_annotator(name, workers)]
                        if evaluations == 1
                        else open_evaluations(name, range(1, evaluations + 1), workers)
                    )
                    for annotator in annotators:
                        opened.enter_context(closing(annotator))
                for annotator in annotators:
                    annotator.check(run.tasks)
                    with writing(run.folder):
                        annotate_responses(
                            run.folder, run.tasks, annotator, run.spec.options,
                            retry_failed=run.spec.retry_failed, progress=progress,
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
