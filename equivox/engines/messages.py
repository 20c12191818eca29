"""A request as OpenAI chat messages: system prompt if it has one, turns before it, a user message, media first.

Every engine that takes chat messages uses these functions, so that a prompt never varies by model; the engine applies
the model's chat template.

Requests in their order, with the media of the next ones read and decoded by threads while the engine works.
"""

from __future__ import annotations

import base64
import os
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import islice
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
    container = media.container_of(data)
    if resample or container is None:  # what ffmpeg decoded is sent as WAV
        data = media.encode_audio(samples, sampling_rate=SAMPLING_RATE, container="WAV", subtype=subtype)
        container = "wav"
    encoded = base64.b64encode(data).decode()
    if audio_part == "audio_url":
        mime = _MIME.get(container, container)
        return {"type": "audio_url", "audio_url": {"url": f"data:audio/{mime};base64,{encoded}"}}
    return {"type": "input_audio", "input_audio": {"data": encoded, "format": container}}


_MOST = 16
"""The number of requests whose media are ready or being made ready at a time, so that memory is bounded."""
_RECENT = 4
"""The number of media items that are kept for the next requests about them."""
_THREADS = min(4, os.cpu_count() or 1)

_Content = dict[str, Any]


@dataclass
class _Next:
    """A request that was taken from the source; `media` is None until its media are asked for."""

    request: Request
    media: list[Future[_Content]] | None = None


class MediaAhead:
    """The requests of `source`, one by one, each with its media as parts of a chat message.

    Media of the next requests are made ready in threads, in the order of the requests. Consecutive requests about one
    clip share it: it is read and decoded once. Requests without media need no thread, and none is started for them.
    Use it with `contextlib.closing`, which ends the threads.
    """

    def __init__(
        self,
        source: Iterable[Request],
        *,
        content: Callable[[MediaPart], _Content] = media_content,
        most: int = _MOST,
        threads: int = _THREADS,
    ) -> None:
        self._source: Iterator[Request] = iter(source)
        self._content = content
        self._most = most
        self._threads = threads
        self._pool: ThreadPoolExecutor | None = None
        self._taken: deque[_Next] = deque()
        self._recent: OrderedDict[tuple[str, str, str], Future[_Content]] = OrderedDict()

    def take(self, room: int) -> None:
        """Take requests from the source until `room` of them, or as many as are made ready at a time, are here."""
        while len(self._taken) < min(room, self._most):
            if (request := next(self._source, None)) is None:
                break
            self._taken.append(_Next(request))
        for entry in islice(self._taken, self._most):
            if entry.media is None:
                entry.media = [self._prepare(part) for part in entry.request.media]

    @property
    def first(self) -> Request | None:
        """The next request, None if none was taken."""
        return self._taken[0].request if self._taken else None

    def ready(self) -> bool:
        """Return whether the media of the next request are ready, or failed."""
        media = self._taken[0].media if self._taken else None
        return media is not None and all(part.done() for part in media)

    def media(self) -> list[_Content]:
        """Return the media of the next request, once they are ready; raises what reading or decoding one raised."""
        entry = self._taken[0]
        if entry.media is None:
            entry.media = [self._prepare(part) for part in entry.request.media]
        return [part.result() for part in entry.media]

    def drop(self) -> None:
        """Forget the next request: it was sent, or it failed."""
        self._taken.popleft()

    def put_back(self, requests: Iterable[Request]) -> None:
        """Put requests that must be sent again before all others, in their order."""
        self._taken.extendleft(_Next(request) for request in reversed(list(requests)))

    def _prepare(self, part: MediaPart) -> Future[_Content]:
        named = (part.kind, part.sha256, part.name)
        content = self._recent.pop(named, None)
        if content is None:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(self._threads, thread_name_prefix="equivox-media")
            content = self._pool.submit(self._content, part)
        self._recent[named] = content
        if len(self._recent) > _RECENT:
            self._recent.popitem(last=False)
        return content

    def close(self) -> None:
        """End the threads; a clip that one of them is reading is read to its end."""
        pool, self._pool = self._pool, None
        self._taken.clear()
        self._recent.clear()
        if pool is not None:
            pool.shutdown(wait=True, cancel_futures=True)
