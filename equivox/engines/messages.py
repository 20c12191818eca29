"""A request as OpenAI chat messages: system prompt if it has one, turns before it, a user message, media first.

Every engine that takes chat messages uses these functions, so that a prompt never varies by model; the engine applies
the model's chat template.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Literal

from equivox.core import media
from equivox.core.requests import MediaPart, Request

SAMPLING_RATE = 16_000
"""Audio is resampled here to mono at this rate in Hz, so that results do not depend on an engine's resampler."""
RESAMPLED = f"mono, {SAMPLING_RATE:,} Hz"
"""How clips are sent unless they are sent as they are stored."""

Subtype = Literal["FLOAT", "PCM_16"]
AudioPart = Literal["input_audio", "audio_url"]

_MIME = {"mp3": "mpeg"}
"""The names of audio formats in media types, where they differ."""

_THINKING = re.compile(r"<(think|thinking|reasoning)>(.*?)</\1>", re.DOTALL | re.IGNORECASE)
_UNOPENED = re.compile(r"^(.*)</(?:think|thinking|reasoning)>", re.DOTALL | re.IGNORECASE)
_UNCLOSED = re.compile(r"<(?:think|thinking|reasoning)>(.*)$", re.DOTALL | re.IGNORECASE)


def chat_messages(
    request: Request, *, subtype: Subtype = "FLOAT", audio_part: AudioPart = "input_audio", resample: bool = True
) -> list[dict[str, Any]]:
    """Read the media of `request` and return it as OpenAI chat messages.

    Audio is encoded as WAV, mono, at 16,000 Hz: `FLOAT` is lossless, `PCM_16` is the format that commercial servers
    accept. Without `resample` the bytes are sent as they are stored. As `audio_url` it is a data URL. Raises
    `media.MediaError`, naming the sample, for media that cannot be decoded.
    """
    content = partial(media_content, subtype=subtype, audio_part=audio_part, resample=resample)
    return chat_of(request, [content(part) for part in request.media])


def chat_of(
    request: Request, media: Sequence[Mapping[str, Any]], system_prompt: str | None = None
) -> list[dict[str, Any]]:
    """Return `request` as OpenAI chat messages, with the turns before it; `media` is the `media_content` of its media.

    `system_prompt` is the model's own, from its arguments.
    """
    left = list(media)
    # One message holds both, because chat templates refuse a second one.
    told = [text for text in (system_prompt, request.system or None) if text is not None]
    messages: list[dict[str, Any]] = [{"role": "system", "content": "\n\n".join(told)}] if told else []
    for turn in request.before:
        shown, left = left[: turn.n_media], left[turn.n_media :]
        messages.append({"role": "user", "content": [*shown, {"type": "text", "text": turn.text}]})
        messages.append({"role": "assistant", "content": turn.answer})
    return [*messages, {"role": "user", "content": [*left, {"type": "text", "text": request.text}]}]


def media_content(
    part: MediaPart, *, subtype: Subtype = "FLOAT", audio_part: AudioPart = "input_audio", resample: bool = True
) -> dict[str, Any]:
    """Read one media item and return it as a part of an OpenAI chat message; raises as `chat_messages`."""
    if part.kind == "image":
        data, mime = media.checked_image(part.load(), name=part.name)
        return {"type": "image_url", "image_url": {"url": f"data:{mime};base64,{base64.b64encode(data).decode()}"}}
    data = part.load()
    # A clip that is sent as it is stored is decoded, too: what is unreadable or silent fails here.
    samples = media.decode_audio(data, name=part.name, sampling_rate=SAMPLING_RATE)
    container = media.container_of(data) or "wav"
    if resample:
        data = media.encode_audio(samples, sampling_rate=SAMPLING_RATE, container="WAV", subtype=subtype)
        container = "wav"
    encoded = base64.b64encode(data).decode()
    if audio_part == "audio_url":
        mime = _MIME.get(container, container)
        return {"type": "audio_url", "audio_url": {"url": f"data:audio/{mime};base64,{encoded}"}}
    return {"type": "input_audio", "input_audio": {"data": encoded, "format": container}}


def split_thinking(text: str) -> tuple[str, str | None]:
    """Return the answer without its thinking blocks, and the thinking (None when there is none).

    A block without an end reaches to the end of the text: such a response was cut off before its answer. A block whose
    opening tag was in the prompt begins with the text.

    >>> split_thinking("<think>Who is it?</think>A nurse.")
    ('A nurse.', 'Who is it?')
    >>> split_thinking("hm</think> A nurse.")
    ('A nurse.', 'hm')
    >>> split_thinking("<think>so much to consider")
    ('', 'so much to consider')
    >>> split_thinking("A nurse.")
    ('A nurse.', None)
    """
    thoughts: list[str] = []

    def collect(match: re.Match[str]) -> str:
        thoughts.append(match.group(match.lastindex or 1).strip())
        return ""

    answer = _THINKING.sub(collect, text)
    answer = _UNOPENED.sub(collect, answer)
    answer = _UNCLOSED.sub(collect, answer)
    if not thoughts:
        return text, None
    return answer.strip(), "\n\n".join(filter(None, thoughts))
