"""Applications served from a thread of this process, for the tests in a browser."""

from __future__ import annotations

import threading

import uvicorn
from starlette.applications import Starlette

from equivox.report.view.server import listen


class Served:
    """An application on a server in a thread; `address` ends with a slash."""

    def __init__(self, app: Starlette) -> None:
        socket = listen("127.0.0.1", 0)
        self.address = f"http://127.0.0.1:{socket.getsockname()[1]}/"
        self._server = uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False, ws="none"))
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [socket]}, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.should_exit = True
        self._thread.join(10)
