"""Tasks, documents and metric in the format of lighteval 0.13.

Each document is one request of a task's plan. The metric of a task receives all of its answers at once, through the run
directory in which they are stored, and returns the flat numbers of `equivox.integrations.flat`. All tasks of one
evaluation are scored together, as in `equivox run`: q-values and BADF's tests are over all of them.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lighteval.metrics.metrics_corpus import CorpusLevelComputation
from lighteval.metrics.metrics_sample import SampleLevelComputation
from lighteval.metrics.utils.metric_utils import CorpusLevelMetric
from lighteval.models.model_output import ModelResponse
from lighteval.tasks.lighteval_task import LightevalTaskConfig
from lighteval.tasks.requests import Doc, SamplingMethod

from equivox.core.errors import UsageError
from equivox.core.scores import Score
from equivox.core.task import Task
from equivox.core.variants import GREEDILY, with_sampling
from equivox.integrations.flat import flat_metrics
from equivox.integrations.lighteval import MODEL_FILE
from equivox.integrations.lighteval.runs import Runs, Settings, Stop, one_line
from equivox.report.notes import write_note
from equivox.tasks.registry import builtin_tasks

_LOG = logging.getLogger(__name__)

METRIC = "equivox"
"""The name of every task's metric; its numbers have the names of `equivox.integrations.flat`."""


def lighteval_tasks() -> dict[str, Task]:
    """Return the tasks for lighteval by name: as declared, and a greedy variant if that differs.

    Left out are those that lighteval could not ask: it knows no answers by voice.
    """
    asked = [task for task in builtin_tasks().values() if "speech" not in task.prompt.needs]
    every = [*asked, *(with_sampling(task, GREEDILY) for task in asked)]
    return {task.name: task for task in every}


def tasks_table() -> list[LightevalTaskConfig]:
    """Return the tasks for lighteval's registry, with settings from the environment; no data are read yet."""
    with one_line():
        evaluation = _Evaluation(Runs(Settings.from_environment()))
    return [_Config.of(task, evaluation) for task in lighteval_tasks().values()]


class _Config(LightevalTaskConfig):  # type: ignore[misc]
    """A task whose documents are written when lighteval asks for their folder, because there are dozens of tasks."""

    @classmethod
    def of(cls, task: Task, evaluation: _Evaluation) -> _Config:
        config = cls(
            name=task.name,
            version=task.version,
            prompt_function=document,
            hf_repo="",
            hf_subset="default",
            hf_avail_splits=["test"],
            evaluation_splits=["test"],
            few_shots_split="test",
            generation_size=task.sampling.max_new_tokens,
            stop_sequence=list(task.sampling.stop),
            metrics=[
                CorpusLevelMetric(
                    metric_name=METRIC,
                    higher_is_better=False,
                    category=SamplingMethod.GENERATIVE,
                    sample_level_fn=_Collect(evaluation, task),
                    corpus_level_fn=_Score(evaluation, task),
                )
            ],
        )
        config.task, config.evaluation = task, evaluation
        return config

    @property
    def hf_repo(self) -> str:
        with one_line():
            if self.num_fewshots:
                raise UsageError(
                    f"{self.name}|{self.num_fewshots} asks for {self.num_fewshots} examples, which would answer for "
                    f"the model; give {self.name} alone"
                )
            return str(self.evaluation.documents(self.task))

    @hf_repo.setter
    def hf_repo(self, given: str) -> None:
        """Ignore the value: the folder of the documents depends on the task."""


class MediaDoc(Doc):  # type: ignore[misc]
    """A document with media; a backend that reads its text before the media were sent gets an error.

    lighteval does not support audio, and all but one of its backends ignore images. `EquivoxModel` sets `arrived` when
    the media were used.
    """

    arrived = False

    @property
    def query(self) -> str:
        """The text that goes with the media; Stop, a sentence, until they have arrived."""
        if not self.arrived:
            raise Stop(_not_sent(self.task_name, self.specific["needs"]))
        return str(self.text)

    @query.setter
    def query(self, text: str) -> None:
        self.text = text


def document(line: Mapping[str, Any], task_name: str) -> Doc:
    """Return one request of a plan as a document; its query is the complete prompt of a text model."""
    kind = MediaDoc if line["needs"] else Doc
    specific = {name: value for name, value in line.items() if name != "prompt" and not name.startswith("__")}
    return kind(query=line["prompt"], choices=[""], gold_index=0, specific=specific, task_name=task_name)


def _delivered_in(response: ModelResponse) -> Path | None:
    """Return the run in which `response` is stored; None if it is not from an equivox engine."""
    sent = response.input[0] if isinstance(response.input, list) and response.input else None
    return Path(sent["equivox_run"]) if isinstance(sent, Mapping) and "equivox_run" in sent else None


def _not_sent(task_name: str, needs: str) -> str:
    name = task_name.partition("|")[0]
    return (
        f"{name} needs {needs}, which this backend of lighteval does not send: its answers would say nothing about the "
        f"person, so nothing is scored; run it with `lighteval custom NAME {MODEL_FILE} {name} "
        "--custom-tasks equivox.tasks`"
    )


@dataclass(frozen=True)
class _Answer:
    position: int
    text: str
    run: Path | None


class _Evaluation:
    """The answers of all tasks of one evaluation: collected one by one, then scored together once.

    lighteval passes all answers of all tasks before it asks for the first number; an answer after that begins the next
    evaluation.
    """

    def __init__(self, runs: Runs) -> None:
        self.runs = runs
        self._folders: dict[str, str] = {}
        self._answers: dict[str, list[_Answer]] = {}
        self._scores: dict[str, list[Score]] | None = None

    def __deepcopy__(self, memo: dict[int, Any]) -> _Evaluation:
        # lighteval copies every task's configuration; the copies must share one evaluation.
        return self

    def documents(self, task: Task) -> str:
        if task.name not in self._folders:
            self._folders[task.name] = str(self.runs.documents(task))
        return self._folders[task.name]

    def collect(self, task: Task, answer: _Answer) -> None:
        if self._scores is not None:
            self._answers, self._scores = {}, None
        self._answers.setdefault(task.name, []).append(answer)

    def scores(self, task: Task) -> list[Score]:
        if self._scores is None:
            self._scores = self._scored()
        return self._scores[task.name]

    def _scored(self) -> dict[str, list[Score]]:
        tasks = [task for name, task in lighteval_tasks().items() if name in self._answers]
        found: dict[str, list[Score]] = {task.name: [] for task in tasks}
        for folder, members in self._stored(tasks).items():
            for score in self.runs.scores(folder, members):
                # Scores of a whole family are left out: lighteval's tables have no place for them.
                found.get(score.task, []).append(score)
            _LOG.info("kept as a run, for `equivox report %s` and the like", folder)
        return found

    def _stored(self, tasks: Sequence[Task]) -> dict[Path, list[Task]]:
        """Store the answers of other backends; return the runs of all answers with their tasks."""
        folders: dict[Path, list[Task]] = {}
        foreign = []
        for task in tasks:
            (run, *more) = {answer.run for answer in self._answers[task.name]}
            if more:
                raise UsageError(f"{task.name}: answers of several models are mixed; evaluate one model at a time")
            if run is None:
                foreign.append(task)
            else:
                folders.setdefault(run, []).append(task)
        texts = {task.name: {a.position: a.text for a in self._answers[task.name]} for task in foreign}
        for name, folder in self.runs.keep(texts, foreign).items():
            folders.setdefault(folder, []).append(next(task for task in foreign if task.name == name))
        return folders


class _Named:
    """Base of objects whose text lighteval prints and hashes; it is equal in every process."""

    def __init__(self, evaluation: _Evaluation, task: Task) -> None:
        self._evaluation = evaluation
        self._task = task

    def __str__(self) -> str:
        return f"{METRIC} {self._task.name} {self._task.fingerprint[:16]}"


class _Collect(_Named, SampleLevelComputation):  # type: ignore[misc]
    """Collects one answer and returns its row in lighteval's details."""

    def compute(self, doc: Doc, model_response: ModelResponse, **_: Any) -> dict[str, Any]:
        with one_line():
            text = model_response.text[0] if model_response.text else ""
            run = _delivered_in(model_response)
            if run is None and doc.specific["needs"]:
                raise Stop(_not_sent(self._task.name, doc.specific["needs"]))
            self._evaluation.collect(self._task, _Answer(doc.specific["position"], text, run))
        return {"position": doc.specific["position"], "answered": bool(text.strip())}


class _Score(_Named, CorpusLevelComputation):  # type: ignore[misc]
    """Scores all answers of the evaluation when the first task asks, and returns the numbers of its task."""

    def compute_corpus(self, items: Sequence[Mapping[str, Any]]) -> dict[str, float]:
        with one_line():
            scores = self._evaluation.scores(self._task)
        for score in scores:
            if score.is_whole and score.undefined_reason is not None:
                reason = write_note(score.undefined_reason)
                _LOG.warning("%s: %s is undefined (NaN): %s", self._task.name, score.metric, reason)
        lost = sum(not item["answered"] for item in items)
        if lost:
            _LOG.warning(
                "%s: %d of %d requests have no answer; they count as failed", self._task.name, lost, len(items)
            )
        return flat_metrics(scores)
