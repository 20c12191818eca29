"""A language model as annotator: any engine, a schema, bounded retries.

The engine is asked to follow the task's schema, and every answer is validated all the same. What stays invalid after
the last attempt is `unparsed`, with the model's own words kept.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from equivox.annotate.base import Annotation, AnnotatorIdentity, Job
from equivox.annotate.schema import json_schema, read_values, response_form
from equivox.configs import load_config
from equivox.engines.base import Engine, Labels, Request
from equivox.engines.messages import split_thinking
from equivox.task import OTHER, UNSTATED, Attribute, Sampling, Task, digest

ATTEMPTS = 3
"""How often a response is read before it counts as unparsed."""

_RETRY_TEMPERATURE = 0.7
_NOBODY = Labels(group="", groups=(), cluster="", stratum="")


class ModelAnnotator:
    """Reads responses with a language model behind any engine.

    `sampling` is how the model decodes at the first attempt; later ones have new seeds, and a temperature above 0.
    The annotator sees the response alone: neither who spoke nor what was asked.
    """

    def __init__(self, name: str, engine: Engine, *, sampling: Sampling, attempts: int = ATTEMPTS) -> None:
        self._engine = engine
        self._sampling = sampling
        self._attempts = attempts
        self._prompt = load_config("annotators/prompt.yaml")
        self.identity = AnnotatorIdentity(
            name=name,
            version=str(self._prompt["version"]),
            settings={
                "engine": engine.identity.as_dict(),
                "sampling": digest(vars(sampling)),
                "attempts": attempts,
                "prompt": digest(self._prompt),
            },
        )

    def check(self, tasks: Sequence[Task]) -> None:
        """Refuse what the model or its server cannot do with these tasks; weights are not loaded."""
        jobs = [Job(key=task.name, response_key="", task=task, text="A text.") for task in tasks]
        self._engine.check([self._request(job, 0) for job in jobs])

    def annotate(self, jobs: Iterable[Job]) -> Iterator[Annotation]:
        """Yield the reading of each job as it is done; a response that says nothing is not sent."""
        pending: dict[str, Job] = {}
        for job in jobs:
            if split_thinking(job.text)[0].strip():
                pending[job.key] = job
            else:
                yield _annotation(job, "empty", attempts=0)
        outputs: dict[str, str | None] = {}
        for attempt in range(self._attempts):
            for response in self._engine.generate(self._request(job, attempt) for job in list(pending.values())):
                job = pending[response.key.rpartition("/")[0]]
                outputs[job.key] = response.text if response.error is None else f"error: {response.error}"
                filled = _validated(job.task, response.text)
                if filled is not None:
                    del pending[job.key]
                    yield _read(job, filled, str(response.text), attempt + 1)
            if not pending:
                return
        for job in pending.values():
            yield _annotation(job, "unparsed", output=outputs.get(job.key), attempts=self._attempts)

    def close(self) -> None:
        """Free the engine."""
        self._engine.close()

    def _request(self, job: Job, attempt: int) -> Request:
        sampling = self._sampling
        if attempt and sampling.temperature == 0:
            sampling = replace(sampling, temperature=_RETRY_TEMPERATURE)
        text = self._prompt["text"].format(
            fields="\n".join(_field_line(a) for a in job.task.attributes), response=split_thinking(job.text)[0].strip()
        )
        return Request(
            key=f"{job.key}/{attempt}",
            task=job.task.name,
            item_id=job.response_key,
            repeat=attempt,
            arm="annotation",
            media=(),
            text=text,
            sampling=sampling,
            seed=int(digest([job.key, attempt])[:8], 16),
            labels=_NOBODY,
            schema=json_schema(job.task),
        )


def _field_line(attribute: Attribute) -> str:
    what = f"a list of exactly {attribute.count} short texts" if attribute.count > 1 else "a short text"
    if attribute.role == "refusal":
        what = " or ".join(f'"{option}"' for option in attribute.options)
    elif attribute.options:
        what = " or ".join(f'"{option}"' for option in (*attribute.options, OTHER, UNSTATED))
    return f"- {attribute.name} ({attribute.asks}): {what}"


def _validated(task: Task, text: str | None) -> Mapping[str, Any] | None:
    """Return the filled form, or None when `text` is not one; code fences around it are tolerated."""
    from pydantic import ValidationError

    if text is None:
        return None
    answer = split_thinking(text)[0].strip().removeprefix("```json").removeprefix("```").removesuffix("```")
    try:
        return response_form(task).model_validate(json.loads(answer), strict=True).model_dump()
    except (ValueError, ValidationError):
        return None


def _read(job: Job, filled: Mapping[str, Any], output: str, attempts: int) -> Annotation:
    refusal = next(a.name for a in job.task.attributes if a.role == "refusal")
    values = read_values(job.task, filled)
    if filled[refusal] == "yes":
        # What a refusal mentions in passing is not an answer.
        values = [value for value in values if value.attribute == refusal]
        return _annotation(job, "refused", values=values, output=output, attempts=attempts)
    return _annotation(job, "parsed", values=values, output=output, attempts=attempts)


def _annotation(job: Job, status: Any, *, attempts: int, values: Any = (), output: str | None = None) -> Annotation:
    return Annotation(
        key=job.key,
        response_key=job.response_key,
        task=job.task.name,
        status=status,
        values=tuple(values),
        output=output,
        attempts=attempts,
    )
