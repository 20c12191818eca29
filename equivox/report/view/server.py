"""The explorer's server: the page, what it reads, recordings, and how far each run is. It reads runs and writes none.

It listens on this machine alone unless it is told otherwise, answers only to names of its own (a page from elsewhere
that points its name at this machine gets nothing), and lets no other origin read an answer.
"""

from __future__ import annotations

import ipaddress
import json
import mimetypes
import os
import re
import socket
import tempfile
import threading
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import MutableHeaders
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from equivox.core.errors import EquivoxError, RequestError
from equivox.core.files import write_text
from equivox.core.redact import redacted_text
from equivox.report.page import build_report
from equivox.report.safe_page import STYLE
from equivox.report.view.build import DOCUMENT, build, is_scored
from equivox.report.view.media import Media
from equivox.report.view.results import results
from equivox.run.opening import by_name, usable_runs
from equivox.run.scoring import read_scores

if TYPE_CHECKING:
    import uvicorn

PAGE = resources.files("equivox.report.view") / "page"
"""The page as it is served: HTML, CSS and modules, the vendored ones among them."""

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; media-src 'self'; connect-src 'self'; "
    "worker-src 'self'; base-uri 'none'; form-action 'none'"
)
"""Files that the page may load: its own and nothing else. The page itself states it too, for a folder of files."""

FRAMES = "frame-ancestors 'none'"
HEADERS = {
    "content-security-policy": f"{POLICY}; {FRAMES}",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
}

LOOPBACK = ("127.0.0.1", "localhost", "::1")
REPORT = "report.html"
"""The report of all runs, which takes some seconds and is written when it is asked for."""
_LAST_ANSWERS_S = 3
"""Seconds that a server which was ended gives to what it is answering."""
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(eq=False)
class Explorer:
    """The runs that are shown, with what was built of them in a folder of its own; built again when they change."""

    folders: Sequence[Path]
    scratch: Path
    data: str | None = None
    _built: tuple[Any, ...] | None = field(default=None, repr=False)
    _media: Media | None = field(default=None, repr=False)
    _reporting: threading.Lock = field(default_factory=threading.Lock, repr=False)
    _number: int = field(default=0, repr=False)
    _shown: Sequence[Path] = field(default=(), repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def ready(self) -> Path:
        """Return the folder of what the page reads, built anew if a run has been planned or scored since."""
        with self._lock:
            state = tuple(_state(folder) for folder in self.folders)
            if state != self._built:
                self._number += 1
                self._shown = build(self.folders, self._folder)[1]
                self._built, self._media = state, None
            return self._folder

    @property
    def _folder(self) -> Path:
        # A page that is open goes on reading the tables of its own document.
        return self.scratch / f"data{self._number}"

    def medium(self, sha256: str) -> tuple[Path, str]:
        """Return the file of a recording or picture, and its type; it is kept in the scratch folder."""
        with self._lock:
            if self._media is None:
                self._media = Media.of(self.folders, self.data)
            media = self._media
        kept = self.scratch / "media" / sha256
        said = kept.with_suffix(".type")
        if not said.is_file():
            content, kind = media.read(sha256)
            kept.parent.mkdir(exist_ok=True)
            for path, data in ((kept, content), (said, kind.encode())):
                temporary = path.with_name(f"{path.name}.{threading.get_ident()}")
                temporary.write_bytes(data)
                os.replace(temporary, path)
        return kept, said.read_text()

    def results(self, screen: str, number: int, given: Mapping[str, str]) -> dict[str, Any]:
        """Return a screen of tables of one run, see `equivox.report.view.results`."""
        self.ready()
        return results(screen, self._shown, number, given)

    def report(self) -> Path:
        """Return the file of the report of all scored runs; it is written once after each change of a run."""
        path = self.ready() / REPORT
        with self._reporting:
            if not path.is_file():
                scored = [folder for folder in self.folders if is_scored(folder)]
                if not scored:
                    raise RequestError("no run is scored yet; score it with `equivox score`")
                usable, left_out = usable_runs(by_name(scored), read_scores)
                write_text(path, build_report([folder for folder, _ in usable], left_out))
            return path


def _state(folder: Path) -> tuple[Any, ...]:
    """Return what changes when a run is planned, annotated for the first time, or scored."""
    found: list[tuple[int, int] | None] = []
    for name in ("manifest.json", "plan.parquet", "scores.json"):
        try:
            stat = (folder / name).stat()
            found.append((stat.st_mtime_ns, stat.st_size))
        except FileNotFoundError:
            found.append(None)
    return tuple(found)


async def _document(request: Request) -> Response:
    explorer: Explorer = request.app.state.explorer
    try:
        folder = await run_in_threadpool(explorer.ready)
        document = json.loads((folder / DOCUMENT).read_text("utf-8"))
    except EquivoxError as error:
        return JSONResponse({"problem": str(error)}, status_code=409)
    return JSONResponse(document | {"tables": f"data/{folder.name}/"})


async def _report(request: Request) -> Response:
    explorer: Explorer = request.app.state.explorer
    try:
        path = await run_in_threadpool(explorer.report)
    except EquivoxError as error:
        return PlainTextResponse(redacted_text(str(error)), status_code=409)
    # The report is one file: its own policy, in its head, allows its one style and script by their hashes.
    return FileResponse(path, headers={"content-security-policy": FRAMES})


async def _results(request: Request) -> Response:
    explorer: Explorer = request.app.state.explorer
    screen, number = request.path_params["screen"], request.path_params["number"]
    try:
        return JSONResponse(await run_in_threadpool(explorer.results, screen, number, request.query_params))
    except EquivoxError as error:
        # It is what the screen shows: a limit below 0 is no failure of the page.
        return JSONResponse({"problem": redacted_text(str(error))})


async def _table(request: Request) -> Response:
    explorer: Explorer = request.app.state.explorer
    named, file = request.path_params["built"], request.path_params["file"]
    if not (re.fullmatch(r"data\d+", named) and re.fullmatch(r"[\w-]+\.parquet", file)):
        return _missing()
    path = explorer.scratch / named / file
    if not path.is_file():
        return _missing()
    kind = "application/vnd.apache.parquet"
    end = re.fullmatch(r"bytes=-(\d+)", request.headers.get("range", ""))
    if end is not None and int(end[1]) >= path.stat().st_size:
        # Older versions of starlette answer with nothing to a request for more than there is.
        return Response(await run_in_threadpool(path.read_bytes), media_type=kind)
    return FileResponse(path, media_type=kind)


async def _medium(request: Request) -> Response:
    explorer: Explorer = request.app.state.explorer
    sha256 = request.path_params["sha256"]
    if not _SHA256.fullmatch(sha256):
        return _missing()
    try:
        path, kind = await run_in_threadpool(explorer.medium, sha256)
    except RequestError as error:
        return PlainTextResponse(str(error), status_code=404)
    return FileResponse(path, media_type=kind)


def _missing() -> Response:
    return PlainTextResponse("there is nothing here", status_code=404)


async def _style(request: Request) -> Response:
    return FileResponse(str(STYLE))


# A machine's own table may say otherwise, and a browser runs no module of another type.
for _kind, _end in (
    ("text/html", ".html"),
    ("text/css", ".css"),
    ("text/javascript", ".js"),
    ("image/svg+xml", ".svg"),
):
    mimetypes.add_type(_kind, _end)

ROUTES: list[BaseRoute] = [
    Route(f"/{DOCUMENT}", _document),
    Route(f"/{REPORT}", _report),
    Route("/results/{screen}/{number:int}", _results),
    Route("/data/{built}/{file}", _table),
    Route("/media/{sha256}", _medium),
    Route(f"/{STYLE.name}", _style),
    # A package may be installed as links to its files, as uv does when asked to.
    Mount("/", StaticFiles(directory=str(PAGE), html=True, follow_symlink=True)),
]
"""The routes, the files of the page last. All of it is read; nothing changes a run."""


class _Guard:
    """Middleware that refuses foreign names of this machine and adds the headers to every answer."""

    def __init__(self, app: ASGIApp, known: Callable[[str], bool]) -> None:
        self._app = app
        self._known = known

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in (HEADERS | {"cache-control": "no-cache"}).items():
                    headers.setdefault(name, value)
            await send(message)

        host = Request(scope).headers.get("host", "")
        if self._known(host):
            await self._app(scope, receive, guarded)
        else:
            refusal = PlainTextResponse("this server is not known by that name", status_code=421)
            await refusal(scope, receive, guarded)


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
        found = re.fullmatch(r"(?:\[([0-9a-fA-F:.]+)\]|([^:\[\]]+))(?::\d+)?", host)
        name = (found[1] or found[2]).lower() if found else ""
        return name in names or (wide and _is_address(name))

    return known


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def application(explorer: Explorer, *, host: str = "127.0.0.1", started: Callable[[], None] | None = None) -> Starlette:
    """Return the application that shows the runs of `explorer`; `started` is called once it listens.

    It answers to its own names alone, with headers that let nothing in from elsewhere.
    """

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        if started is not None:
            started()
        yield

    app = Starlette(routes=ROUTES, middleware=[Middleware(_Guard, known=knows(host))], lifespan=lifespan)
    app.state.explorer = explorer
    return app


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens; RequestError if the port is taken or the host is none of this machine's."""
    opened = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    try:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        opened.bind((host, port))
        opened.listen(128)
    except OSError as error:
        opened.close()
        raise RequestError(
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
    ready: Callable[[str], None],
) -> None:
    """Serve the page of the runs in `folders` until it is interrupted; `ready` is called with its address."""
    import uvicorn

    class Server(uvicorn.Server):
        def handle_exit(self, sig: int, frame: FrameType | None) -> None:
            # A second Ctrl-C is no more than the first; uvicorn would break off and print a traceback.
            self.should_exit = True

    with tempfile.TemporaryDirectory(prefix="equivox-view-") as scratch, listen(host, port) as opened:
        explorer = Explorer(folders, Path(scratch), data)
        explorer.ready()  # what cannot be shown is said before anything is opened
        named = f"[{host}]" if ":" in host else "127.0.0.1" if host in {"0.0.0.0", ""} else host
        address = f"http://{named}:{opened.getsockname()[1]}/"
        app = application(explorer, host=host, started=lambda: ready(address))
        Server(configuration(app)).run(sockets=[opened])


def configuration(app: Starlette) -> uvicorn.Config:
    """Return how uvicorn serves an application: without a log of requests, and with an end to waiting for one."""
    import uvicorn

    from equivox.report.view.connection import Connection

    return uvicorn.Config(
        app, http=Connection, log_level="warning", access_log=False, server_header=False, lifespan="on", ws="none",
        timeout_graceful_shutdown=_LAST_ANSWERS_S,
    )  # fmt: skip
