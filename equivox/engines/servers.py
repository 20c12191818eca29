"""The servers of one model, as the HTTP client below the OpenAI client.

The OpenAI client sends a request again after a busy server, an outage or an answer that cannot be read, with pauses.
This HTTP client chooses the server, limits how many requests wait there, and turns whatever comes back into a
completion or an error that the OpenAI client knows.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin

import httpx2
import openai

from equivox.core.endings import BROKEN, ending
from equivox.core.redact import without_credentials
from equivox.engines.completions import withheld

if TYPE_CHECKING:
    from equivox.engines.endpoint import EndpointSettings

ANY_SERVER = "http://any-server.invalid"
"""The address of a request that any of the servers may answer."""
_CONNECT_S = 30.0
_REST_S = 60.0
_LONGEST_PAUSE_S = 120.0
"""A server that asks for a longer pause is out of order; the client waits for up to as long."""
_TIMES_THE_LONGEST = 4
"""A server that took long for an answer may take this many times as long for the next."""


@dataclass
class Server:
    """One server: how many requests it has and may have, and the seconds that its slowest answer took.

    A server that could not be reached gets no request before `rests_until`, if another one can answer.
    """

    url: str
    busy: int = 0
    room: int = 1
    longest_s: float = 0.0
    rests_until: float = 0.0


class Refused(openai.OpenAIError):
    """A request that the client does not send again; `fatal` names a cause that every other request meets too."""

    def __init__(self, message: str, fatal: str | None = None) -> None:
        super().__init__(message)
        self.fatal = fatal


class LateAnswer(Refused):
    """An answer that did not come in time; it is not requested again: the server may still be computing it."""


class NotAnAnswer(httpx2.RequestError):
    """A reply with status 200 that is no completion; the client sends the request again."""


class Servers(openai.DefaultAsyncHttpxClient):
    """Servers that give the same answers.

    A server gets one request at first, and one more at a time with each answer, up to `max_concurrency`; half as many
    after a late answer. It has `timeout_s` for a whole answer, or four times as long as its slowest one took, because
    a server that answers one request after the other needs the time for all that wait there.
    """

    def __init__(self, settings: EndpointSettings, transport: httpx2.AsyncBaseTransport | None = None) -> None:
        self.settings = settings
        self.servers = [Server(url) for url in settings.urls]
        self.retries = 0
        """The number of requests that were sent again."""
        self.pause = ""
        """How long a server asked to wait, in words, while the requests wait for it."""
        # No limit between two bytes: the deadline is that of the whole answer.
        super().__init__(
            transport=transport,
            timeout=httpx2.Timeout(None, connect=min(settings.timeout_s / 2, _CONNECT_S)),
            limits=httpx2.Limits(max_connections=None, max_keepalive_connections=None),
            follow_redirects=False,
        )
        self._changed = asyncio.Condition()
        self._next_start = 0.0

    async def send(self, request: httpx2.Request, **_: Any) -> httpx2.Response:
        """Return a server's answer to `request`, read to its end.

        Raises Refused for what the client does not send again, and errors of httpx2 for what it does.
        """
        self.retries += request.headers.get("x-stainless-retry-count", "0") != "0"
        await self._wait_for_turn()
        async with self._place(request.url) as server:
            response = await self._ask(server, request)
            while (pause := read_retry_after(response)) > _LONGEST_PAUSE_S:
                self.pause = f"the server asks to wait {pause:.0f} s"
                if not self.settings.wait:
                    message = f"{self.pause}; repeat the command later, or set wait=true"
                    raise Refused(message, f"HTTP {response.status_code}")
                await asyncio.sleep(pause)
                response = await self._ask(server, request)
        self.pause = ""
        return response

    @asynccontextmanager
    async def _place(self, url: httpx2.URL) -> AsyncIterator[Server]:
        """Yield a server that has room, and note what becomes of the request there."""
        servers = [server for server in self.servers if str(url).startswith(server.url)] or self.servers
        async with self._changed:
            while (server := _find_room(servers)) is None:
                await self._changed.wait()
            server.busy += 1
        start, room = time.monotonic(), server.room
        try:
            yield server
            server.longest_s = max(server.longest_s, time.monotonic() - start)
            server.room = min(self.settings.max_concurrency, server.room + 1)
        except LateAnswer:
            server.room = max(1, min(server.room, room // 2))
            raise
        except httpx2.TransportError:
            server.rests_until = time.monotonic() + _REST_S
            raise
        finally:
            server.busy -= 1
            async with self._changed:
                self._changed.notify_all()

    async def _ask(self, server: Server, request: httpx2.Request) -> httpx2.Response:
        """Return one answer of one server, within its time and size."""
        limit_s = max(self.settings.timeout_s, _TIMES_THE_LONGEST * server.longest_s)
        url = str(request.url).replace(ANY_SERVER, server.url)
        request.url = httpx2.URL(url)
        request.headers["host"] = request.url.netloc.decode()
        try:
            async with asyncio.timeout(limit_s):
                response = await super().send(request, stream=True)
                try:
                    body = await self._read(response)
                finally:
                    await response.aclose()
        except TimeoutError:
            raise LateAnswer(
                f"no answer in {limit_s:.4g} s; not sent again, because the server may still be computing it "
                "(raise timeout_s, or lower max_concurrency)"
            ) from None
        if response.is_redirect:
            place = without_credentials(urljoin(url, response.headers.get("location", "")))
            raise Refused(f"{without_credentials(url)} redirects to {place}; give that server as base_url", "redirect")
        skipped = {"content-encoding", "content-length", "transfer-encoding"}
        kept = [(name, value) for name, value in response.headers.items() if name not in skipped]
        whole = httpx2.Response(response.status_code, headers=kept, content=body, request=request)
        return _check_completion(whole) if request.method == "POST" else whole

    async def _read(self, response: httpx2.Response) -> bytes:
        body = bytearray()
        async for piece in response.aiter_bytes():
            body += piece
            if len(body) > (most := self.settings.max_answer_mib) * 2**20:
                raise Refused(f"the answer is longer than {most:g} MiB; raise max_answer_mib")
        return bytes(body)

    async def _wait_for_turn(self) -> None:
        if self.settings.requests_per_minute:
            start = max(self._next_start, time.monotonic())
            self._next_start = start + 60 / self.settings.requests_per_minute
            await asyncio.sleep(start - time.monotonic())


def _find_room(servers: Sequence[Server]) -> Server | None:
    """Return the server with most room, None if all are full; servers that rest are used if all of them rest."""
    now = time.monotonic()
    awake = [server for server in servers if server.rests_until <= now] or servers
    free = [server for server in awake if server.busy < server.room]
    return min(free, key=lambda server: server.busy / server.room, default=None)


def _check_completion(response: httpx2.Response) -> httpx2.Response:
    """Return a response with the status that it deserves; NotAnAnswer for a success without a whole completion."""
    document: Any = None
    with suppress(ValueError, RecursionError):
        document = json.loads(response.content)
    fields: Mapping[str, Any] = document if isinstance(document, dict) else {}
    error = fields.get("error")
    described: Mapping[str, Any] = error if isinstance(error, dict) else {}
    if not response.is_success:
        lasting = withheld(error) or "insufficient_quota" in (described.get("code"), described.get("type"))
        response.headers.update({"x-should-retry": "false"} if lasting else {})
        return response
    choices = fields.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}
    finish = choice.get("finish_reason")
    if isinstance(choice.get("message"), dict) and ending(finish if isinstance(finish, str) else None) != BROKEN:
        return response
    code = described.get("code")
    if isinstance(code, int) and 400 <= code < 600:  # a gateway passes on the error of the server behind it
        response.status_code = code
        return _check_completion(response)
    if document is None:
        raise NotAnAnswer(f"the server's answer cannot be read as JSON: {response.text!s:.100}")
    received = choice.get("error") or error or choice or document
    raise NotAnAnswer(f"the server's answer is no chat completion: {received!s:.100}")


def read_retry_after(response: httpx2.Response) -> float:
    """Return the seconds that a server asks to wait; 0 if it does not ask, or cannot be understood."""
    if response.is_success:
        return 0.0
    seconds = 0.0
    asked = response.headers.get("retry-after", "")
    with suppress(TypeError, ValueError):
        seconds = parsedate_to_datetime(asked).timestamp() - time.time()
    with suppress(ValueError):
        seconds = float(asked)
    return seconds if seconds > 0 else 0.0
