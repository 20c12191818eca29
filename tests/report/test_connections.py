"""Connections of the server: odd requests get a 4xx line, and connections that send nothing end."""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
from serving import Served
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from test_view_data import make

from equivox.report.view import connection
from equivox.report.view.server import Explorer
from equivox.report.view.server import application as view

HOST = b"host: 127.0.0.1\r\nconnection: close\r\n"
STAYING = b"host: 127.0.0.1\r\n"
CHUNKED = HOST + b"transfer-encoding: chunked\r\n\r\n"


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    server = Served(view(Explorer([make(tmp_path / "run", "oracle")])))
    yield server
    server.close()


@pytest.fixture
def logged() -> Iterator[list[logging.LogRecord]]:
    """What the server writes to the terminal: every record of uvicorn and asyncio."""
    records: list[logging.LogRecord] = []
    handler = logging.Handler()
    handler.emit = records.append  # type: ignore[method-assign]
    loggers = [logging.getLogger(name) for name in ("uvicorn.error", "asyncio")]
    for logger in loggers:
        logger.addHandler(handler)
    yield records
    for logger in loggers:
        logger.removeHandler(handler)


def connected(server: Served) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.port), timeout=60)


def received(client: socket.socket) -> bytes:
    """Everything that the server sends before it closes."""
    found = b""
    with suppress(ConnectionResetError):
        while part := client.recv(65536):
            found += part
    return found


def answer_to(server: Served, sent: bytes, *, leaves: bool = False) -> bytes:
    with connected(server) as client:
        client.sendall(sent)
        if leaves:
            client.shutdown(socket.SHUT_WR)
        return received(client)


@pytest.mark.parametrize(
    "sent",
    [
        b"\x00\xff\x01 garbage\r\n\r\n",
        b"GET /\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost: \xc3\xa9\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + STAYING + b"\r\n" + b"GARBAGE\r\n\r\n",
        b"GET /nowhere HTTP/1.1\r\n" + CHUNKED + b"ZZ\r\nhello",
        b"POST /labels HTTP/1.1\r\n" + CHUNKED + b"ZZ\r\nhello",
        b"POST / HTTP/1.1\r\n" + HOST + b"content-length: " + b"9" * 5000 + b"\r\n\r\n",
        b"POST / HTTP/1.1\r\n" + HOST + b"content-length: 5\r\ncontent-length: 6\r\n\r\nhello",
        b"GET /" + b"a" * 300_000 + b" HTTP/1.1\r\n" + HOST + b"\r\n",
        b"GET /media/%ff%00 HTTP/1.1\r\n" + HOST + b"range: bytes=\xe9-\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00",
    ],
)
def test_a_malformed_request_gets_one_line(served: Served, sent: bytes, logged: list[logging.LogRecord]) -> None:
    found = answer_to(served, sent)
    assert b" 4" in found[:13] or (b" 200 " in found[:15] and b"GARBAGE" in sent), found[:80]
    assert b" 5" not in found[:13]
    assert b" 4" in answer_to(served, b"GET /nowhere HTTP/1.1\r\n" + HOST + b"\r\n")[:13]
    assert len(logged) <= 1 and all(record.levelno < logging.ERROR for record in logged), logged


def test_connections_that_never_send_a_request_end(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "PATIENCE_S", 0.2)
    whole = b"GET /nowhere HTTP/1.1\r\n" + STAYING + b"\r\n"
    half = [
        b"",
        b"G",
        b"GET / HTTP/1.1\r\nhost: 127",
        b"POST /labels HTTP/1.1\r\n" + HOST + b"content-length: 9\r\n\r\nx",
    ]
    with ExitStack() as opened:
        clients = [opened.enter_context(connected(served)) for _ in range(40)]
        for number, client in enumerate(clients):
            client.sendall((whole if number % 2 else b"") + half[number % 4])
        for client in clients:
            received(client)
    assert answer_to(served, b"GET /nowhere HTTP/1.1\r\n" + HOST + b"\r\n")[:13] == b"HTTP/1.1 404 "


def test_an_answer_may_take_longer_than_a_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "PATIENCE_S", 0.2)
    release = threading.Event()

    async def slow(request: Request) -> PlainTextResponse:
        await run_in_threadpool(release.wait, 60)
        return PlainTextResponse("done")

    server = Served(Starlette(routes=[Route("/", slow)]))
    with connected(server) as waiting:
        waiting.sendall(b"GET / HTTP/1.1\r\n" + HOST + b"\r\n")
        # A connection that was opened later and says nothing is closed first.
        with connected(server) as silent:
            assert received(silent) == b""
        release.set()
        assert received(waiting).endswith(b"done")
    server.close()
