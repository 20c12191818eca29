"""Logs of inspect_ai as a run: answers and annotations are taken from them, and scored as `equivox run` scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from inspect_ai.log import EvalLog, EvalSample, read_eval_log

from equivox.annotate import AnnotatorIdentity, open_annotator
from equivox.core.errors import RequestError
from equivox.core.progress import Progress, no_progress
from equivox.core.redact import redacted_text
from equivox.core.scores import DEFAULT_OPTIONS, Score, ScoringOptions
from equivox.core.segments import check_tools
from equivox.core.task import Task
from equivox.core.variants import vary
from equivox.dataset_builders.corpus import Corpus
from equivox.integrations.inspect.asking import ANY_MODEL, PACKAGE, Settings, looks_like_log, sample_id
from equivox.integrations.inspect.layout import SCORER, annotator_in, answer_in, scored_answer
from equivox.integrations.inspect.recorded import Answer, score_recorded
from equivox.run.pipeline import open_corpora
from equivox.run.plan import make_plan
from equivox.run.spec import RunSpec
from equivox.tasks.registry import resolve_tasks


@dataclass(frozen=True, kw_only=True)
class ImportedLogs:
    """The result of an import: the scores of the run, its model, and the counts of answers and requests.

    Attributes
    ----------
    n_answers, n_missing
        The numbers of samples that are answers, and of requests without one, which count as failed.
    """

    scores: Sequence[Score]
    spec: RunSpec
    annotator: str
    n_answers: int
    n_missing: int


@dataclass(frozen=True)
class _Log:
    """A log of a task of equivox."""

    name: str
    log: EvalLog
    settings: Settings
    about: Mapping[str, Any]


def import_logs(
    path: Path,
    output: Path,
    *,
    tasks: Sequence[Task] | None = None,
    model: str | None = None,
    data: str | None = None,
    annotator: str | None = None,
    options: ScoringOptions = DEFAULT_OPTIONS,
    progress: Progress = no_progress,
) -> ImportedLogs:
    """Make a run in the folder `output` of a log, or of all logs in a folder, and score it.

    `tasks` declares the tasks if they are custom ones. `data` says where the corpus is, by default where the log says.
    `annotator` annotates the answers anew; without it the log's annotations count. RequestError, before anything is
    written, for a log of another project's task, for one that asked otherwise than this version, and for logs that
    are not of one run.
    """
    logs = _in_order([_opened(file) for file in _files(path)])
    settings = _common(logs)
    if data is not None:
        settings = replace(settings, data=data)
    declared = _declared(logs, tasks)
    spec = settings.spec(output, model or logs[0].log.eval.model, declared)
    conditions = tuple(dict.fromkeys(log.settings.condition for log in logs))
    spec = replace(spec, conditions=conditions, options=options, about={"logs": [log.log.eval.eval_id for log in logs]})
    varied = vary(spec.tasks, group=spec.group, conditions=conditions, sampling=spec.sampling)
    _check_tasks(logs, varied)
    check_tools(varied)
    corpora = _corpora(varied, settings, path)
    answers = {
        (log.about["task"], str(sample.id)): _answer(log, sample) for log in logs for sample in log.log.samples or ()
    }
    wanted = _wanted(varied, corpora, settings)
    unknown = [place for place in answers if place not in wanted]
    if unknown:
        raise RequestError(
            f"{len(unknown):,} of {len(answers):,} samples of {path.name} are no requests of {unknown[0][0]} on these "
            "data; name the data that were asked about by `--data`"
        )
    annotators = annotator_named(annotator, logs)
    scores = score_recorded(spec, answers, annotators, corpora=corpora, follow_up=_follow_up(logs), progress=progress)
    name = annotators.name if isinstance(annotators, AnnotatorIdentity) else annotators.identity.name
    n_answers = sum(answer.text is not None for answer in answers.values())
    return ImportedLogs(
        scores=scores, spec=spec, annotator=name, n_answers=n_answers, n_missing=len(wanted) - n_answers
    )


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    return sorted(file for file in path.iterdir() if file.is_file() and looks_like_log(file))


def _opened(path: Path) -> _Log:
    try:
        log = read_eval_log(str(path))
    except Exception as error:  # its reader raises whatever a damaged file makes it raise
        raise RequestError(
            f"{path} cannot be read as a log of inspect_ai ({type(error).__name__}); check it"
        ) from error
    about = (log.eval.metadata or {}).get(PACKAGE)
    if not isinstance(about, Mapping) or not {"task", "fingerprint", "settings"} <= about.keys():
        raise RequestError(
            f"{path.name} is a log of {log.eval.task}, which is no task of equivox; import logs of `inspect eval "
            f"{PACKAGE}/TASK`, or a table of responses"
        )
    if any(sample.epoch > 1 for sample in log.samples or ()):
        raise RequestError(f"{path.name} has several epochs, which are no samples of their own; evaluate without them")
    return _Log(path.name, log, Settings(**about["settings"]), about)


def _in_order(logs: list[_Log]) -> list[_Log]:
    """Return the logs in the order of the tasks in the run that they were exported from, if there is one."""
    order = list(logs[0].about.get("run", {}).get("identity", {}).get("tasks", {}))
    return sorted(logs, key=lambda log: order.index(log.about["task"]) if log.about["task"] in order else len(order))


def _common(logs: Sequence[_Log]) -> Settings:
    """Return the settings that all logs share; RequestError if they are not of one run."""
    first = logs[0]
    for log in logs[1:]:
        if log.log.eval.model != first.log.eval.model:
            raise RequestError(
                f"{first.name} is of {first.log.eval.model} and {log.name} of {log.log.eval.model}; import them apart"
            )
        same = replace(log.settings, task=first.settings.task, condition=first.settings.condition)
        if same != first.settings:
            raise RequestError(f"{first.name} and {log.name} have different settings; import them apart")
    return first.settings


def _declared(logs: Sequence[_Log], tasks: Sequence[Task] | None) -> list[Task]:
    names = list(dict.fromkeys(log.settings.task for log in logs))
    known = {task.name: task for task in (resolve_tasks(",".join(names)) if tasks is None else tasks)}
    missing = [name for name in names if name not in known]
    if missing:
        raise RequestError(f"the logs are about {missing[0]}, which is not among {', '.join(known)}; name its file")
    return [known[name] for name in names]


def _check_tasks(logs: Sequence[_Log], varied: Sequence[Task]) -> None:
    known = {task.name: task.fingerprint for task in varied}
    seen: dict[str, str] = {}
    for log in logs:
        task = str(log.about["task"])
        if task in seen:
            raise RequestError(f"{seen[task]} and {log.name} are both about {task}; import them apart")
        seen[task] = log.name
        if known.get(task) != log.about["fingerprint"]:
            raise RequestError(
                f"{log.name} asked {task} in another version, or annotated it otherwise; import it with the equivox "
                f"that made it ({log.log.eval.packages.get(PACKAGE, 'unknown')})"
            )
    if lacking := [name for name in known if name not in seen]:
        raise RequestError(f"there is no log of {lacking[0]} beside the other conditions; import them apart")


def _corpora(tasks: Sequence[Task], settings: Settings, path: Path) -> dict[str, Corpus]:
    try:
        return open_corpora(tasks, settings.data, {})
    except RequestError as error:
        raise RequestError(f"{error}; say by `--data` where the corpus of {path.name} is") from error


def _wanted(tasks: Sequence[Task], corpora: Mapping[str, Corpus], settings: Settings) -> set[tuple[str, str]]:
    plan = make_plan(tasks, corpora, ANY_MODEL, limit=settings.limit, seed=settings.seed)
    return {(planned.task, sample_id(planned.request)) for planned in plan.requests}


def _answer(log: _Log, sample: EvalSample) -> Answer:
    score = (sample.scores or {}).get(SCORER)
    if score is not None and score.answer is not None:
        counted = answer_in(sample.output)
        return replace(
            scored_answer(score), prompt_tokens=counted.prompt_tokens, completion_tokens=counted.completion_tokens
        )
    if sample.error is not None:
        return Answer(text=None, error=redacted_text(sample.error.message))
    return answer_in(sample.output)


def annotator_named(named: str | None, logs: Sequence[_Log]) -> Any:
    """Return the annotator called `named`, or the identity of the one whose annotations the logs hold."""
    if named is not None:
        return open_annotator(named)
    scores = [(sample.scores or {}).get(SCORER) for log in logs for sample in log.log.samples or ()]
    found = {one.digest: one for one in (annotator_in(score) for score in scores if score) if one is not None}
    if len(found) != 1:
        names = ", ".join(one.name for one in found.values())
        raise RequestError(
            f"the logs hold annotations by {len(found)} annotators ({names or 'none'}); name one by `--annotator`"
        )
    return next(iter(found.values()))


def _follow_up(logs: Sequence[_Log]) -> list[Mapping[str, Any]]:
    return list({record["key"]: record for log in logs for record in log.about.get("follow_up", ())}.values())
