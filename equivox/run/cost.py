"""What a run file costs, before anything runs: responses, annotator calls and GPU-hours."""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from equivox.annotate import RULES
from equivox.core.task import Task
from equivox.core.variants import SHUFFLED
from equivox.dataset_builders.corpus import Corpus, open_corpus
from equivox.engines import EngineIdentity, engine_of
from equivox.run.design import published_items
from equivox.run.plan import make_plan
from equivox.run.run_files import EstimateFields, RunFile, Setting
from equivox.run.speed import Speed, read_speed

_NOBODY = EngineIdentity(engine="none", model="none", revision="")


ONE_AT_A_TIME = 40.0
"""Tokens that transformers generates per second on one GPU: a guess. It answers one request after the other."""


@dataclass(frozen=True, kw_only=True)
class ModelEstimate:
    """Estimated cost of one model in one setting. `gpu_hours` is 0 for a model on a server or without a GPU.

    `tokens_per_second` is 0 there, too; `measured` says whether it comes from a run, or is a guess.
    """

    model: str
    setting: str
    engine: str
    responses: int
    annotator_calls: int
    tokens_per_second: float
    measured: bool
    gpu_hours: float
    annotator_gpu_hours: float


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """Estimated cost of a run file by setting and model; `sources` says where the numbers of samples come from."""

    models: Sequence[ModelEstimate]
    tasks: int
    sources: Sequence[str]
    assumptions: Sequence[EstimateFields]


def estimate(settings: Sequence[Setting], output: Path | None = None) -> Estimate:
    """Estimate the cost of a run file's `settings`; nothing is written and no model is loaded.

    Samples are counted in the corpora that `data` names; without `data`, published numbers are used. Requests that
    several tasks share are counted once; annotator calls are at most one per segment of a response, without retries,
    for each annotator and evaluation. Speed and length of the answers are those of the runs under `output`, where a
    model has one with enough responses; otherwise guesses.
    """
    models: list[ModelEstimate] = []
    sources: list[str] = []
    corpora: dict[str, Corpus] = {}
    for setting in settings:
        responses, calls, own = _requests(setting.file, setting.varied, corpora)
        sources += own
        models += [_of_model(setting, model, responses, calls, output) for model in setting.file.models]
    return Estimate(
        models=models,
        tasks=sum(len(setting.varied) for setting in settings),
        sources=list(dict.fromkeys(sources)),
        assumptions=list(dict.fromkeys(setting.file.estimate for setting in settings)),
    )


def _of_model(setting: Setting, model: str, responses: int, calls: int, output: Path | None) -> ModelEstimate:
    file, reckoned = setting.file, setting.file.estimate
    engine = engine_of(model)[0]
    speed = {"vllm": reckoned.tokens_per_second, "transformers": ONE_AT_A_TIME}.get(engine, 0.0)
    length, found = reckoned.completion_tokens, Speed()
    if speed and output is not None:
        found = read_speed(setting.spec(model, output).output)
    measured = not math.isnan(found.per_second)
    if measured:
        speed, length = found.per_second, found.per_response
    readers = [name for name in file.annotators if name != RULES]
    calls = calls * len(readers) * file.evaluations
    return ModelEstimate(
        model=model,
        setting=setting.name,
        engine=engine,
        responses=responses,
        annotator_calls=calls,
        tokens_per_second=speed,
        measured=measured,
        gpu_hours=responses * length / speed / 3600 if speed else 0.0,
        annotator_gpu_hours=calls * reckoned.annotation_tokens / reckoned.annotation_tokens_per_second / 3600,
    )


def _requests(file: RunFile, tasks: Sequence[Task], corpora: dict[str, Corpus]) -> tuple[int, int, list[str]]:
    """Return the numbers of distinct requests and of annotator calls for one model, and the sources of the counts."""
    responses = calls = 0
    sources = []
    for task in tasks:
        name = task.data.corpus
        asked = len([segment for segment in task.annotation.asks(task) if not segment.alone])
        if file.data is None and task.data.table is None and published_items(task) is not None:
            items = min(published_items(task) or 0, file.limit or 10**9)
            n = 0 if task.condition == SHUFFLED else items * task.sampling.repeats * _ways(task)
            sources.append(f"{name}: {items:,} samples as published")
        else:
            corpora[name] = corpora.get(name) or open_corpus(task.data, file.data)
            plan = make_plan([task], corpora, _NOBODY, limit=file.limit, seed=file.seed)
            n = 0 if task.condition == SHUFFLED else len(plan.distinct)
            sources.append(
                f"{name}: {len(corpora[name].samples):,} samples in "
                f"{file.data or task.data.table or 'the published grid'}"
            )
        responses += n
        calls += n * asked
    return responses, calls, list(dict.fromkeys(sources))


def _ways(task: Task) -> int:
    """Return the number of presentations of a sample; its columns do not matter."""
    if task.prompt.presentations is None:
        return 1
    return len(task.prompt.presentations(defaultdict(str), random.Random(0)))
