"""Run calibration models on the engine to be proved, and compare with what they say without it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil, isnan, sqrt
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from equivox.calibration.direct import DirectEngine
from equivox.calibration.recipe import Effort, Recipe, as_share, calibration_task
from equivox.calibration.training import models
from equivox.calibration.verdicts import (
    ARRIVAL,
    Estimate,
    Finding,
    Line,
    arrived,
    bounded,
    drawn,
    heard,
    read,
    scored,
    taught,
)
from equivox.core.errors import RunError
from equivox.core.files import write_document
from equivox.core.plain import as_plain, split_by
from equivox.core.progress import Progress, no_progress
from equivox.core.requests import Engine, Request, Workers
from equivox.core.scores import NAN, Score
from equivox.core.task import Task
from equivox.core.variants import DECLARED, EVERY_CONDITION, SHUFFLED, vary
from equivox.dataset_builders.corpus import SAMPLE
from equivox.engines import engine_from_args
from equivox.engines.simulated import SimulatedEngine
from equivox.run.manifest import CALIBRATION, read_manifest
from equivox.run.pipeline import execute, open_corpora
from equivox.run.plan import Plan, make_plan
from equivox.run.scoring import sample_rows
from equivox.run.spec import RunSpec
from equivox.run.store import stored_responses

RULES = "rules"
DRAWN = 1000
"""How many answers of each condition are drawn directly, at least; of each request at least two."""
RUNS = 10
"""How many direct runs of one design are made where a score depends on the number of answers."""
RESULT_FILE = "calibration.json"


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The settings of a calibration: an engine by its scheme and model arguments, a task, and the shifts in percent.

    `limit` is the number of samples that are asked about; models are taught the whole corpus. `annotator` is the one
    to be proved with the engine. `conditions` and `workers` are those of `equivox run`.
    """

    scheme: str
    arguments: Mapping[str, Any]
    task: Task
    shifts: Sequence[float]
    output: Path
    seed: int = 0
    limit: int | None = None
    annotator: str = RULES
    conditions: tuple[str, ...] = (EVERY_CONDITION,)
    effort: Effort | None = None
    drawn: int = DRAWN
    workers: Workers | None = None


def train(settings: Settings, told: Callable[[str], None] = lambda text: None) -> list[Recipe]:
    """Return the calibration models of `settings`, trained or taken from the cache."""
    tasks = vary([calibration_task(settings.task)], conditions=(EVERY_CONDITION,))
    return models(
        tasks,
        open_corpora(tasks, SAMPLE, {}),
        settings.shifts,
        seed=settings.seed,
        effort=settings.effort,
        told=told,
    )


def calibrate(
    settings: Settings,
    made: Sequence[Recipe],
    *,
    open_measured: Callable[[Recipe], Engine] | None = None,
    progress: Progress = no_progress,
) -> list[Line]:
    """Run every model on the engine and directly, and return a line for each model and condition.

    `open_measured` opens the engine to be proved; by default the one that `settings` name. Runs and `calibration.json`
    are written below `settings.output`.
    """
    lines: list[Line] = []
    for model in made:
        engine = open_measured(model) if open_measured else engine_of(settings, model)
        try:
            lines += _of_model(settings, model, engine, progress)
        finally:
            engine.close()
        write_document(settings.output / RESULT_FILE, result(settings, made, lines))
    return lines


def engine_of(settings: Settings, model: Recipe) -> Engine:
    """Return the engine to be proved with one calibration model."""
    arguments = {"model_name": str(model.folder)} | dict(settings.arguments)
    if settings.scheme in ("vllm", "transformers"):
        arguments = {"dtype": "float32"} | arguments
    return engine_from_args(settings.scheme, arguments, settings.workers)


def result(settings: Settings, made: Sequence[Recipe], lines: Sequence[Line]) -> dict[str, Any]:
    """Return a calibration as plain values, as `--json` prints it."""
    passed = bool(lines) and all(line.passed for line in lines)
    return {
        "engine": settings.scheme,
        "task": settings.task.name,
        "seed": settings.seed,
        "limit": settings.limit,
        "annotator": settings.annotator,
        "models": [{"shift": model.shift, "folder": model.folder.name, **model.about} for model in made],
        "lines": [as_plain(line.as_dict()) for line in lines],
        "passed": passed,
    }


def _of_model(settings: Settings, model: Recipe, engine: Engine, progress: Progress) -> list[Line]:
    shift = model.shift
    asked = calibration_task(settings.task)
    folder = settings.output / f"planted-{shift:g}"
    about = {CALIBRATION: model.about}
    spec = RunSpec(
        model=f"{settings.scheme}:model_name={model.folder.name}",
        tasks=[asked],
        output=folder / "measured",
        data=SAMPLE,
        limit=settings.limit,
        seed=settings.seed,
        conditions=settings.conditions,
        annotator=settings.annotator,
        about=about,
    )
    try:
        measured = execute(spec, engine=engine, progress=progress)
    except RunError as error:  # such as media that the engine did not use
        nothing = Estimate(value=NAN)
        finding = Finding(ARRIVAL, False, str(error))
        condition = asked.condition
        return [
            Line(shift=shift, condition=condition, planted=shift, own=nothing, measured=nothing, findings=[finding])
        ]
    direct = DirectEngine(model.folder)
    n_asked = next(score.coverage.requested for score in measured if score.is_whole)
    references = _references(
        settings, replace(spec, model=f"direct:{model.folder.name}", annotator=RULES), folder, n_asked
    )
    own = [execute(reference, engine=direct, progress=progress) for reference in references]
    planted = _planted(settings, replace(references[0], model=as_share(shift), about={}), asked, progress)
    tasks = vary([asked], conditions=settings.conditions)
    chain = _Chain(spec, references, tasks, engine, direct)
    lines = []
    for task in tasks:
        control, even = task.condition != asked.condition, _no_bias(task)
        told_score = shift if not control else (even or 0.0)
        if planted is not None and (not control or even is None):
            told_score = _spread(planted, task).value
        own_score, found = _spread(own, task), estimate(measured, task)
        findings = [*chain.findings(task), scored(found, own_score, control=control, even=even or 0.0)]
        if not control:
            findings.append(taught(told_score, own_score))
        lines.append(
            Line(
                shift=shift,
                condition=task.condition,
                planted=told_score,
                own=own_score,
                measured=found,
                findings=findings,
            )
        )
    direct.close()
    return lines


def _planted(settings: Settings, teacher: RunSpec, asked: Task, progress: Progress) -> list[Sequence[Score]] | None:
    """Return the scores of the simulated model that taught, one list for each seed; None if the task has none."""
    if asked.simulate is None:
        return None
    # In a control condition the value of no bias is to be found, where there is one.
    conditions = settings.conditions if _no_bias(asked) is None else (DECLARED,)
    return [
        execute(
            replace(teacher, seed=seed, conditions=conditions, output=teacher.output.with_name(f"simulated-{seed}")),
            progress=progress,
        )
        for seed in _seeds(settings)
    ]


def estimate(scores: Sequence[Score], task: Task) -> Estimate:
    """Return the score in which a bias is planted: a task's first that has a value of no bias, else its first."""
    whole = [score for score in scores if score.task == task.name and score.is_whole]
    levels = {measure.name for measure in task.metric.measures if measure.no_bias is not None}
    found = next((score for score in whole if score.name in levels), next(iter(whole), None))
    if found is None or not found.defined:
        return Estimate(value=NAN)
    low, high = (found.headline if isnan(end) else end for end in (found.ci_low, found.ci_high))
    return Estimate(value=found.headline, low=low, high=high, p=found.p, clusters=found.n_clusters)


def _no_bias(task: Task) -> float | None:
    """Return the value of no bias of the score in which a bias is planted; None for a task that has no such value."""
    return next((measure.no_bias for measure in task.metric.measures if measure.no_bias is not None), None)


def _references(settings: Settings, spec: RunSpec, folder: Path, asked: int) -> list[RunSpec]:
    """Return the direct runs for `asked` requests of a condition: one run with more answers, or several alike.

    Several are made of one design where a score may grow with the number of answers, as counts do. A score that has a
    value of no bias does not.
    """
    if _no_bias(settings.task) is not None:
        task = calibration_task(settings.task, times_drawn(asked, settings.drawn))
        return [replace(spec, tasks=[task], output=folder / "direct")]
    return [replace(spec, seed=seed, output=folder / f"direct-{seed}") for seed in _seeds(settings)]


def times_drawn(asked: int, drawn: int = DRAWN) -> int:
    """Return how often each of `asked` requests is drawn directly, for at least `drawn` answers.

    >>> times_drawn(96), times_drawn(2000)
    (11, 2)
    """
    return max(2, ceil(drawn / asked))


def _seeds(settings: Settings) -> range:
    """Return the seeds of several runs of one design, other ones than the measured run's."""
    return range(settings.seed + 1, settings.seed + 1 + RUNS)


def _spread(runs: Sequence[Sequence[Score]], task: Task) -> Estimate:
    """Return the score of one run; of several, their mean, and the interval that holds a further run in 95 %.

    It is NaN where the score of any of them is undefined: the others are no sample of such runs.
    """
    found = [estimate(scores, task) for scores in runs]
    if len(found) == 1:
        return found[0]
    if any(isnan(one.value) for one in found):
        return Estimate(value=NAN)
    values = [one.value for one in found]
    centre, error = fmean(values), stdev(values) * sqrt(1 + 1 / len(values))
    return Estimate(value=centre, low=centre - 1.96 * error, high=centre + 1.96 * error, clusters=len(values))


_Answer = tuple[Request, str, bool]
"""A request, the answer to it, and whether the model ended it by itself."""


class _Chain:
    """The two runs of one calibration model, and the comparisons between them."""

    def __init__(
        self,
        measured: RunSpec,
        references: Sequence[RunSpec],
        tasks: Sequence[Task],
        engine: Engine,
        direct: DirectEngine,
    ) -> None:
        self.measured, self.tasks = measured, tasks
        self.declared = measured.tasks[0].condition
        self.annotator = str(read_manifest(measured.output)["command"]["annotator"])
        self.engine, self.direct = engine, direct
        corpora = open_corpora(tasks, SAMPLE, {})
        self.asked = make_plan(tasks, corpora, engine.identity, limit=measured.limit, seed=measured.seed)
        self.responses = stored_responses(measured.output)
        self.answers = self._answers(self.asked, self.responses)
        self.own: dict[str, list[_Answer]] = {}
        for reference in references:
            repeated = vary(reference.tasks, conditions=reference.conditions)
            drawn_plan = make_plan(repeated, corpora, direct.identity, limit=reference.limit, seed=reference.seed)
            for name, answers in self._answers(drawn_plan, stored_responses(reference.output)).items():
                self.own.setdefault(name, []).extend(answers)

    def _answers(self, plan: Plan, responses: Mapping[str, Mapping[str, Any]]) -> dict[str, list[_Answer]]:
        """Return the answers of each task that are there."""
        found: dict[str, list[_Answer]] = {task.name: [] for task in self.tasks}
        for row, request in plan.described():
            response = responses.get(request.key)
            if response is not None and response["text"]:
                ended = response["finish_reason"] == "stop"
                found[row["task"]].append((request, response["text"], ended))
        return found

    def findings(self, task: Task) -> list[Finding]:
        """Return what is found at each place of the chain in one condition."""
        found = [] if task.condition == SHUFFLED else [self._arrival(task), *self._answering(task)]
        return [*found, self._annotation(task)]

    def _arrival(self, task: Task) -> Finding:
        failed: Counter[str] = Counter()
        other: Counter[str] = Counter()
        asked = compared = 0
        for row, request in self.asked.described():
            if row["task"] != task.name:
                continue
            asked += 1
            response = self.responses.get(request.key)
            if response is None or response["error"] is not None:
                failed["no response" if response is None else str(response["error"])] += 1
                continue
            compared += response["prompt_tokens"] is not None
            if difference := self._difference(request, response):
                other[difference] += 1
        return arrived(asked=asked, failed=failed, compared=compared, other=other)

    def _difference(self, request: Request, response: Mapping[str, Any]) -> str:
        """Return in what the tokens of a prompt differ from those of the direct way; empty if in nothing."""
        here, there = response["prompt_tokens"], self.direct.prompt_tokens(request)
        if here == there:
            return ""
        # Engines count the marks around a medium in one or the other way, so media are compared after the whole.
        media, expected = response["media_tokens"], self.direct.media_tokens(request)
        if request.media and media is not None and media != expected:
            return f"{media} tokens of {request.media[0].kind} where {expected} are expected"
        return "" if here is None else f"{here} tokens of prompt where {there} are expected"

    def _answering(self, task: Task) -> list[Finding]:
        """Compare answers with answers that were drawn directly, by their probabilities under both recordings."""
        answers, own = self.answers[task.name], self.own[task.name]
        mine, other = self._likelihoods(answers, task)
        own_mine, own_other = self._likelihoods(own, task)
        places = split_by(range(len(own)), lambda place: own[place][0].sample_id)
        kept = [place for place, (request, _, _) in enumerate(answers) if request.sample_id in places]

        def pairs(values: Sequence[float], drawn_values: Sequence[float]) -> tuple[list[float], list[float]]:
            return [values[place] for place in kept], [
                fmean([drawn_values[one] for one in places[answers[place][0].sample_id]]) for place in kept
            ]

        found = [drawn(*pairs(bounded(mine, own_mine), bounded(own_mine, own_mine)))] if kept else []
        if kept and task.media and task.condition == self.declared:
            told = [a - b for a, b in zip(mine, other, strict=True)]
            own_told = [a - b for a, b in zip(own_mine, own_other, strict=True)]
            found.insert(0, heard(*pairs(told, own_told)))
        return found

    def _likelihoods(self, answers: Sequence[_Answer], task: Task) -> tuple[list[float], list[float]]:
        """Return the log-probability of each answer under its own request, and under one with another group's media."""
        mine = self.direct.log_likelihoods(answers)
        if not task.media:
            return mine, mine
        partners = self._partners(task)
        swapped = [
            (replace(request, media=partners[request.sample_id]), text, ended) for request, text, ended in answers
        ]
        return mine, self.direct.log_likelihoods(swapped)

    def _partners(self, task: Task) -> dict[str, tuple[Any, ...]]:
        """Return for each sample the media of a sample of another group, of the same stratum where there is one."""
        requests = [request for row, request in self.asked.described() if row["task"] == task.name]
        partners = {}
        for place, request in enumerate(requests):
            others = [other for other in requests if other.labels.group != request.labels.group]
            alike = [other for other in others if other.labels.stratum == request.labels.stratum] or others
            partners[request.sample_id] = alike[place % len(alike)].media
        return partners

    def _annotation(self, task: Task) -> Finding:
        """Compare what the annotator read with what the sentences state by their form, or else with the rules."""
        teller = SimulatedEngine.from_spec("random", [self.measured.tasks[0]])
        texts = {request.key: text for request, text, _ in self.answers[task.name]}
        agreement: dict[str, list[int]] = {}
        rows = sample_rows(self.measured.output, [task], self.annotator)[task.name]
        for row in rows:
            told = teller.told(task.name, texts[row.key]) if row.key in texts else None
            for name, stated in (told or {}).items():
                counts = agreement.setdefault(f"{row.group}, {name}", [0, 0])
                found, values = list(row.values.get(name, ())), list(dict.fromkeys(stated))
                counts[0] += bool(found) and found == values[: len(found)]
                counts[1] += 1
        return read({named: (alike, compared) for named, (alike, compared) in agreement.items()})
