"""A dry run: everything is checked as for a run, nothing is written, and what it would take is estimated."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass

from equivox.annotate import RULES, evaluation_of, open_annotator
from equivox.annotate.model import prompt_text
from equivox.core.requests import Request
from equivox.core.task import Task
from equivox.core.variants import asks_nothing
from equivox.run.cost import Effort, annotator_effort, target_effort
from equivox.run.generating import pending_rows
from equivox.run.pipeline import PreparedRun, checked
from equivox.run.plan import Plan
from equivox.run.run_files import EstimateFields
from equivox.run.spec import RunSpec

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
    `sound_bytes` is a guess at what spoken answers will take on disk.
    """

    requests: int
    answered: int
    unusable: int
    tasks: int
    target: Effort
    annotator: Effort | None
    workers: int
    sound_bytes: float = 0.0


def dry_run(spec: RunSpec) -> DryRun:
    """Check `spec` as a run does and estimate what it takes; RequestError for what a run would refuse.

    With several workers Ray is started or connected to, and no worker is started.
    """
    with closing(open_annotator(spec.annotator, spec.workers)) as annotator, checked(spec, annotator) as run:
        return _reckoned(run)


def _reckoned(run: PreparedRun) -> DryRun:
    spec, workers = run.spec, run.spec.workers.count
    pending = pending_rows(spec.output, run.plan, retry_failed=spec.retry_failed)
    prompt, longest = _lengths(run.plan.requests(pending[run.plan.usable[pending]]))
    answer = min(longest, EstimateFields().completion_tokens)
    target = target_effort(
        spec.model,
        run.to_ask,
        folder=spec.output,
        prompt_tokens=prompt,
        completion_tokens=answer,
        workers=workers,
    )
    speaks = any(task.prompt.spoken for task in run.tasks)
    spoken = sum(request.spoken for request in run.plan.requests(pending)) if speaks else 0
    annotator = None
    if evaluation_of(spec.annotator)[0] != RULES:
        calls, tokens = _annotator_calls(run.plan, run.tasks)
        annotator = annotator_effort(spec.annotator, calls, prompt_tokens=tokens, workers=workers)
    return DryRun(
        requests=len(run.plan.distinct),
        answered=len(run.plan.distinct) - len(pending),
        unusable=len(pending) - run.to_ask,
        tasks=len(run.tasks),
        target=target,
        annotator=annotator,
        workers=workers,
        sound_bytes=spoken * answer * SECONDS_PER_TOKEN * BYTES_PER_SECOND,
    )


def _lengths(requests: Sequence[Request]) -> tuple[float, float]:
    """Return the mean tokens of the prompts, media included, and the mean of the most that an answer may have."""
    if not requests:
        return 0.0, 0.0
    looked = [requests[i] for i in range(0, len(requests), math.ceil(len(requests) / _LOOKED_AT))]
    prompts = sum(
        (len(one.system + one.text) + sum(len(turn.text) for turn in one.before)) / CHARACTERS_PER_TOKEN
        + MEDIA_TOKENS * len(one.media)
        + EstimateFields().completion_tokens * len(one.before)
        for one in looked
    )
    return prompts / len(looked), sum(one.sampling.max_new_tokens for one in looked) / len(looked)


def _annotator_calls(plan: Plan, tasks: Sequence[Task]) -> tuple[int, float]:
    """Return the calls to an annotator, at most one per segment of a response, and the mean tokens of their prompts."""
    import pyarrow.compute as pc

    calls, characters = 0, 0.0
    for task in tasks:
        if asks_nothing(task):
            continue
        keys = plan.table["key"].filter(pc.equal(plan.table["task"], task.name))
        n = len(keys.unique())
        for segment in task.annotation.most_calls(task):
            calls += n
            characters += n * len(prompt_text(segment))
    answers = EstimateFields().completion_tokens
    return calls, characters / calls / CHARACTERS_PER_TOKEN + answers if calls else 0.0
