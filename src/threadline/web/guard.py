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

from threadline.render.html import el, join, render_page

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

MAX_URL_BYTES = 8192
"""The longest URL that is accepted, in bytes."""
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
"""The headers of every response, including refusals."""
_ENCODED_HEADERS = [(name.encode(), value.encode()) for name, value in HEADERS]
_OWN_SITE = frozenset({"same-origin", "none"})
_OPEN_PRINTED_URL = "Open the URL that `threadline serve` printed. It contains the token for this page."


class Guard:
    """Passes on requests of the person who started the server, and refuses all others with a page without content."""

    def __init__(self, app: ASGIApp, *, token: str, port: int, ticket: Ticket | None = None) -> None:
        self._app = app
        self._token = token.encode()
        self._ticket = ticket
        self._cookie = cookie_name(port)
        self._hosts = frozenset(f"{name}:{port}".encode() for name in ("127.0.0.1", "localhost", "[::1]"))
        self._origins = frozenset(b"http://" + host for host in self._hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse a request, or pass it on to the application."""
        if scope["type"] == "http":
            sender = _HeaderSender(send, is_head=scope["method"] == "HEAD")
            response = self._check(scope)
            await (self._app if response is None else response)(scope, receive, sender)
        elif scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        else:  # there are no web sockets here
            await receive()
            await send({"type": "websocket.close", "code": 1008})

    def _check(self, scope: Scope) -> Response | None:
        """Return a refusal, or the redirect that sets the cookie; None if the request may pass."""
        headers: dict[bytes, list[bytes]] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name.lower(), []).append(value)
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        token = next((value for name, value in query if name == "token"), None)
        fault = self._find_fault(scope, headers)
        if fault is None and token is not None and self._ticket is not None and self._ticket.accepts(token):
            return self._redeem_ticket(scope, headers)
        fault = fault or _find_cross_site_fault(headers)
        if fault is not None:
            return refusal(fault, HTTPStatus.FORBIDDEN)
        if len(scope.get("raw_path") or scope["path"].encode()) + len(scope["query_string"]) > MAX_URL_BYTES:
            return refusal("This URL is too long.", HTTPStatus.REQUEST_URI_TOO_LONG)
        if token is not None and self._is_token(token):
            return self._redirect_without_token(scope, query)
        cookies = _cookie_values(headers.get(b"cookie", ()), self._cookie)
        if token is not None or not any(map(self._is_token, cookies)):
            return refusal(_OPEN_PRINTED_URL, HTTPStatus.FORBIDDEN)
        return None

    def _find_fault(self, scope: Scope, headers: dict[bytes, list[bytes]]) -> str | None:
        if scope["method"] not in {"GET", "HEAD"}:
            return "This page is read-only. Only GET and HEAD are allowed."
        hosts = headers.get(b"host", [])
        if len(hosts) != 1 or hosts[0].lower() not in self._hosts:
            return f"The Host header names another host. {_OPEN_PRINTED_URL}"
        if any(origin.lower() not in self._origins for origin in headers.get(b"origin", ())):
            return "Requests from other sites are not allowed."
        return None

    def _is_token(self, text: str) -> bool:
        return hmac.compare_digest(text.encode(errors="replace"), self._token)

    def _redeem_ticket(self, scope: Scope, headers: dict[bytes, list[bytes]]) -> Response:
        """Set the cookie for a browser that comes from our own file, which it treats as another site.

        A browser does not store a strict cookie during a redirect that another site began. So a page of ours is sent,
        and that page goes on.
        """
        is_document = headers.get(b"sec-fetch-dest", [b"document"]) == [b"document"]
        if scope["method"] != "GET" or self._ticket is None or not is_document:
            return refusal(_OPEN_PRINTED_URL, HTTPStatus.FORBIDDEN)
        self._ticket.invalidate()
        response = HTMLResponse(redirect_page("/"))
        self._set_cookie(response)
        return response

    def _set_cookie(self, response: Response) -> None:
        response.set_cookie(self._cookie, self._token.decode(), path="/", httponly=True, samesite="strict")

    def _redirect_without_token(self, scope: Scope, query: Iterable[tuple[str, str]]) -> Response:
        """Redirect to the same URL without the token, and set the cookie."""
        query_string = urlencode([(name, value) for name, value in query if name != "token"])
        raw = (scope.get("raw_path") or scope["path"].encode()).decode("latin-1").partition("?")[0]
        path = "/" + raw.lstrip("/\\")  # two slashes, or `/\\`, which browsers read the same, would name another host
        response = RedirectResponse(f"{path}?{query_string}" if query_string else path, HTTPStatus.SEE_OTHER)
        self._set_cookie(response)
        return response


class _HeaderSender:
    """Adds our headers to a response, and removes the body of a response to HEAD."""

    def __init__(self, send: Send, *, is_head: bool) -> None:
        self._send = send
        self._is_head = is_head

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            ours = {name for name, _ in _ENCODED_HEADERS}
            others = [(name, value) for name, value in message.get("headers", ()) if name.lower() not in ours]
            message = {**message, "headers": [*others, *_ENCODED_HEADERS]}
        elif self._is_head and message["type"] == "http.response.body":
            message = {**message, "body": b""}
        await self._send(message)


def cookie_name(port: int) -> str:
    """The name of the cookie. Browsers send cookies to all ports of a host, so two servers need two names."""
    return f"threadline-{port}"


def refusal(reason: str, status: HTTPStatus) -> Response:
    """Build a page that contains only the reason."""
    main = join((el("h1", status.phrase), el("p", reason)))
    return HTMLResponse(str(render_page(f"{status.phrase} · threadline", main, kind="refused")), status)


def _find_cross_site_fault(headers: dict[bytes, list[bytes]]) -> str | None:
    """Check where the browser says that the request comes from."""
    sites = headers.get(b"sec-fetch-site", ())
    if any(site.decode("latin-1").strip().lower() not in _OWN_SITE for site in sites):
        return f"Links from other sites are not allowed. {_OPEN_PRINTED_URL}"
    return None


def _cookie_values(lines: Iterable[bytes], name: str) -> Iterable[str]:
    for line in lines:
        for part in line.decode("latin-1").split(";"):
            if part.strip().startswith(f"{name}="):
                try:
                    cookie = SimpleCookie(part.strip())
                except CookieError:
                    continue
                if name in cookie:
                    yield cookie[name].value


_FILE_NAME = "open.html"


class Ticket:
    """A token that works once, in a private file that leads a browser to the server."""

    def __init__(self, origin: str) -> None:
        self._origin = origin
        self._token: str | None = secrets.token_urlsafe(24)
        self._folder: Path | None = None

    def write_page(self) -> Path:
        """Write the file, in a folder of its own; no other user may read either.

        Raises:
            OSError: it cannot be written.
        """
        self._folder = Path(mkdtemp(prefix="threadline-"))  # private, whatever the umask is
        page = self._folder / _FILE_NAME
        page.touch(mode=0o600)
        page.write_text(redirect_page(f"{self._origin}?token={self._token}"), encoding="utf-8")
        return page

    def accepts(self, text: str) -> bool:
        """Whether a text is the token, and the token is still valid."""
        return self._token is not None and hmac.compare_digest(text.encode(errors="replace"), self._token.encode())

    def invalidate(self) -> None:
        """Make the token invalid and remove the file."""
        self._token = None
        if self._folder is not None:
            with suppress(OSError):
                rmtree(self._folder)
            self._folder = None


def redirect_page(url: str) -> str:
    """A page that redirects to a URL without a script. It has a link for browsers that do not follow the redirect."""
    refresh = el("meta", http_equiv="refresh", content=f"0; url={url}")
    main = join((el("p", "threadline is at this address."), el("p", el("a", "Continue", href=url))))
    return str(render_page("threadline", main, kind="way", head=refresh))
