"""equivox in logs: messages and metadata of a sample, its score, the metrics, and how they are read again."""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from inspect_ai.model import (
    ChatMessage,
    ChatMessageUser,
    Content,
    ContentAudio,
    ContentImage,
    ContentReasoning,
    ContentText,
    GenerateConfig,
    ModelOutput,
)
from inspect_ai.scorer import Score as LogScore

from equivox.annotate import Annotation, AnnotatorIdentity
from equivox.core.files import cache_folder, write_whole
from equivox.core.requests import MediaPart, Request, Response
from equivox.core.scores import NAN, Score
from equivox.core.segments import Segment, SegmentAnnotation
from equivox.core.task import Sampling, Task
from equivox.engines.messages import media_content, split_thinking
from equivox.integrations.flat import flat_metrics, metric_key
from equivox.integrations.inspect.asking import PACKAGE, Settings
from equivox.integrations.inspect.recorded import NO_SAMPLE, Segments, as_segments, sample_of

SCORER = "annotation"
"""The name of the scorer in logs."""

_ENDINGS = {"max_tokens": "length", "model_length": "length", "content_filter": "content_filter"}


def message(text: str, media: Sequence[Content]) -> ChatMessage:
    """Return the user message of a request: the media, then the text."""
    return ChatMessageUser(content=[*media, ContentText(text=text)] if media else text)


def media_file(part: MediaPart) -> Content:
    """Return one media item as content that names a file, written on first use as `equivox run endpoint:…` sends it.

    inspect_ai reads the file when the sample is sent, so that only the media under way are in memory. Raises
    `equivox.core.media.MediaError`, naming the sample, for media that cannot be decoded.
    """
    suffix = "wav" if part.kind == "audio" else Path(part.name).suffix.lstrip(".") or "png"
    path = cache_folder("inspect") / f"{part.sha256}.{suffix}"
    if not path.is_file():
        content = media_content(part, subtype="PCM_16", audio_part="audio_url")
        data = base64.b64decode(str(content[content["type"]]["url"]).partition(",")[2])
        write_whole(path, lambda temporary: temporary.write_bytes(data))
    return ContentImage(image=str(path)) if part.kind == "image" else ContentAudio(audio=str(path), format="wav")


def generate_config(sampling: Sampling) -> GenerateConfig:
    """Return the sampling of a task; the seed differs from request to request and is not in it."""
    return GenerateConfig(
        max_tokens=sampling.max_new_tokens,
        temperature=sampling.temperature,
        top_p=sampling.top_p,
        top_k=sampling.top_k or None,
        frequency_penalty=sampling.frequency_penalty or None,
        stop_seqs=list(sampling.stop) or None,
        logprobs=True if sampling.logprobs else None,
        top_logprobs=sampling.logprobs or None,
    )


def sample_metadata(row: Mapping[str, Any], request: Request) -> dict[str, Any]:
    """Return what a log says of one request of a plan; the model does not see it."""
    told = {name: value for name, value in row.items() if name != "media_sha256" or value}
    return {**told, "metadata": dict(request.labels.metadata)}


def task_metadata(task: Task, settings: Settings) -> dict[str, Any]:
    """Return what a log says of its task."""
    return {
        PACKAGE: {
            "task": task.name,
            "fingerprint": task.fingerprint,
            "settings": asdict(settings),
            "dimension": task.dimension,
            "cluster": task.cluster,
            "metric": task.metric.name,
        }
    }


def answer_in(output: ModelOutput, key: str) -> Response:
    """Return the answer in a model's output to the request `key`; without any choice the request failed."""
    if not output.choices:
        return Response(key=key, text=None, error=output.error or "the model gave no answer")
    text, thinking = split_thinking(output.completion)
    content = output.choices[0].message.content
    reasoning = [part.reasoning for part in content if isinstance(part, ContentReasoning)] if content else []
    usage = output.usage
    return Response(
        key=key,
        text=text,
        thinking="\n\n".join(filter(None, reasoning)) or thinking,
        finish_reason=_ENDINGS.get(output.choices[0].stop_reason, "stop"),
        prompt_tokens=usage.input_tokens if usage else None,
        completion_tokens=usage.output_tokens if usage else None,
    )


def log_score(
    task: Task,
    metadata: Mapping[str, str],
    answer: Response,
    found: Mapping[str, tuple[Segment, Annotation]],
    annotator: AnnotatorIdentity,
) -> LogScore:
    """Return the score of one sample: its status and its values; a failed request has the status `failed`."""
    own: dict[str, Any] = {"annotator": annotator.as_dict(), "segments": as_segments(found)}
    if answer.text is None:
        return LogScore(value={"status": "failed"}, explanation=answer.error, metadata={PACKAGE: own})
    status, segments = sample_of(task, metadata, answer.text, found)
    said = [annotation.output for _, annotation in found.values() if annotation.output]
    kept = {"thinking": answer.thinking, "finish_reason": answer.finish_reason}
    return LogScore(
        value={"status": status, **_values(segments)},
        answer=answer.text,
        explanation="\n\n".join(said) or None,
        metadata={PACKAGE: own | kept},
    )


def scored_answer(score: LogScore, key: str) -> tuple[Response, Segments]:
    """Return the answer and the annotations that `log_score` put into a score."""
    own = (score.metadata or {}).get(PACKAGE, {})
    if score.answer is None:
        return Response(key=key, text=None, error=score.explanation or NO_SAMPLE), {}
    kept = {name: own.get(name) for name in ("thinking", "finish_reason")}
    return Response(key=key, text=score.answer, **kept), own.get("segments", {})


def annotator_in(score: LogScore) -> AnnotatorIdentity | None:
    """Return the identity of the annotator of a sample; None if it is not known."""
    record = (score.metadata or {}).get(PACKAGE, {}).get("annotator")
    return None if record is None else AnnotatorIdentity(**record)


def metrics_of(scores: Sequence[Score]) -> dict[str, float]:
    """Return the scores of one task as metrics: the flat numbers, the clusters behind each, and why one is NaN.

    The scores of the whole task come first, each with its interval and its clusters, and the estimate, if there is one,
    before the value: `inspect view` shows the first metric of a log. A reason is the name of a further metric, because
    metrics are numbers; its value is NaN.
    """
    flat = flat_metrics(scores)
    first: dict[str, float] = {}
    reasons: dict[str, float] = {}
    for score in scores:
        key = metric_key(score)
        if score.is_whole:
            if not math.isnan(flat[f"{key}_estimate"]):
                first[f"{key}_estimate"] = flat[f"{key}_estimate"]
            first |= {name: flat[name] for name in (key, f"{key}_ci_low", f"{key}_ci_high")}
            first[f"{key}_n_clusters"] = float(score.n_clusters or NAN)
        if key in flat and score.undefined is not None:
            (first if score.is_whole else reasons)[f"{key} is undefined: {score.undefined}"] = NAN
    return first | flat | reasons


def _values(segments: Mapping[str, SegmentAnnotation]) -> dict[str, str]:
    """Return the values of a response by attribute, those of a named segment under its name too."""
    return {
        f"{name}.{attribute}" if name else attribute: ", ".join(values)
        for name, segment in segments.items()
        for attribute, values in segment.values.items()
    }
