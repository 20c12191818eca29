"""Connections of the servers: one that sends no whole request is closed, and a malformed request gets one line."""

from __future__ import annotations

import asyncio

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

PATIENCE_S = 30.0
"""Seconds in which a whole request must arrive; uvicorn's own limits begin after the first answer alone."""


class Connection(H11Protocol):
    """uvicorn's HTTP/1.1 with an end to waiting."""

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for the first request."""
        super().connection_made(transport)
        self._expect_request()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no longer."""
        self._stop_waiting()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        self._expect_request()
        super().on_response_complete()

    def send_400_response(self, msg: str) -> None:
        """Answer to a malformed request and close; only close if its answer has begun."""
        if self.cycle is not None and not self.cycle.response_complete:
            # What the application still says about it is not sent.
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            super().send_400_response(msg)
        else:
            self.transport.abort()

    def _expect_request(self) -> None:
        self._stop_waiting()
        self._deadline = self.loop.call_later(PATIENCE_S, self._give_up)

    def _stop_waiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()

    def _give_up(self) -> None:
        if self.conn.their_state in (h11.IDLE, h11.SEND_BODY):
            self.transport.abort()
