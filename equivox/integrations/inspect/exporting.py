"""A stored run as logs of inspect_ai, one per task, written by inspect_ai's own writer.

Credentials and local paths are removed, as in a run that is pushed to the Hub; media are included on request.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from inspect_ai.log import (
    EvalConfig,
    EvalDataset,
    EvalError,
    EvalLog,
    EvalMetric,
    EvalPlan,
    EvalPlanStep,
    EvalResults,
    EvalSample,
    EvalScore,
    EvalSpec,
    EvalStats,
    write_eval_log,
)
from inspect_ai.model import (
    ChatCompletionChoice,
    ChatMessage,
    ChatMessageAssistant,
    Content,
    ContentReasoning,
    ContentText,
    ModelOutput,
    ModelUsage,
)

from equivox.annotate import Annotation, Job, Value
from equivox.core.errors import RequestError
from equivox.core.files import write_whole
from equivox.core.hashing import digest
from equivox.core.media import MediaError
from equivox.core.redact import redacted_text, refuse_secrets
from equivox.core.requests import MediaPart
from equivox.core.task import Task
from equivox.core.version import __version__
from equivox.dataset_builders.corpus import SAMPLE
from equivox.integrations.asked import requests_of
from equivox.integrations.hub.run_folder import refuse_private_settings, refuse_unfinished
from equivox.integrations.inspect.asking import PACKAGE, Settings, registry_name, sample_id, settings_of
from equivox.integrations.inspect.layout import (
    SCORER,
    generate_config,
    log_score,
    media_of,
    message,
    metrics_of,
    sample_metadata,
    stop_reason,
    task_metadata,
)
from equivox.integrations.inspect.recorded import Answer, annotate_response
from equivox.integrations.stored_run import StoredRun
from equivox.run.annotating import (
    SIMULATED,
    TOOLS,
    stored_annotations,
    stored_responses,
    with_simulated_tool,
)
from equivox.run.manifest import read_as
from equivox.run.plan import PlannedRequest

SUFFIXES = (".eval", ".json")


def write_logs(run: Path, out: Path, *, media: bool, data: str | None = None) -> list[Path]:
    """Write the scored run in the folder `run` as one log per task, and return the written files.

    `out` is a folder, or a file (.eval, .json) for a run of one task. `media` includes recordings and images. `data`
    says where the corpora are now (None: where the run found them), because a run stores no prompts. RequestError,
    before anything is written, for a run without scores, for other data, and where a secret would be written.
    """
    stored = _Logged(run, media)
    refuse_unfinished(run)
    refuse_private_settings(stored.annotator.as_dict())
    one_file = out.suffix in SUFFIXES
    if one_file and len(stored.tasks) > 1:
        raise RequestError(f"{run} has {len(stored.tasks)} tasks, and a log is about one; give a folder as `--out`")
    if out.is_file() and not one_file:
        raise RequestError(f"`--out` {out} is a file; give a folder, or a new file that ends in .eval or .json")
    asked = requests_of(run, stored.tasks, stored.stored, data)
    paths = []
    for task in stored.tasks:
        log = stored.log(task, [planned for _, planned in asked[task.name]])
        refuse_secrets(log.model_dump_json, f"the log of {log.eval.task}")
        path = out if one_file else out / _file_name(log)
        write_whole(path, partial(_write, log))
        paths.append(path)
    return paths


@dataclass(frozen=True)
class _Logged(StoredRun):
    """A run while it is written as logs."""

    media: bool

    @cached_property
    def annotations(self) -> dict[str, dict[str, Any]]:
        return stored_annotations(self.folder, TOOLS) | stored_annotations(self.folder, self.annotator.name)

    @cached_property
    def responses(self) -> dict[str, dict[str, Any]]:
        return stored_responses(self.folder)

    @property
    def model(self) -> str:
        """The name of the model: its engine, then its own name."""
        identity = self.manifest["identity"]["model"]
        return f"{identity['engine']}/{identity['model']}"

    def log(self, task: Task, asked: Sequence[PlannedRequest]) -> EvalLog:
        """Return the log of one task."""
        settings = settings_of(task, self.stored)
        if settings.data not in {None, SAMPLE}:
            settings = replace(settings, data=self.manifest["command"]["data"])
        samples = [self._sample(task, planned) for planned in asked]
        follow_up = [record for record in self.annotations.values() if not record["response_key"]]
        created = str(self.stored["created"])
        run_id = digest(self.stored["identity"])[:22]
        return EvalLog(
            status="success",
            eval=EvalSpec(
                eval_id=digest([run_id, task.name])[:22],
                run_id=run_id,
                created=created,
                task=f"{PACKAGE}/{registry_name(settings.task)}",
                task_id=digest([task.fingerprint, run_id])[:22],
                task_version=task.version,
                task_display_name=task.name,
                task_registry_name=f"{PACKAGE}/{registry_name(settings.task)}",
                task_args=settings.as_arguments(),
                dataset=EvalDataset(
                    name=task.data.corpus,
                    samples=len(samples),
                    sample_ids=[sample.id for sample in samples],
                    shuffled=False,
                ),
                model=self.model,
                model_args=self.manifest["identity"]["model"]["settings"],
                config=EvalConfig(epochs=1, fail_on_error=False, score_on_error=True),
                packages={PACKAGE: str(self.stored["equivox"])},
                metadata=self._about(task, settings, follow_up),
            ),
            plan=EvalPlan(steps=[EvalPlanStep(solver=f"{PACKAGE}/ask")], config=generate_config(task.sampling)),
            results=self._results(task, samples),
            stats=EvalStats(started_at=created, completed_at=created, model_usage=self._usage(samples)),
            samples=samples,
        )

    def _about(self, task: Task, settings: Settings, follow_up: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        about = task_metadata(task, settings)
        own = {"exported_by": __version__, "run": self.manifest, "follow_up": list(follow_up)}
        return {PACKAGE: about[PACKAGE] | own}

    def _sample(self, task: Task, planned: PlannedRequest) -> EvalSample:
        request = planned.request
        record = self.responses.get(request.key) or {"text": None, "error": "not generated"}
        error = record["error"] and redacted_text(record["error"])
        names = ("thinking", "finish_reason", "prompt_tokens", "completion_tokens")
        kept: dict[str, Any] = {name: record.get(name) for name in names}
        answer = Answer(text=record["text"], error=error, **kept)
        user = message(request.text, [self._content(part) for part in request.media])
        output = _output(self.model, answer)
        found = self._annotated(task, planned, answer)
        said: list[ChatMessage] = [choice.message for choice in output.choices]
        return EvalSample(
            id=sample_id(request),
            epoch=1,
            input=[user],
            target="",
            messages=[user, *said],
            output=output,
            metadata=sample_metadata(planned),
            scores={SCORER: log_score(task, request.labels.metadata, answer, found, self.annotator)},
            model_usage={self.model: output.usage} if output.usage else {},
            error=EvalError(message=error, traceback=error, traceback_ansi=error) if error else None,
        )

    def _content(self, part: MediaPart) -> Content:
        if not self.media:
            return ContentText(text=f"[{part.kind} {part.name}, not included]")
        try:
            return media_of(part)
        except (MediaError, OSError) as error:
            return ContentText(text=f"[{part.kind} {part.name}: {redacted_text(str(error))}]")

    def _annotated(self, task: Task, planned: PlannedRequest, answer: Answer) -> dict[str, Any]:
        """Return the stored annotations of one response, in the order in which its scheme asked for them."""
        if answer.text is None:
            return {}
        simulated = read_as(self.stored) == SIMULATED

        def read(jobs: Sequence[Job]) -> list[Annotation]:
            return [_stored(job, self.annotations.get(job.key)) for job in jobs]

        request = planned.request
        return annotate_response(
            task, request.labels.metadata, answer.text, request.key, self.annotator, read,
            change=lambda segment: with_simulated_tool(task, segment) if simulated else segment,
        )  # fmt: skip

    def _results(self, task: Task, samples: Sequence[EvalSample]) -> EvalResults:
        own = [score for score in self.every_score if score.task == task.name]
        return EvalResults(
            total_samples=len(samples),
            completed_samples=sum(sample.error is None for sample in samples),
            scores=[
                EvalScore(
                    name=SCORER,
                    scorer=SCORER,
                    scored_samples=len(samples),
                    unscored_samples=0,
                    metrics={name: EvalMetric(name=name, value=value) for name, value in metrics_of(own).items()},
                )
            ],
        )

    def _usage(self, samples: Sequence[EvalSample]) -> dict[str, ModelUsage]:
        total = ModelUsage()
        for sample in samples:
            total += sample.output.usage or ModelUsage()
        return {self.model: total} if total.total_tokens else {}


def _stored(job: Job, record: Mapping[str, Any] | None) -> Annotation:
    if record is None:
        return job.annotated("failed", output="not annotated", attempts=0)
    values = [Value(**value) for value in record["values"]]
    output = record["output"] if record["status"] != "failed" else redacted_text(record["output"] or "")
    return replace(job.annotated(record["status"], values, output=output), attempts=record["attempts"])


def _output(model: str, answer: Answer) -> ModelOutput:
    if answer.text is None:
        return ModelOutput(model=model, error=answer.error)
    content: str | list[Content] = answer.text
    if answer.thinking:
        content = [ContentReasoning(reasoning=answer.thinking), ContentText(text=answer.text)]
    said = ChatMessageAssistant(content=content, model=model, source="generate")
    counts = (answer.prompt_tokens, answer.completion_tokens)
    usage = None
    if counts != (None, None):
        used, made = (count or 0 for count in counts)
        usage = ModelUsage(input_tokens=used, output_tokens=made, total_tokens=used + made)
    choice = ChatCompletionChoice(message=said, stop_reason=stop_reason(answer.finish_reason))
    return ModelOutput(model=model, choices=[choice], usage=usage)


def _write(log: EvalLog, path: Path) -> None:
    write_eval_log(log, str(path))


def _file_name(log: EvalLog) -> str:
    """Return the name that inspect_ai would give to a log: when, what, and an id."""
    when = log.eval.created.replace(":", "-")
    task = (log.eval.task_display_name or "").replace(":", "-").replace("_", "-")
    return f"{when}_{task}_{log.eval.task_id}.eval"
