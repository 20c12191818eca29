"""Estimated cost of a run or a run file, before it runs: responses, annotator calls, GPU-hours, hours and prices."""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from equivox.annotate import RULES, added_annotators, declared_annotator, evaluation_of, open_annotator
from equivox.annotate.model import prompt_text
from equivox.core.lazy import pc
from equivox.core.plugins import freed
from equivox.core.requests import Request
from equivox.core.task import Task
from equivox.core.variants import asks_nothing
from equivox.dataset_builders.corpus import Corpus
from equivox.dataset_builders.opening import open_corpus
from equivox.engines import REPLICAS, EngineIdentity, engine_of, public_name
from equivox.engines.endpoint import EndpointSettings
from equivox.run.design import compared_rows, published_items
from equivox.run.generating import pending_rows
from equivox.run.live import FEWEST_RESPONSES, read_speed, read_usage
from equivox.run.pipeline import PreparedRun, checked
from equivox.run.plan import Plan, make_plan
from equivox.run.run_files import EstimateFields, RunFile, Setting
from equivox.run.spec import RunSpec

_NOBODY = EngineIdentity(engine="none", model="none", revision="")
_GUESSES = EstimateFields()


ONE_AT_A_TIME = 40.0
"""Tokens per second of one answer on one GPU: a guess. transformers answers one request after the other; a server
answers as many at a time as it is sent."""

LOCAL = frozenset({"localhost", "127.0.0.1", "::1"})
"""Hosts of servers that run on this machine, whose GPU-hours are the user's own."""


@dataclass(frozen=True, kw_only=True)
class Effort:
    """The needs of a number of calls to one model, in tokens, GPU-hours, hours on the clock and money.

    `gpu_hours` and `hours` are 0 for a model of somebody else's server or without a GPU, and so is
    `tokens_per_second`, which is that of one worker. A server on this machine that names no prices counts as one GPU.
    `measured` says whether tokens and speed come from a run, or are guesses. `cost` is in the currency of the prices
    that the model's arguments name, NaN without prices.
    """

    name: str
    engine: str
    calls: int
    prompt_tokens: float = 0.0
    completion_tokens: float = 0.0
    tokens_per_second: float = 0.0
    measured: bool = False
    gpu_hours: float = 0.0
    hours: float = 0.0
    cost: float = math.nan


EstimatedModel = tuple[str, Effort, Sequence[Effort]]
"""A setting, the effort of one of its models, and those of the annotators of its answers."""


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """Estimated cost of a run file by setting and model; `sources` says where the numbers of samples come from.

    The hours on the clock are those with `workers` workers, all of them busy.
    """

    models: Sequence[EstimatedModel]
    tasks: int
    sources: Sequence[str]
    assumptions: Sequence[EstimateFields]
    workers: int


def estimate(settings: Sequence[Setting], output: Path | None = None, *, workers: int = 1) -> Estimate:
    """Estimate the cost of a run file's `settings`; nothing is written and no model is loaded.

    Samples are counted in the corpora that `data` names; without `data`, published numbers are used. Requests that
    several tasks share are counted once; annotator calls are at most one per segment of a response, without retries,
    for each annotator and evaluation. Speed and length of the answers are those of the runs under `output`, where a
    model has one with enough responses; otherwise guesses.
    """
    models: list[EstimatedModel] = []
    sources: list[str] = []
    opened_in: defaultdict[str | None, dict[str, Corpus]] = defaultdict(dict)
    for setting in settings:
        responses, calls, own = _requests(setting.file, setting.varied, opened_in[setting.file.data])
        sources += own
        for model in setting.file.models:
            folder = None if output is None else setting.spec(model, output).output
            reckoned = setting.file.estimate
            target = target_effort(model, responses, reckoned, folder=folder, workers=workers)
            annotators = [
                annotator_effort(name, calls * setting.file.evaluations, reckoned, workers=workers)
                for name in setting.file.annotators
                if name != RULES
            ]
            models.append((setting.name, target, annotators))
    return Estimate(
        models=models,
        tasks=sum(len(setting.varied) for setting in settings),
        sources=list(dict.fromkeys(sources)),
        assumptions=list(dict.fromkeys(setting.file.estimate for setting in settings)),
        workers=workers,
    )


def target_effort(
    model: str,
    calls: int,
    reckoned: EstimateFields = _GUESSES,
    *,
    folder: Path | None = None,
    workers: int = 1,
) -> Effort:
    """Return what so many requests to `model` take.

    Tokens per request are those of the run in `folder`, if it has enough responses, else those that are reckoned.
    """
    engine, arguments = engine_of(model)
    speed = _guessed_speed(engine, arguments, reckoned.tokens_per_second)
    prompt, length, measured = reckoned.prompt_tokens, reckoned.completion_tokens, False
    if folder is not None:
        found, usage = read_speed(folder), read_usage(folder)
        if speed and not math.isnan(found.per_second):
            speed, length, measured = found.per_second, found.per_response, True
        if usage.get("requests", 0) >= FEWEST_RESPONSES:
            prompt, length = (usage[name] / usage["requests"] for name in ("prompt_tokens", "completion_tokens"))
            measured = True
    return _effort(
        public_name(model), engine, arguments, calls,
        prompt=prompt, length=length, speed=speed, measured=measured, workers=workers,
    )  # fmt: skip


def annotator_effort(name: str, calls: int, reckoned: EstimateFields = _GUESSES, *, workers: int = 1) -> Effort:
    """Return what so many requests to an annotator that is a model take; nothing is known of one without a file."""
    own = evaluation_of(name)[0]
    if own in added_annotators():
        return Effort(name=name, engine="", calls=calls)
    _, declared = declared_annotator(own)
    speed = _guessed_speed(declared.engine, declared.model_parameters, reckoned.annotation_tokens_per_second)
    return _effort(
        name, declared.engine, declared.model_parameters, calls,
        prompt=reckoned.annotation_prompt_tokens, length=reckoned.annotation_tokens,
        speed=speed, measured=False, workers=workers,
    )  # fmt: skip


def server_hosts(arguments: Mapping[str, Any]) -> list[str]:
    """Return the host of each server that the arguments of an endpoint name.

    >>> server_hosts({"base_url": ["http://127.0.0.1:8001/v1", "https://api.example.org/v1"]})
    ['127.0.0.1', 'api.example.org']
    """
    given = arguments.get("base_url", "")
    return [urlsplit(str(url)).hostname or "" for url in (given if isinstance(given, list | tuple) else [given])]


def _guessed_speed(engine: str, arguments: Mapping[str, Any] | str, batched: float) -> float:
    """Return the tokens per second of a worker, by a guess; 0 for a model without a GPU of the user's."""
    if engine == "vllm" or isinstance(arguments, str):
        return batched if engine == "vllm" else 0.0
    if engine == "transformers":
        return ONE_AT_A_TIME
    if engine == "endpoint" and LOCAL.issuperset(server_hosts(arguments)) and not any(_prices(arguments)):
        return min(batched, ONE_AT_A_TIME * _number(arguments, "max_concurrency", EndpointSettings.max_concurrency))
    return 0.0


def _prices(arguments: Mapping[str, Any]) -> list[float]:
    return [_number(arguments, f"{kind}_price", 0) for kind in ("prompt", "completion")]


def _effort(
    name: str,
    engine: str,
    arguments: Mapping[str, Any] | str,
    calls: int,
    *,
    prompt: float,
    length: float,
    speed: float,
    measured: bool,
    workers: int,
) -> Effort:
    """Return the effort of `calls` of so many tokens each; `arguments` name the GPUs of a worker, or the prices."""
    if isinstance(arguments, str):  # a simulated model
        return Effort(name=name, engine=engine, calls=calls)
    workers = max(workers, int(_number(arguments, REPLICAS, 1)))
    if engine == "endpoint":
        # One client asks all servers, and what was measured is the speed of all.
        workers = len(server_hosts(arguments))
        speed /= workers if measured else 1
    gpus = math.prod(_number(arguments, f"{kind}_parallel_size", 1) for kind in ("tensor", "pipeline"))
    gpu_hours = calls * length / speed / 3600 if speed else 0.0
    if measured:  # the speed of a worker; a guess is the speed of a GPU
        gpu_hours *= gpus
    prices = _prices(arguments)
    return Effort(
        name=name,
        engine=engine,
        calls=calls,
        prompt_tokens=calls * prompt,
        completion_tokens=calls * length,
        tokens_per_second=speed,
        measured=measured,
        gpu_hours=gpu_hours,
        hours=gpu_hours / gpus / max(1, min(workers, calls)),
        cost=calls * (prompt * prices[0] + length * prices[1]) / 1e6 if any(prices) else math.nan,
    )


def _number(arguments: Mapping[str, Any], name: str, default: float) -> float:
    given = arguments.get(name, default)
    return given if isinstance(given, int | float) and given > 0 else default


def _requests(file: RunFile, tasks: Sequence[Task], corpora: dict[str, Corpus]) -> tuple[int, int, list[str]]:
    """Return the numbers of distinct requests and of annotator calls for one model, and the sources of the counts."""
    responses = calls = 0
    sources = []
    for task in tasks:
        name = task.data.corpus
        asked = len(task.annotation.most_calls(task))
        published = published_items(task) if file.data is None and task.data.table is None else None
        if published is not None:
            items = min(published, file.limit or published)
            # The columns of a sample do not matter for how many presentations it has.
            ways = task.prompt.presentations
            n_ways = 1 if ways is None else len(ways(defaultdict(str), random.Random(0)))
            n = 0 if asks_nothing(task) else items * task.sampling.repeats * n_ways
            sources.append(f"{name}: {items:,} samples as published")
        else:
            corpora[name] = corpora.get(name) or open_corpus(task.data, file.data)
            plan = make_plan([task], corpora, _NOBODY, limit=file.limit, seed=file.seed)
            n = 0 if asks_nothing(task) else len(plan.distinct)
            sources.append(
                f"{name}: {len(corpora[name].samples):,} samples in "
                f"{file.data or task.data.table or 'the published grid'}"
            )
        responses += n
        calls += n * asked
    return responses, calls, list(dict.fromkeys(sources))


CHARACTERS_PER_TOKEN = 4
"""Characters of a prompt per token: a guess for English."""
MEDIA_TOKENS = 500
"""Tokens of a recording or an image: a guess; models differ from 60 to 3,000."""
SECONDS_PER_TOKEN, BYTES_PER_SECOND = 0.3, 48_000
"""How long a token is spoken, and what a second of it takes: guesses, for 2.5 words a second and WAV at 24,000 Hz."""
_LOOKED_AT = 1000
"""So many requests, spread over the plan, tell the lengths of all."""


@dataclass(frozen=True, kw_only=True)
class DryRun:
    """The needs of a run: its requests, those that it has answered, and the efforts of model and annotator.

    `unusable` counts requests whose media cannot be used, which are not sent. `annotator` is None if no model
    annotates; its calls are those for the whole run, annotated already or not, at most one per segment of a response.
    `uncompared` counts, by task, requests without a counterpart of every group in what the task holds equal.
    `sound_bytes` is a guess at what spoken answers will take on disk.
    """

    requests: int
    answered: int
    unusable: int
    tasks: int
    target: Effort
    annotator: Effort | None
    workers: int
    sound_bytes: float
    uncompared: Mapping[str, int] = field(default_factory=dict)


def dry_run(spec: RunSpec) -> DryRun:
    """Check `spec` as a run does and estimate what it takes; RequestError for what a run would refuse.

    With several workers Ray is started or connected to, and no worker is started.
    """
    with freed(open_annotator(spec.annotator, spec.workers)) as annotator, checked(spec, annotator) as run:
        return _reckoned(run)


def _reckoned(run: PreparedRun) -> DryRun:
    spec, workers = run.spec, run.spec.workers.count
    pending = pending_rows(spec.output, run.plan, retry_failed=spec.retry_failed)
    prompt, longest = _lengths(run.plan.requests(pending[run.plan.usable[pending]]))
    answer = min(longest, _GUESSES.completion_tokens)
    guessed = _GUESSES.model_copy(update={"prompt_tokens": prompt, "completion_tokens": answer})
    target = target_effort(spec.model, run.to_ask, guessed, folder=spec.output, workers=workers)
    speaks = any(task.prompt.spoken for task in run.tasks)
    spoken = sum(request.spoken for request in run.plan.requests(pending)) if speaks else 0
    annotator = None
    if evaluation_of(spec.annotator)[0] != RULES:
        calls, tokens = _annotator_calls(run.plan, run.tasks)
        guessed = _GUESSES.model_copy(update={"annotation_prompt_tokens": tokens})
        annotator = annotator_effort(spec.annotator, calls, guessed, workers=workers)
    return DryRun(
        requests=len(run.plan.distinct),
        answered=len(run.plan.distinct) - len(pending),
        unusable=len(pending) - run.to_ask,
        tasks=len(run.tasks),
        target=target,
        annotator=annotator,
        workers=workers,
        sound_bytes=spoken * answer * SECONDS_PER_TOKEN * BYTES_PER_SECOND,
        uncompared={task.name: _uncompared(task, run.plan) for task in run.tasks if task.strata or task.blocks},
    )


def _uncompared(task: Task, plan: Plan) -> int:
    asked = plan.table.filter(pc.equal(plan.table["task"], task.name))
    return len(asked) - len(compared_rows(task, asked))


def _lengths(requests: Sequence[Request]) -> tuple[float, float]:
    """Return the mean tokens of the prompts, media included, and the mean of the most that an answer may have."""
    if not requests:
        return 0.0, 0.0
    looked = [requests[i] for i in range(0, len(requests), math.ceil(len(requests) / _LOOKED_AT))]
    prompts = sum(
        (len(one.system + one.text) + sum(len(turn.text) for turn in one.before)) / CHARACTERS_PER_TOKEN
        + MEDIA_TOKENS * len(one.media)
        + _GUESSES.completion_tokens * len(one.before)
        for one in looked
    )
    return prompts / len(looked), sum(one.sampling.max_new_tokens for one in looked) / len(looked)


def _annotator_calls(plan: Plan, tasks: Sequence[Task]) -> tuple[int, float]:
    """Return the calls to an annotator, at most one per segment of a response, and the mean tokens of their prompts."""
    calls, characters = 0, 0.0
    for task in tasks:
        if asks_nothing(task):
            continue
        keys = plan.table["key"].filter(pc.equal(plan.table["task"], task.name))
        n = len(keys.unique())
        for segment in task.annotation.most_calls(task):
            calls += n
            characters += n * len(prompt_text(segment))
    answers = _GUESSES.completion_tokens
    return calls, characters / calls / CHARACTERS_PER_TOKEN + answers if calls else 0.0
