"""Run the application on a local port until it is stopped."""

from __future__ import annotations

import secrets
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING

import uvicorn
from msgspec import Struct

from threadline.errors import Unreadable
from threadline.web.app import App
from threadline.web.guard import Ticket
from threadline.web.timeouts import HeaderTimeout

if TYPE_CHECKING:
    from types import FrameType

    from threadline.web.archive_pool import ArchivePool

LOOPBACK = ("127.0.0.1", "::1")
"""The only addresses that are listened at: nobody from outside the machine can ask."""


class Served(Struct, frozen=True):
    """Where the page is: `address` carries the token; `ticket` is for a browser that is opened for the person."""

    address: str
    host: str
    port: int
    token: str
    ticket: Ticket


def serve(holding: ArchivePool, host: str, port: int, ready: Callable[[Served], None]) -> None:
    """Answer until Ctrl-C; `ready` is told the address once it answers. Port 0 is any that is free.

    Raises:
        Unreadable: the port is taken, or may not be listened at.
    """
    listening = _bind_socket(host, port)
    with listening:
        number = listening.getsockname()[1]
        token = secrets.token_urlsafe(24)
        named = f"[{host}]" if ":" in host else host
        address = f"http://{named}:{number}/"
        ticket = Ticket(address)
        app = App(holding, token=token, port=number, ticket=ticket)
        served = Served(f"{address}?token={token}", host, number, token, ticket)
        settings = uvicorn.Config(
            app,
            log_level="error",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            http=HeaderTimeout,
            ws="none",
            lifespan="on",
            timeout_graceful_shutdown=1,
            h11_max_incomplete_event_size=32 * 1024,
        )
        _Server(settings, app, lambda: ready(served)).run(sockets=[listening])


class _Server(uvicorn.Server):
    """Says when it is ready, and ends what never ends by itself when it is to end."""

    def __init__(self, settings: uvicorn.Config, app: App, ready: Callable[[], None]) -> None:
        super().__init__(settings)
        self._app = app
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to answer."""
        await super().startup(sockets)
        if self.started:
            self._ready()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Ctrl-C, or a request to end."""
        self._app.live.stop()
        super().handle_exit(sig, frame)


def _bind_socket(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((host, port))
        made.listen(128)
    except OSError as error:
        made.close()
        why = error.strerror or error
        raise Unreadable(
            f"{host} cannot be listened at on port {port}: {why}; leave out --port for a free one."
        ) from None
    return made
