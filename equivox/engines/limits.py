"""What all engines on this machine share: checks, failure messages, and giving memory back."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from equivox.core.errors import UsageError, one_line
from equivox.core.lazy import torch
from equivox.core.requests import Request, Response
from equivox.engines.checkpoint import Checkpoint
from equivox.engines.messages import SAMPLING_RATE

_TOLERANCE_S = 0.01


def free() -> None:
    """Collect garbage and empty the GPU cache."""
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def failed(request: Request, reason: str) -> Response:
    """Return the response of a request that failed; its error names the sample and the reason on one line."""
    return Response(key=request.key, text=None, error=one_line(f"{request.sample_id}: {reason}", 400))


def refuse_missing_modality(checkpoint: Checkpoint, takes: frozenset[str], requests: Iterable[Request]) -> None:
    """Raise UsageError if a request has media that the model does not take."""
    wanted = {part.kind for request in requests for part in request.media}
    if missing := sorted(wanted - takes):
        raise UsageError(
            f"{checkpoint.name} does not take {' or '.join(missing)} (it takes {', '.join(sorted(takes))}); "
            "choose another model, or other tasks"
        )


def refuse_too_many_media(
    checkpoint: Checkpoint, limits: Mapping[str, int | None], requests: Iterable[Request]
) -> None:
    """Raise UsageError if a request has more media of one kind than the model takes at a time."""
    for request in requests:
        for kind, most in limits.items():
            given = sum(part.kind == kind for part in request.media)
            if most is not None and given > most:
                raise UsageError(
                    f"{checkpoint.name} takes at most {most} {kind} per request, {request.task} sends {given}; "
                    "choose another model, or tasks with fewer"
                )


def refuse_short_context(
    requests: Iterable[Request], limit: int, *, tokens: Callable[[str], int], answer: Callable[[Request], int]
) -> None:
    """Raise UsageError if `limit` tokens are too few even for a task's shortest prompt and its answer.

    If only some prompts of a task are too long, these requests fail later, without stopping the run.
    """
    shortest: dict[tuple[str, int], str] = {}
    for request in requests:
        said = [request.system, *(turn.text + turn.answer for turn in request.before), request.text]
        place, text = (request.task, answer(request)), "".join(said)
        if place not in shortest or len(text) < len(shortest[place]):
            shortest[place] = text
    for (task, wanted), text in shortest.items():
        needed = tokens(text) + wanted
        if needed > limit:
            raise UsageError(
                f"max_model_length is {limit}, but {task} needs more than {needed} tokens ({wanted} of them for the "
                "answer); raise max_model_length, or choose a model with a longer context"
            )


def refuse_dropped(checkpoint: Checkpoint, requests: Sequence[Request], render: Callable[..., str]) -> None:
    """Raise UsageError if the chat template leaves out the system prompt of a request.

    It would then change nothing. `render` applies the template to messages. A template that raises for a system prompt
    says so again for each request, which then fails.
    """
    for system in sorted({request.system for request in requests} - {""}):
        try:
            rendered = render([{"role": "system", "content": system}, {"role": "user", "content": "Hello."}])
        except Exception:  # templates raise errors of many types
            continue
        if system not in rendered:
            raise UsageError(
                f"the chat template of {checkpoint.name} drops the system prompt {system[:40]!r}…; "
                "give a template that sends it (`chat_template=…`), or choose another model"
            )


def too_much_audio(
    request: Request, messages: Sequence[Mapping[str, Any]], longest_s: float | None, model: str
) -> str | None:
    """Return a message about the clip in the rendered `messages` that is too long for the model, or None."""
    if longest_s is None:
        return None
    parts = [part for message in messages if message["role"] == "user" for part in message["content"]]
    for part, content in zip(request.media, (part for part in parts if part["type"] != "text"), strict=True):
        if part.kind == "audio":
            seconds = wav_seconds(content["input_audio"]["data"])
            if seconds > longest_s + _TOLERANCE_S:
                return f"{part.name}: {seconds:.1f} s of audio, {model} hears the first {longest_s:g} s"
    return None


def wav_seconds(encoded: str) -> float:
    """Return the length of a base64 WAV of 32-bit floats, to a few milliseconds (its header is short).

    >>> wav_seconds("A" * (16_000 * 4 * 4 // 3))
    1.0
    """
    return round(len(encoded) * 3 / 4 / 4 / SAMPLING_RATE, 3)
