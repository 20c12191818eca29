"""Applications served from a thread of this process, for tests that talk to a real server."""

from __future__ import annotations

import threading

import uvicorn
from starlette.applications import Starlette

from equivox.report.view.server import configuration, listen


class Served:
    """An application on a server in a thread, as the commands serve it; `address` ends with a slash."""

    def __init__(self, app: Starlette, port: int = 0) -> None:
        socket = listen("127.0.0.1", port)
        self.port = socket.getsockname()[1]
        self.address = f"http://127.0.0.1:{self.port}/"
        self._server = uvicorn.Server(configuration(app))
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [socket]}, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.should_exit = True
        self._thread.join(10)
