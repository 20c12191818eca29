"""Any OpenAI-compatible server as an engine: `vllm serve`, a gateway, a commercial model.

Arguments (`equivox run "endpoint:model_name=…,base_url=…"`): see `EndpointSettings`. The key is read only from the
environment. Several servers of one model share the work (`base_url=[http://a/v1,http://b/v1]`); `servers` says how many
requests each gets at a time, and what is sent again.

The server's usage counts show whether the media arrived. If it reports audio or image tokens, these are stored;
otherwise the prompt's tokens less those of the same text without media, requested once per text. If a server reports
no usage, the run stops unless `trust_media=true` is given.
"""

from __future__ import annotations

import asyncio
import os
import re
import threading
from collections import Counter
from collections.abc import Collection, Coroutine, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from queue import SimpleQueue
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

from annotated_types import Ge, Gt, Le, MinLen

from equivox.core.endings import WITHHELD, ending
from equivox.core.errors import UsageError
from equivox.core.fields import Public, checked, public_names, read_fields
from equivox.core.media import MediaError
from equivox.core.notes import ErrorKind
from equivox.core.progress import NO_ANSWER_YET
from equivox.core.reasoning import split_reasoning
from equivox.core.redact import remember_secrets
from equivox.core.requests import Engine, EngineIdentity, Request, Response
from equivox.core.task import Need, Sampling
from equivox.engines import arguments as common
from equivox.engines.completions import count, parts, said, spoken, withheld
from equivox.engines.failures import describe_failure, find_fatal_cause, refuse_greeting
from equivox.engines.messages import RESAMPLED, chat_messages, chat_of

if TYPE_CHECKING:
    from equivox.engines.servers import Servers

NEUTRAL: Mapping[str, Mapping[str, float]] = {
    "vllm": {"top_k": -1, "min_p": 0.0, "repetition_penalty": 1.0},
    "sglang": {"top_k": -1, "min_p": 0.0, "repetition_penalty": 1.0},
    "llamacpp": {"top_k": 0, "min_p": 0.0, "repeat_penalty": 1.0},
}
"""Values that ask for nothing, by the owner that a server names for its models.

These servers fill what a request leaves out from the checkpoint's `generation_config.json` or from defaults of their
own. All others, which refuse fields that they do not know, are sent none of this.
"""
Result = TypeVar("Result")

_LISTED_S = 10.0
_GREETING = Request(key="", task="", sample_id="", condition="", text="Hello.", sampling=Sampling(), seed=0)


@checked
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
    max_answer_mib, wait
        The most MiB of an answer; a longer one fails. A server that asks to wait for more than two minutes ends the
        run, unless `wait=true` lets the run wait.
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

    model_name: Public[str]
    base_url: Public[str | Annotated[tuple[str, ...], MinLen(1)]]
    revision: Public[str] = ""
    api_key_env: Public[str] = "OPENAI_API_KEY"
    modalities: Public[tuple[Literal["text", "audio", "image"], ...]] = ("text", "audio", "image")
    max_concurrency: Public[Annotated[int, Ge(1), Le(1024)]] = 8
    requests_per_minute: Public[Annotated[int, Ge(0)]] = 0
    timeout_s: Public[Annotated[float, Gt(0), Le(86_400)]] = 120.0
    max_retries: Public[Annotated[int, Ge(0), Le(1000)]] = 6
    max_answer_mib: Public[Annotated[float, Gt(0), Le(1024)]] = 16.0
    wait: Public[bool] = False
    structured: Public[Literal["json_schema", "json_object", "none"]] = "json_schema"
    max_audio_seconds: Public[Annotated[float, Ge(0)]] = 0.0
    token_limit_field: Public[Literal["max_tokens", "max_completion_tokens"]] = "max_tokens"
    send_seed: Public[bool] = True
    audio_part: Literal["input_audio", "audio_url"] = "input_audio"
    resample: Public[bool] = True
    voice: str = ""
    extra_body: Public[Mapping[str, Any]] = field(default_factory=dict)
    trust_media: Public[bool] = False

    @property
    def urls(self) -> list[str]:
        """The addresses of the servers."""
        urls = [self.base_url] if isinstance(self.base_url, str) else self.base_url
        return [url.rstrip("/") for url in urls]


PUBLIC = public_names(EndpointSettings) | common.PUBLIC
"""Names of arguments and of their parts that may be written down."""


class EndpointEngine(Engine):
    """Answers requests through an OpenAI-compatible server; `http` replaces the HTTP client, for tests."""

    def __init__(self, settings: EndpointSettings, http: Any = None) -> None:
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
            public=PUBLIC,
        )
        self.able: frozenset[Need] = frozenset(["turns", "speech"] if settings.voice else ["turns"])
        self.audio_sent = f"{RESAMPLED}, WAV of 16 bits" if settings.resample else "as stored"
        self._http = http
        self._used = Counter(requests=0, prompt_tokens=0, completion_tokens=0)
        self._served_as: set[str] = set()
        self._servers: Servers | None = None
        self._retries = 0
        """Those of connections that are closed."""

    @classmethod
    def from_args(cls, arguments: Mapping[str, Any]) -> EndpointEngine:
        """Build an engine from model arguments; UsageError for an unknown or missing one, or a wrong type."""
        if any("key" in name.lower() and name != "api_key_env" for name in arguments):
            raise UsageError(
                "model arguments hold a key; put it into the environment variable OPENAI_API_KEY, or name "
                "another variable with api_key_env=…"
            )
        settings = read_fields(EndpointSettings, arguments, what="endpoint")
        if not re.fullmatch("[A-Z_][A-Z0-9_]*", settings.api_key_env):
            raise UsageError(
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
        return {**self._used, "retries": self._retries + (self._servers.retries if self._servers else 0)}

    @property
    def served_as(self) -> Collection[str]:
        """The names that the server gave for the model that answered."""
        return self._served_as

    @property
    def waiting(self) -> str:
        """How long the server asked to wait, in words, while the run does."""
        return self._servers.pause if self._servers else ""

    def check(self, requests: Sequence[Request]) -> None:
        """Raise UsageError for media that the model does not take, and test the server with one short request."""
        for request in requests:
            for part in request.media:
                if part.kind not in self.modalities:
                    raise UsageError(
                        f"{self.settings.model_name} takes {', '.join(sorted(self.modalities))}, but "
                        f"{request.task} sends {part.kind}; choose another model, or correct modalities=[…]"
                    )
        # Made as the first request is, so that the server shows which of its settings it does not take.
        body = self._body(chat_of(_GREETING, []), next(iter(requests), _GREETING), max_tokens=1)
        self._connect()
        for url in self.settings.urls:
            client = self._client.with_options(base_url=url, max_retries=1)
            try:
                self._schedule(self._post(body, client)).result()
            except Exception as error:
                refuse_greeting(error, url, body, self.settings.api_key_env)

    def generate(self, requests: Iterable[Request]) -> Iterator[Response]:
        """Yield one response per request, in the order in which the server finishes them."""
        self._connect()
        waiting, running = iter(requests), set[Future[Response]]()
        answered: SimpleQueue[Future[Response]] = SimpleQueue()
        try:
            while True:
                for request in islice(waiting, 2 * self._at_a_time - len(running)):
                    future = self._schedule(self._answer(request))
                    running.add(future)
                    future.add_done_callback(answered.put)
                if not running:
                    return
                future = answered.get()
                running.remove(future)
                yield future.result()
        finally:
            for future in running:
                future.cancel()

    def close(self) -> None:
        """Close the connections; the next request opens new ones."""
        if self._servers is not None:
            self._schedule(self._shut()).result()
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()
            self._retries += self._servers.retries
            self._servers = None

    async def _shut(self) -> None:
        running = asyncio.all_tasks() - {asyncio.current_task()}
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        await self._client.close()

    def _schedule(self, call: Coroutine[Any, Any, Result]) -> Future[Result]:
        """Return the future of a call in the event loop of the connections."""
        return asyncio.run_coroutine_threadsafe(call, self._loop)

    def _connect(self) -> None:
        """Start the event loop and the client; UsageError without the client, or for a key that no header carries."""
        if self._servers is not None:
            return
        try:
            import openai

            from equivox.engines.servers import ANY_SERVER, Servers
        except ModuleNotFoundError:
            raise UsageError(
                "endpoints need the OpenAI client; install it in a checkout of equivox: "
                '`pip install -c constraints.txt ".[endpoint]"`'
            ) from None
        given = self.settings
        key = os.environ.get(given.api_key_env, "").strip() or "none"
        if not key.isascii():
            raise UsageError(
                f"the key in the environment variable {given.api_key_env} has characters that a header cannot "
                "carry; copy the key again"
            )
        servers = Servers(given, self._http)
        self._client = openai.AsyncOpenAI(
            base_url=ANY_SERVER,
            api_key=key,
            max_retries=given.max_retries,
            timeout=servers.timeout,
            http_client=servers,
        )
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="endpoint", daemon=True)
        self._thread.start()
        self._servers = servers
        self._at_a_time = given.max_concurrency * len(self.settings.urls)
        # Media are read behind it, so that at most one clip per request in progress is in memory.
        self._room = asyncio.Semaphore(self._at_a_time)
        self._text_tokens: dict[tuple[Any, ...], asyncio.Future[int | None]] = {}
        self._neutral: asyncio.Future[Mapping[str, float]] | None = None

    async def _answer(self, request: Request) -> Response:
        limit = self.settings.max_audio_seconds
        for part in request.media:
            if limit and part.duration_s is not None and part.duration_s > limit:
                reason = f"unusable media: {part.name}: {part.duration_s:.1f} s, longer than the {limit:g} s taken"
                return Response(key=request.key, text=None, error=reason)
        async with self._room:
            try:
                messages = await self._read_messages(request)
            except (MediaError, OSError) as error:
                return Response(
                    key=request.key, text=None, error=f"unusable media: {error}", error_kind=ErrorKind.MEDIA
                )
            try:
                return await self._response(request, await self._complete(messages, request))
            except Exception as error:  # any failure of a request is stored as its response
                if withheld(getattr(error, "body", None)):
                    # No model read the prompt, so it need not show that media arrived.
                    return Response(key=request.key, text="", finish_reason=WITHHELD, media_items=len(request.media))
                # Before the first answer every failure is fatal: the settings may be wrong for all requests.
                early = None if self._used["requests"] else f"{NO_ANSWER_YET}{type(error).__name__}"
                fatal = find_fatal_cause(error) or early
                return Response(key=request.key, text=None, error=describe_failure(error), fatal=fatal)

    async def _read_messages(self, request: Request) -> list[dict[str, Any]]:
        if not request.media:
            return chat_of(request, [])
        part, resample = self.settings.audio_part, self.settings.resample
        read = partial(chat_messages, subtype="PCM_16", audio_part=part, resample=resample)
        return await asyncio.to_thread(read, request)

    async def _complete(self, messages: list[dict[str, Any]], request: Request, *, max_tokens: int = 0) -> Any:
        self._neutral = self._neutral or asyncio.ensure_future(self._find_neutral())
        body = self._body(messages, request, max_tokens=max_tokens)
        completion = await self._post({**await asyncio.shield(self._neutral), **body})
        usage = completion.usage
        prompt, generated = (count(usage.prompt_tokens), count(usage.completion_tokens)) if usage else (0, 0)
        self._used.update(requests=1, prompt_tokens=prompt, completion_tokens=generated)
        if completion.model:
            self._served_as.add(str(completion.model))
        return completion

    async def _post(self, body: Mapping[str, Any], client: Any = None) -> Any:
        from openai.types.chat import ChatCompletion

        return await (client or self._client).post("/chat/completions", cast_to=ChatCompletion, body=body)

    async def _find_neutral(self) -> Mapping[str, float]:
        """Return the neutral values that the servers take; none if they do not list their models."""
        import openai

        for url in self.settings.urls:
            try:
                async with asyncio.timeout(_LISTED_S):
                    models = await self._client.with_options(base_url=url, max_retries=0).models.list()
                owners = {model.owned_by for model in models.data}
            except (openai.OpenAIError, AttributeError, TypeError, ValueError, TimeoutError):
                continue
            return next((NEUTRAL[owner] for owner in owners if owner in NEUTRAL), {})
        return {}

    def _body(self, messages: list[dict[str, Any]], request: Request, *, max_tokens: int) -> dict[str, Any]:
        """Return what is sent for a request."""
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
        if sampling.top_k:
            body["top_k"] = sampling.top_k
        if request.spoken and not max_tokens:
            body["modalities"] = ["text", "audio"]
            if self.settings.voice != "default":
                body["audio"] = {"voice": self.settings.voice, "format": "wav"}
        if request.schema is not None and self.settings.structured != "none":
            body["response_format"] = self._format(request.schema)
        return body | dict(self.settings.extra_body)

    def _format(self, schema: Mapping[str, Any]) -> dict[str, Any]:
        if self.settings.structured == "json_object":
            return {"type": "json_object"}
        return {
            "type": "json_schema",
            "json_schema": {"name": "annotation", "schema": dict(schema), "strict": True},
        }

    async def _response(self, request: Request, completion: Any) -> Response:
        choice, usage = completion.choices[0], completion.usage
        message = choice.message
        sound, transcript = spoken(completion.choices) if request.spoken else (None, "")
        # A refusal in a field of its own is what the model says.
        text = said(message.content) or said(getattr(message, "refusal", None)) or parts(message.content, "refusal")
        answer, reasoning = split_reasoning(text or transcript, request.sampling.reasoning)
        fields = (said(getattr(message, name, None)) for name in ("reasoning_content", "reasoning"))
        media_tokens = await self._media_tokens(request, usage) if request.media else 0
        arrived = bool(media_tokens) or self.settings.trust_media
        return Response(
            key=request.key,
            text=answer,
            sound=sound,
            thinking=next(filter(None, fields), "") or parts(message.content, "thinking") or reasoning,
            finish_reason=ending(choice.finish_reason),
            prompt_tokens=usage.prompt_tokens if usage else None,
            completion_tokens=usage.completion_tokens if usage else None,
            media_items=len(request.media) if arrived else 0,
            media_tokens=media_tokens,
            logprobs=choice.logprobs.model_dump_json() if choice.logprobs else None,
        )

    async def _media_tokens(self, request: Request, usage: Any) -> int | None:
        """Return the number of prompt tokens for media, by the server's count; None if it does not count."""
        if usage is None:
            return None
        details = getattr(usage, "prompt_tokens_details", None)
        if total := sum(count(getattr(details, name, None)) for name in ("audio_tokens", "image_tokens")):
            return total
        # What else is said is counted with the text, so that its tokens do not pass for those of media.
        text = (request.system, request.before, request.text)
        if text not in self._text_tokens:
            self._text_tokens[text] = asyncio.ensure_future(self._count_tokens(request))
        try:
            text_alone = await asyncio.shield(self._text_tokens[text])
        except Exception:
            self._text_tokens.pop(text, None)  # the next request about this text counts again
            raise
        return None if text_alone is None else max(0, count(usage.prompt_tokens) - text_alone)

    async def _count_tokens(self, request: Request) -> int | None:
        """Return the number of prompt tokens of the text without media; None if the server does not count."""
        try:
            completion = await self._complete(chat_of(request, []), request, max_tokens=1)
        except Exception as error:
            # A model that only hears refuses a text alone: nothing shows what the media took.
            if getattr(error, "status_code", None) not in (400, 422):
                raise
            return None
        return (count(completion.usage.prompt_tokens) if completion.usage else 0) or None
