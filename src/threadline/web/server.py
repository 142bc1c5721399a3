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


class Served(Struct, frozen=True):
    """Where the server listens. `url` contains the token; `ticket` is for a browser that `serve` opens."""

    url: str
    host: str
    port: int
    token: str
    ticket: Ticket


def serve(pool: ArchivePool, host: str, port: int, ready: Callable[[Served], None]) -> None:
    """Answer requests until Ctrl-C. `ready` is called once the server listens. Port 0 is any free port.

    Raises:
        Unreadable: the port is in use, or not allowed.
    """
    with _bind_socket(host, port) as listener:
        port = listener.getsockname()[1]
        token = secrets.token_urlsafe(24)
        origin = f"http://{f'[{host}]' if ':' in host else host}:{port}/"
        ticket = Ticket(origin)
        app = App(pool, token=token, port=port, ticket=ticket)
        served = Served(f"{origin}?token={token}", host, port, token, ticket)
        settings = uvicorn.Config(
            app.asgi,
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
        _Server(settings, app, lambda: ready(served)).run(sockets=[listener])


class _Server(uvicorn.Server):
    """Reports when it listens, and ends event streams, which would never end, on shutdown."""

    def __init__(self, settings: uvicorn.Config, app: App, ready: Callable[[], None]) -> None:
        super().__init__(settings)
        self._app = app
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to listen."""
        await super().startup(sockets)
        if self.started:
            self._ready()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Handle Ctrl-C or a request to terminate."""
        self._app.live.stop()
        super().handle_exit(sig, frame)


def _bind_socket(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(128)
    except OSError as error:
        listener.close()
        reason = error.strerror or error
        raise Unreadable(f"Cannot listen on {host} port {port}: {reason}. Omit --port to use a free port.") from None
    return listener
