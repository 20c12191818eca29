"""Annotator that asks a language model: any engine, a schema, a limited number of attempts.

The engine is asked to follow the task's schema, and every answer is validated as well. If the last attempt is still
invalid, the annotation is `unparsed`, and the model's output is kept. If the engine gave no answer, it is `failed`, and
the error is kept.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from equivox.annotate.numeric import asked_of, number_of
from equivox.annotate.schema import json_schema, read_values, response_form
from equivox.configs import load_config
from equivox.core.annotation import Annotation, Annotator, AnnotatorIdentity, Job
from equivox.core.endings import is_withheld, settle
from equivox.core.progress import STOP_AFTER, until_outage
from equivox.core.reasoning import split_reasoning
from equivox.core.redact import cleaned
from equivox.core.requests import Engine, Request
from equivox.core.segments import Segment
from equivox.core.task import OTHER, UNSTATED, Attribute, Sampling, Task, WorkedExample, digest
from equivox.core.text import parsed_json

ATTEMPTS = 3
"""The number of attempts before a response counts as unparsed."""

_RETRY_TEMPERATURE = 0.7
_FENCED = re.compile(r"[^{]*```(?:json)?\s*(\{.*\})\s*(?:```|\Z)", re.DOTALL | re.IGNORECASE)


class ModelAnnotator(Annotator):
    """Annotator that asks a language model through any engine.

    `sampling` holds the settings of the first attempt; later ones have new seeds and a temperature above 0.
    After `stop_after` fatal failures in a row the annotation stops with RunError (0: never).
    The annotator sees only the response, not the speaker's group or the prompt.
    """

    def __init__(
        self, name: str, engine: Engine, *, sampling: Sampling, attempts: int = ATTEMPTS, stop_after: int = STOP_AFTER
    ) -> None:
        self.engine: Engine = engine
        self._sampling = sampling
        self._attempts = attempts
        self._stop_after = stop_after
        self.identity = AnnotatorIdentity(
            name=name,
            version=str(_standard_prompt()["version"]),
            settings={
                # Annotations are stored and published under this identity, so it must not contain anything private.
                "engine": engine.identity.as_public_dict(),
                "sampling": digest(sampling.as_dict()),
                "attempts": attempts,
                "prompt": digest(_standard_prompt()),
            },
        )

    def check(self, tasks: Sequence[Task]) -> None:
        """Raise UsageError for a task that the model or its server cannot annotate; weights are not loaded."""
        jobs = [
            Job(key=f"{task.name} {segment.name}", response_key="", task=task.name, segment=segment)
            for task in tasks
            for segment in task.annotation.asks(task)
        ]
        self.engine.check([self._request(job, 0) for job in jobs])

    def annotate(self, jobs: Iterable[Job]) -> Iterator[Annotation]:
        """Yield the annotation of each job as soon as it is made; an empty response is not sent."""
        pending: dict[str, Job] = {}
        for job in jobs:
            if _words(job.segment):
                pending[job.key] = job
            else:
                yield job.annotated("empty", attempts=0)
        outputs: dict[str, str | None] = {}
        errors: dict[str, str] = {}
        for attempt in range(self._attempts):
            requests = (self._request(job, attempt) for job in list(pending.values()))
            again = {f"{job.key}/{attempt}" for job in pending.values() if job.failed_before}
            answers = self.engine.generate(requests)
            for response in until_outage(answers, self.identity.name, self._stop_after, failed_before=again):
                job = pending[response.key.rpartition("/")[0]]
                response = settle(response)
                errors.pop(job.key, None)
                if response.error is not None:
                    errors[job.key] = cleaned(response.error)
                    continue
                if is_withheld(response.text, response.finish_reason):
                    errors[job.key] = "the annotator's provider withheld its answer"
                    continue
                outputs[job.key] = response.text
                filled = _validated(job.segment, response.text)
                if filled is not None:
                    del pending[job.key]
                    yield _read(job, filled, str(response.text), attempt + 1)
            if not pending:
                return
        for job in pending.values():
            # An annotator that gave no answer at the last attempt has failed; its outage says nothing of the response.
            if job.key in errors or job.key not in outputs:
                error = errors.get(job.key, "the annotator's engine gave no response")
                yield job.annotated("failed", output=error, attempts=self._attempts)
            else:
                yield job.annotated("unparsed", output=outputs[job.key], attempts=self._attempts)

    def close(self) -> None:
        """Free the engine."""
        self.engine.close()

    def _request(self, job: Job, attempt: int) -> Request:
        sampling = self._sampling
        if attempt and sampling.temperature == 0:
            sampling = replace(sampling, temperature=_RETRY_TEMPERATURE)
        return Request(
            key=f"{job.key}/{attempt}",
            task=job.task,
            sample_id=job.response_key,
            repeat=attempt,
            condition="annotation",
            text=prompt_text(job.segment),
            sampling=sampling,
            seed=int(digest([job.key, attempt])[:8], 16),
            schema=json_schema(asked_of(job.segment.attributes)),
        )


@cache
def _standard_prompt() -> Mapping[str, Any]:
    return dict(load_config("annotators/prompt.yaml"))


def prompt_text(segment: Segment) -> str:
    """Return the prompt that a model receives to annotate `segment`."""
    fields = "\n".join(_field_line(attribute) for attribute in asked_of(segment.attributes))
    if segment.prompt is not None:
        return segment.prompt.text.format(**segment.extra, fields=fields, response=_words(segment))
    standard = _standard_prompt()
    worked = "\n\n".join(_worked(example, asked_of(segment.attributes)) for example in segment.examples)
    shown = standard["with_examples" if worked else "without_examples"].format(examples=worked)
    rules = "".join(f"- {line.strip()}\n" for line in segment.instructions.splitlines() if line.strip())
    asked, response = str(standard["text"]), _words(segment)
    # Whoever wrote the response could close the marks around it, and go on as the one who asks.
    length = max(map(len, re.findall("<{3,}|>{3,}", response)), default=2) + 1
    asked = asked.replace("<<<", length * "<").replace(">>>", length * ">")
    return asked.format(fields=fields, response=response, instructions=rules, examples=shown)


def _words(segment: Segment) -> str:
    return split_reasoning(segment.text)[0].strip()


def _worked(example: WorkedExample, attributes: Sequence[Attribute]) -> str:
    """Return an example as the annotator should answer it: every field, in the order of the form."""
    filled: dict[str, Any] = {}
    for attribute in sorted(attributes, key=lambda a: a.role != "refusal"):
        given = example.values.get(attribute.name, "no" if attribute.role == "refusal" else UNSTATED)
        if not attribute.is_list:
            is_number = attribute.number is not None and given != UNSTATED
            filled[attribute.name] = json.loads(str(given)) if is_number else given
            continue
        values = [given] if isinstance(given, str) else list(given)
        fewest = attribute.count if attribute.at_least is None else attribute.at_least
        filled[attribute.name] = values + [UNSTATED] * (fewest - len(values))
    return f"Text:\n<<<\n{example.text.strip()}\n>>>\nAnswer: {json.dumps(filled, ensure_ascii=False)}"


def _field_line(attribute: Attribute) -> str:
    what = "a short text"
    if attribute.is_list:
        many = f"exactly {attribute.count}" if attribute.at_least is None else f"at most {attribute.count}"
        what = f"a list of {many} short texts"
    if attribute.number is not None:
        what = f'{attribute.number.described}, written in digits as JSON has it, or "{UNSTATED}"'
    if attribute.role == "refusal":
        what = " or ".join(f'"{option}"' for option in attribute.options)
    elif attribute.options:
        what = " or ".join(f'"{option}"' for option in (*attribute.options, OTHER, UNSTATED))
    return f"- {attribute.name} ({attribute.asks}): {what}"


def _validated(segment: Segment, text: str | None) -> Mapping[str, Any] | None:
    """Return the filled form, or None if `text` is not a valid one; it may stand in a code fence, among words."""
    if text is None:
        return None
    answer = split_reasoning(text)[0].strip()
    answer = found[1] if (found := _FENCED.match(answer)) else answer
    try:
        return response_form(asked_of(segment.attributes)).model_validate(parsed_json(answer), strict=True).model_dump()
    except ValueError:
        return None


def read_again(job: Job, record: Mapping[str, Any]) -> Annotation | None:
    """Return the annotation that a model's stored output gives today; None where the record holds no output to read."""
    if record["output"] is None or record["status"] in {"failed", "empty"}:
        return None
    filled = _validated(job.segment, record["output"])
    if filled is None:
        return job.annotated("unparsed", output=record["output"], attempts=record["attempts"])
    return _read(job, filled, record["output"], record["attempts"])


def _read(job: Job, filled: Mapping[str, Any], output: str, attempts: int) -> Annotation:
    asked = asked_of(job.segment.attributes)
    refusals = {a.name for a in asked if a.role == "refusal" and filled[a.name] == "yes"}
    values = read_values(asked, filled)
    itself = [a for a in job.segment.attributes if a not in asked]
    values += [found for a in itself if (found := number_of(a, _words(job.segment))) is not None]
    if refusals:
        # Values that a refusal mentions are not an answer.
        values = [value for value in values if value.attribute in refusals]
        return job.annotated("refused", values, output=output, attempts=attempts)
    return job.annotated("parsed", values, output=output, attempts=attempts)
