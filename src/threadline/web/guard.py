"""Access control: token, cookie, Host, Origin and Sec-Fetch checks, and security headers on every response.

Other users of this machine lack the token. Other sites shown in the same browser lack it too, because the cookie is
SameSite=strict; if they had it, their `Origin`, `Sec-Fetch-Site` or (after DNS rebinding) `Host` would give them
away.

A browser's command line can be read by every user of the machine. So `serve` opens a private file instead of a URL
with the token; the file leads to the server with a ticket that works once.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Iterable
from contextlib import suppress
from http import HTTPStatus
from http.cookies import CookieError, SimpleCookie
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlencode

from starlette.responses import HTMLResponse, RedirectResponse, Response

from threadline.render.html import Child, el, join, render_page

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

MAX_URL_BYTES = 8192
"""How many bytes an address may have."""
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
HEADERS: tuple[tuple[str, str], ...] = (
    ("content-security-policy", _POLICY),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("cache-control", "no-store"),
)
"""What every answer carries, whatever it says."""
_ENCODED_HEADERS = [(name.encode(), value.encode()) for name, value in HEADERS]
_OWN_SITE = frozenset({"same-origin", "none"})
_OPEN_PRINTED_URL = "Open the address that `threadline serve` printed: it carries the token that belongs to this page."


class Guard:
    """Lets through what the person who started the server asks, and refuses the rest with a page that says nothing."""

    def __init__(self, app: ASGIApp, *, token: str, port: int, ticket: Ticket | None = None) -> None:
        self._app = app
        self._token = token.encode()
        self._ticket = ticket
        self._cookie = cookie_name(port)
        self._hosts = frozenset(f"{name}:{port}".encode() for name in ("127.0.0.1", "localhost", "[::1]"))
        self._origins = frozenset(b"http://" + host for host in self._hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or let the application do it."""
        if scope["type"] == "http":
            sending = _HeaderSender(send, is_head=scope["method"] == "HEAD")
            refused = self._refused(scope)
            await (self._app if refused is None else refused)(scope, receive, sending)
        elif scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        else:  # there is nothing here for a socket
            await receive()
            await send({"type": "websocket.close", "code": 1008})

    def _refused(self, scope: Scope) -> Response | None:
        """The answer to who may not ask, or who has yet to be given the cookie; None: let it through."""
        headers: dict[bytes, list[bytes]] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name.lower(), []).append(value)
        asked = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        given = [value for name, value in asked if name == "token"]
        fault = self._fault(scope, headers)
        if fault is None and given and self._ticket is not None and self._ticket.fits(given[0]):
            return self._let_in(scope, headers)
        if fault is None:
            fault = _cross_site_fault(headers)
        if fault is not None:
            return refusal(fault, HTTPStatus.FORBIDDEN)
        if len(scope.get("raw_path") or scope["path"].encode()) + len(scope["query_string"]) > MAX_URL_BYTES:
            return refusal("The address is too long.", HTTPStatus.REQUEST_URI_TOO_LONG)
        if given:
            return (
                self._welcomed(scope, asked)
                if self._is_token(given[0])
                else refusal(_OPEN_PRINTED_URL, HTTPStatus.FORBIDDEN)
            )
        if not any(map(self._is_token, _cookie_values(headers.get(b"cookie", ()), self._cookie))):
            return refusal(_OPEN_PRINTED_URL, HTTPStatus.FORBIDDEN)
        return None

    def _fault(self, scope: Scope, headers: dict[bytes, list[bytes]]) -> str | None:
        if scope["method"] not in {"GET", "HEAD"}:
            return "Nothing here can be changed: only GET and HEAD are answered."
        hosts = headers.get(b"host", [])
        if len(hosts) != 1 or hosts[0].lower() not in self._hosts:
            return f"This is not the host that was asked for. {_OPEN_PRINTED_URL}"
        if any(origin.lower() not in self._origins for origin in headers.get(b"origin", ())):
            return "Other sites may not ask here."
        return None

    def _is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(errors="replace"), self._token)

    def _let_in(self, scope: Scope, headers: dict[bytes, list[bytes]]) -> Response:
        """The cookie for a browser that was led here by our own file, which it takes for another site.

        What another site leads to gets no strict cookie, however often it is redirected: a page of ours goes on.
        """
        is_shown = headers.get(b"sec-fetch-dest", [b"document"]) == [b"document"]
        if scope["method"] != "GET" or self._ticket is None or not is_shown:
            return refusal(_OPEN_PRINTED_URL, HTTPStatus.FORBIDDEN)
        self._ticket.spend()
        answer = HTMLResponse(redirect_page("/"))
        self._give_cookie(answer)
        return answer

    def _give_cookie(self, answer: Response) -> None:
        answer.set_cookie(self._cookie, self._token.decode(), path="/", httponly=True, samesite="strict")

    def _welcomed(self, scope: Scope, asked: Iterable[tuple[str, str]]) -> Response:
        """The way to the same address without the token, which is a cookie from now on."""
        kept = urlencode([(name, value) for name, value in asked if name != "token"])
        raw = (scope.get("raw_path") or scope["path"].encode()).decode("latin-1").partition("?")[0]
        path = "/" + raw.lstrip("/\\")  # two slashes, which a browser also reads in `/\\`, would name another host
        answer = RedirectResponse(f"{path}?{kept}" if kept else path, HTTPStatus.SEE_OTHER)
        self._give_cookie(answer)
        return answer


class _HeaderSender:
    """Sends what the application says with our headers, and without a body where only the head was asked for."""

    def __init__(self, send: Send, *, is_head: bool) -> None:
        self._send = send
        self._is_head = is_head

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            ours = {name for name, _ in _ENCODED_HEADERS}
            said = [(name, value) for name, value in message.get("headers", ()) if name.lower() not in ours]
            message = {**message, "headers": [*said, *_ENCODED_HEADERS]}
        elif self._is_head and message["type"] == "http.response.body":
            message = {**message, "body": b""}
        await self._send(message)


def cookie_name(port: int) -> str:
    """The name of the cookie: browsers do not tell ports apart, so that two servers need two names."""
    return f"threadline-{port}"


def refusal(sentence: str, status: HTTPStatus) -> Response:
    """A page that says why, and holds nothing else."""
    main = join((el("h1", status.phrase), el("p", sentence)))
    return HTMLResponse(str(render_page(f"{status.phrase} · threadline", main, kind="refused")), status)


def _cross_site_fault(headers: dict[bytes, list[bytes]]) -> str | None:
    """What is wrong with where the browser says that it comes from."""
    sites = headers.get(b"sec-fetch-site", ())
    if any(site.decode("latin-1").strip().lower() not in _OWN_SITE for site in sites):
        return f"Other sites may not lead here. {_OPEN_PRINTED_URL}"
    return None


def _cookie_values(lines: Iterable[bytes], name: str) -> Iterable[str]:
    for line in lines:
        for part in line.decode("latin-1").split(";"):
            if part.strip().startswith(f"{name}="):
                try:
                    found = SimpleCookie(part.strip())
                except CookieError:
                    continue
                if name in found:
                    yield found[name].value


_FILE_NAME = "open.html"


class Ticket:
    """Lets somebody in at an address, once."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._token: str | None = secrets.token_urlsafe(24)
        self._folder: Path | None = None

    def page(self) -> Path:
        """The file that leads to the server, in a folder of its own; nobody else may read either.

        Raises:
            OSError: it cannot be written.
        """
        self._folder = Path(mkdtemp(prefix="threadline-"))  # for its owner alone, whatever the mask is
        page = self._folder / _FILE_NAME
        page.touch(mode=0o600)
        page.write_text(redirect_page(f"{self._address}?token={self._token}"), encoding="utf-8")
        return page

    def fits(self, given: str) -> bool:
        """Whether this is the token, and it is still worth something."""
        return self._token is not None and hmac.compare_digest(given.encode(errors="replace"), self._token.encode())

    def spend(self) -> None:
        """From now on it is worth nothing, and what was written is gone."""
        self._token = None
        if self._folder is not None:
            with suppress(OSError):
                rmtree(self._folder)
            self._folder = None


def redirect_page(address: str, words: Child = "threadline is at this address.") -> str:
    """A page that goes on to an address by itself, without a script; and by hand where a browser does not."""
    onward = el("meta", http_equiv="refresh", content=f"0; url={address}")
    return str(
        render_page(
            "threadline", join((el("p", words), el("p", el("a", "Go on", href=address)))), kind="way", head=onward
        )
    )
