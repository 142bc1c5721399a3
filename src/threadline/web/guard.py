"""Access control: host, cookie, Origin and Sec-Fetch checks, and security headers on every response.

Other users of this machine have no cookie. Browsers send a host's cookies to all its ports, so each run of the server
has a host name of its own that nobody else knows: other servers on this machine do not get the cookie. Other sites
shown in the same browser lack it, too, because it is SameSite=strict; if they had it, their `Origin`, `Sec-Fetch-Site`
or (after DNS rebinding) `Host` would give them away.

Only `POST_PATHS` accept POST, and only from our own origin. Scripts send a token of their own instead of the cookie.
Paths that are for scripts only, such as that of the MCP server, accept any method, and no browser.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from http import HTTPStatus
from http.cookies import CookieError, SimpleCookie
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlencode

from starlette.responses import HTMLResponse, RedirectResponse, Response

from threadline.json_values import encode_json
from threadline.render.html import el, icon, join, render_page, with_code
from threadline.web import urls
from threadline.web.access import redirect_page

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from threadline.web.access import Access, Browser

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
"""The headers of every response, including refusals. Only assets, which say nothing about the user, may be cached."""
_ENCODED_HEADERS = [(name.encode(), value.encode()) for name, value in HEADERS]
_OWN_SITE = frozenset({b"same-origin", b"none"})
_LOOPBACK_NAMES = frozenset({b"127.0.0.1", b"localhost", b"[::1]"})
_HOST = re.compile(rb"([^:\[\]]+|\[[0-9a-f:.]+\])(?::[0-9]{1,5})?\Z")
POST_PATHS = frozenset(
    {
        *(urls.NEW_LINK, urls.json_path(urls.NEW_LINK), urls.LOG_OUT, urls.LOG_OUT_ALL),
        *(urls.ANNOTATE, urls.json_path(urls.ANNOTATE), urls.SAVED_SEARCHES),
    }
)
"""The paths that accept POST. They change who may use the page, and the user's annotations, and nothing else."""
BROWSER_KEY = "threadline.browser"
"""Under this key, the ASGI scope has the browser that sends the request; None if a script does."""

_NEW_LINK = "Press Enter in the terminal where `threadline serve` runs to get a new link."
_OPEN_PRINTED_URL = f"Open the URL that `threadline serve` printed. {_NEW_LINK}"
_USED_LINK = (
    f"This link was used before, or has expired. {_NEW_LINK} Or create one in a browser that is still logged in: "
    "Access, in the bar at the top."
)
_OTHER_HOST = (
    "This is not the address of the page. Each run of `threadline serve` has a host name of its own, so that no other "
    f"server on this machine gets its cookie. {_OPEN_PRINTED_URL} If the browser cannot find that host, start "
    "`threadline serve --host-name address` instead. Scripts can use this address with a token (`--api-token`)."
)

_STYLE_PATH = f"{urls.ASSETS}/style.css"
"""The style sheet, which says nothing about the user: pages that refuse a request have it, too."""
_HEADINGS = {HTTPStatus.FORBIDDEN: "This page needs a link"}

_SCRIPTS_ONLY = "Send the token that was printed at the start, as `Authorization: Bearer TOKEN`."

_Headers = dict[bytes, list[bytes]]


class Guard:
    """Passes on requests of the person who started the server, and refuses all others with a page without content.

    `host` is the only host name that browsers may use. Its port may differ, because it may be forwarded. `script_paths`
    are for scripts only.
    """

    def __init__(
        self, app: ASGIApp, access: Access, *, host: str, port: int, script_paths: Collection[str] = ()
    ) -> None:
        self._app = app
        self._script_paths = script_paths
        self._access = access
        self._host = host.lower().encode()
        self._cookie = cookie_name(port)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse a request, or pass it on to the application."""
        if scope["type"] == "http":
            is_asset = scope["path"].startswith(f"{urls.ASSETS}/")
            sender = _HeaderSender(send, is_head=scope["method"] == "HEAD", is_asset=is_asset)
            response = self._check(scope)
            await (self._app if response is None else response)(scope, receive, sender)
        elif scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        else:  # there are no web sockets here
            await receive()
            await send({"type": "websocket.close", "code": 1008})

    def _check(self, scope: Scope) -> Response | None:
        """Return a refusal, or the redirect that sets the cookie; None if the request may pass."""
        headers: _Headers = {}
        for name, value in scope["headers"]:
            headers.setdefault(name.lower(), []).append(value)
        is_data = scope["path"].endswith(".json") or scope["path"] in self._script_paths
        is_script = self._has_api_token(headers)
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        token = next((value for name, value in query if name == "token"), None)
        if fault := self._find_fault(scope, headers, is_script=is_script):
            return refusal(fault, HTTPStatus.FORBIDDEN, is_data=is_data)
        if len(scope.get("raw_path") or scope["path"].encode()) + len(scope["query_string"]) > MAX_URL_BYTES:
            return refusal("This URL is too long.", HTTPStatus.REQUEST_URI_TOO_LONG, is_data=is_data)
        if token is not None:
            return self._open_link(scope, headers, query, token)
        if fault := _find_cross_site_fault(headers):
            return refusal(fault, HTTPStatus.FORBIDDEN, is_data=is_data)
        browser = self._find_browser(headers)
        if browser is None and not is_script and scope["path"] != _STYLE_PATH:
            return refusal(_OPEN_PRINTED_URL, HTTPStatus.FORBIDDEN, is_data=is_data)
        scope[BROWSER_KEY] = browser
        return None

    def _find_fault(self, scope: Scope, headers: _Headers, *, is_script: bool) -> str | None:
        """Check method, Host and Origin."""
        is_for_scripts = scope["path"] in self._script_paths
        if is_for_scripts and not is_script:
            return _SCRIPTS_ONLY
        is_post = scope["method"] == "POST" and scope["path"] in POST_PATHS
        if scope["method"] not in {"GET", "HEAD"} and not is_post and not is_for_scripts:
            return "This page is read-only. Only GET and HEAD are allowed."
        hosts = [host.lower() for host in headers.get(b"host", ())]
        match = _HOST.match(hosts[0]) if len(hosts) == 1 else None
        if match is None or match[1] not in {self._host, *_LOOPBACK_NAMES}:
            return f"The Host header names another host. {_OPEN_PRINTED_URL}"
        if match[1] != self._host and not is_script and scope["path"] != _STYLE_PATH:
            return _OTHER_HOST
        origins = headers.get(b"origin", [])
        is_own = all(origin.lower() == b"http://" + hosts[0] for origin in origins)
        if not is_own or (is_post and not origins and not is_script):
            return "Requests from other sites are not allowed."
        return None

    def _has_api_token(self, headers: _Headers) -> bool:
        """Whether a script sends its token. Browsers never send it by themselves."""
        values = headers.get(b"authorization", [])
        scheme, _, token = values[0].decode("latin-1").partition(" ") if len(values) == 1 else ("", "", "")
        return scheme.lower() == "bearer" and self._access.is_api_token(token.strip())

    def _find_browser(self, headers: _Headers) -> Browser | None:
        cookies = _cookie_values(headers.get(b"cookie", ()), self._cookie)
        return next(filter(None, map(self._access.find_browser, cookies)), None)

    def _open_link(self, scope: Scope, headers: _Headers, query: Iterable[tuple[str, str]], token: str) -> Response:
        """Let a browser in by a link, and redirect to the same URL without the token.

        Only a navigation uses the link up: not HEAD, not a request made in advance, not a frame or a script. In the
        browser that used it, the link still leads to the page.
        """
        link = self._access.find_link(token)
        cross_site_fault = _find_cross_site_fault(headers)
        if cross_site_fault is not None and not (link is not None and link.is_from_file):
            return refusal(cross_site_fault, HTTPStatus.FORBIDDEN)
        if link is None and not self._access.is_spent(token):
            return refusal(_OPEN_PRINTED_URL, HTTPStatus.FORBIDDEN)
        browser = self._find_browser(headers)
        if link is not None:
            if scope["method"] != "GET" or not _is_navigation(headers):
                return refusal(_OPEN_PRINTED_URL, HTTPStatus.FORBIDDEN)
            browser = self._access.redeem(link, browser)
        if browser is None:
            return refusal(_USED_LINK, HTTPStatus.FORBIDDEN)
        url = _url_without_token(scope, query)
        response: Response
        if cross_site_fault is None:
            response = RedirectResponse(url, HTTPStatus.SEE_OTHER)
        else:
            # A browser does not store a strict cookie during a redirect that another site began, and for it our own
            # file is another site. So a page of ours is sent, and that page goes on.
            response = HTMLResponse(redirect_page(url))
        response.set_cookie(self._cookie, browser.cookie, path="/", httponly=True, samesite="strict")
        return response


class _HeaderSender:
    """Adds our headers to a response, and removes the body of a response to HEAD. An asset may say how it is cached."""

    def __init__(self, send: Send, *, is_head: bool, is_asset: bool) -> None:
        self._send = send
        self._is_head = is_head
        self._is_asset = is_asset

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            theirs = message.get("headers", ())
            kept = {name for name, _ in theirs if self._is_asset and name == b"cache-control"}
            ours = [(name, value) for name, value in _ENCODED_HEADERS if name not in kept]
            replaced = {name for name, _ in ours}
            others = [(name, value) for name, value in theirs if name.lower() not in replaced]
            message = {**message, "headers": [*others, *ours]}
        elif self._is_head and message["type"] == "http.response.body":
            message = {**message, "body": b""}
        await self._send(message)


def cookie_name(port: int) -> str:
    """The name of the cookie. Browsers send cookies to all ports of a host, so two servers need two names."""
    return f"threadline-{port}"


def refusal(reason: str, status: HTTPStatus, *, is_data: bool = False) -> Response:
    """Build a page, or a JSON object, that contains only the reason."""
    if is_data:
        return Response(encode_json({"error": reason}), status, media_type="application/json")
    brand = el("p", icon("thread"), "threadline", class_="brand")
    heading = _HEADINGS.get(status, status.phrase)
    note = el("p", f"{status.value} {status.phrase}", class_="note")
    main = join((brand, el("h1", heading), el("p", with_code(reason)), note))
    style = el("link", rel="stylesheet", href=_STYLE_PATH)
    return HTMLResponse(str(render_page(f"{status.phrase} · threadline", main, kind="refused", head=style)), status)


def _find_cross_site_fault(headers: _Headers) -> str | None:
    """Check where the browser says that the request comes from."""
    if any(site.strip().lower() not in _OWN_SITE for site in headers.get(b"sec-fetch-site", ())):
        return f"Links from other sites are not allowed. {_OPEN_PRINTED_URL}"
    return None


def _is_navigation(headers: _Headers) -> bool:
    """Whether somebody opens a page. A browser may also load a page in advance, which nobody may ever see."""
    purposes = [*headers.get(b"sec-purpose", ()), *headers.get(b"purpose", ()), *headers.get(b"x-moz", ())]
    is_document = headers.get(b"sec-fetch-dest", [b"document"]) == [b"document"]
    return is_document and not any(b"pre" in purpose.lower() for purpose in purposes)  # prefetch, prerender, preview


def _url_without_token(scope: Scope, query: Iterable[tuple[str, str]]) -> str:
    query_string = urlencode([(name, value) for name, value in query if name != "token"])
    raw = (scope.get("raw_path") or scope["path"].encode()).decode("latin-1").partition("?")[0]
    path = "/" + raw.lstrip("/\\")  # two slashes, or `/\\`, which browsers read the same, would name another host
    return f"{path}?{query_string}" if query_string else path


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
