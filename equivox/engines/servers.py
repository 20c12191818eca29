"""The servers of one model: each request goes to one that has room, and what failed in passing is sent again."""

from __future__ import annotations

import json
import os
import random
import re
import threading
import time
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from equivox.core.errors import RequestError
from equivox.core.redact import cleaned, without_credentials
from equivox.core.samples import BROKEN, ending
from equivox.engines.completions import withheld

if TYPE_CHECKING:
    import openai

Answer = TypeVar("Answer")

NEUTRAL: Mapping[str, Mapping[str, float]] = {
    "vllm": {"top_k": -1, "min_p": 0.0, "repetition_penalty": 1.0},
    "sglang": {"top_k": -1, "min_p": 0.0, "repetition_penalty": 1.0},
    "llamacpp": {"top_k": 0, "min_p": 0.0, "repeat_penalty": 1.0},
}
"""Values that ask for nothing, by the owner that a server names for its models.

These servers fill what a request leaves out from the checkpoint's `generation_config.json` or from defaults of their
own. All others, which refuse fields that they do not know, are sent none of this.
"""

_MARKUP = re.compile(r"(?is)<(style|script)\b.*?</\1>|<[^>]*>")
_LISTED_S = 10.0
_LONGEST_PAUSE_S = 60.0
_TIMES_THE_LONGEST = 4
"""A server that took long for an answer may take this many times as long for the next."""


@dataclass
class _Server:
    """One server: what waits there, how much may, and how long its longest answer took."""

    url: str
    client: openai.OpenAI
    waiting: int = 0
    room: int = 1
    longest_s: float = 0.0
    rests_until: float = 0.0
    """A server that could not be reached gets no request before this time, if another can be asked."""

    @cached_property
    def neutral(self) -> Mapping[str, float]:
        """The neutral values that this server takes; none of a server that does not list its models."""
        import openai

        try:
            owners = {model.owned_by for model in self.client.models.list(timeout=_LISTED_S).data}
        except (openai.OpenAIError, AttributeError, TypeError, ValueError):
            return {}
        return next((NEUTRAL[owner] for owner in owners if owner in NEUTRAL), {})


@dataclass
class Servers:
    """Servers that answer alike, asked at the addresses `urls`.

    A server gets one request at first, and one more at a time with each answer, up to `max_concurrency`; half as many
    after an answer that did not come in time. It has `timeout_s` for an answer, or four times as long as its longest
    one took, so that a server which answers one request after the other is given the time for all that wait there.
    `requests_per_minute` holds over all servers; 0 is no limit.
    """

    urls: Sequence[str]
    key_variable: str
    max_concurrency: int
    timeout_s: float
    max_retries: int
    requests_per_minute: int = 0
    retries: int = 0
    """The requests that were sent again."""
    _changed: threading.Condition = field(default_factory=threading.Condition)
    _next_start: float = 0.0
    _servers: Sequence[_Server] = ()

    def connect(self) -> Sequence[_Server]:
        """Return the servers; no request is sent yet. RequestError without the OpenAI client."""
        with self._changed:
            if not self._servers:
                self._servers = [_Server(url, self._client(url)) for url in self.urls]
            return self._servers

    def _client(self, url: str) -> openai.OpenAI:
        try:
            import openai
        except ModuleNotFoundError:
            raise RequestError(
                "endpoints need the OpenAI client; install it in a checkout of equivox: "
                '`pip install -c constraints.txt ".[endpoint]"`'
            ) from None
        key = os.environ.get(self.key_variable, "").strip() or "none"
        if not key.isascii():
            raise RequestError(
                f"the key in the environment variable {self.key_variable} has characters that a header cannot "
                "carry; copy the key again"
            )
        return openai.OpenAI(base_url=url, api_key=key, timeout=self.timeout_s, max_retries=0)

    def greet(self, body: Mapping[str, Any], extra: Mapping[str, Any]) -> None:
        """Send each server a short request; RequestError, naming the server, if no other would be answered either."""
        servers = self.connect()
        import openai

        for server in servers:
            place = without_credentials(server.url)
            try:
                server.client.with_options(max_retries=1).chat.completions.create(**body, extra_body=extra or None)
            except openai.APIConnectionError as error:
                raise RequestError(
                    f"no server answers at {place} ({short(error)}); check base_url and that it runs"
                ) from error
            except (openai.AuthenticationError, openai.PermissionDeniedError) as error:
                raise RequestError(
                    f"{place} refuses the key ({short(error)}); set the environment variable {self.key_variable}"
                ) from error
            except openai.NotFoundError as error:
                raise RequestError(
                    f"{place} does not know the model {body['model']} ({short(error)}); "
                    "check model_name and base_url (it ends in /v1)"
                ) from error
            except Exception as error:
                if _instead(error, body):
                    raise RequestError(f"{place} refuses the settings of this run ({short(error)})") from error
                # The server may be overloaded, refuse a one-token answer, or send what is none; the requests will show.
                continue

    def complete(self, body: Mapping[str, Any], extra: Mapping[str, Any]) -> Any:
        """Return a server's completion; raise what the last attempt raised."""

        def completion(server: _Server, limit_s: float) -> Any:
            neutral = {**server.neutral, **extra}
            found = server.client.chat.completions.create(**body, extra_body=neutral or None, timeout=limit_s)
            first = next(iter(getattr(found, "choices", None) or ()), None)
            if first is None or first.message is None or ending(first.finish_reason) == BROKEN:
                said = getattr(first, "error", None) or getattr(found, "error", None) or first or found
                raise NotAnAnswer(f"the server's answer is no chat completion: {said!s:.100}", said)
            return found

        return self._answered(completion)

    def _answered(self, ask: Callable[[_Server, float], Answer]) -> Answer:
        """Return what `ask` gets from a server that has room, within so many seconds.

        Sent again, after a pause: what the server was too busy for, what broke on the way, and an answer of another
        form. Not sent again: an answer that did not come in time, because the server may still be computing it.
        """
        opened = self.connect()
        for attempt in range(self.max_retries + 1):
            self._wait_for_turn()
            try:
                with self._place() as server:
                    limit_s = max(self.timeout_s, _TIMES_THE_LONGEST * server.longest_s)
                    return _in_time(ask, server, limit_s)
            except Exception as error:
                closed = self._servers is not opened
                if closed or attempt == self.max_retries or not _passes(error):
                    raise
                pause = _pause(error, attempt)
            with self._changed:
                self.retries += 1
            time.sleep(pause)
        raise AssertionError("the last attempt returns or raises")

    def close(self) -> None:
        """Close the connections; the next request opens new ones."""
        for server in self._servers:
            server.client.close()
        self._servers = ()

    @contextmanager
    def _place(self) -> Iterator[_Server]:
        """Wait for a server that has room, and note what becomes of the request there."""
        servers = self.connect()
        with self._changed:
            while True:
                now = time.monotonic()
                # All of them can be asked if they all rest.
                awake = [server for server in servers if server.rests_until <= now] or servers
                if free := [server for server in awake if server.waiting < server.room]:
                    break
                self._changed.wait()
            server = min(free, key=lambda one: one.waiting / one.room)
            server.waiting += 1
        start, room = time.monotonic(), server.room
        try:
            yield server
            with self._changed:
                server.longest_s = max(server.longest_s, time.monotonic() - start)
                server.room = min(self.max_concurrency, server.room + 1)
        except Exception as error:
            with self._changed:
                if _timed_out(error):
                    server.room = max(1, min(server.room, room // 2))
                elif unreached(error):
                    server.rests_until = time.monotonic() + _LONGEST_PAUSE_S
            raise
        finally:
            with self._changed:
                server.waiting -= 1
                self._changed.notify_all()

    def _wait_for_turn(self) -> None:
        if not self.requests_per_minute:
            return
        with self._changed:
            start = max(self._next_start, time.monotonic())
            self._next_start = start + 60 / self.requests_per_minute
        time.sleep(max(0.0, start - time.monotonic()))


class NotAnAnswer(ValueError):
    """The server returned a body that is not a completion; its status may come from an embedded error."""

    def __init__(self, told: str, said: object = None) -> None:
        super().__init__(told)
        self.body = said
        code = said.get("code") if isinstance(said, dict) else None
        self.status_code = code if isinstance(code, int) else None


def _in_time(ask: Callable[[_Server, float], Answer], server: _Server, limit_s: float) -> Answer:
    try:
        return ask(server, limit_s)
    except (json.JSONDecodeError, UnicodeDecodeError, AttributeError) as error:
        raise NotAnAnswer(f"the server's answer cannot be read ({short(error)})") from error
    except Exception as error:
        if _timed_out(error):
            raise TimeoutError(
                f"no answer in {limit_s:.4g} s; not sent again, because the server may still be computing it "
                "(raise timeout_s, or lower max_concurrency)"
            ) from error
        raise


def _timed_out(error: BaseException | None) -> bool:
    """Return whether a server took the request and did not answer in time."""
    # The client's own error does not say whether it was the connection or the answer that took too long; what caused
    # it does, by a class of the HTTP library, which is httpx or httpx2.
    while error is not None and type(error).__name__ != "ReadTimeout":
        error = error.__cause__
    return error is not None


def unreached(error: BaseException | None) -> bool:
    """Return whether a server could not be reached at all."""
    import openai

    return isinstance(error, openai.APIConnectionError) and not _timed_out(error)


def _passes(error: BaseException) -> bool:
    """Return whether the same request may be answered if it is sent again."""
    if withheld(getattr(error, "body", None)):
        return False
    status = getattr(error, "status_code", None)
    if isinstance(status, int):
        return (status in (408, 409, 429) or status >= 500) and not no_money(error)
    return isinstance(error, NotAnAnswer) or unreached(error)


def no_money(error: BaseException | None) -> bool:
    """Return whether a server says that what was paid for is used up."""
    return "insufficient_quota" in (getattr(error, "code", None), getattr(error, "type", None))


def _pause(error: BaseException, attempt: int) -> float:
    """Return the seconds before a request is sent again: as the server asks, up to 60, or .5, 1 … 8, scattered."""
    headers = getattr(getattr(error, "response", None), "headers", {})
    seconds = 0.0
    with suppress(KeyError, ValueError):
        seconds = parsedate_to_datetime(headers["retry-after"]).timestamp() - time.time()
    for name, unit in (("retry-after", 1), ("retry-after-ms", 1000)):
        with suppress(KeyError, ValueError):
            seconds = float(headers[name]) / unit
    if seconds > 0:
        return min(seconds, _LONGEST_PAUSE_S)
    return min(0.5 * 2.0**attempt, 8.0) * random.uniform(0.75, 1.0)


_INSTEAD = {
    "max_tokens": "token_limit_field=max_completion_tokens",
    "seed": "send_seed=false",
    "temperature": "`--sampling temperature=1`, or `sampling` of an annotator's file",
    "response_format": "structured=json_object, or none",
    "input_audio": "audio_part=audio_url",
}
"""What may be given in place of a setting that a server does not take."""
_NOT_TAKEN = re.compile(
    r"unsupported|unrecognized|unknown|unavailable|extra inputs|not (?:support|permit|allow)|is allowed", re.IGNORECASE
)


def _instead(error: BaseException, sent: Container[str] = _INSTEAD) -> str:
    """Return what may help where a server says that it does not take a setting of those that were sent; else empty."""
    told = str(getattr(error, "body", "")) if getattr(error, "status_code", None) in (400, 422) else ""
    found = (instead for name, instead in _INSTEAD.items() if name in sent and re.search(rf"\b{name}\b", told))
    return next(found, "") if _NOT_TAKEN.search(told) else ""


def short(error: BaseException) -> str:
    """Return an error as one short line: its type and its first words, without credentials.

    The client says of all broken connections that they are one; what caused the error says why. Of an answer in a form
    that it does not know it says the status alone.
    """
    words = f"{error} {error.__cause__}" if unreached(error) and error.__cause__ else str(error)
    if body := words.startswith("Error code: ") and " - " not in words and getattr(error, "body", None):
        words += f" - {_MARKUP.sub(' ', str(body))}"
    text = cleaned(" ".join(words.split()))
    told = f"{type(error).__name__}: {text[:200]}" if text else type(error).__name__
    return f"{told}; try {instead}" if (instead := _instead(error)) else told
