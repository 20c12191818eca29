"""Any OpenAI-compatible server as an engine: `vllm serve`, a gateway, a commercial model.

Arguments (`equivox run "endpoint:model_name=…,base_url=…"`): see `EndpointSettings`. The key is read only from the
environment. Several servers of one model share the work (`base_url=[http://a/v1,http://b/v1]`); `servers` says how many
requests each gets at a time, and what is sent again.

The server's usage counts show whether the media arrived. If it reports audio or image tokens, these are stored;
otherwise the prompt's tokens less those of the same text without media, requested once per text. If a server reports
no usage, the run stops unless `trust_media=true` is given.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import Annotated, Any, Literal

from annotated_types import Ge, Gt, Le, MinLen

from equivox.core.errors import RequestError
from equivox.core.fields import checked_fields
from equivox.core.media import MediaError
from equivox.core.progress import NO_ANSWER_YET
from equivox.core.reasoning import split_reasoning
from equivox.core.redact import remember_secrets
from equivox.core.requests import Engine, EngineIdentity, Request, Response
from equivox.core.samples import WITHHELD, ending
from equivox.core.task import Need, Sampling
from equivox.engines.completions import count, parts, said, spoken, withheld
from equivox.engines.messages import RESAMPLED, chat_messages, chat_of
from equivox.engines.servers import Servers, no_money, short, unreached

FATAL = frozenset({401, 402, 403, 404, 429, 502, 503})
"""Statuses by which a server refuses every request alike: no key, money, permission or model; too busy to the last."""

_GREETING = Request(key="", task="", sample_id="", condition="", text="Hello.", sampling=Sampling(), seed=0)


@dataclass(frozen=True, kw_only=True)
class EndpointSettings:
    """The arguments of an endpoint.

    Parameters
    ----------
    model_name, base_url
        The model's name on the server, and the server's URL, ending in `/v1`; a list of URLs for several servers of
        the same model, which share the requests.
    api_key_env
        The environment variable with the key; not needed for a server without keys.
    modalities
        The modalities of the model.
    max_concurrency, requests_per_minute, timeout_s, max_retries
        Limits of the requests. The concurrency is that of each server: 1 for one that answers one request after the
        other. The requests per minute are those to all servers; 0: no limit. `Servers` says when an answer is late.
    structured
        The format of an annotator's schema: `json_schema`, or `json_object` if the server does not support schemas;
        with `none` the prompt alone asks for it.
    max_audio_seconds
        Longer clips fail with a message that says so; 0 for no limit.
    token_limit_field, send_seed
        Settings for servers that expect `max_completion_tokens`, or do not support seeds.
    resample
        Whether clips are sent as mono WAV files of 16,000 Hz; if not, the bytes are sent as they are stored.
    audio_part
        How audio is sent: `input_audio`, as OpenAI does, or `audio_url`, with the clip as a data URL, for servers that
        read that instead (ms-swift).
    voice
        The voice with which the server answers tasks that are answered by voice; `default` leaves it to the server.
    extra_body
        Further fields of every request, passed on unchanged.
    trust_media
        Continue although the server's usage cannot show that media were used.
    """

    model_name: str
    base_url: str | Annotated[tuple[str, ...], MinLen(1)]
    revision: str = ""
    api_key_env: str = "OPENAI_API_KEY"
    modalities: tuple[Literal["text", "audio", "image"], ...] = ("text", "audio", "image")
    max_concurrency: Annotated[int, Ge(1), Le(1024)] = 8
    requests_per_minute: Annotated[int, Ge(0)] = 0
    timeout_s: Annotated[float, Gt(0), Le(86_400)] = 120.0
    max_retries: Annotated[int, Ge(0), Le(1000)] = 6
    structured: Literal["json_schema", "json_object", "none"] = "json_schema"
    max_audio_seconds: Annotated[float, Ge(0)] = 0.0
    token_limit_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    send_seed: bool = True
    audio_part: Literal["input_audio", "audio_url"] = "input_audio"
    resample: bool = True
    voice: str = ""
    extra_body: Mapping[str, Any] = field(default_factory=dict)
    trust_media: bool = False


class EndpointEngine(Engine):
    """Answers requests through an OpenAI-compatible server."""

    def __init__(self, settings: EndpointSettings) -> None:
        self.settings = settings
        self.modalities: frozenset[str] = frozenset(settings.modalities)
        self.identity = EngineIdentity(
            engine="endpoint",
            model=settings.model_name,
            revision=settings.revision,
            settings={
                "base_url": settings.base_url,
                "structured": settings.structured,
                "extra_body": dict(settings.extra_body),
                "trust_media": settings.trust_media,
                # Answers that were stored before there was the choice keep their keys.
                **({} if settings.resample else {"resample": False}),
                **({"voice": settings.voice} if settings.voice else {}),
            },
        )
        able: list[Need] = ["turns", "speech"]
        self.able = frozenset(able if settings.voice else able[:1])
        self.audio_sent = f"{RESAMPLED}, WAV of 16 bits" if settings.resample else "as stored"
        self._used = {"requests": 0, "prompt_tokens": 0, "completion_tokens": 0}
        self._served_as: set[str] = set()
        urls = [settings.base_url] if isinstance(settings.base_url, str) else settings.base_url
        limits = (settings.api_key_env, settings.max_concurrency, settings.timeout_s, settings.max_retries)
        self._servers = Servers(urls, *limits, settings.requests_per_minute)
        self._text_tokens: dict[tuple[Any, ...], int | None] = {}
        self._lock = threading.Lock()
        self._counting = threading.Lock()

    @classmethod
    def from_args(cls, arguments: Mapping[str, Any]) -> EndpointEngine:
        """Build an engine from model arguments; RequestError for an unknown or missing one, or a wrong type."""
        if any("key" in name.lower() and name != "api_key_env" for name in arguments):
            raise RequestError(
                "model arguments hold a key; put it into the environment variable OPENAI_API_KEY, or name "
                "another variable with api_key_env=…"
            )
        settings = EndpointSettings(**checked_fields(EndpointSettings, arguments, what="endpoint"))
        if not re.fullmatch("[A-Z_][A-Z0-9_]*", settings.api_key_env):
            raise RequestError(
                "`api_key_env` must be the name of an environment variable in capitals, such as OPENAI_API_KEY; put "
                "the key into that variable, not into the arguments"
            )
        remember_secrets({"key": os.environ.get(settings.api_key_env)})
        return cls(settings)

    @property
    def usage(self) -> Mapping[str, float]:
        """What this client used of the server.

        `retries` counts requests that were sent again because the server was busy, failed or did not answer.
        """
        return {**self._used, "retries": self._servers.retries}

    @property
    def served_as(self) -> Collection[str]:
        """The names that the server gave for the model that answered."""
        return self._served_as

    def check(self, requests: Sequence[Request]) -> None:
        """Raise RequestError for media that the model does not take, and test the server with one short request."""
        for request in requests:
            for part in request.media:
                if part.kind not in self.modalities:
                    raise RequestError(
                        f"{self.settings.model_name} takes {', '.join(sorted(self.modalities))}, but "
                        f"{request.task} sends {part.kind}; choose another model, or correct modalities=[…]"
                    )
        # Made as the first request is, so that the server shows which of its settings it does not take.
        self._servers.greet(
            *self._body([{"role": "user", "content": _GREETING.text}], next(iter(requests), _GREETING), max_tokens=1)
        )

    def generate(self, requests: Iterable[Request]) -> Iterator[Response]:
        """Yield one response per request, in the order in which the server finishes them."""
        self._servers.connect()
        waiting = iter(requests)
        at_a_time = self.settings.max_concurrency * len(self._servers.urls)
        asked: SimpleQueue[Request | None] = SimpleQueue()
        answered: SimpleQueue[Response | BaseException] = SimpleQueue()
        started = running = 0
        exhausted = False
        try:
            while True:
                # Media are read in the worker, so at most one clip per worker is in memory.
                while not exhausted and running < 2 * at_a_time:
                    request = next(waiting, None)
                    if request is None:
                        exhausted = True
                        break
                    asked.put(request)
                    running += 1
                    if started < min(running, at_a_time):
                        threading.Thread(target=self._work, args=(asked, answered), daemon=True).start()
                        started += 1
                if not running:
                    return
                found = answered.get()
                running -= 1
                if isinstance(found, BaseException):
                    raise found
                yield found
        except KeyboardInterrupt:
            running = 0  # the command ends although a server has not answered: nobody would store the answer
            raise
        finally:
            with suppress(Empty):
                while True:
                    asked.get_nowait()
                    running -= 1
            for _ in range(started):
                asked.put(None)
            for _ in range(running):
                answered.get()

    def _work(self, asked: SimpleQueue[Request | None], answered: SimpleQueue[Response | BaseException]) -> None:
        """Answer what is asked until it is None."""
        while (request := asked.get()) is not None:
            try:
                answered.put(self._answer(request))
            except BaseException as error:
                answered.put(error)

    def close(self) -> None:
        """Close the connections."""
        self._servers.close()

    def _answer(self, request: Request) -> Response:
        limit = self.settings.max_audio_seconds
        for part in request.media:
            if limit and part.duration_s is not None and part.duration_s > limit:
                reason = f"unusable media: {part.name}: {part.duration_s:.1f} s, longer than the {limit:g} s taken"
                return Response(key=request.key, text=None, error=reason)
        try:
            messages = chat_messages(
                request, subtype="PCM_16", audio_part=self.settings.audio_part, resample=self.settings.resample
            )
        except (MediaError, OSError) as error:
            return Response(key=request.key, text=None, error=f"unusable media: {error}")
        try:
            completion = self._complete(messages, request)
            return self._response(request, completion)
        except Exception as error:  # any failure of a request is stored as its response
            if withheld(getattr(error, "body", None)):
                # No model read the prompt, so it need not show that media arrived.
                return Response(key=request.key, text="", finish_reason=WITHHELD, media_items=len(request.media))
            # Before the first answer every failure is fatal: the settings may be wrong for all requests.
            fatal = _fatal(error) or (None if self._used["requests"] else f"{NO_ANSWER_YET}{type(error).__name__}")
            return Response(key=request.key, text=None, error=short(error), fatal=fatal)

    def _complete(self, messages: list[dict[str, Any]], request: Request, *, max_tokens: int = 0) -> Any:
        completion = self._servers.complete(*self._body(messages, request, max_tokens=max_tokens))
        self._add_up(completion.usage)
        if completion.model:
            self._served_as.add(str(completion.model))
        return completion

    def _body(
        self, messages: list[dict[str, Any]], request: Request, *, max_tokens: int
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return what is sent for a request, and the fields beside it that are none of OpenAI's."""
        sampling = request.sampling
        body: dict[str, Any] = {
            "model": self.settings.model_name,
            "messages": messages,
            self.settings.token_limit_field: max_tokens or sampling.max_new_tokens,
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
        }
        if self.settings.send_seed:
            body["seed"] = request.seed % 2**31
        if sampling.frequency_penalty:
            body["frequency_penalty"] = sampling.frequency_penalty
        if sampling.stop:
            body["stop"] = list(sampling.stop)
        if sampling.logprobs:
            body |= {"logprobs": True, "top_logprobs": sampling.logprobs}
        extra = dict(self.settings.extra_body)
        if sampling.top_k:
            extra["top_k"] = sampling.top_k
        if request.spoken and not max_tokens:
            body["modalities"] = ["text", "audio"]
            if self.settings.voice != "default":
                body["audio"] = {"voice": self.settings.voice, "format": "wav"}
        if request.schema is not None and self.settings.structured != "none":
            body["response_format"] = self._format(request.schema)
        return body, extra

    def _format(self, schema: Mapping[str, Any]) -> dict[str, Any]:
        if self.settings.structured == "json_object":
            return {"type": "json_object"}
        return {
            "type": "json_schema",
            "json_schema": {"name": "annotation", "schema": dict(schema), "strict": True},
        }

    def _response(self, request: Request, completion: Any) -> Response:
        choice, usage = completion.choices[0], completion.usage
        content = choice.message.content
        refusal = getattr(choice.message, "refusal", None) or parts(content, "refusal")
        sound, transcript = spoken(completion.choices) if request.spoken else (None, "")
        answer, thinking = split_reasoning(said(content) or said(refusal) or transcript)
        reasoning = getattr(choice.message, "reasoning_content", None) or getattr(choice.message, "reasoning", None)
        prompt_tokens = usage.prompt_tokens if usage else None
        completion_tokens = usage.completion_tokens if usage else None
        media_tokens = self._media_tokens(request, usage) if request.media else 0
        arrived = bool(media_tokens) or self.settings.trust_media
        return Response(
            key=request.key,
            text=answer,
            sound=sound,
            thinking=said(reasoning) or parts(content, "thinking") or thinking,
            finish_reason=WITHHELD if refusal else ending(choice.finish_reason),
            prompt_tokens=prompt_tokens,
            completion_tokens=completion_tokens,
            media_items=len(request.media) if arrived else 0,
            media_tokens=media_tokens,
            logprobs=choice.logprobs.model_dump_json() if choice.logprobs else None,
        )

    def _media_tokens(self, request: Request, usage: Any) -> int | None:
        """Return the number of prompt tokens for media, by the server's count; None if it does not count."""
        if usage is None:
            return None
        details, in_all = getattr(usage, "prompt_tokens_details", None), count(usage.prompt_tokens)
        reported = [getattr(details, name, None) for name in ("audio_tokens", "image_tokens")] if details else []
        if total := sum(map(count, reported)):
            return total
        text_alone = self._tokens_of(request)
        return None if text_alone is None else max(0, in_all - text_alone)

    def _tokens_of(self, request: Request) -> int | None:
        """Return the number of prompt tokens of the text without media, requested from the server once per text."""
        # The lock is held during the request, so that other threads wait for this answer instead of asking too.
        with self._counting:
            # What else is said is counted with the text, so that its tokens do not pass for those of media.
            told = (request.system, request.before, request.text)
            if told not in self._text_tokens:
                counted = 0
                try:
                    completion = self._complete(chat_of(request, []), request, max_tokens=1)
                    counted = count(completion.usage.prompt_tokens) if completion.usage else 0
                except Exception as error:
                    # A model that only hears refuses a text alone: nothing shows what the media took.
                    if getattr(error, "status_code", None) not in (400, 422):
                        raise
                self._text_tokens[told] = counted or None
            return self._text_tokens[told]

    def _add_up(self, usage: Any) -> None:
        """Add one answer of the server to the usage; answers that only count a text's tokens are included."""
        prompt, completion = (count(usage.prompt_tokens), count(usage.completion_tokens)) if usage else (0, 0)
        more = {"requests": 1, "prompt_tokens": prompt, "completion_tokens": completion}
        with self._lock:
            for name, amount in more.items():
                self._used[name] += amount


def _fatal(error: BaseException) -> str | None:
    """Return the name of a failure that every other request would meet too, None for any other."""
    for one in (error, error.__cause__):
        if no_money(one):
            return "insufficient_quota"
        if getattr(one, "status_code", None) in FATAL:
            return f"HTTP {getattr(one, 'status_code', '')}"
        if unreached(one):
            return "no connection"
    return None
