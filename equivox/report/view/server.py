"""The server of `equivox view`: the page, the answers as JSON, recordings and pictures. It reads runs and writes none.

It listens on this machine alone unless the user asks otherwise, answers only to names of its own (a page from elsewhere
that points its name at this machine gets nothing), and lets no other origin read an answer.
"""

from __future__ import annotations

import ipaddress
import re
import socket
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware, RequestResponseEndpoint
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from equivox.core.errors import EquivoxError, UsageError
from equivox.core.redact import redacted_text
from equivox.report.view.shown import Shown, open_shown
from equivox.run.opening import LeftOut

if TYPE_CHECKING:
    import uvicorn

FRAMES = "frame-ancestors 'none'"
HEADERS = {
    "content-security-policy": f"default-src 'none'; {FRAMES}",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-cache",
}
"""The headers of every answer; a page has a policy of its own in its head, with the hashes of its style and script."""

LOOPBACK = ("127.0.0.1", "localhost", "::1")
_LAST_ANSWERS_S = 3
"""Seconds that a server which was ended gives to what it is answering."""


@dataclass(eq=False)
class Explorer:
    """The runs that are shown; they are opened again when they change. `data` is where the corpora are now."""

    folders: Sequence[Path]
    data: str | None = None
    _shown: Shown | None = field(default=None, repr=False)
    _state: Sequence[int] = field(default=(), repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def open(self) -> Shown:
        """Return the runs as they are now; UsageError if none of them can be read."""
        watched = ("manifest.json", "plan.parquet", "responses", "annotations", "scores.json")
        paths = [folder / name for folder in self.folders for name in watched]
        with self._lock:
            state = [path.stat().st_mtime_ns if path.exists() else 0 for path in paths]
            if self._shown is None or state != self._state:
                self._shown, self._state = open_shown(self.folders, self.data), state
            return self._shown


def _send_page(request: Request) -> Response:
    return HTMLResponse(request.app.state.explorer.open().page, headers={"content-security-policy": FRAMES})


def _send_answers(request: Request) -> Response:
    return JSONResponse(request.app.state.explorer.open().read_answers(request.query_params))


def _send_medium(request: Request) -> Response:
    """Send a recording or picture, or the part that a player asks for, as some play nothing without parts."""
    content, kind = request.app.state.explorer.open().read_medium(request.query_params)
    part = re.fullmatch(r"bytes=(\d{1,15})-(\d{0,15})", request.headers.get("range", ""))
    if part is None:
        return Response(content, media_type=kind, headers={"accept-ranges": "bytes"})
    first, last = int(part[1]), min(int(part[2] or len(content)), len(content) - 1)
    if first > last:
        return Response(status_code=416, headers={"content-range": f"bytes */{len(content)}"})
    where = {"content-range": f"bytes {first}-{last}/{len(content)}"}
    return Response(content[first : last + 1], 206, media_type=kind, headers=where)


def _send_problem(request: Request, error: Exception) -> Response:
    return PlainTextResponse(redacted_text(str(error)), status_code=404)


ROUTES = [
    Route("/", _send_page),
    Route("/answers", _send_answers),
    Route("/media", _send_medium),
]
"""The routes; all of them read, and nothing changes a run."""


class _Guard(BaseHTTPMiddleware):
    """Middleware that refuses foreign names of this machine and adds the headers to every answer."""

    def __init__(self, app: ASGIApp, known: Callable[[str], bool]) -> None:
        super().__init__(app)
        self._known = known

    async def dispatch(self, request: Request, call_next: RequestResponseEndpoint) -> Response:
        """Answer a request, or refuse it."""
        response: Response = PlainTextResponse("this server is not known by that name", status_code=421)
        if self._known(request.headers.get("host", "")):
            response = await call_next(request)
        for name, value in HEADERS.items():
            response.headers.setdefault(name, value)
        return response


def knows(bound: str) -> Callable[[str], bool]:
    """Return the function that says whether a Host header is one of the server bound to `bound`.

    An address is never another page's name, so that a server for all of a network answers to any address.

    >>> [knows("127.0.0.1")(host) for host in ("127.0.0.1:8000", "localhost:1", "[::1]", "evil.example", "10.0.0.1")]
    [True, True, True, False, False]
    >>> [knows("0.0.0.0")(host) for host in ("10.0.0.1:8000", "evil.example")]
    [True, False]
    """
    names = {*LOOPBACK, bound}
    wide = bound not in LOOPBACK
    if wide:
        names |= {socket.gethostname(), socket.getfqdn()}

    def known(host: str) -> bool:
        matched = re.fullmatch(r"(?:\[([0-9a-fA-F:.]+)\]|([^:\[\]]+))(?::\d+)?", host)
        name = (matched[1] or matched[2]).lower() if matched else ""
        if name in names or not wide:
            return name in names
        with suppress(ValueError):
            return bool(ipaddress.ip_address(name))
        return False

    return known


def application(explorer: Explorer, *, host: str = "127.0.0.1") -> Starlette:
    """Return the application that shows the runs of `explorer`; it answers to names of the server at `host` alone."""
    guard = Middleware(_Guard, known=knows(host))
    app = Starlette(routes=ROUTES, middleware=[guard], exception_handlers={EquivoxError: _send_problem})
    app.state.explorer = explorer
    return app


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens; UsageError if the port is taken or the host is none of this machine's."""
    opened = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    try:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        opened.bind((host, port))
        opened.listen(128)
    except OSError as error:
        opened.close()
        raise UsageError(
            f"cannot listen on {host}:{port}: {str(error.strerror or error).lower()}; give another `--port` "
            "(0 takes a free one) or `--host`"
        ) from error
    return opened


def serve(
    folders: Sequence[Path],
    *,
    data: str | None = None,
    host: str = "127.0.0.1",
    port: int = 0,
    ready: Callable[[str, Sequence[LeftOut]], None],
) -> None:
    """Serve the page of the runs in `folders` until it is interrupted.

    `ready` is called with its address and the folders that cannot be read. UsageError if none can be.
    """
    import uvicorn

    class Server(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            ready(address, shown.left_out)

        def handle_exit(self, sig: int, frame: FrameType | None) -> None:
            # A second Ctrl-C is no more than the first; uvicorn would break off and print a traceback.
            self.should_exit = True

    with listen(host, port) as opened:
        explorer = Explorer(folders, data)
        shown = explorer.open()
        len(shown.page)  # it is written before anybody waits for it
        named = f"[{host}]" if ":" in host else "127.0.0.1" if host in {"0.0.0.0", ""} else host
        address = f"http://{named}:{opened.getsockname()[1]}/"
        Server(configuration(application(explorer, host=host))).run(sockets=[opened])


def configuration(app: Starlette) -> uvicorn.Config:
    """Return how uvicorn serves an application: without a log of requests, and with an end to waiting for one."""
    import uvicorn

    from equivox.report.view.connection import Connection

    return uvicorn.Config(
        app, http=Connection, log_level="warning", access_log=False, server_header=False, lifespan="off", ws="none",
        timeout_graceful_shutdown=_LAST_ANSWERS_S,
    )  # fmt: skip
