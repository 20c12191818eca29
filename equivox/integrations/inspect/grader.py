"""The model in inspect_ai's role `grader` as annotator: the same prompt, schema and attempts as any annotator's."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import anyio.from_thread
from inspect_ai.model import GenerateConfig, Model, ResponseSchema, model_roles
from inspect_ai.util import JSONSchema

from equivox.annotate import RULES, Annotator, open_annotator
from equivox.annotate.model import ModelAnnotator
from equivox.annotate.rules import rules_read
from equivox.core.errors import RequestError
from equivox.core.requests import Engine, EngineIdentity, Request, Response
from equivox.core.task import Sampling, Task

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
