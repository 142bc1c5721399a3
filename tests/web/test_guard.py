"""Which requests the server accepts, and the headers of every answer."""

from __future__ import annotations

import asyncio
import hmac
import re
from typing import Any

import pytest
from tests.transcripts import SESSION
from tests.web.client import API_TOKEN, HOST, NAME, PORT, Client

from threadline.web import guard

_PAGE = f"/session/{SESSION}"
_CONTENT = ("pixel", "shelf", "work", SESSION)


def _check_refused(client: Client, address: str = _PAGE, method: str = "GET", **headers: str) -> None:
    answer = client.get(address, method, **headers)
    assert answer.status_code == 403
    assert not [word for word in _CONTENT if word in answer.text]
    assert answer.headers["content-security-policy"].startswith("default-src 'none'")


def test_shows_the_page_with_the_cookie(client: Client) -> None:
    """With the cookie the page contains the words that no refused answer below contains."""
    answer = client.get(_PAGE)
    assert answer.status_code == 200
    assert all(word in answer.text for word in _CONTENT)


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        f"evil.example:{PORT}",
        "127.0.0.1",
        f"127.0.0.1:{PORT + 1}",
        "",
        f"{HOST}.evil.example",
        f"{NAME}.evil.example:{PORT}",
        f"evil.{HOST}",
        f"{NAME}.:{PORT}",
        f"{HOST}:{PORT}",
        f"{NAME}:",
        f"evil@{HOST}",
        f"{HOST}, evil.example",
        f"0.0.0.0:{PORT}",
        f"[::ffff:127.0.0.1]:{PORT}",
    ],
)
def test_refuses_other_hosts(client: Client, host: str) -> None:
    """A name that leads here by DNS rebinding is refused: 403, and no content."""
    _check_refused(client, host=host)


@pytest.mark.parametrize("host", [f"127.0.0.1:{PORT}", f"localhost:{PORT}", f"LOCALHOST:{PORT}", f"[::1]:{PORT}"])
def test_names_that_other_servers_share_get_an_explanation_and_no_cookie(client: Client, host: str) -> None:
    """Even with the cookie and a link: the answer says which URL to open, but not the secret name in it."""
    _check_refused(client, host=host)
    link = client.access.new_url().partition(HOST)[2]
    answer = client.get(link, host=host)
    assert answer.status_code == 403
    assert "set-cookie" not in answer.headers
    assert "Open the URL that <code>threadline serve</code> printed" in answer.text
    assert "--host-name" in answer.text
    assert NAME not in answer.text
    assert client.get(link).status_code == 303  # it was not used up


@pytest.mark.parametrize("host", [HOST, HOST.upper(), f"{NAME}:8900", NAME])
def test_accepts_its_own_name_on_every_port(client: Client, host: str) -> None:
    """The port may be forwarded, for example by `ssh -L 8900:127.0.0.1:PORT`."""
    assert client.get(_PAGE, host=host).status_code == 200
    assert client.get(_PAGE, host=host, origin=f"http://{host}".lower()).status_code == 200


@pytest.mark.parametrize(
    "origin",
    ["null", "http://evil.example", f"https://{HOST}", f"http://{NAME}:{PORT + 1}", f"http://localhost:{PORT}"],
)
def test_refuses_other_origins(client: Client, origin: str) -> None:
    """A script from another site, or without an origin, gets nothing."""
    _check_refused(client, origin=origin)


def test_accepts_its_own_origin(client: Client) -> None:
    """Requests of our own scripts are answered."""
    assert client.get(_PAGE, origin=f"http://{HOST}", sec_fetch_site="same-origin").status_code == 200


@pytest.mark.parametrize("site", ["cross-site", "same-site", "Cross-Site", "strange"])
def test_refuses_requests_from_other_sites(client: Client, site: str) -> None:
    """A link, a form or a picture on another site's page gets nothing."""
    _check_refused(client, sec_fetch_site=site)


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT"])
def test_refuses_all_methods_but_get_and_head(client: Client, method: str) -> None:
    """The server is read-only."""
    _check_refused(client, method=method)


def test_head_has_no_body(client: Client) -> None:
    """HEAD gives the headers of GET, and no body."""
    answer = client.get(_PAGE, "HEAD")
    assert answer.status_code == 200
    assert answer.content == b""


@pytest.mark.parametrize("cookie", [None, "", "wrong", "{cookie:.42}", "{cookie}x", '"', "ü", API_TOKEN])
def test_refuses_requests_without_a_valid_cookie(client: Client, cookie: str | None) -> None:
    """Without a valid cookie the answer says how to get one."""
    client.cookie = cookie and cookie.format(cookie=client.cookie)
    _check_refused(client)
    assert "threadline serve" in client.get(_PAGE).text


def test_refuses_the_cookie_of_another_port(client: Client) -> None:
    """Browsers share cookies between ports, so the name of the cookie contains the port."""
    _check_refused(client, cookie=f"{guard.cookie_name(PORT + 1)}={client.cookie}")


def test_replaces_the_token_in_the_url_by_a_cookie(client: Client) -> None:
    """The URL with the token redirects to the one without, and sets a cookie that no script can read.

    The cookie has a value of its own, and no Domain: the browser sends it to this host only.
    """
    client.cookie = None
    token = client.access.new_url().partition("token=")[2]
    answer = client.get(f"{_PAGE}?thinking=full&token={token}&tool=Bash")
    assert answer.status_code == 303
    assert answer.headers["location"] == f"{_PAGE}?thinking=full&tool=Bash"
    cookie = answer.headers["set-cookie"]
    value, *attributes = (part.strip() for part in cookie.split(";"))
    assert value.startswith(f"threadline-{PORT}=")
    assert len(value) > 50
    assert token not in cookie
    assert sorted(attributes) == ["HttpOnly", "Path=/", "SameSite=strict"]
    client.cookie = value.partition("=")[2]
    assert client.get(_PAGE).status_code == 200
    assert "pixel" not in answer.text


def test_refuses_a_wrong_token_even_with_the_cookie(client: Client) -> None:
    """A URL with a wrong token is always refused."""
    _check_refused(client, f"{_PAGE}?token=wrong")


@pytest.mark.parametrize(
    "path", ["//evil.example/x", "/\\evil.example", "///evil.example", "/\\/evil.example/", "/\\\\/evil.example"]
)
def test_the_redirect_stays_on_this_host(client: Client, path: str) -> None:
    """A path that a browser would take for another host stays on this one."""
    client.cookie = None
    scope: dict[str, Any] = {
        "type": "http",
        "method": "GET",
        "path": path,
        "raw_path": path.encode(),
        "query_string": client.access.new_url().partition("?")[2].encode(),
        "headers": [(b"host", HOST.encode())],
    }
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        return {"type": "http.request"}

    asyncio.run(client.app.asgi(scope, receive, send))
    headers = dict(sent[0]["headers"])
    assert headers[b"location"].startswith(b"/")
    assert headers[b"location"][1:2] not in {b"/", b"\\"}


def test_tokens_are_compared_in_constant_time(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """The time of a refusal reveals nothing about the token: `hmac.compare_digest` decides."""
    comparisons: list[tuple[bytes, bytes]] = []
    real = hmac.compare_digest

    def compare(first: bytes, second: bytes) -> bool:
        comparisons.append((first, second))
        return real(first, second)

    monkeypatch.setattr(hmac, "compare_digest", compare)
    cookie, client.cookie = client.cookie or "", "wrong"
    token = client.access.new_url().partition("token=")[2]
    assert client.get(_PAGE).status_code == 403
    assert client.get(f"{_PAGE}?token=wrong").status_code == 403
    assert client.get(_PAGE, authorization="Bearer wrong").status_code == 403
    assert {first for first, _second in comparisons} == {b"wrong"}
    assert {second for _first, second in comparisons} >= {cookie.encode(), token.encode(), API_TOKEN.encode()}


def test_refuses_websockets(client: Client) -> None:
    """There are no WebSockets here, for any origin."""
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        return {"type": "websocket.connect"}

    asyncio.run(client.app.asgi({"type": "websocket", "path": "/live", "headers": []}, receive, send))
    assert [reply["type"] for reply in sent] == ["websocket.close"]


@pytest.mark.parametrize(
    ("address", "status"),
    [
        (_PAGE, 200),
        ("/nowhere", 404),
        (f"{_PAGE}?thinking=perhaps", 400),
        ("/assets/none.js", 404),
        ("/x?" + "y" * 9000, 414),
    ],
)
def test_every_answer_has_the_security_headers(client: Client, address: str, status: int) -> None:
    """Pages and errors tell the browser what it may do with them, and no other site may read them."""
    answer = client.get(address)
    assert answer.status_code == status
    for name, value in guard.HEADERS:
        assert answer.headers[name] == value
    assert "access-control-allow-origin" not in answer.headers
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy


def test_browsers_keep_only_scripts_and_styles(client: Client) -> None:
    """Assets have the URL of their version and may be cached; pages, and assets of another version, may not."""
    page = client.get(_PAGE)
    assert page.headers["cache-control"] == "no-store"
    asset = re.search(r'src="(/assets/[0-9a-f]+/page\.js)"', page.text)
    assert asset is not None
    answer = client.get(asset[1])
    assert answer.headers.get_list("cache-control") == ["private, max-age=31536000, immutable"]
    for name, value in guard.HEADERS:
        assert name == "cache-control" or answer.headers[name] == value
    assert client.get("/assets/page.js").headers["cache-control"] == "no-store"
    stale = client.get("/assets/0123456789ab/page.js")
    assert (stale.status_code, stale.headers["cache-control"]) == (404, "no-store")
    assert client.get(asset[1], cookie="none=1").status_code == 403


def test_an_internal_error_reveals_no_details(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """Internal errors are reported on standard error, not on the page."""
    monkeypatch.setattr("threadline.web.session_cache.SessionCache.get", lambda *_: 1 / 0)
    answer = client.get(_PAGE)
    assert answer.status_code == 500
    assert "division" not in answer.text
    assert "Traceback" not in answer.text
