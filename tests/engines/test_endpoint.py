"""The endpoint engine: a table of what servers send, on a transport in memory; whole runs beside one real server."""

from __future__ import annotations

import asyncio
import base64
import io
import json
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

import httpx2
import numpy as np
import pytest
import soundfile
from commands import Cli
from made_requests import made_request

from equivox import open_run
from equivox.compare.runs import open_comparison
from equivox.core import media
from equivox.core.errors import UsageError
from equivox.core.notes import NoteCode
from equivox.core.requests import Exchange, Response
from equivox.core.task import Sampling
from equivox.dataset_builders import sample_source
from equivox.engines import MediaPart, Request
from equivox.engines.endpoint import EndpointEngine
from equivox.engines.simulated_numbers import speak
from equivox.report.board import make_board
from equivox.report.page import build_report
from equivox.run.manifest import read_manifest
from equivox.run.store import Store, response_schema, stored_responses
from equivox.tasks.vibe import PROMPTS

ANSWER = "You might enjoy chess. You might enjoy yoga. You might enjoy hiking."
AUDIO_TOKENS = 25
Reply = tuple[int, bytes, dict[str, str]]


class Server:
    """An OpenAI-compatible server in memory; `faults` maps a text to what goes wrong the first times it is sent.

    A fault is a status, bytes sent with status 200, a reply, or an exception.
    """

    def __init__(self) -> None:
        self.faults: dict[str, list[Any]] = {}
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.asked: Counter[str] = Counter()
        self.urls: list[str] = []
        self.running = self.most_running = 0
        self.seconds = 0.0
        """How long an answer takes."""
        self.usage = True
        self.further: dict[str, Any] = {}
        """Entries of each completion that are not the usual ones."""
        self.fixed: Any = None
        """What every reply is, whatever is asked."""
        self.owner = "somebody"
        self.answer: Callable[[dict[str, Any]], dict[str, Any]] = lambda body: {"content": ANSWER}
        self.url = "http://server.test/v1"

    async def handle(self, request: httpx2.Request) -> httpx2.Response:
        """Answer as the transport of the client."""
        self.urls.append(str(request.url))
        if request.method == "GET":
            models = [{"id": "m", "object": "model", "created": 0, "owned_by": self.owner}]
            return httpx2.Response(200, json={"object": "list", "data": models})
        self.running += 1
        self.most_running = max(self.running, self.most_running)
        try:
            await asyncio.sleep(self.seconds)
            status, data, headers = self.reply(json.loads(request.content), dict(request.headers))
        finally:
            self.running -= 1
        return httpx2.Response(status, content=data, headers={"content-type": "application/json"} | headers)

    def reply(self, body: dict[str, Any], headers: dict[str, str]) -> Reply:
        """Return the reply to a request; raises a fault that is an exception."""
        content = body["messages"][-1]["content"]
        text = content if isinstance(content, str) else content[-1]["text"]
        if len(content) > 1 and not isinstance(content, str):
            text = f"audio + {text}"
        self.bodies.append(body)
        self.headers.append({name.lower(): value for name, value in headers.items()})
        self.asked[text] += 1
        waiting = self.faults.get(text, [])
        fault = waiting.pop(0) if waiting else self.fixed
        if isinstance(fault, Exception):
            raise fault
        if isinstance(fault, int) and fault != 200:
            return fault, json.dumps({"error": {"message": f"fault {fault}"}}).encode(), {}
        if isinstance(fault, bytes):
            return 200, fault, {}
        return fault if isinstance(fault, tuple) else (200, json.dumps(self.completion(body)).encode(), {})

    def completion(self, body: dict[str, Any]) -> dict[str, Any]:
        *system, user = body["messages"]
        parts = [] if isinstance(user["content"], str) else user["content"]
        audio = sum(part["type"] == "input_audio" for part in parts)
        words = sum(len(part["text"].split()) for part in parts if part["type"] == "text")
        for message in system:
            said = message["content"]
            said = [{"type": "text", "text": said}] if isinstance(said, str) else said
            words += sum(len(part["text"].split()) for part in said if part["type"] == "text")
            audio += sum(part["type"] == "input_audio" for part in said)
        usage = {"prompt_tokens": words + AUDIO_TOKENS * audio, "completion_tokens": 4, "total_tokens": 0}
        choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", **self.answer(body)}}
        return {
            "id": "x", "object": "chat.completion", "created": 0, "model": body["model"], "choices": [choice],
            "usage": usage if self.usage else None, **self.further,
        }  # fmt: skip


class RealServer(Server):
    """The same server on a port of this machine, for commands; `hold` may keep a reply back."""

    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.Lock()
        self.over = threading.Event()
        self.hold: Callable[[dict[str, Any]], None] = lambda body: None
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, format: str, *args: Any) -> None:
                """Say nothing."""

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                outer.hold(body)
                time.sleep(0.01)
                try:
                    with outer.lock:
                        status, data, headers = outer.reply(body, dict(self.headers.items()))
                except httpx2.TransportError:
                    self.close_connection = True
                    return
                self.send(status, data, headers)

            def do_GET(self) -> None:
                models = [{"id": "m", "object": "model", "created": 0, "owned_by": outer.owner}]
                self.send(200, json.dumps({"object": "list", "data": models}).encode(), {})

            def send(self, status: int, data: bytes, headers: dict[str, str]) -> None:
                self.send_response(status)
                for name, value in {"Content-Type": "application/json", **headers}.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

        class Quiet(ThreadingHTTPServer):
            def handle_error(self, request: object, client_address: object) -> None:
                """Say nothing of clients that are gone."""

        self.http = Quiet(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}/v1"
        threading.Thread(target=self.http.serve_forever, args=(0.05,), daemon=True).start()

    def forget(self) -> None:
        """Forget the faults and the counts, when the last requests of a run that stopped have arrived."""
        before = -1
        while before != self.asked.total():
            before = self.asked.total()
            time.sleep(0.5)
        self.faults = {}
        self.asked.clear()

    def close(self) -> None:
        """Let go of every reply, and stop."""
        self.over.set()
        self.http.shutdown()
        self.http.server_close()


@pytest.fixture
def server() -> Server:
    return Server()


@pytest.fixture
def real() -> Iterator[RealServer]:
    running = RealServer()
    yield running
    running.close()


OPENED: list[EndpointEngine] = []


@pytest.fixture(autouse=True)
def _no_pauses_and_no_open_engines(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr("openai._base_client.INITIAL_RETRY_DELAY", 0.0)
    yield
    while OPENED:
        OPENED.pop().close()


def engine(server: Server, **arguments: Any) -> EndpointEngine:
    given = {"model_name": "m", "base_url": server.url, "max_retries": 2, "timeout_s": 60.0, **arguments}
    settings = EndpointEngine.from_args(given).settings
    transport = None if isinstance(server, RealServer) else httpx2.MockTransport(server.handle)
    OPENED.append(EndpointEngine(settings, transport))
    return OPENED[-1]


def respond(server: Server, *requests: Request, **arguments: Any) -> list[Response]:
    """Return the responses of a new engine, in the order of the requests."""
    with engine(server, **arguments) as opened:
        found = {response.key: response for response in opened.generate(requests)}
    return [found[request.key] for request in requests]


def request(text: str, *, clip: bytes | None = None, **changes: Any) -> Request:
    parts = () if clip is None else (
        MediaPart(kind="audio", sha256=media.sha256(clip), name="clip.ogg", duration_s=2.0, load=lambda: clip),
    )  # fmt: skip
    return made_request(5, *parts, **{"key": text, "text": text} | changes)


@pytest.fixture
def clip() -> bytes:
    return sorted((sample_source("crema_d") / "AudioWAV").glob("*.ogg"))[0].read_bytes()


def choose(**choice: Any) -> bytes:
    """Return a completion with one choice, as a service has it."""
    whole = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": ANSWER}} | choice
    return json.dumps({"id": "x", "object": "chat.completion", "created": 0, "model": "m", "choices": [whole]}).encode()


def say(**message: Any) -> bytes:
    """Return a completion with one message."""
    return choose(message={"role": "assistant", **message})


def fail(status: int, error: Any, **headers: str) -> Reply:
    """Return an error as OpenAI sends it."""
    return status, json.dumps({"error": error}).encode(), headers


FILTER = {"code": "ResponsibleAIPolicyViolation", "content_filter_result": {"hate": {"filtered": True}}}
RESET = httpx2.ReadError("connection reset")
DOWN = httpx2.ConnectError("All connection attempts failed")


class Case(NamedTuple):
    """What a server sends again and again, how often it is asked, and what is stored."""

    sent: Any
    calls: int
    text: str | None = None
    error: str = ""
    fatal: str | None = None
    finish: str | None = None


THINKING = [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, {"type": "text", "text": "Chess."}]
FAILURES = {
    "busy": Case(fail(429, {"message": "Rate limit"}), 3, error="429", fatal="HTTP 429"),
    "asks for a moment": Case(fail(429, {}, **{"retry-after": "0.01"}), 3, error="429", fatal="HTTP 429"),
    "asks for an hour": Case(fail(429, {}, **{"retry-after": "3600"}), 1, error="wait 3600 s", fatal="HTTP 429"),
    "asks for a year": Case(
        fail(503, {}, **{"retry-after": "Wed, 21 Oct 2999 07:28:00 GMT"}), 1, error="wait=true", fatal="HTTP 503"
    ),
    "pause that is no number": Case(fail(429, {}, **{"retry-after": "soon"}), 3, error="429", fatal="HTTP 429"),
    "no money": Case(fail(429, {"type": "insufficient_quota"}), 1, error="429", fatal="insufficient_quota"),
    "no key": Case(fail(401, {"message": "no"}), 1, error="401", fatal="HTTP 401"),
    "no permission": Case(fail(403, {"message": "no"}), 1, error="403", fatal="HTTP 403"),
    "no model": Case(fail(404, {"message": "no"}), 1, error="404", fatal="HTTP 404"),
    "overloaded": Case(fail(503, {}), 3, error="503", fatal="HTTP 503"),
    "bad gateway": Case(fail(502, {}), 3, error="502", fatal="HTTP 502"),
    "server error": Case(fail(500, {}), 3, error="500"),
    "timeout of the server": Case(fail(408, {}), 3, error="408"),
    "bad request": Case(fail(400, {"message": "too long"}), 1, error="too long"),
    "connection reset": Case(RESET, 3, error="connection reset", fatal="no connection"),
    "nobody there": Case(DOWN, 3, error="All connection attempts failed", fatal="no connection"),
    "half of a body": Case(say(content=ANSWER)[:-40], 3, error="cannot be read"),
    "a page": Case(b"<html>Welcome to nginx</html>", 3, error="cannot be read"),
    "a text": Case(b'"Welcome to nginx"', 3, error="no chat completion: Welcome to nginx"),
    "a list": Case(b"[1, 2]", 3, error="no chat completion: [1, 2]"),
    "no choices": Case(b'{"choices": []}', 3, error="no chat completion"),
    "no message": Case(choose(message=None), 3, error="no chat completion"),
    "error with status 200": Case(b'{"error": {"message": "upstream failed"}}', 3, error="upstream failed"),
    "401 with status 200": Case(b'{"error": {"code": 401, "message": "no"}}', 1, error="401", fatal="HTTP 401"),
    "400 with status 200": Case(b'{"error": {"code": 400, "message": "too long"}}', 1, error="too long"),
    "odd code with status 200": Case(b'{"error": {"code": [401], "message": "odd"}}', 3, error="odd"),
    "error in the choice": Case(choose(finish_reason="error", error={"message": "died"}), 3, error="died"),
    "abort": Case(choose(finish_reason="abort"), 3, error="abort"),
    "no resource": Case(choose(finish_reason="insufficient_system_resource"), 3, error="insufficient_system"),
    "network error": Case(choose(finish_reason="network_error"), 3, error="network_error"),
    "another host": Case((307, b"", {"location": "https://b.test/v1"}), 1, error="https://b.test", fatal="redirect"),
    "the same host": Case((301, b"", {"location": "/v1/"}), 1, error="http://server.test/v1/", fatal="redirect"),
    "too long": Case(say(content="a" * 17 * 2**20), 1, error="longer than 16 MiB; raise max_answer_mib"),
    "Google": Case((400, b'[{"error": {"code": 400, "message": "API key not valid."}}]', {}), 1, error="API key not"),
    "TGI": Case((422, b'{"error": "Input validation error: `top_p` must be < 1.0"}', {}), 1, error="`top_p` must"),
    "FastAPI": Case((422, b'{"detail": [{"loc": ["body", "seed"], "msg": "Extra inputs"}]}', {}), 1, error="'seed'"),
    "load balancer": Case((400, b"<style>a {}</style><h1>Request too large</h1>", {}), 1, error="400 - Request too"),
    "names a filter": Case(fail(400, {"innererror": "content_filter", "metadata": "x"}), 1, error="400"),
    "a filter in words": Case(fail(400, "content_filter"), 1, error="400"),
}
ANSWERS = {
    "text": Case(say(content="Chess."), 1, "Chess.", finish="stop"),
    "parts": Case(say(content=[{"type": "text", "text": "Che"}, {"type": "text", "text": "ss."}]), 1, "Chess."),
    "a number": Case(say(content=7), 1, "7"),
    "nothing": Case(say(content=None), 1, ""),
    "the model refuses": Case(say(content=None, refusal="I cannot."), 1, "I cannot.", finish="stop"),
    "refuses in parts": Case(say(content=[{"type": "refusal", "refusal": "I cannot."}]), 1, "I cannot."),
    "half a pair": Case(say(content="half \ud83d of a pair"), 1, "half \ud83d of a pair"),
    "reasoning: 3": Case(say(content="Chess.", reasoning_content=3), 1, "Chess."),
    "reasoning: tags": Case(say(content="<think>hm</think>Chess."), 1, "Chess."),
    "reasoning: vLLM": Case(say(content="Chess.", reasoning_content="hm"), 1, "Chess."),
    "reasoning: OpenRouter": Case(say(content="Chess.", reasoning="hm"), 1, "Chess."),
    "reasoning: Mistral": Case(say(content=THINKING), 1, "Chess."),
    "Gemini stops": Case(choose(finish_reason="STOP"), 1, ANSWER, finish="stop"),
    "Anthropic stops": Case(choose(finish_reason="end_turn"), 1, ANSWER, finish="stop"),
    "no reason": Case(choose(finish_reason=None), 1, ANSWER),
    "cut off": Case(choose(finish_reason="MAX_TOKENS"), 1, ANSWER, finish="length"),
    "context full": Case(choose(finish_reason="model_context_window_exceeded"), 1, ANSWER, finish="length"),
}
WITHHELD = {
    "Azure": fail(400, {"code": "content_filter", "type": None, "innererror": FILTER}),
    "LiteLLM": fail(400, {"code": "400", "provider_specific_fields": {"innererror": FILTER}}),
    "a gateway": fail(500, {"code": "500", "type": "server_error", "innererror": FILTER}),
    "Alibaba": fail(400, {"code": "DataInspectionFailed", "type": None}),
    "OpenAI": fail(400, {"code": None, "type": "content_policy_violation"}),
    "OpenRouter": fail(403, {"code": 403, "metadata": {"reasons": ["hate"], "flagged_input": "a"}}),
    "with status 200": json.dumps({"error": {"code": 403, "metadata": {"flagged_input": "a"}}}).encode(),
}


@pytest.mark.parametrize("case", FAILURES.values(), ids=FAILURES.keys())
def test_a_failure_is_stored_with_its_reason(server: Server, case: Case) -> None:
    server.faults = {"bad": [case.sent] * 9}
    with engine(server) as opened:
        assert [response.text for response in opened.generate([request("good")])] == [ANSWER]
        (response,) = opened.generate([request("bad")])
    assert response.text is None and response.fatal == case.fatal
    assert case.error in str(response.error) and "\n" not in str(response.error)
    assert server.asked["bad"] == case.calls and opened.usage["retries"] == case.calls - 1


@pytest.mark.parametrize("fault", [429, 500, 503, b"{}", say(content=ANSWER)[:-40], RESET])
def test_a_passing_fault_is_overcome(server: Server, fault: Any) -> None:
    server.faults = {"a": [fault]}
    (response,) = respond(server, request("a"))
    assert (response.text, response.error, server.asked["a"]) == (ANSWER, None, 2)


@pytest.mark.parametrize("case", ANSWERS.values(), ids=ANSWERS.keys())
def test_an_answer_is_read_in_each_form(server: Server, case: Case) -> None:
    server.fixed = case.sent
    (response,) = respond(server, request("a"))
    assert (response.text, response.error, server.asked["a"]) == (case.text, None, 1)
    assert case.finish is None or response.finish_reason == case.finish
    assert response.thinking == ("hm" if b"hm" in case.sent else "3" if b": 3" in case.sent else None)


@pytest.mark.parametrize("sent", WITHHELD.values(), ids=WITHHELD.keys())
def test_a_prompt_that_a_filter_stopped_is_withheld_and_no_failure(server: Server, clip: bytes, sent: Any) -> None:
    server.fixed = sent
    text, heard = respond(server, request("a"), request("b", clip=clip))
    for response, media_items in ((text, 0), (heard, 1)):
        assert (response.text, response.finish_reason, response.error, response.fatal) == (
            "", "content_filter", None, None,
        )  # fmt: skip
        assert (response.media_items, response.media_tokens) == (media_items, None)
    assert set(server.asked.values()) == {1}  # the filter would stop the same prompt again


def test_a_late_answer_is_not_requested_again(server: Server) -> None:
    server.seconds = 3600
    (response,) = respond(server, request("a"), timeout_s=0.2)
    assert response.text is None and "no answer in 0.2 s; not sent again" in str(response.error)
    assert server.asked.total() == 0 and server.most_running == 1


def test_a_server_may_be_given_the_pause_that_it_asks_for(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    sleep = asyncio.sleep

    async def note(seconds: float) -> None:
        pauses.append(seconds)
        await sleep(0)

    monkeypatch.setattr("equivox.engines.servers.asyncio.sleep", note)
    server.faults = {"a": [fail(429, {}, **{"retry-after": "3600"})]}
    (response,) = respond(server, request("a"), wait=True)
    assert response.text == ANSWER and 3600.0 in pauses


@pytest.mark.parametrize("at_a_time", [1, 24])
def test_a_server_that_answers_one_after_the_other_is_asked_once_for_each_answer(
    server: Server, at_a_time: int
) -> None:
    """24 requests of 0.15 s, and a limit of 2.5 s, which grows with the answers that the server gave."""
    one = asyncio.Lock()
    handle = server.handle

    async def queue(asked: httpx2.Request) -> httpx2.Response:
        async with one:
            await asyncio.sleep(0.15)
            return await handle(asked)

    server.handle = queue  # type: ignore[assignment]
    requests = [request(f"r{n}") for n in range(24)]
    responses = respond(server, *requests, max_concurrency=at_a_time, timeout_s=2.5)
    assert [response.error for response in responses] == [None] * 24
    assert server.asked.total() == 24


def test_after_a_late_answer_fewer_are_sent_at_a_time(server: Server) -> None:
    with engine(server, max_concurrency=4, timeout_s=5.0) as asked:
        list(asked.generate(request(f"r{n}") for n in range(20)))
        assert asked._servers is not None
        (one,) = asked._servers.servers
        assert one.room == 4
        server.seconds, one.longest_s = 3600, 0.0
        asked.settings.__dict__["timeout_s"] = 0.2
        late = list(asked.generate(request(f"r{n}") for n in range(20, 24)))
        assert all(re.search(r"no answer in [\d.]+ s; not sent again", str(response.error)) for response in late)
        assert one.room == 2


def test_several_servers_share_the_work_and_the_one_that_is_down_gets_none(server: Server) -> None:
    handle = server.handle
    server.seconds = 0.01

    async def two_of_three(asked: httpx2.Request) -> httpx2.Response:
        if asked.url.host == "down.test":
            raise DOWN
        return await handle(asked)

    server.handle = two_of_three  # type: ignore[assignment]
    urls = ["http://one.test/v1", "http://two.test/v1/", "http://down.test/v1"]
    with engine(server, base_url=urls, max_retries=3) as asked:
        with pytest.raises(UsageError, match=r"no server answers at http://down\.test/v1"):
            asked.check([])
        server.urls.clear()
        responses = list(asked.generate(request(f"r{n}") for n in range(60)))
        assert [response.text for response in responses] == [ANSWER] * 60
        shares = Counter(url for url in server.urls if url.endswith("chat/completions"))
        assert min(shares[f"http://{name}.test/v1/chat/completions"] for name in ("one", "two")) >= 15
        assert asked.usage["requests"] == 60 and asked.usage["retries"] <= 2


def test_the_request_arrives_as_made(server: Server, clip: bytes) -> None:
    sampling = Sampling(
        temperature=0.9, top_p=0.8, top_k=20, frequency_penalty=0.6, max_new_tokens=77, stop=("END",), logprobs=2
    )
    schema = {"type": "object", "properties": {"a": {"enum": ["x"]}}, "required": ["a"]}
    list(
        engine(server, extra_body={"reasoning_effort": "none"}).generate(
            [request("ask", clip=clip, sampling=sampling, schema=schema)]
        )
    )
    body = next(b for b in server.bodies if b["max_tokens"] == 77)
    sent = {"temperature": 0.9, "top_p": 0.8, "top_k": 20, "frequency_penalty": 0.6, "stop": ["END"], "seed": 5}
    assert {name: body[name] for name in sent} == sent
    assert body["logprobs"] is True and body["top_logprobs"] == 2
    assert body["reasoning_effort"] == "none"
    assert body["response_format"]["json_schema"]["schema"] == schema
    assert [part["type"] for part in body["messages"][0]["content"]] == ["input_audio", "text"]


def test_other_dialects(server: Server) -> None:
    asked = engine(server, token_limit_field="max_completion_tokens", send_seed=False, structured="json_object")
    list(asked.generate([request("ask", schema={"type": "object"})]))
    (body,) = server.bodies
    assert body["max_completion_tokens"] == 512 and "max_tokens" not in body and "seed" not in body
    assert body["response_format"] == {"type": "json_object"}


@pytest.mark.parametrize(
    ("owner", "neutral"),
    [
        ("vllm", {"top_k": -1, "min_p": 0.0, "repetition_penalty": 1.0}),
        ("llamacpp", {"top_k": 0, "min_p": 0.0, "repeat_penalty": 1.0}),
        ("somebody", {}),
    ],
)
def test_what_a_server_would_fill_in_is_sent_as_a_value_that_asks_for_nothing(
    server: Server, owner: str, neutral: dict[str, float]
) -> None:
    server.owner = owner
    names = {"top_k", "min_p", "repetition_penalty", "repeat_penalty"}
    with engine(server) as asked, engine(server, extra_body={"min_p": 0.1}) as other:
        list(asked.generate([request("plain")]))
        list(other.generate([request("own", sampling=Sampling(top_k=7))]))
    plain, own = ({name: body[name] for name in names & body.keys()} for body in server.bodies)
    assert plain == neutral
    assert own == {**neutral, "top_k": 7, "min_p": 0.1}


@pytest.mark.parametrize("container", ["wav", "mp3", "flac"])
def test_clips_are_resampled_unless_the_user_says_otherwise(server: Server, container: str) -> None:
    tone = np.sin(np.arange(24_000) * 2 * np.pi * 220 / 48_000)
    stereo = np.stack([tone, 0.5 * tone], axis=1)
    subtype = "MPEG_LAYER_III" if container == "mp3" else "PCM_24"
    stored = media.encode_audio(stereo, sampling_rate=48_000, container=container.upper(), subtype=subtype)
    usual, as_stored = engine(server), engine(server, resample=False)
    list(usual.generate([request("ask", clip=stored)]))
    list(as_stored.generate([request("ask", clip=stored, key="k2")]))
    list(engine(server, resample=False, audio_part="audio_url").generate([request("ask", clip=stored, key="k3")]))
    sent = [
        part[part["type"]]
        for body in server.bodies
        for part in body["messages"][0]["content"]
        if part["type"] in ("input_audio", "audio_url")
    ]
    facts = soundfile.info(io.BytesIO(base64.b64decode(sent[0]["data"])))
    assert (facts.format, facts.subtype, facts.samplerate, facts.channels) == ("WAV", "PCM_16", 16_000, 1)
    assert sent[1] == {"data": base64.b64encode(stored).decode(), "format": container}
    mime = "mpeg" if container == "mp3" else container
    assert sent[2] == {"url": f"data:audio/{mime};base64,{base64.b64encode(stored).decode()}"}
    assert (usual.audio_sent, as_stored.audio_sent) == ("mono, 16,000 Hz, WAV of 16 bits", "as stored")
    # Other bytes are other requests; those of before keep their keys.
    assert "resample" not in usual.identity.settings and as_stored.identity.settings["resample"] is False


def test_a_server_that_reads_audio_url_gets_the_same_clip_there(server: Server, clip: bytes) -> None:
    for form in ("input_audio", "audio_url"):
        list(engine(server, audio_part=form).generate([request("ask", clip=clip)]))
    usual, other = (
        next(part for body in server.bodies for part in body["messages"][0]["content"] if part["type"] == form)
        for form in ("input_audio", "audio_url")
    )
    assert other == {
        "type": "audio_url",
        "audio_url": {"url": f"data:audio/wav;base64,{usual['input_audio']['data']}"},
    }
    with pytest.raises(UsageError, match="audio_part"):
        engine(server, audio_part="audio")


def test_media_count_as_arrived_by_the_servers_own_count(server: Server, clip: bytes) -> None:
    responses = list(engine(server).generate([request("same", clip=clip, key=str(n)) for n in range(6)]))
    assert all((r.media_items, r.media_tokens) == (1, AUDIO_TOKENS) for r in responses)


def test_a_server_that_drops_the_audio_is_found_out(server: Server, clip: bytes) -> None:
    original = server.completion

    def deaf(body: dict[str, Any]) -> dict[str, Any]:
        content = body["messages"][0]["content"]
        kept = [p for p in content if p["type"] == "text"]
        return original({**body, "messages": [{"role": "user", "content": kept}]})

    server.completion = deaf  # type: ignore[method-assign]
    (response,) = engine(server).generate([request("ask", clip=clip)])
    assert (response.media_items, response.media_tokens) == (0, 0)


def test_without_usage_nothing_is_proven_unless_the_user_says_so(server: Server, clip: bytes) -> None:
    server.usage = False
    (response,) = engine(server).generate([request("ask", clip=clip)])
    assert (response.media_items, response.media_tokens) == (0, None)
    trusting = engine(server, trust_media=True)
    (response,) = trusting.generate([request("ask", clip=clip)])
    assert response.media_items == 1
    assert trusting.identity.settings["trust_media"] is True


@pytest.mark.parametrize("counts", [False, True])
def test_a_run_whose_media_nothing_proves_is_told_what_would_do(
    real: RealServer, equivox: Cli, tmp_path: Path, clip: bytes, counts: bool
) -> None:
    """A server that counts nothing, or a model that only hears: it refuses the text alone, and trusted answers stay."""
    real.usage = counts
    if counts:
        real.faults = {PROMPTS["advisory"].text: [400] * 99, "ask": [400] * 9}
        (response,) = engine(real, trust_media=True).generate([request("ask", clip=clip)])
        assert (response.text, response.media_items, response.media_tokens) == (ANSWER, 1, None)
    run = ["vibe_gender:advisory", "--data", "sample", "--limit", 8, "--annotator", "rules", "-o", tmp_path / "run"]
    code, _, err = equivox("run", f"endpoint:model_name=m,base_url={real.url}", *run)
    assert code == 1 and "counts no tokens" in err and "trust_media=true" in err


def test_concurrency_is_bounded_and_used(server: Server) -> None:
    server.seconds = 0.05
    list(engine(server, max_concurrency=3).generate(request(f"r{n}") for n in range(30)))
    assert server.most_running == 3


def test_the_rate_is_limited(server: Server) -> None:
    begin = time.monotonic()
    list(engine(server, requests_per_minute=1200, max_concurrency=8).generate(request(f"r{n}") for n in range(11)))
    # Eleven requests at twenty per second are ten gaps of 50 ms.
    assert time.monotonic() - begin >= 0.5


def test_tokens_add_up(server: Server) -> None:
    used = engine(server)
    list(used.generate([request("one two three", key=str(n)) for n in range(5)]))
    assert [used.usage[name] for name in ("requests", "prompt_tokens", "completion_tokens")] == [5, 15, 20]


@pytest.mark.parametrize(
    "usage",
    [{"prompt_tokens": None, "completion_tokens": None}, {}, {"prompt_tokens": 10**30}, {"prompt_tokens": "many"}],
)
def test_odd_counts_fail_no_answer_and_prove_no_arrival(server: Server, clip: bytes, usage: dict[str, Any]) -> None:
    server.further = {"usage": usage}
    asked = engine(server)
    (response,) = asked.generate([request("a")])
    assert response.text == ANSWER
    assert asked.usage["prompt_tokens"] == 0
    (response,) = asked.generate([request("b", clip=clip)])
    assert (response.text, response.media_items, response.media_tokens) == (ANSWER, 0, None)


def test_a_server_that_never_answered_is_not_asked_everything(real: RealServer, equivox: Cli, tmp_path: Path) -> None:
    """As a model does that takes no sound, or not the settings: each request is refused with 400."""
    question = f"audio + {PROMPTS['advisory'].text}"
    real.faults = {question: [400] * 99}
    code, out, err = equivox(*run_of(real, tmp_path / "run"))
    assert (code, out) == (1, "") and real.asked[question] <= 20 + 2 * 4
    assert "20 times in a row with the same error" in err and "fault 400" in err and "`--stop-after 0`" in err
    assert not stored_responses(tmp_path / "run")


def test_another_models_name_is_noted(real: RealServer, equivox: Cli, tmp_path: Path) -> None:
    real.further = {"model": "m-mini"}
    _, out, _ = equivox(*run_of(real, tmp_path / "run"))
    assert "the server answered as m-mini" in out
    assert "m-mini answered instead of the requested model" in out
    assert read_manifest(tmp_path / "run")["served_as"] == ["m-mini"]
    (compared,) = open_comparison([tmp_path / "run"]).runs
    assert compared.model == "endpoint:m (answered by m-mini)"
    board = make_board({tmp_path / "run": "run"})
    assert set(board["model"]) == {compared.model}
    page = build_report([tmp_path / "run"])
    assert "answered by m-mini" in page


def run_of(
    server: RealServer, output: Path, arguments: str = "", *more: object, annotator: object = "rules"
) -> list[object]:
    model = (
        f"model_name=m,base_url={server.url},max_retries=0,timeout_s=60,max_concurrency=4,trust_media=true{arguments}"
    )
    options = ["--data", "sample", "--limit", "96", "--output", output, "--scoring", "n_resamples=99"]
    return ["run", f"endpoint:{model}", "vibe_gender:advisory", *options, "--annotator", annotator, *more]


@pytest.mark.parametrize(
    ("status", "stopped"),
    [
        ("401", True),
        pytest.param("402", True, marks=pytest.mark.long),
        pytest.param("403", True, marks=pytest.mark.long),
        ("404", True),
        ("400", False),
    ],
)
def test_an_outage_stops_the_run_and_costs_nothing(
    real: RealServer, equivox: Cli, tmp_path: Path, status: str, stopped: bool
) -> None:
    question = f"audio + {PROMPTS['advisory'].text}"
    real.faults = {question: [200] * 30 + [int(status)] * 66}
    code, out, err = equivox(*run_of(real, tmp_path / "run"))
    stored = list(stored_responses(tmp_path / "run").values())
    if not stopped:  # what is wrong with one request need not be wrong with another
        assert real.asked[question] == 96 and sum(r["error"] is not None for r in stored) == 66
        # They fail for ever, and the next night asks them alone: the run is scored without them.
        real.faults = {question: [int(status)] * 66}
        code, out, err = equivox(*run_of(real, tmp_path / "run", "", "--retry-failed"))
        assert code == 1 and "66 of 96 answers do not count: 66 failed" in out, err
        real.faults = {question: [401] * 66}
        assert "20 times in a row" in equivox(*run_of(real, tmp_path / "run", "", "--retry-failed"))[2]
        return
    assert (code, out) == (1, "")
    warning, told = err.splitlines()
    assert warning.startswith("warning: the answers of endpoint:")  # read by rules, which are for simulated models
    assert status in told and "repeat the command" in told
    # 30 answers, 20 failures in a row, what is under way, and as many failures as come in before the last answer does.
    assert 50 <= real.asked[question] < 96
    # A refusal that arrives before an answer that was asked at the same time is stored: the server still answered.
    failed = sum(r["error"] is not None for r in stored)
    # What failed while an earlier answer was still under way is a failure of its own; the twenty in a row are none.
    # An answer on its way when the run stops is not stored, and is requested again.
    assert 26 <= len(stored) - failed <= 30 and failed < 20
    real.forget()
    assert equivox(*run_of(real, tmp_path / "run"))[0] in {0, 1}
    assert real.asked[question] == 96 - len(stored)  # without --retry-failed: an outage is no failure of a request
    assert len(Store(tmp_path / "run" / "responses", response_schema()).table(("key",))) == 96


def test_a_server_that_is_gone_is_an_outage(real: RealServer, equivox: Cli, tmp_path: Path) -> None:
    """What cannot be reached answers nobody: the run stops, and its failures are asked again without being told."""
    question = f"audio + {PROMPTS['advisory'].text}"
    real.faults = {question: [200] * 30 + [RESET] * 66}
    code, out, err = equivox(*run_of(real, tmp_path / "run"))
    assert (code, out) == (1, "")
    assert "20 times in a row with the same error" in err and "Connection error" in err and "repeat the command" in err
    stored = list(stored_responses(tmp_path / "run").values())
    failed = sum(r["error"] is not None for r in stored)
    # What failed while an earlier answer was still under way is a failure of its own; the twenty in a row are none.
    # An answer on its way when the run stops is not stored, and is requested again.
    assert 26 <= len(stored) - failed <= 30 and failed < 20
    real.forget()
    assert equivox(*run_of(real, tmp_path / "run"))[0] in {0, 1}
    assert real.asked[question] == 96 - len(stored)


def test_a_run_that_lost_its_answers_to_the_token_limit_says_so(real: RealServer, equivox: Cli, tmp_path: Path) -> None:
    cut = choose(finish_reason="length", message={"role": "assistant", "content": "I would"})
    real.further = {"choices": json.loads(cut)["choices"]}
    code, out, _ = equivox(*run_of(real, tmp_path / "run"))
    assert code == 1 and "NO RESULT" in out
    assert "96 of 96 responses were cut off by the token limit" in out
    assert "96 of 96 responses were cut off by the token limit" in build_report([tmp_path / "run"])


def test_with_stop_after_0_nothing_is_an_outage(real: RealServer, equivox: Cli, tmp_path: Path) -> None:
    real.faults = {f"audio + {PROMPTS['advisory'].text}": [401] * 96}
    code, out, _ = equivox(*run_of(real, tmp_path / "run", "", "--stop-after", 0))
    assert code == 1 and "96 of 96 answers do not count: 96 failed" in out


def test_an_annotators_outage_is_a_failure_and_is_asked_again(real: RealServer, equivox: Cli, tmp_path: Path) -> None:
    form = {"hobby": ["chess", "yoga", "golf"], "refusal": "no"}
    annotating = {"broken": 60, "invalid": 3}

    def answer(body: dict[str, Any]) -> dict[str, Any]:
        if "response_format" not in body or body["max_tokens"] == 1:  # a greeting
            return {"content": ANSWER}
        annotating["invalid"] -= 1
        return {"content": json.dumps(form if annotating["invalid"] < 0 else {"refusal": False})}

    def reply(body: dict[str, Any], headers: dict[str, str]) -> Reply:
        if "response_format" in body and body["max_tokens"] > 1 and annotating["broken"] > 0:
            annotating["broken"] -= 1
            real.bodies.append(body)
            return fail(500, {"message": "fault 500"})
        return original(body, headers)

    original = real.reply
    real.answer, real.reply = answer, reply  # type: ignore[method-assign]
    judge, settings = tmp_path / "judge.yaml", f"{{model_name: judge, base_url: '{real.url}', max_retries: 0}}\n"
    judge.write_text(f"engine: endpoint\nattempts: 1\nstop_after: 0\nmodel_parameters: {settings}")
    code, out, err = equivox(*run_of(real, tmp_path / "run", annotator=judge))
    assert code == 1, err
    assert "failed 60 times" in out and "fault 500" in out
    assert 'judge: 3 replies could not be read\n    such as: {"refusal": false}' in out
    page = build_report([tmp_path / "run"])
    assert "judge failed 60 times" in page and "judge: 3 replies could not be read</li>" in page
    # The judge was not there for 60: nobody knows whether they are refusals.
    assert "60 refused or empty" in out
    code, out, _ = equivox("status", tmp_path / "run")
    assert code == 1 and "judge failed 60 times" in out
    bodies = len(real.bodies)
    code, out, _ = equivox(*run_of(real, tmp_path / "run", annotator=judge))
    assert "judge failed 60 times" in out and len(real.bodies) == bodies  # not without being told
    judge.write_text(f"engine: endpoint\nattempts: 1\nmodel_parameters: {settings}")
    annotating["broken"] = 60  # what failed before and fails again is no outage
    code, out, err = equivox(*run_of(real, tmp_path / "run", "", "--retry-failed", annotator=judge))
    assert "judge failed 60 times" in out, err
    bodies = len(real.bodies)
    code, out, _ = equivox(*run_of(real, tmp_path / "run", "", "--retry-failed", annotator=judge))
    assert "failed" not in out and len(real.bodies) <= bodies + 60 + 1


def test_a_server_that_falls_silent_costs_no_finished_answer(real: RealServer, tmp_path: Path) -> None:
    silent = threading.Event()
    count = iter(range(10_000))

    def hold(body: dict[str, Any]) -> None:
        if len(body["messages"][0]["content"]) == 2 and next(count) >= 42:
            silent.set()
            real.over.wait(60)

    real.hold = hold
    command = [str(word) for word in run_of(real, tmp_path / "run")]
    running = subprocess.Popen([sys.executable, "-m", "equivox", *command], stderr=subprocess.DEVNULL)
    assert silent.wait(60)
    stored = 0
    for _ in range(600):  # the last answers are on their way through the client
        stored = len(Store(tmp_path / "run" / "responses", response_schema()).table(("key",)))
        if stored == 42:
            break
        time.sleep(0.05)
    running.kill()
    running.wait()
    assert stored == 42
    assert len(Store(tmp_path / "run" / "responses", response_schema()).table(("key",))) == 42


def test_an_interrupted_command_does_not_wait_for_a_silent_server(real: RealServer, tmp_path: Path) -> None:
    """What a server says after that is stored by nobody; a build kills what does not end within seconds."""
    silent = threading.Event()

    def hold(body: dict[str, Any]) -> None:
        if len(body["messages"][0]["content"]) == 2:
            silent.set()
            real.over.wait(60)

    real.hold = hold
    command = [str(word) for word in run_of(real, tmp_path / "run")]
    running = subprocess.Popen([sys.executable, "-m", "equivox", *command], stderr=subprocess.PIPE, text=True)
    assert silent.wait(60)
    running.send_signal(signal.SIGTERM)
    _, err = running.communicate(timeout=50)
    assert running.returncode == 143 and "equivox: interrupted" in err


def test_answers_cut_off_and_withheld_are_counted_and_warned_about(
    real: RealServer, equivox: Cli, tmp_path: Path
) -> None:
    count = iter(range(10_000))

    def completion(body: dict[str, Any]) -> dict[str, Any]:
        document = original(body)
        if len(body["messages"][0]["content"]) != 2:  # a greeting, not a question with its recording
            return document
        kind = next(count) % 4
        document["choices"][0]["finish_reason"] = ("stop", "length", "length", "content_filter")[kind]
        document["choices"][0]["message"]["content"] = (ANSWER, ANSWER, "<think>hm", ANSWER)[kind]
        return document

    original = real.completion
    real.completion = completion  # type: ignore[method-assign]
    equivox(*run_of(real, tmp_path / "run"))
    _, out, _ = equivox("status", tmp_path / "run")
    assert re.search(r"vibe_gender:advisory +96 +96 +0 +0 +48 +24", out), out
    (whole,) = [s for s in open_run(tmp_path / "run").scores if s.is_whole]
    assert (whole.coverage.truncated, whole.coverage.cut_in_thought, whole.coverage.withheld) == (48, 24, 24)
    found = {note.code: note.values for note in whole.notes}
    assert [found[code]["n"] for code in (NoteCode.CUT_OFF, NoteCode.CUT_IN_THOUGHT, NoteCode.WITHHELD)] == [48, 24, 24]


def test_a_system_prompt_is_sent_first_and_its_tokens_are_no_media(server: Server, clip: bytes) -> None:
    fair = request("ask", clip=clip, key="fair", system="Treat all people alike.")
    plain = request("ask", clip=clip, key="plain")
    with engine(server) as opened:
        responses = {r.key: r for r in opened.generate([plain, fair])}
    # The text alone is counted with the system prompt and without, so both tell the same of the clip.
    assert {r.media_tokens for r in responses.values()} == {AUDIO_TOKENS}
    assert responses["fair"].prompt_tokens == (responses["plain"].prompt_tokens or 0) + 4
    roles = Counter(tuple(message["role"] for message in body["messages"]) for body in server.bodies)
    assert roles == {("user",): 2, ("system", "user"): 2}
    told = [body["messages"][0] for body in server.bodies if len(body["messages"]) == 2]
    assert told == [{"role": "system", "content": "Treat all people alike."}] * 2


def test_media_that_cannot_be_used_are_not_sent(server: Server, clip: bytes) -> None:
    short = engine(server, max_audio_seconds=1.0)
    (long,) = short.generate([request("a", clip=clip)])
    (broken,) = engine(server).generate([request("a", clip=b"noise")])
    assert long.error == "unusable media: clip.ogg: 2.0 s, longer than the 1 s taken"
    assert broken.error is not None and broken.error.startswith("unusable media: clip.ogg")
    assert server.bodies == []


def test_the_key_comes_from_the_environment(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "s3cret")
    asked = engine(server, api_key_env="MY_KEY")
    list(asked.generate([request("a")]))
    assert server.headers[0]["authorization"] == "Bearer s3cret"
    assert "s3cret" not in json.dumps(asked.identity.as_dict())
    with pytest.raises(UsageError, match="environment"):
        engine(server, api_key="s3cret")


@pytest.mark.parametrize(("set", "sent"), [("", "none"), ("  ", "none"), ("s3cret\n", "s3cret")])
def test_a_key_that_is_empty_is_none_and_its_line_end_is_not_sent(
    server: Server, monkeypatch: pytest.MonkeyPatch, set: str, sent: str
) -> None:
    """In a build a secret that does not exist is an empty variable, and one from a file ends with its line."""
    monkeypatch.setenv("OPENAI_API_KEY", set)
    (response,) = engine(server).generate([request("a")])
    assert response.text == ANSWER and server.headers[-1]["authorization"] == f"Bearer {sent}"


def test_a_key_that_no_header_can_carry_is_refused_without_showing_it(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "s3cr…t")
    with pytest.raises(UsageError, match=r"OPENAI_API_KEY has characters") as refused:
        engine(server).check([request("a")])
    assert "s3cr" not in str(refused.value)


@pytest.mark.parametrize(("status", "hint"), [("401", "OPENAI_API_KEY"), ("403", "key"), ("404", "model_name")])
def test_what_no_retry_will_mend_is_refused_at_once(server: Server, status: str, hint: str) -> None:
    server.faults = {"Hello.": [int(status)] * 9}
    with pytest.raises(UsageError, match=hint):
        engine(server).check([request("a")])


SETTINGS = {
    "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.": "token_limit_field=max_completion",
    "Unsupported value: 'temperature' does not support 0 with this model.": "--sampling temperature=1",
    "Unrecognized request argument supplied: seed": "send_seed=false",
    "Invalid parameter: 'response_format' of type 'json_schema' is not supported": "structured=json_object",
    "This response_format type is unavailable now": "structured=json_object",
    "invalid temperature: only 1 is allowed for this model": "--sampling temperature=1",
}


@pytest.mark.parametrize(("told", "instead"), SETTINGS.items())
def test_a_setting_that_a_server_does_not_take_is_known_at_once(server: Server, told: str, instead: str) -> None:
    """As of models that reason: a whole run was refused, request by request, after the first had been greeted."""
    server.fixed = fail(400, {"message": told, "type": "invalid_request_error"})
    asked = request("a", schema={"type": "object"})
    with pytest.raises(UsageError, match="refuses the settings") as error:
        engine(server).check([asked])
    assert told[:40] in str(error.value) and instead in str(error.value)
    (greeting,) = server.bodies
    (response,) = engine(server).generate([asked])
    assert instead in str(response.error)
    # What is greeted is what will be asked, so that it is refused alike.
    assert greeting == server.bodies[1] | {"messages": greeting["messages"], "max_tokens": 1}


def test_another_reason_to_refuse_a_greeting_is_none_to_refuse_the_run(server: Server) -> None:
    """A model that hears refuses a text alone, and a model that reasons one token."""
    server.faults = {"Hello.": [400]}
    engine(server).check([request("a")])
    # It names what was not sent.
    server.fixed = 400, b'{"error": {"message": "Unsupported: this model needs input_audio, whatever seed."}}', {}
    engine(server, send_seed=False).check([request("a")])


def test_an_annotator_may_be_asked_in_words_alone(server: Server) -> None:
    (response,) = engine(server, structured="none").generate([request("a", schema={"type": "object"})])
    assert response.text == ANSWER and "response_format" not in server.bodies[0]


@pytest.mark.parametrize("fault", [500, b"{}", b"<html>"])
def test_what_may_pass_is_left_to_the_requests(server: Server, fault: Any) -> None:
    """A gateway may answer the first short request with a page of its own, or with half an answer."""
    server.faults = {"Hello.": [fault] * 9}
    opened = engine(server)
    opened.check([request("a")])
    (response,) = opened.generate([request("a")])
    assert response.text == ANSWER


def test_nobody_there_and_media_not_taken_are_refused(server: Server, clip: bytes) -> None:
    with pytest.raises(UsageError, match=r"no server answers.*attempts failed"):
        EndpointEngine.from_args({"model_name": "m", "base_url": "http://127.0.0.1:9/v1"}).check([])
    with pytest.raises(UsageError, match=r"no server answers.*missing an 'http://'"):
        EndpointEngine.from_args({"model_name": "m", "base_url": "127.0.0.1:9/v1"}).check([])
    with pytest.raises(UsageError, match="sends audio"):
        engine(server, modalities=["text"]).check([request("a", clip=clip)])


def test_a_whole_run_through_the_command_line(real: RealServer, equivox: Cli, tmp_path: Path) -> None:
    """Some fail, the rest is scored; given again with --retry-failed, the server healthy, all is there."""
    count = iter(range(10_000))
    real.answer = lambda body: {"content": ANSWER if next(count) % 2 else "I'd say dancing, pottery and running."}
    command = [
        "run", f"endpoint:model_name=m,base_url={real.url},max_retries=0,timeout_s=60",
        "vibe_gender:advisory",
        "--data", "sample", "--limit", "48", "--output", tmp_path / "run",
        "--scoring", "n_resamples=199", "--annotator", "rules",
    ]  # fmt: skip
    real.faults = {f"audio + {PROMPTS['advisory'].text}": [200, 500, 200, 500, RESET]}
    out = equivox.done(*command)
    assert "3 of 48 answers do not count: 3 failed" in out
    out = equivox.done("status", tmp_path / "run")
    assert "failed 2 times" in out
    assert "--retry-failed to send the failed requests again" in out
    # 45 answers with 25 tokens of audio each, and once the text alone.
    tokens = 46 * len(PROMPTS["advisory"].text.split()) + 45 * AUDIO_TOKENS
    assert f"received 46 requests: {tokens} prompt and 184 completion tokens" in out
    out = equivox.done(*command, "--retry-failed")
    assert "do not count" not in out
    # 48 clips, three of them twice; at each start one greeting and one request for the text's own tokens.
    assert len(real.bodies) == 48 + 3 + 2 + 2


def test_the_turns_before_are_sent_with_their_answers(server: Server, clip: bytes) -> None:
    before = (Exchange(text="Who?", n_media=1, answer="Kim."), Exchange(text="Really?", answer="Yes."))
    (response,) = engine(server).generate([request("Why?", clip=clip, before=before)])
    assert response.text == ANSWER
    # The clip of the first turn arrives with this one, too; what was said is no part of its tokens.
    assert (response.media_items, response.media_tokens) == (1, AUDIO_TOKENS)
    sent = server.bodies[0]["messages"]
    assert [message["role"] for message in sent] == ["user", "assistant", "user", "assistant", "user"]
    assert [part["type"] for part in sent[0]["content"]] == ["input_audio", "text"]
    assert [sent[1]["content"], sent[3]["content"]] == ["Kim.", "Yes."]
    assert [part["text"] for part in sent[4]["content"]] == ["Why?"]


def voice() -> str:
    return base64.b64encode(speak("One two three.")).decode()


def said_aloud(data: str, transcript: str) -> dict[str, Any]:
    """Return the message of a server that says something by voice alone."""
    return {"content": None, "audio": {"id": "1", "expires_at": 0, "data": data, "transcript": transcript}}


def speaks(server: Server) -> None:
    """Let the server say three words by voice."""
    server.answer = lambda body: said_aloud(voice(), "One two three.")


def in_two_choices(text: str, data: str) -> dict[str, Any]:
    """Return a text and its sound as vLLM-Omni has them: each is a choice."""
    messages = enumerate([{"content": text}, said_aloud(data, "")])
    return {"choices": [
        {"index": n, "finish_reason": "stop", "message": {"role": "assistant", **one}} for n, one in messages
    ]}  # fmt: skip


def test_a_spoken_answer_comes_with_its_transcript(server: Server) -> None:
    speaks(server)
    (response,) = engine(server, voice="alloy").generate([request("a", spoken=True)])
    assert (response.text, response.error) == ("One two three.", None)
    assert response.sound == base64.b64decode(voice())
    assert server.bodies[0]["modalities"] == ["text", "audio"]
    assert server.bodies[0]["audio"] == {"voice": "alloy", "format": "wav"}


def test_a_sound_in_a_choice_of_its_own_is_found(server: Server) -> None:
    server.further = in_two_choices("One two three.", voice())
    (response,) = engine(server, voice="default").generate([request("a", spoken=True)])
    assert (response.text, response.sound) == ("One two three.", base64.b64decode(voice()))
    assert "audio" not in server.bodies[0]


@pytest.mark.parametrize(
    ("audio", "reason"),
    [
        (None, "without a voice"),
        ({"data": "%%%"}, "not in base64"),
        ({"data": base64.b64encode(b"hello there").decode()}, "no audio file"),
        ({"data": ""}, "no audio file"),
    ],
)
def test_an_answer_without_a_voice_fails_alone(server: Server, audio: Any, reason: str) -> None:
    server.answer = lambda body: {
        "content": "Said in writing.",
        "audio": audio and {"id": "1", "expires_at": 0, **audio},
    }
    (response,) = engine(server, voice="alloy").generate([request("a", spoken=True)])
    assert response.text is None and reason in str(response.error)


def test_a_server_speaks_only_if_its_voice_is_named(server: Server) -> None:
    assert engine(server).able == {"turns"}
    assert engine(server, voice="alloy").able == {"turns", "speech"}
    assert engine(server).identity.settings == engine(server, voice="").identity.settings
