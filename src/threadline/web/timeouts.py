"""Timeouts of connections, so that clients that send nothing cannot use up the server.

How long a login lasts is in `access`; how long archives and sessions stay in memory is in `archive_pool` and
`session_cache`.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

HEADER_SECONDS = 10.0
"""How long the head of a request may take. A browser on this machine sends it at once."""
SHUTDOWN_SECONDS = 1
"""How long open connections may take to finish when the server stops."""


class HeaderTimeout(H11Protocol):
    """Closes connections that send no complete request in time."""

    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the timer."""
        super().connection_made(transport)
        self._start()

    def data_received(self, data: bytes) -> None:
        """Receive data. The timer of an incomplete request runs from its first byte, not from its last."""
        super().data_received(data)
        if self._has_request:
            self._stop()
        elif self._timer is None:
            self._start()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timer."""
        self._stop()
        super().connection_lost(exc)

    @property
    def _has_request(self) -> bool:
        cycle: Any = self.cycle
        return cycle is not None and not cycle.response_complete

    def _start(self) -> None:
        self._timer = self.loop.call_later(HEADER_SECONDS, self._time_out)

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _time_out(self) -> None:
        self._timer = None
        if not self._has_request and not self.transport.is_closing():
            self.transport.close()
