"""Run files: many models with one protocol. The cost of a run file can be estimated before it is run."""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field

from equivox.annotate import RULES
from equivox.configs import config_names, read_config_file
from equivox.core.errors import EquivoxError, RequestError, nearest
from equivox.core.progress import Progress
from equivox.core.scores import DEFAULT_ENCODER, DEFAULT_MERGE_THRESHOLD, Score, scoring_options
from equivox.core.task import Task
from equivox.core.variants import AS_DECLARED, DECLARED, SHUFFLED, parse_conditions, parse_group, vary
from equivox.dataset_builders.corpus import Corpus, open_corpus
from equivox.engines import EngineIdentity, engine_of
from equivox.run.design import published_items
from equivox.run.pipeline import RunSpec, execute
from equivox.run.plan import make_plan

_NOBODY = EngineIdentity(engine="none", model="none", revision="")


def _joined(value: object) -> object:
    return ",".join(map(str, value)) if isinstance(value, list) else value


class EstimateFields(BaseModel):
    """Assumptions of an estimate: tokens per answer, and tokens that one GPU generates per second."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    completion_tokens: float = Field(default=300, gt=0)
    annotation_tokens: float = Field(default=120, gt=0)
    tokens_per_second: float = Field(default=2500, gt=0)
    annotation_tokens_per_second: float = Field(default=3000, gt=0)


class RunFile(BaseModel):
    """The fields of a run file; unknown fields are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    models: list[str] = Field(min_length=1)
    tasks: Annotated[str, BeforeValidator(_joined)]
    annotator: str = RULES
    conditions: Annotated[str, BeforeValidator(_joined)] = Field(
        default=DECLARED, validation_alias=AliasChoices("conditions", "arms")
    )
    data: str | None = None
    limit: int | None = Field(default=None, ge=1)
    seed: int = 0
    group: str | None = None
    sampling: str = AS_DECLARED
    merge: str = "lemma"
    encoder: str = DEFAULT_ENCODER
    merge_threshold: float = DEFAULT_MERGE_THRESHOLD
    estimate: EstimateFields = EstimateFields()

    def vary(self, tasks: Sequence[Task]) -> list[Task]:
        """Return the run file's `tasks` in every condition that it asks for."""
        group = None if self.group is None else parse_group(self.group)
        return vary(tasks, group=group, conditions=parse_conditions(self.conditions), sampling=self.sampling)

    def spec(self, model: str, tasks: Sequence[Task], output: Path) -> RunSpec:
        """Return the run of one of the models on the run file's `tasks`."""
        return RunSpec(
            model=model,
            tasks=tasks,
            output=output / folder_name(model),
            data=self.data,
            limit=self.limit,
            seed=self.seed,
            group=None if self.group is None else parse_group(self.group),
            conditions=parse_conditions(self.conditions),
            sampling=self.sampling,
            annotator=self.annotator,
            options=scoring_options(merge=self.merge, encoder=self.encoder, merge_threshold=self.merge_threshold),
        )


def open_run_file(name: str, *, data: str | None = None, limit: int | None = None) -> RunFile:
    """Return the run file `name`, packaged or a YAML file; `data` and `limit` replace its fields."""
    packaged = config_names("runs")
    if not name.endswith((".yaml", ".yml")) and name not in packaged:
        raise RequestError(
            f"unknown run file {name!r}{nearest(name, packaged)}; known: {', '.join(packaged)}, or a file"
        )
    declared = read_config_file(RunFile, name, "runs")
    given = {key: value for key, value in {"data": data, "limit": limit}.items() if value is not None}
    return declared.model_copy(update=given)


def folder_name(model: str) -> str:
    """Return the folder name for a model's run.

    >>> folder_name("simulated:planted?shift=0.2"), folder_name("qwen2-audio-7b-instruct"), folder_name("my/model.yaml")
    ('planted-shift=0.2', 'qwen2-audio-7b-instruct', 'model')
    """
    scheme, _, rest = model.partition(":")
    named = rest or scheme
    if named.endswith((".yaml", ".yml")):
        named = Path(named).stem
    return re.sub(r"[^A-Za-z0-9.=]+", "-", named)


@dataclass(frozen=True, kw_only=True)
class ModelEstimate:
    """Estimated cost of one model of a run file. `gpu_hours` is 0 for a model on a server or without a GPU."""

    model: str
    engine: str
    responses: int
    annotator_calls: int
    gpu_hours: float
    annotator_gpu_hours: float


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """Estimated cost of a run file by model; `sources` says where the numbers of samples come from."""

    models: Sequence[ModelEstimate]
    tasks: int
    sources: Sequence[str]
    assumptions: EstimateFields


def estimate(file: RunFile, declared: Sequence[Task]) -> Estimate:
    """Estimate the cost of `file` on its tasks; nothing is written and no model is loaded.

    Samples are counted in the corpora that `data` names; without `data`, published numbers are used. Requests that
    several tasks share are counted once; annotator calls are at most one per segment of a response, without retries.
    """
    tasks = file.vary(declared)
    responses, calls, sources = _requests(file, tasks)
    reckoned = file.estimate
    annotation_hours = calls * reckoned.annotation_tokens / reckoned.annotation_tokens_per_second / 3600
    models = []
    for model in file.models:
        engine = engine_of(model)[0]
        on_gpu = engine in {"vllm", "transformers"}
        hours = responses * reckoned.completion_tokens / reckoned.tokens_per_second / 3600
        models.append(
            ModelEstimate(
                model=model,
                engine=engine,
                responses=responses,
                annotator_calls=0 if file.annotator == RULES else calls,
                gpu_hours=hours if on_gpu else 0.0,
                annotator_gpu_hours=0.0 if file.annotator == RULES else annotation_hours,
            )
        )
    return Estimate(models=models, tasks=len(tasks), sources=sources, assumptions=reckoned)


def _requests(file: RunFile, tasks: Sequence[Task]) -> tuple[int, int, list[str]]:
    """Return the numbers of distinct requests and of annotator calls for one model, and the sources of the counts."""
    responses = calls = 0
    sources = []
    corpora: dict[str, Corpus] = {}
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


@dataclass(frozen=True)
class Finished:
    """The result of one model of a run file: its scores, or the reason why there are none."""

    model: str
    folder: Path
    scores: Sequence[Score]
    error: str | None = None


def run_all(
    file: RunFile, tasks: Sequence[Task], output: Path, progress_of: Callable[[str], AbstractContextManager[Progress]]
) -> list[Finished]:
    """Run or resume every model of `file` under `output`; a model that fails does not stop the others."""
    corpora: dict[str, Corpus] = {}
    finished = []
    for model in file.models:
        spec = file.spec(model, tasks, output)
        try:
            with progress_of(model) as progress:
                scores = execute(spec, corpora=corpora, progress=progress)
            finished.append(Finished(model, spec.output, scores))
        except EquivoxError as error:
            finished.append(Finished(model, spec.output, (), str(error)))
    return finished
