"""Run the application on a local port until it is stopped."""

from __future__ import annotations

import base64
import errno
import re
import secrets
import socket
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from ipaddress import IPv4Address
from typing import TYPE_CHECKING

import uvicorn
from msgspec import Struct

from threadline.errors import BadQuery, Unreadable
from threadline.web.access import IDLE_SECONDS, Access
from threadline.web.app import App
from threadline.web.timeouts import SHUTDOWN_SECONDS, HeaderTimeout

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from threadline.web.archive_pool import ArchivePool

RANDOM_ADDRESS = "address"
"""The host name that stands for a random address of this machine."""
_LOOPBACK = ("127.0.0.1", "::1")
_NAME = re.compile(r"(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+localhost")
_MAX_ATTEMPTS = 50
"""How many ports to try until one is free for IPv4 and for IPv6."""
_NO_SUCH_ADDRESS = frozenset({errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT})


class RunningServer(Struct, frozen=True):
    """A server that listens. `url` is a link that works once; `access` issues others."""

    url: str
    host: str
    port: int
    api_token: str | None
    access: Access

    @property
    def token(self) -> str:
        """The token in the URL."""
        return self.url.partition("token=")[2]


def serve(
    pool: ArchivePool,
    host: str,
    port: int,
    ready: Callable[[RunningServer], None],
    *,
    host_name: str,
    idle_seconds: float = IDLE_SECONDS,
    with_api_token: bool = False,
) -> None:
    """Answer requests until Ctrl-C. `ready` is called once the server listens. Port 0 is any free port.

    `host_name` is the host of its URLs, see `choose_host_name`. Browsers resolve names under `.localhost` themselves.

    Raises:
        Unreadable: the port is in use, or not allowed.
    """
    api_token = secrets.token_urlsafe(32) if with_api_token else None

    def build(access: Access, port: int) -> tuple[ASGIApp, Callable[[], None]]:
        app = App(pool, access, host=host_name, port=port)
        return app.asgi, app.live.stop

    def report(access: Access, address: str, port: int) -> None:
        ready(RunningServer(access.new_url(), address, port, api_token, access))

    serve_app(build, host, port, report, host_name=host_name, idle_seconds=idle_seconds, api_token=api_token)


def serve_app(
    build: Callable[[Access, int], tuple[ASGIApp, Callable[[], None]]],
    host: str,
    port: int,
    ready: Callable[[Access, str, int], None],
    *,
    host_name: str,
    idle_seconds: float = IDLE_SECONDS,
    api_token: str | None = None,
) -> None:
    """Run an application until Ctrl-C.

    `build` returns it, guarded, for a port, and a function that is called on shutdown. `ready` is called with the
    address and the port once the server listens. Both get the `Access` that says who may use it.

    Raises:
        Unreadable: the port is in use, or not allowed.
    """
    with ExitStack() as stack:
        listeners = _bind_sockets(_listen_addresses(host, host_name), port)
        for listener in listeners:
            stack.enter_context(listener)
        address, bound_port = listeners[0].getsockname()[:2]
        access = Access(f"http://{host_name}:{bound_port}", idle_seconds=idle_seconds, api_token=api_token)
        app, on_exit = build(access, bound_port)
        settings = uvicorn.Config(
            app,
            log_level="error",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            http=HeaderTimeout,
            ws="none",
            lifespan="on",
            timeout_graceful_shutdown=SHUTDOWN_SECONDS,
            h11_max_incomplete_event_size=32 * 1024,
        )
        _Server(settings, on_exit, lambda: ready(access, address, bound_port)).run(sockets=listeners)


class _Server(uvicorn.Server):
    """Reports when it listens and when it stops: event streams would never end."""

    def __init__(self, settings: uvicorn.Config, on_exit: Callable[[], None], ready: Callable[[], None]) -> None:
        super().__init__(settings)
        self._on_exit = on_exit
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to listen."""
        await super().startup(sockets)
        if self.started:
            self._ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop. Not in `handle_exit`: a signal may arrive while this thread holds a lock that `on_exit` needs."""
        self._on_exit()
        await super().shutdown(sockets)


def choose_host_name(name: str | None) -> str:
    """Check a host name, or choose a random one. None is a random name, `address` a random address.

    The name must be secret: whoever knows it can start a server with the same name on another port, and gets the cookie
    if the user opens that. An address is not secret, because every user of the machine can list open ports.

    Raises:
        BadQuery: browsers would not take it for this machine, or it would share its cookies.
    """
    if name is None:
        return f"threadline-{base64.b32encode(secrets.token_bytes(10)).decode().lower()}.localhost"
    name = name.lower()
    if name == RANDOM_ADDRESS:
        return ".".join(("127", *(str(secrets.randbelow(254) + 1) for _ in range(3))))
    if name in {"127.0.0.1", "localhost"}:
        raise BadQuery(
            f"With the host name {name}, every server on this machine would get the cookie. "
            "Use a name like me.localhost, or `address`."
        )
    if not _is_loopback_address(name) and not _NAME.fullmatch(name):
        raise BadQuery(
            f"{name!r} cannot be the host name. Use a name like me.localhost, an address like 127.34.5.6, or `address`."
        )
    return name


def _is_loopback_address(text: str) -> bool:
    try:
        return IPv4Address(text).is_loopback
    except ValueError:
        return False


def _listen_addresses(host: str, host_name: str) -> list[str]:
    """The addresses to listen at.

    Browsers look for a name under `.localhost` at 127.0.0.1 and at ::1 (Chromium first at ::1). If another program
    answered at the other one, on the same port, it would get the cookie. So the server listens at both.
    """
    if _is_loopback_address(host_name):
        return [host_name]
    return [host, *(address for address in _LOOPBACK if address != host)]


def _bind_sockets(addresses: Sequence[str], port: int) -> list[socket.socket]:
    """Bind all addresses to the same port. Many machines lack IPv6; there, nobody else can listen at its address."""
    for attempt in range(_MAX_ATTEMPTS):
        listeners: list[socket.socket] = []
        for address in addresses:
            shared_port = listeners[0].getsockname()[1] if listeners else port
            try:
                listeners.append(_bind_socket(address, shared_port))
            except OSError as error:
                if listeners and error.errno in _NO_SUCH_ADDRESS:
                    continue
                is_free_choice = listeners and not port and error.errno == errno.EADDRINUSE
                for listener in listeners:
                    listener.close()
                if is_free_choice and attempt + 1 < _MAX_ATTEMPTS:
                    break
                raise Unreadable(_describe_failure(address, shared_port, error)) from None
        else:
            return listeners
    raise AssertionError("the last attempt returns or raises")


def _bind_socket(address: str, port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM)
    try:
        if sys.platform == "win32":  # where SO_REUSEADDR would let another program take the port over
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_EXCLUSIVEADDRUSE, 1)
        else:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((address, port))
        listener.listen(128)
    except OSError:
        listener.close()
        raise
    return listener


def _describe_failure(address: str, port: int, error: OSError) -> str:
    advice = "Omit --port to use a free port."
    if address not in _LOOPBACK and error.errno in _NO_SUCH_ADDRESS:  # macOS has only 127.0.0.1
        advice = f"Add the address first (sudo ifconfig lo0 alias {address}), or omit --host-name."
    return f"Cannot listen on {address} port {port}: {error.strerror or error}. {advice}"
