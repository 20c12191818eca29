"""The endpoint engine against a real server on loopback that fails in every way a server can."""

from __future__ import annotations

import base64
import io
import json
import re
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import soundfile
from commands import Cli
from made_requests import made_request

from equivox import open_run
from equivox.compare.runs import open_comparison
from equivox.core import media
from equivox.core.errors import RequestError
from equivox.core.requests import Exchange
from equivox.core.task import Sampling
from equivox.dataset_builders import sample_source
from equivox.engines import MediaPart, Request, servers
from equivox.engines.endpoint import EndpointEngine
from equivox.engines.simulated_numbers import speak
from equivox.report.board import make_board
from equivox.report.page import build_report
from equivox.run.manifest import read_manifest
from equivox.run.store import Store, response_schema, stored_responses
from equivox.tasks.vibe import PROMPTS

ANSWER = "You might enjoy chess. You might enjoy yoga. You might enjoy hiking."
AUDIO_TOKENS = 25


class Server:
    """An OpenAI-compatible server; `faults` maps a text to what goes wrong the first times it is asked."""

    def __init__(self) -> None:
        self.faults: dict[str, list[str]] = {}
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.asked: Counter[str] = Counter()
        self.running = self.most_running = 0
        self.usage = True
        self.further: dict[str, Any] = {}
        """Entries of each completion that are not the usual ones."""
        self.fixed: tuple[int, bytes] | None = None
        """The status and the bytes of every reply, whatever is asked."""
        self.owner = "somebody"
        self.answer: Callable[[dict[str, Any]], dict[str, Any]] = lambda body: {"content": ANSWER}
        self.lock = threading.Lock()
        self.over = threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, format: str, *args: Any) -> None:
                """Say nothing."""

            def do_POST(self) -> None:
                outer.handle(self)

            def do_GET(self) -> None:
                models = [{"id": "m", "object": "model", "created": 0, "owned_by": outer.owner}]
                data = json.dumps({"object": "list", "data": models}).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

        class Quiet(ThreadingHTTPServer):
            def handle_error(self, request: object, client_address: object) -> None:
                """Say nothing of clients that are gone."""

        self.http = Quiet(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}/v1"
        self.thread = threading.Thread(target=self.http.serve_forever, args=(0.05,), daemon=True)
        self.thread.start()

    def handle(self, handler: BaseHTTPRequestHandler) -> None:
        body = json.loads(handler.rfile.read(int(handler.headers["Content-Length"])))
        content = body["messages"][-1]["content"]
        text = content if isinstance(content, str) else content[-1]["text"]
        if len(content) > 1 and not isinstance(content, str):
            text = f"audio + {text}"
        with self.lock:
            self.bodies.append(body)
            self.headers.append({name.lower(): value for name, value in handler.headers.items()})
            self.asked[text] += 1
            self.running += 1
            self.most_running = max(self.running, self.most_running)
            fault = self.faults.get(text, [])
            kind = fault.pop(0) if fault else "fine"
        try:
            time.sleep(0.01)
            self.reply(handler, body, kind)
        finally:
            with self.lock:
                self.running -= 1

    def reply(self, handler: BaseHTTPRequestHandler, body: dict[str, Any], kind: str) -> None:
        if self.fixed is not None:
            self.send(handler, *self.fixed)
            return
        if kind == "reset":
            # A zero linger closes with RST: the client sees its connection broken.
            handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            handler.connection.close()
            handler.close_connection = True
            return
        if kind == "slow":
            # However busy the machine is, the answer comes after the client has given up.
            self.over.wait(60)
        status = int(kind) if kind.isdecimal() else 200
        document = self.completion(body) if status == 200 else {"error": {"message": f"fault {kind}"}}
        data = json.dumps(document).encode()
        if kind == "truncated":
            data = data[: len(data) // 2]
        if kind == "empty":
            data = b'{"choices": []}'
        self.send(handler, status, data)

    def send(self, handler: BaseHTTPRequestHandler, status: int, data: bytes) -> None:
        handler.send_response(status)
        handler.send_header("Content-Type", "application/json")
        if status == 429:
            handler.send_header("Retry-After", "0.05")
        handler.send_header("Content-Length", str(len(data)))
        handler.end_headers()
        handler.wfile.write(data)

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


@pytest.fixture
def server() -> Iterator[Server]:
    running = Server()
    yield running
    running.over.set()
    running.http.shutdown()
    running.http.server_close()


def engine(server: Server, **arguments: Any) -> EndpointEngine:
    return EndpointEngine.from_args(
        {"model_name": "m", "base_url": server.url, "max_retries": 2, "timeout_s": 60.0, **arguments}
    )


def request(text: str, *, clip: bytes | None = None, **changes: Any) -> Request:
    parts = () if clip is None else (
        MediaPart(kind="audio", sha256=media.sha256(clip), name="clip.ogg", duration_s=2.0, load=lambda: clip),
    )  # fmt: skip
    return made_request(5, *parts, **{"key": text, "text": text} | changes)


@pytest.fixture
def clip() -> bytes:
    return sorted((sample_source("crema_d") / "AudioWAV").glob("*.ogg"))[0].read_bytes()


@pytest.mark.parametrize("fault", ["429", "500", "503", "truncated", "empty", "reset"])
def test_a_passing_fault_is_overcome(server: Server, fault: str) -> None:
    server.faults = {"ask": [fault]}
    opened = engine(server)
    (response,) = opened.generate([request("ask")])
    assert (response.text, response.error) == (ANSWER, None)
    assert server.asked["ask"] == 2
    assert opened.usage["retries"] == 1


@pytest.mark.parametrize(
    ("fault", "reason"),
    [("429", "429"), ("500", "500"), ("400", "400"), ("truncated", "cannot be read"), ("empty", "no chat completion"),
     ("reset", "Connection"), ("slow", "s; not sent again, because the server may still be computing it")],
)  # fmt: skip
def test_a_lasting_fault_fails_its_request_alone(server: Server, fault: str, reason: str) -> None:
    server.faults = {"bad": [fault] * 20}
    asked = engine(server, timeout_s=3.0 if fault == "slow" else 60.0)
    responses = {r.key: r for r in asked.generate([request("good"), request("bad"), request("fine")])}
    assert responses["good"].text == responses["fine"].text == ANSWER
    assert responses["bad"].text is None
    assert responses["bad"].error is not None and reason.lower() in responses["bad"].error.lower()
    assert not responses["bad"].error.startswith("_")  # no name that is ours alone
    # What the server may still be computing is not sent again.
    assert server.asked["bad"] == (1 if fault in ("400", "slow") else 3)


@pytest.mark.parametrize("at_a_time", [1, 8])
def test_a_server_that_answers_one_after_the_other_is_asked_once_for_each_answer(
    server: Server, at_a_time: int
) -> None:
    one = threading.Lock()

    def slowly(body: dict[str, Any]) -> dict[str, Any]:
        with one:
            time.sleep(0.05)
        return {"content": ANSWER}

    server.answer = slowly
    asked = engine(server, max_concurrency=at_a_time)
    responses = list(asked.generate(request(f"r{n}") for n in range(16)))
    assert [response.error for response in responses] == [None] * 16
    assert sum(server.asked.values()) == 16


def test_the_time_allowed_grows_with_the_answers(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    # Each answer takes 0.35 s, and one more waits with each: the eighth takes 2.8 s, where 2 s were allowed at first.
    now, allowed = 0.0, []
    monkeypatch.setattr(servers, "time", SimpleNamespace(monotonic=lambda: now))
    asked = engine(server, max_concurrency=8, timeout_s=2.0)
    (opened,) = asked._servers.connect()

    def ask(_: object, limit_s: float) -> float:
        nonlocal now
        now += opened.room * 0.35
        allowed.append(limit_s)
        return opened.room * 0.35

    took = [asked._servers._answered(ask) for _ in range(9)]
    assert took == pytest.approx([0.35, 0.7, 1.05, 1.4, 1.75, 2.1, 2.45, 2.8, 2.8])
    assert allowed == pytest.approx([2.0, 2.0, 2.8, 4.2, 5.6, 7.0, 8.4, 9.8, 11.2])


def test_after_a_late_answer_fewer_are_sent_at_a_time(server: Server) -> None:
    server.faults = {f"r{n}": ["slow"] for n in (20, 21, 22, 23)}
    asked = engine(server, max_concurrency=4, timeout_s=3.0)
    (waiting,) = asked._servers.connect()
    list(asked.generate(request(f"r{n}") for n in range(20)))
    assert waiting.room == 4
    late = list(asked.generate(request(f"r{n}") for n in range(20, 24)))
    # The limit follows the slowest answer so far, so that it is longer on a busy machine.
    assert all(re.search(r"no answer in [\d.]+ s; not sent again", str(response.error)) for response in late)
    assert waiting.room == 2


def test_several_servers_share_the_work_and_the_one_that_is_down_gets_none(server: Server) -> None:
    def slowly(body: dict[str, Any]) -> dict[str, Any]:
        time.sleep(0.02)
        return {"content": ANSWER}

    other, down = Server(), "http://127.0.0.1:9/v1"
    server.answer = other.answer = slowly
    try:
        asked = engine(server, base_url=[server.url, other.url, down], max_retries=3)
        with pytest.raises(RequestError, match=r"no server answers at http://127\.0\.0\.1:9/v1"):
            asked.check([])
        responses = list(asked.generate(request(f"r{n}") for n in range(60)))
        assert [response.text for response in responses] == [ANSWER] * 60
        assert min(sum(one.asked.values()) for one in (server, other)) >= 15
        assert asked.usage["requests"] == 60 and asked.usage["retries"] <= 2
    finally:
        other.http.shutdown()
        other.http.server_close()


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
    with pytest.raises(RequestError, match="audio_part"):
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
    server: Server, equivox: Cli, tmp_path: Path, clip: bytes, counts: bool
) -> None:
    """A server that counts nothing, or a model that only hears: it refuses the text alone, and trusted answers stay."""
    server.usage = counts
    if counts:
        server.faults = {PROMPTS["advisory"].text: ["400"] * 99, "ask": ["400"] * 9}
        (response,) = engine(server, trust_media=True).generate([request("ask", clip=clip)])
        assert (response.text, response.media_items, response.media_tokens) == (ANSWER, 1, None)
    run = ["vibe_gender:advisory", "--data", "sample", "--limit", 8, "--annotator", "rules", "-o", tmp_path / "run"]
    code, _, err = equivox("run", f"endpoint:model_name=m,base_url={server.url}", *run)
    assert code == 1 and "counts no tokens" in err and "trust_media=true" in err


def test_concurrency_is_bounded_and_used(server: Server) -> None:
    def slowly(body: dict[str, Any]) -> dict[str, Any]:
        time.sleep(0.1)
        return {"content": ANSWER}

    server.answer = slowly
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


def test_thinking_is_kept_apart_in_both_forms(server: Server) -> None:
    server.answer = lambda body: {"content": "<think>hm</think>Chess."}
    (response,) = engine(server).generate([request("a")])
    assert (response.text, response.thinking) == ("Chess.", "hm")
    parts = [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, {"type": "text", "text": "Chess."}]
    for other in ({"content": "Chess.", "reasoning_content": "hm"}, {"content": parts}):  # vLLM, Mistral
        server.answer = lambda body, other=other: other  # type: ignore[misc]
        (response,) = engine(server).generate([request("a")])
        assert (response.text, response.thinking) == ("Chess.", "hm")


@pytest.mark.parametrize(
    ("message", "text", "ended"),
    [
        ({"content": [{"type": "text", "text": "Che"}, {"type": "text", "text": "ss."}]}, "Chess.", "stop"),
        ({"content": 7}, "7", "stop"),
        ({"content": None}, "", "stop"),
        ({"content": None, "refusal": "I cannot say."}, "I cannot say.", "content_filter"),
        ({"content": [{"type": "refusal", "refusal": "I cannot."}]}, "I cannot.", "content_filter"),
        ({"content": "half \ud83d of a pair"}, "half \ud83d of a pair", "stop"),
        ({"content": "Chess.", "reasoning_content": 3}, "Chess.", "stop"),
    ],
)
def test_odd_answers_are_answers(server: Server, message: dict[str, Any], text: str, ended: str) -> None:
    server.answer = lambda body: message
    (response,) = engine(server).generate([request("a")])
    assert (response.text, response.finish_reason, response.error) == (text, ended, None)


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


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        (b'"Welcome to nginx"', "no chat completion: Welcome to nginx"),
        (b"[1, 2]", "no chat completion: [1, 2]"),
        (b'{"error": {"message": "upstream failed"}}', "upstream failed"),
    ],
)
def test_what_is_no_completion_is_quoted(server: Server, sent: bytes, said: str) -> None:
    """As a gateway answers with status 200: with a page of its own, or with the error of what stands behind it."""
    server.fixed = 200, sent
    (response,) = engine(server, max_retries=0).generate([request("a")])
    assert response.text is None and said in str(response.error)


def chosen(server: Server, **choice: Any) -> None:
    """Have the server send one choice, as a service has it."""
    server.further = {"choices": [{"index": 0} | choice]}


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ("MAX_TOKENS", "length"), ("max_tokens", "length"), ("model_length", "length"), ("SAFETY", "content_filter"),
        ("content_filter: PROHIBITED_CONTENT", "content_filter"), ("refusal", "content_filter"), ("eos", "eos"),
        ("RECITATION", "content_filter"), ("sensitive", "content_filter"), ("ERROR_TOXIC", "content_filter"),
        ("model_context_window_exceeded", "length"), ("stop", "stop"), (None, None),
    ],
)  # fmt: skip
def test_why_an_answer_ended_is_kept_in_one_word(server: Server, sent: str | None, kept: str | None) -> None:
    """Google, Anthropic, Mistral, Zhipu and Cohere say it in words of their own."""
    chosen(server, finish_reason=sent, message={"role": "assistant", "content": "I would"})
    (response,) = engine(server).generate([request("a")])
    assert (response.text, response.finish_reason, response.error) == ("I would", kept, None)


@pytest.mark.parametrize(
    ("choice", "said"),
    [
        ({"finish_reason": "error", "error": {"code": 502, "message": "upstream died"}}, "upstream died"),
        ({"finish_reason": "insufficient_system_resource"}, "insufficient_system_resource"),
        ({"finish_reason": "abort"}, "abort"),
        ({"finish_reason": "network_error"}, "network_error"),
        ({"finish_reason": "stop", "message": None}, "no chat completion"),
        ({"finish_reason": "content_filter", "message": None}, "content_filter"),
    ],
)
def test_a_choice_that_broke_off_is_no_answer(server: Server, choice: dict[str, Any], said: str) -> None:
    """OpenRouter, DeepSeek and vLLM send with status 200 what their provider or GPU could not finish."""
    chosen(server, **{"message": {"role": "assistant", "content": "I think that"}} | choice)
    (response,) = engine(server, max_retries=1).generate([request("a")])
    assert response.text is None and said in str(response.error)
    assert server.asked["a"] == 2  # it may pass


@pytest.mark.parametrize(
    ("status", "sent", "said"),
    [
        (400, b'[{"error": {"code": 400, "message": "API key not valid."}}]', "API key not valid."),
        (
            422,
            b'{"error": "Input validation error: `top_p` must be < 1.0", "error_type": "validation"}',
            "`top_p` must",
        ),
        (422, b'{"detail": [{"loc": ["body", "seed"], "msg": "Extra inputs are not permitted"}]}', "'seed'"),
        (
            400,
            b"<html><head><style>a {}</style></head><body><h1>Request too large</h1></body></html>",
            "400 - Request too",
        ),
    ],
)
def test_a_servers_reason_is_told_in_whatever_form_it_comes(
    server: Server, status: int, sent: bytes, said: str
) -> None:
    """Of Google, TGI, FastAPI and a load balancer only the number was told."""
    server.fixed = status, sent
    (response,) = engine(server, max_retries=0).generate([request("a")])
    assert said in str(response.error)


@pytest.mark.parametrize(
    ("status", "sent", "fatal", "asked"),
    [
        (200, {"code": 401, "message": "User not found"}, "HTTP 401", 1),  # OpenRouter
        (429, {"type": "insufficient_quota", "code": "429"}, "insufficient_quota", 1),
        (429, {"message": "Rate limit"}, "HTTP 429", 3), (503, {}, "HTTP 503", 3), (502, {}, "HTTP 502", 3),
        (200, {"code": 400, "message": "too long"}, None, 1), (500, {}, None, 3), (400, {}, None, 1),
        (200, {"code": [401], "message": "odd"}, None, 3),
    ],
)  # fmt: skip
def test_what_every_request_would_meet_is_fatal(
    server: Server, status: int, sent: dict[str, Any], fatal: str | None, asked: int
) -> None:
    opened = engine(server)
    assert next(opened.generate([request("a")])).error is None
    server.fixed = status, json.dumps({"error": sent}).encode()
    (response,) = opened.generate([request("b")])
    assert response.text is None and response.fatal == fatal and server.asked["b"] == asked


AZURE = {"code": "ResponsibleAIPolicyViolation", "content_filter_result": {"hate": {"filtered": True}}}


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, {"code": "content_filter", "type": None, "param": "prompt", "status": 400, "innererror": AZURE}),
        (400, {"code": "400", "type": None, "provider_specific_fields": {"innererror": AZURE}}),  # LiteLLM
        (500, {"code": "500", "type": "server_error", "innererror": AZURE}),
        (400, {"code": "data_inspection_failed", "type": "data_inspection_failed"}),  # Alibaba
        (400, {"code": "DataInspectionFailed", "type": None}),
        (400, {"code": None, "type": "content_policy_violation"}),
        (
            403,
            {"code": 403, "message": "flagged", "metadata": {"reasons": ["hate"], "flagged_input": "a"}},
        ),  # OpenRouter
        (200, {"code": 403, "message": "flagged", "metadata": {"reasons": ["hate"], "flagged_input": "a"}}),
    ],
)
def test_a_prompt_that_the_providers_filter_turned_away_is_withheld_and_no_failure(
    server: Server, clip: bytes, status: int, error: dict[str, Any]
) -> None:
    """As Azure, LiteLLM, Alibaba, OpenAI and OpenRouter say it."""
    server.fixed = status, json.dumps({"error": error}).encode()
    for asked, n_media in ((request("a"), 0), (request("b", clip=clip), 1)):
        with engine(server) as opened:
            (response,) = opened.generate([asked])
        assert (response.text, response.finish_reason) == ("", "content_filter")
        assert (response.error, response.fatal) == (None, None)
        assert (response.media_items, response.media_tokens) == (n_media, None)
    assert set(server.asked.values()) == {1}  # the same prompt would be turned away again


@pytest.mark.parametrize(
    "error",
    [
        {"code": "400", "innererror": "content_filter", "provider_specific_fields": ["innererror"], "metadata": "x"},
        {"code": "invalid_request_error", "message": "content_filter is no field", "metadata": {"provider_name": "x"}},
        "content_filter",
    ],
)
def test_another_error_that_names_a_filter_is_a_failure(server: Server, error: object) -> None:
    server.fixed = 400, json.dumps({"error": error}).encode()
    with engine(server) as opened:
        (response,) = opened.generate([request("a")])
    assert response.text is None and response.error


def test_a_server_that_never_answered_is_not_asked_everything(server: Server, equivox: Cli, tmp_path: Path) -> None:
    """As a model does that takes no sound, or not the settings: each request is refused with 400."""
    question = f"audio + {PROMPTS['advisory'].text}"
    server.faults = {question: ["400"] * 99}
    code, out, err = equivox(*run_of(server, tmp_path / "run"))
    assert (code, out) == (1, "") and server.asked[question] <= 20 + 2 * 4
    assert "20 times in a row with the same error" in err and "fault 400" in err and "`--stop-after 0`" in err
    assert not stored_responses(tmp_path / "run")


def test_another_models_name_is_noted(server: Server, equivox: Cli, tmp_path: Path) -> None:
    server.further = {"model": "m-mini"}
    _, out, _ = equivox(*run_of(server, tmp_path / "run"))
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
    server: Server, output: Path, arguments: str = "", *more: object, annotator: object = "rules"
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
    server: Server, equivox: Cli, tmp_path: Path, status: str, stopped: bool
) -> None:
    question = f"audio + {PROMPTS['advisory'].text}"
    server.faults = {question: ["fine"] * 30 + [status] * 66}
    code, out, err = equivox(*run_of(server, tmp_path / "run"))
    stored = list(stored_responses(tmp_path / "run").values())
    if not stopped:  # what is wrong with one request need not be wrong with another
        assert server.asked[question] == 96 and sum(r["error"] is not None for r in stored) == 66
        # They fail for ever, and the next night asks them alone: the run is scored without them.
        server.faults = {question: [status] * 66}
        code, out, err = equivox(*run_of(server, tmp_path / "run", "", "--retry-failed"))
        assert code == 1 and "66 of 96 answers do not count: 66 failed" in out, err
        server.faults = {question: ["401"] * 66}
        assert "20 times in a row" in equivox(*run_of(server, tmp_path / "run", "", "--retry-failed"))[2]
        return
    assert (code, out) == (1, "")
    warning, told = err.splitlines()
    assert warning.startswith("warning: the answers of endpoint:")  # read by rules, which are for simulated models
    assert status in told and "repeat the command" in told
    # 30 answers, 20 failures in a row, what is under way, and as many failures as come in before the last answer does.
    assert 50 <= server.asked[question] < 96
    # A refusal that arrives before an answer that was asked at the same time is stored: the server still answered.
    failed = sum(r["error"] is not None for r in stored)
    # What failed while an earlier answer was still under way is a failure of its own; the twenty in a row are none.
    assert len(stored) - failed == 30 and failed < 20
    server.faults = {}
    server.asked.clear()
    assert equivox(*run_of(server, tmp_path / "run"))[0] in {0, 1}
    assert server.asked[question] == 66 - failed  # without --retry-failed: an outage is no failure of a request
    assert len(Store(tmp_path / "run" / "responses", response_schema()).table(("key",))) == 96


def test_a_server_that_is_gone_is_an_outage(server: Server, equivox: Cli, tmp_path: Path) -> None:
    """What cannot be reached answers nobody: the run stops, and its failures are asked again without being told."""
    question = f"audio + {PROMPTS['advisory'].text}"
    server.faults = {question: ["fine"] * 30 + ["reset"] * 66}
    code, out, err = equivox(*run_of(server, tmp_path / "run"))
    assert (code, out) == (1, "")
    assert "20 times in a row with the same error" in err and "Connection error" in err and "repeat the command" in err
    stored = list(stored_responses(tmp_path / "run").values())
    failed = sum(r["error"] is not None for r in stored)
    # What failed while an earlier answer was still under way is a failure of its own; the twenty in a row are none.
    assert len(stored) - failed == 30 and failed < 20
    server.faults = {}
    server.asked.clear()
    assert equivox(*run_of(server, tmp_path / "run"))[0] in {0, 1}
    assert server.asked[question] == 66 - failed


def test_a_run_that_lost_its_answers_to_the_token_limit_says_so(server: Server, equivox: Cli, tmp_path: Path) -> None:
    chosen(server, finish_reason="length", message={"role": "assistant", "content": "I would"})
    code, out, _ = equivox(*run_of(server, tmp_path / "run"))
    assert code == 1 and "NO RESULT" in out
    assert "96 of 96 responses were cut off by the token limit" in out
    assert "96 of 96 responses were cut off by the token limit" in build_report([tmp_path / "run"])


def test_with_stop_after_0_nothing_is_an_outage(server: Server, equivox: Cli, tmp_path: Path) -> None:
    server.faults = {f"audio + {PROMPTS['advisory'].text}": ["401"] * 96}
    code, out, _ = equivox(*run_of(server, tmp_path / "run", "", "--stop-after", 0))
    assert code == 1 and "96 of 96 answers do not count: 96 failed" in out


def test_an_annotators_outage_is_a_failure_and_is_asked_again(server: Server, equivox: Cli, tmp_path: Path) -> None:
    form = {"hobby": ["chess", "yoga", "golf"], "refusal": "no"}
    annotating = {"broken": 60, "invalid": 3}

    def answer(body: dict[str, Any]) -> dict[str, Any]:
        if "response_format" not in body or body["max_tokens"] == 1:  # a greeting
            return {"content": ANSWER}
        annotating["invalid"] -= 1
        return {"content": json.dumps(form if annotating["invalid"] < 0 else {"refusal": False})}

    def reply(handler: BaseHTTPRequestHandler, body: dict[str, Any], kind: str) -> None:
        if "response_format" in body and body["max_tokens"] > 1 and annotating["broken"] > 0:
            annotating["broken"] -= 1
            kind = "500"
        original(handler, body, kind)

    original = server.reply
    server.answer, server.reply = answer, reply  # type: ignore[method-assign]
    judge, settings = tmp_path / "judge.yaml", f"{{model_name: judge, base_url: '{server.url}', max_retries: 0}}\n"
    judge.write_text(f"engine: endpoint\nattempts: 1\nstop_after: 0\nmodel_parameters: {settings}")
    code, out, err = equivox(*run_of(server, tmp_path / "run", annotator=judge))
    assert code == 1, err
    assert "failed 60 times" in out and "fault 500" in out
    assert 'judge: 3 replies could not be read\n    such as: {"refusal": false}' in out
    page = build_report([tmp_path / "run"])
    assert "judge failed 60 times" in page and "judge: 3 replies could not be read</li>" in page
    # The judge was not there for 60: nobody knows whether they are refusals.
    assert "60 refused or empty" in out
    code, out, _ = equivox("status", tmp_path / "run")
    assert code == 1 and "judge failed 60 times" in out
    bodies = len(server.bodies)
    code, out, _ = equivox(*run_of(server, tmp_path / "run", annotator=judge))
    assert "judge failed 60 times" in out and len(server.bodies) == bodies  # not without being told
    judge.write_text(f"engine: endpoint\nattempts: 1\nmodel_parameters: {settings}")
    annotating["broken"] = 60  # what failed before and fails again is no outage
    code, out, err = equivox(*run_of(server, tmp_path / "run", "", "--retry-failed", annotator=judge))
    assert "judge failed 60 times" in out, err
    bodies = len(server.bodies)
    code, out, _ = equivox(*run_of(server, tmp_path / "run", "", "--retry-failed", annotator=judge))
    assert "failed" not in out and len(server.bodies) <= bodies + 60 + 1


def test_a_server_that_falls_silent_costs_no_finished_answer(server: Server, tmp_path: Path) -> None:
    silent = threading.Event()
    count = iter(range(10_000))

    def reply(handler: BaseHTTPRequestHandler, body: dict[str, Any], kind: str) -> None:
        if len(body["messages"][0]["content"]) == 2 and next(count) >= 42:
            silent.set()
            server.over.wait(60)
        original(handler, body, kind)

    original = server.reply
    server.reply = reply  # type: ignore[method-assign]
    command = [str(word) for word in run_of(server, tmp_path / "run")]
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


def test_an_interrupted_command_does_not_wait_for_a_silent_server(server: Server, tmp_path: Path) -> None:
    """What a server says after that is stored by nobody; a build kills what does not end within seconds."""
    silent = threading.Event()

    def reply(handler: BaseHTTPRequestHandler, body: dict[str, Any], kind: str) -> None:
        if len(body["messages"][0]["content"]) == 2:
            silent.set()
            server.over.wait(60)
        original(handler, body, kind)

    original = server.reply
    server.reply = reply  # type: ignore[method-assign]
    command = [str(word) for word in run_of(server, tmp_path / "run")]
    running = subprocess.Popen([sys.executable, "-m", "equivox", *command], stderr=subprocess.PIPE, text=True)
    assert silent.wait(60)
    running.send_signal(signal.SIGTERM)
    _, err = running.communicate(timeout=50)
    assert running.returncode == 143 and "equivox: interrupted" in err


def test_answers_cut_off_and_withheld_are_counted_and_warned_about(
    server: Server, equivox: Cli, tmp_path: Path
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

    original = server.completion
    server.completion = completion  # type: ignore[method-assign]
    equivox(*run_of(server, tmp_path / "run"))
    _, out, _ = equivox("status", tmp_path / "run")
    assert re.search(r"vibe_gender:advisory +96 +96 +0 +0 +48 +24", out), out
    (whole,) = [s for s in open_run(tmp_path / "run").scores if s.is_whole]
    assert (whole.coverage.truncated, whole.coverage.cut_in_thought, whole.coverage.withheld) == (48, 24, 24)
    assert sum("of 96 responses were" in note for note in whole.notes) == 3


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
    with pytest.raises(RequestError, match="environment"):
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
    with pytest.raises(RequestError, match=r"OPENAI_API_KEY has characters") as refused:
        engine(server).check([request("a")])
    assert "s3cr" not in str(refused.value)


@pytest.mark.parametrize(("status", "hint"), [("401", "OPENAI_API_KEY"), ("403", "key"), ("404", "model_name")])
def test_what_no_retry_will_mend_is_refused_at_once(server: Server, status: str, hint: str) -> None:
    server.faults = {"Hello.": [status] * 9}
    with pytest.raises(RequestError, match=hint):
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
    server.fixed = 400, json.dumps({"error": {"message": told, "type": "invalid_request_error"}}).encode()
    asked = request("a", schema={"type": "object"})
    with pytest.raises(RequestError, match="refuses the settings") as error:
        engine(server).check([asked])
    assert told[:40] in str(error.value) and instead in str(error.value)
    (greeting,) = server.bodies
    (response,) = engine(server).generate([asked])
    assert instead in str(response.error)
    # What is greeted is what will be asked, so that it is refused alike.
    assert greeting == server.bodies[1] | {"messages": greeting["messages"], "max_tokens": 1}


def test_another_reason_to_refuse_a_greeting_is_none_to_refuse_the_run(server: Server) -> None:
    """A model that hears refuses a text alone, and a model that reasons one token."""
    server.faults = {"Hello.": ["400"]}
    engine(server).check([request("a")])
    # It names what was not sent.
    server.fixed = 400, b'{"error": {"message": "Unsupported: this model needs input_audio, whatever seed."}}'
    engine(server, send_seed=False).check([request("a")])


def test_an_annotator_may_be_asked_in_words_alone(server: Server) -> None:
    (response,) = engine(server, structured="none").generate([request("a", schema={"type": "object"})])
    assert response.text == ANSWER and "response_format" not in server.bodies[0]


@pytest.mark.parametrize(
    ("headers", "least", "most"),
    [
        ({"retry-after": "7"}, 7, 7), ({"retry-after-ms": "1500", "retry-after": "2"}, 1.5, 1.5),
        ({"retry-after": "600"}, 60, 60), ({"retry-after": "Wed, 21 Oct 2999 07:28:00 GMT"}, 60, 60),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 1.5, 2), ({"retry-after": "soon"}, 1.5, 2), ({}, 1.5, 2),
        ({"retry-after": "nan"}, 1.5, 2), ({"retry-after": "-1"}, 1.5, 2),
    ],
)  # fmt: skip
def test_a_server_is_given_the_time_it_asks_for(headers: dict[str, str], least: float, most: float) -> None:
    busy = RuntimeError()
    busy.response = SimpleNamespace(headers=headers)  # type: ignore[attr-defined]
    assert least <= servers._pause(busy, 2) <= most


@pytest.mark.parametrize("fault", ["500", "truncated", "empty"])
def test_what_may_pass_is_left_to_the_requests(server: Server, fault: str) -> None:
    """A gateway may answer the first short request with a page of its own, or with half an answer."""
    server.faults = {"Hello.": [fault] * 9}
    opened = engine(server)
    opened.check([request("a")])
    (response,) = opened.generate([request("a")])
    assert response.text == ANSWER


def test_nobody_there_and_media_not_taken_are_refused(server: Server, clip: bytes) -> None:
    with pytest.raises(RequestError, match=r"no server answers.*Connection refused"):
        EndpointEngine.from_args({"model_name": "m", "base_url": "http://127.0.0.1:9/v1"}).check([])
    with pytest.raises(RequestError, match=r"no server answers.*missing an 'http://'"):
        EndpointEngine.from_args({"model_name": "m", "base_url": "127.0.0.1:9/v1"}).check([])
    with pytest.raises(RequestError, match="sends audio"):
        engine(server, modalities=["text"]).check([request("a", clip=clip)])


def test_a_whole_run_through_the_command_line(server: Server, equivox: Cli, tmp_path: Path) -> None:
    """Some fail, the rest is scored; given again with --retry-failed, the server healthy, all is there."""
    count = iter(range(10_000))
    server.answer = lambda body: {"content": ANSWER if next(count) % 2 else "I'd say dancing, pottery and running."}
    command = [
        "run", f"endpoint:model_name=m,base_url={server.url},max_retries=0,timeout_s=60",
        "vibe_gender:advisory",
        "--data", "sample", "--limit", "48", "--output", tmp_path / "run",
        "--scoring", "n_resamples=199", "--annotator", "rules",
    ]  # fmt: skip
    server.faults = {f"audio + {PROMPTS['advisory'].text}": ["fine", "500", "fine", "500", "reset"]}
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
    assert len(server.bodies) == 48 + 3 + 2 + 2


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
