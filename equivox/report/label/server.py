"""The server of a label folder: what is asked, one person's labels, and the decisions on what people say differently.

It shows nobody the labels of others, the key, or anything of the run. Only the page that it served may save: it carries
a token that a page from elsewhere cannot read.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import partial
from importlib import resources
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

from equivox.audit.folder import LabelFolder
from equivox.audit.media import ENDINGS
from equivox.core.errors import EquivoxError, RequestError, StorageError
from equivox.report.view.server import TYPES, guarded, listen, page_files, serve_until_ended

SHARED = ("dom.js", "icon.svg", "view.css")
"""Files of the explorer's page that this page uses too."""
OWN = ("index.html", "label.css", "label.js")
MEDIA_TYPES = {ending: mime for mime, ending in ENDINGS.items()}
MOST_BYTES = 100_000
"""The largest request that is read."""


@dataclass(frozen=True)
class Desk:
    """A label folder as it is served; with `adjudicate` its page asks about what people say differently."""

    labels: LabelFolder
    adjudicate: bool = False
    token: str = field(default_factory=lambda: secrets.token_urlsafe(16), repr=False)

    def document(self, person: str) -> dict[str, Any]:
        """Return what the page shows to a person: the items, and what that person said so far."""
        shown = {"adjudicate": self.adjudicate, "token": self.token}
        if self.adjudicate:
            differing = self.labels.differing()
            items = [
                asdict(one)
                | {
                    "asked": [
                        asdict(a) | {"said": differing[one.item][a.name]}
                        for a in one.asked
                        if a.name in differing[one.item]
                    ]
                }
                for one in self.labels.items
                if one.item in differing
            ]
            return shown | {"items": items, "labels": self.labels.decisions()}
        return shown | {
            "items": [asdict(one) for one in self.labels.items],
            "labels": self.labels.labels(person) if person else {},
        }

    def save(self, given: dict[str, Any]) -> None:
        """Store the labels of one item; RequestError or TypeError for what is none."""
        labels = {str(name): str(label) for name, label in dict(given["labels"]).items()}
        if self.adjudicate:
            self.labels.decide(str(given["item"]), labels)
        else:
            self.labels.save(str(given["person"]), str(given["item"]), labels)


async def _document(request: Request) -> Response:
    desk: Desk = request.app.state.desk
    try:
        return JSONResponse(await run_in_threadpool(desk.document, request.query_params.get("person", "")))
    except EquivoxError as error:
        return JSONResponse({"problem": str(error)}, status_code=400)


async def _save(request: Request) -> Response:
    desk: Desk = request.app.state.desk
    if not secrets.compare_digest(request.headers.get("x-equivox-token", "").encode(), desk.token.encode()):
        return JSONResponse({"problem": "this page is of an earlier server: load it again"}, status_code=403)
    if int(request.headers.get("content-length", MOST_BYTES + 1)) > MOST_BYTES:
        return JSONResponse({"problem": "that is more than a label"}, status_code=413)
    try:
        await run_in_threadpool(desk.save, await request.json())
    except RequestError as error:
        return JSONResponse({"problem": str(error)}, status_code=400)
    except StorageError as error:  # the label is a good one, and the page sends it again
        return JSONResponse({"problem": str(error)}, status_code=503)
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError, ClientDisconnect):
        return JSONResponse({"problem": "a label has a person, an item and labels"}, status_code=400)
    return JSONResponse({"saved": True})


async def _medium(request: Request) -> Response:
    desk: Desk = request.app.state.desk
    path = desk.labels.media(request.path_params["item"])
    if path is None:
        return PlainTextResponse("there is no recording", status_code=404)
    return FileResponse(path, media_type=MEDIA_TYPES.get(path.suffix, "application/octet-stream"))


async def _file(request: Request) -> Response:
    name = request.path_params.get("name", "index.html")
    if name in SHARED:
        content, kind, _ = page_files()[name]
        return Response(content, media_type=kind)
    if name in OWN:
        content = (resources.files(__package__) / name).read_bytes()
        return Response(content, media_type=TYPES[f".{name.rpartition('.')[2]}"])
    return PlainTextResponse("there is nothing here", status_code=404)


ROUTES: list[BaseRoute] = [
    Route("/label.json", _document),
    Route("/labels", _save, methods=["POST"]),
    Route("/media/{item}", _medium),
    Route("/{name}", _file),
    Route("/", _file),
]


def application(desk: Desk, *, host: str = "127.0.0.1", started: Callable[[], None] | None = None) -> Starlette:
    """Return the application that asks about the items of `desk`; `started` is called once it listens."""
    app = guarded(ROUTES, host, started)
    app.state.desk = desk
    return app


def serve(desk: Desk, *, host: str = "127.0.0.1", port: int = 0, ready: Callable[[str], None]) -> None:
    """Serve the page of a label folder until it is interrupted; `ready` is called with its address."""
    with listen(host, port) as opened:
        serve_until_ended(partial(application, desk, host=host), opened, host, ready)
