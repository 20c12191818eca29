"""Tasks, solver, scorer and metric in the format of inspect_ai, whose registry finds them by an entry point.

Each sample is one request of a task's plan. The scorer annotates its answer; the metric receives all annotations at
once and scores them as `equivox run` does. A request that has no sample in the log counts as failed.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import anyio
import anyio.from_thread
import anyio.to_thread
from inspect_ai import Task as InspectTask
from inspect_ai import task as inspect_task
from inspect_ai._util.error import PrerequisiteError
from inspect_ai._util.package import get_installed_package_name
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import (
    ChatMessageSystem,
    ChatMessageUser,
    GenerateConfig,
    Model,
    ModelOutput,
    ResponseSchema,
    get_model,
    model_roles,
)
from inspect_ai.model._generate_config import active_generate_config
from inspect_ai.model._model import active_model
from inspect_ai.scorer import Metric, SampleScore, Scorer, Target, Value, metric, scorer
from inspect_ai.scorer import Score as LogScore
from inspect_ai.solver import Generate, Solver, TaskState, solver
from inspect_ai.util import JSONSchema

from equivox.annotate import RULES, Annotator, AnnotatorIdentity, open_annotator
from equivox.annotate.model import ModelAnnotator
from equivox.annotate.rules import rules_read
from equivox.core.errors import EquivoxError, RequestError, RunError
from equivox.core.media import MediaError
from equivox.core.requests import Engine, EngineIdentity, Request, Response
from equivox.core.task import Sampling, Task
from equivox.dataset_builders.corpus import Corpus
from equivox.integrations.inspect.asking import (
    ANY_MODEL,
    PACKAGE,
    Settings,
    asked,
    sample_id,
    with_system,
)
from equivox.integrations.inspect.layout import (
    SCORER,
    annotator_in,
    answer_in,
    generate_config,
    log_score,
    media_file,
    message,
    metrics_of,
    sample_metadata,
    scored_answer,
    task_metadata,
)
from equivox.integrations.inspect.recorded import annotate_response, score_recorded
from equivox.run.plan import make_plan
from equivox.tasks.registry import builtin_tasks

_LOG = logging.getLogger(__name__)

GRADER = "grader"
"""The role in which inspect_ai knows a model that judges answers."""


def annotator_of(task: Task, named: str | None) -> Annotator:
    """Return the annotator of an evaluation: the model in the role `grader`, or `rules` if that is `named`.

    Without either, `rules` annotates a task that only needs its own parsers. RequestError for any other task: the
    evaluated model never annotates its own answers unless the user says so.
    """
    if named not in (None, RULES):
        raise RequestError(
            f"`annotator` is {RULES} or left out, got {named!r}; name a model by `--model-role {GRADER}=MODEL`"
        )
    grader = model_roles().get(GRADER)
    if grader is not None and named is not None:
        raise RequestError(f"`-T annotator={RULES}` and a {GRADER} are two annotators; give one of them")
    if isinstance(grader, list):
        raise RequestError(f"the role {GRADER} has {len(grader)} models; give one of them")
    if grader is not None:
        name = re.sub(r"[^A-Za-z0-9._-]+", "-", str(grader)).strip("-.")[:100]
        annotator: Annotator = ModelAnnotator(name, _GraderEngine(grader), sampling=Sampling())
    elif named is None and rules_read([task]):
        raise RequestError(
            f"{task.name}: who reads the free answers? Give a model by `--model-role {GRADER}=MODEL`; "
            f"`-T annotator={RULES}` finds the words of simulated models alone"
        )
    else:
        annotator = open_annotator(RULES)
    annotator.check([task])
    return annotator


class _GraderEngine(Engine):
    """Engine that asks a model of inspect_ai; used in a thread that inspect_ai's event loop started.

    An error of the model is raised: inspect_ai decides what an error of a sample means.
    """

    def __init__(self, model: Model) -> None:
        self._model = model
        self.identity = EngineIdentity(
            engine="inspect",
            model=str(model),
            revision="",
            settings={"generation_parameters": model.config.model_dump(exclude_none=True, mode="json")},
        )

    def generate(self, requests: Iterable[Request]) -> Iterator[Response]:
        """Yield the model's answer to each request, one after the other."""
        for request in requests:
            text = anyio.from_thread.run(self._ask, request)
            yield Response(key=request.key, text=text)

    async def _ask(self, request: Request) -> str:
        sampling = request.sampling
        config = GenerateConfig(
            temperature=sampling.temperature,
            top_p=sampling.top_p,
            max_tokens=sampling.max_new_tokens,
            seed=request.seed % 2**31,
        )
        if request.schema is not None:
            schema = JSONSchema.model_validate(request.schema)
            config.response_schema = ResponseSchema(name="annotation", json_schema=schema, strict=True)
        return (await self._model.generate(request.text, config=config)).completion


_PREFIX = "" if get_installed_package_name(annotator_of) else f"{PACKAGE}/"
"""inspect_ai adds the package's name itself, except in a checkout that is only on the path."""


class Refused(EquivoxError, PrerequisiteError):
    """An error that inspect_ai's command line shows in one line; in Python it is an `EquivoxError` like any other."""

    def __init__(self, message: str) -> None:
        EquivoxError.__init__(self, message)
        PrerequisiteError.__init__(self, message)


def _evaluation(name: str) -> Callable[..., InspectTask]:
    """Return the function that makes the task `name` for inspect_ai; its arguments are those of `-T`."""

    def evaluation(
        data: str | None = None,
        limit: int | None = None,
        seed: int = 0,
        condition: str = "declared",
        sampling: str = "as-declared",
        compare: str | None = None,
        system: str | None = None,
        annotator: str | None = None,
        trust_media: bool = False,
    ) -> InspectTask:
        try:
            conditions = {"condition": condition} | with_system(condition, system)
            settings = Settings(
                task=name, data=data, limit=limit, seed=seed, sampling=sampling, compare=compare, **conditions
            )
            task, corpora = asked(settings)
            if active_model() is not None:
                # In Python a task can be made before the roles are known; the scorer checks again.
                annotator_of(task, annotator)
            samples = _samples(settings, task, corpora)
        except EquivoxError as error:
            raise Refused(str(error)) from error
        arguments = asdict(settings)
        return InspectTask(
            dataset=MemoryDataset(samples, name=task.data.corpus),
            solver=ask(task=name, repeats=task.sampling.repeats, trust_media=trust_media),
            scorer=annotation(annotator=annotator, **arguments),
            metrics=[bias(**arguments)],
            config=generate_config(task.sampling),
            version=task.version,
            display_name=task.name,
            metadata=task_metadata(task, settings),
        )

    return evaluation


TASKS = {
    name.replace(":", "_"): inspect_task(name=_PREFIX + name.replace(":", "_"))(_evaluation(name))
    for name, task in builtin_tasks().items()
    if not task.prompt.needs & {"tools", "speech"}
}
"""The functions that make the tasks, by their names in the registry; their arguments are those of `-T`."""


def _samples(settings: Settings, task: Task, corpora: Mapping[str, Corpus]) -> list[Sample]:
    """Return the requests that can be sent; one with unusable media is left out and counts as failed."""
    plan = make_plan([task], corpora, ANY_MODEL, limit=settings.limit, seed=settings.seed)
    samples = []
    for place, (row, request) in enumerate(plan.described()):
        problem = plan.problem(place)
        if problem is None:
            try:
                content = message(request.text, [media_file(part) for part in request.media])
                before = [ChatMessageSystem(content=request.system)] if request.system else []
                asked_with = [*before, content]
                samples.append(Sample(id=sample_id(request), input=asked_with, metadata=sample_metadata(row, request)))
            except (MediaError, OSError) as error:
                problem = str(error)
        if problem is not None:
            _LOG.warning("%s: not asked, and counted as failed: %s", request.sample_id, problem)
    if not samples:
        raise RequestError(f"{task.name}: no request can be sent")
    return samples


@solver(name=f"{_PREFIX}ask")
def ask(task: str, repeats: int = 1, trust_media: bool = False) -> Solver:
    """Ask the model once, with the request's own seed, and check that the media arrived."""
    arrival = _Arrival(task)

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        if state.epoch > 1:
            raise RequestError(
                f"{task} is asked {state.epoch} epochs, which are no samples of their own; leave `--epochs` out"
            )
        if repeats > 1 and active_generate_config().temperature == 0:
            raise RequestError(
                f"{task} asks each sample {repeats} times, and at temperature 0 all answers are alike; leave "
                "`--temperature` out, or ask once: `-T sampling=greedy`"
            )
        state = await generate(state, seed=state.metadata["seed"] % 2**31)
        if state.metadata.get("media_sha256") and not trust_media and state.model.api != "mockllm":
            await arrival.check(state)
        return state

    return solve


class _Arrival:
    """Check by the provider's count of tokens that media were used: the text alone must be shorter.

    The text alone is sent once per text, for one token.
    """

    def __init__(self, task: str) -> None:
        self._task = task
        self._lock = anyio.Lock()
        self._alone: dict[tuple[str, str], int | None] = {}

    async def check(self, state: TaskState) -> None:
        """Raise RunError if the media of a sample did not arrive, or if the provider does not count."""
        alone, together = await self._text_alone(state), _tokens(state.output)
        if alone is None or together is None:
            raise RunError(
                f"{state.model} reports no usage, so that nothing shows whether the media of {self._task} arrived; "
                "give `-T trust_media=true` if you know that they do"
            )
        if together <= alone:
            raise RunError(
                f"{state.model} used {together} tokens for media and text, and {alone} for the text alone: the media "
                f"of {self._task} did not arrive, so nothing is scored; take a model and a provider that take them"
            )

    async def _text_alone(self, state: TaskState) -> int | None:
        text = state.user_prompt.text
        # Whatever stands before the text is no medium, so its tokens are counted with the text.
        before = [one for one in state.messages if isinstance(one, ChatMessageSystem)]
        key = (str(state.model), "\n".join([*(one.text for one in before), text]))
        async with self._lock:
            if key not in self._alone:
                output = await get_model().generate(
                    [*before, ChatMessageUser(content=text)], config=GenerateConfig(max_tokens=1)
                )
                self._alone[key] = _tokens(output)
            return self._alone[key]


def _tokens(output: ModelOutput) -> int | None:
    usage = output.usage
    if usage is None:
        return None
    # Tokens that were cached by the provider are counted apart.
    return usage.input_tokens + (usage.input_tokens_cache_read or 0) + (usage.input_tokens_cache_write or 0)


@scorer(metrics=[], name=f"{_PREFIX}{SCORER}")
def annotation(annotator: str | None = None, **settings: Any) -> Scorer:
    """Annotate an answer with the model in the role `grader`, or with rules, under the task's own scheme."""
    task, _ = asked(Settings(**settings))

    async def score(state: TaskState, target: Target) -> LogScore:
        chosen = annotator_of(task, annotator)
        answer = answer_in(state.output, str(state.sample_id))
        made = {}
        if answer.text is not None:
            given = (task, state.metadata["metadata"], answer.text, str(state.sample_id), chosen)
            made = await anyio.to_thread.run_sync(annotate_response, *given)
        return log_score(task, state.metadata["metadata"], answer, made, chosen.identity)

    return score


@metric(name=f"{_PREFIX}bias", scores="unreduced")
def bias(**settings: Any) -> Metric:
    """Return the task's scores with their evidence, as `equivox run` computes them; NaN has its reason beside it."""
    wanted = Settings(**settings)

    def compute(scores: list[SampleScore]) -> Value:
        task, corpora = asked(wanted)
        ids = [str(one.sample_id) for one in scores]
        answers = {(task.name, key): scored_answer(one.score, key) for key, one in zip(ids, scores, strict=True)}
        with TemporaryDirectory() as folder:
            spec = wanted.spec(Path(folder) / "run", PACKAGE)
            made = score_recorded(spec, answers, _one_annotator(scores), corpora=corpora)
        return dict(metrics_of([score for score in made if score.task == task.name]))

    return compute


def _one_annotator(scores: list[SampleScore]) -> AnnotatorIdentity:
    """Return the annotator of all samples; RequestError if there are several."""
    known = {one.digest: one for one in (annotator_in(score.score) for score in scores) if one is not None}
    if len(known) > 1:
        raise RequestError(
            f"the samples were annotated by {len(known)} annotators "
            f"({', '.join(one.name for one in known.values())}); evaluate with one"
        )
    return next(iter(known.values()), open_annotator(RULES).identity)
