"""Who may ask the page's server, and what every answer carries."""

from __future__ import annotations

import asyncio
import hmac
from typing import Any

import pytest
from tests.transcripts import SESSION
from tests.web.client import HOST, PORT, TOKEN, Client

from threadline.web import guard

_PAGE = f"/session/{SESSION}"
_OWN = ("pixel", "shelf", "work", SESSION)


def _refused(client: Client, address: str = _PAGE, method: str = "GET", **headers: str) -> None:
    answer = client.get(address, method, **headers)
    assert answer.status_code == 403
    assert not [word for word in _OWN if word in answer.text]
    assert answer.headers["content-security-policy"].startswith("default-src 'none'")


def test_with_the_cookie_the_page_is_shown(client: Client) -> None:
    """Who has the cookie sees the session; what is refused below holds none of these words."""
    answer = client.get(_PAGE)
    assert answer.status_code == 200
    assert all(word in answer.text for word in _OWN)


@pytest.mark.parametrize(
    "host", ["evil.example", f"evil.example:{PORT}", "127.0.0.1", f"127.0.0.1:{PORT + 1}", "", f"{HOST}.evil.example"]
)
def test_another_host_is_refused(client: Client, host: str) -> None:
    """A name that leads here by DNS rebinding is not ours: 403, and nothing of the content."""
    _refused(client, host=host)


@pytest.mark.parametrize("host", [HOST, f"localhost:{PORT}", f"LOCALHOST:{PORT}", f"[::1]:{PORT}"])
def test_own_hosts_are_let_in(client: Client, host: str) -> None:
    """The names of this machine are ours, in any case of letters."""
    assert client.get(_PAGE, host=host).status_code == 200


@pytest.mark.parametrize("origin", ["null", "http://evil.example", f"https://{HOST}", f"http://127.0.0.1:{PORT + 1}"])
def test_another_origin_is_refused(client: Client, origin: str) -> None:
    """A script of another site, or of no site, gets nothing."""
    _refused(client, origin=origin)


def test_own_origin_is_let_in(client: Client) -> None:
    """What our own scripts ask is answered."""
    assert client.get(_PAGE, origin=f"http://{HOST}", sec_fetch_site="same-origin").status_code == 200


@pytest.mark.parametrize("site", ["cross-site", "same-site", "Cross-Site", "strange"])
def test_another_site_is_refused(client: Client, site: str) -> None:
    """A link, a form or a picture on another site's page leads nowhere."""
    _refused(client, sec_fetch_site=site)


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT"])
def test_nothing_but_reading_is_answered(client: Client, method: str) -> None:
    """The server only reads: any method but GET and HEAD is refused."""
    _refused(client, method=method)


def test_head_is_answered_without_a_body(client: Client) -> None:
    """HEAD gives the headers of GET, and no body."""
    answer = client.get(_PAGE, "HEAD")
    assert answer.status_code == 200
    assert answer.content == b""


@pytest.mark.parametrize("cookie", [None, "", "wrong", TOKEN[:-1], f"{TOKEN}x", '"', "ü"])
def test_without_the_token_nothing_is_shown(client: Client, cookie: str | None) -> None:
    """No cookie or a wrong one is refused, with a word about where the token is to be had."""
    client.cookie = cookie
    _refused(client)
    assert "threadline serve" in client.get(_PAGE).text


def test_the_cookie_of_another_port_is_no_token(client: Client) -> None:
    """Browsers do not tell ports apart, so the cookie's name does."""
    client.cookie = None
    _refused(client, cookie=f"{guard.cookie_name(PORT + 1)}={TOKEN}")


def test_the_token_becomes_a_cookie_and_leaves_the_address(client: Client) -> None:
    """The address with the token leads to the same one without, and gives a cookie that no script can read."""
    client.cookie = None
    answer = client.get(f"{_PAGE}?thinking=full&token={TOKEN}&tool=Bash")
    assert answer.status_code == 303
    assert answer.headers["location"] == f"{_PAGE}?thinking=full&tool=Bash"
    cookie = answer.headers["set-cookie"]
    assert cookie.startswith(f"threadline-{PORT}={TOKEN};")
    assert {"HttpOnly", "Path=/", "SameSite=strict"} <= {part.strip() for part in cookie.split(";")}
    assert "pixel" not in answer.text


def test_a_wrong_token_is_refused_even_with_the_cookie(client: Client) -> None:
    """An address with a wrong token is wrong."""
    _refused(client, f"{_PAGE}?token=wrong")


@pytest.mark.parametrize(
    "path", ["//evil.example/x", "/\\evil.example", "///evil.example", "/\\/evil.example/", "/\\\\/evil.example"]
)
def test_the_way_without_the_token_never_leads_elsewhere(client: Client, path: str) -> None:
    """A path that a browser would take for another host stays on this one."""
    client.cookie = None
    asked: dict[str, Any] = {
        "type": "http",
        "method": "GET",
        "path": path,
        "raw_path": path.encode(),
        "query_string": f"token={TOKEN}".encode(),
        "headers": [(b"host", HOST.encode())],
    }
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        return {"type": "http.request"}

    asyncio.run(client.app.asgi(asked, receive, send))
    headers = dict(sent[0]["headers"])
    assert headers[b"location"].startswith(b"/")
    assert headers[b"location"][1:2] not in {b"/", b"\\"}


def test_tokens_are_compared_in_constant_time(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """How long a refusal takes tells nothing of the token: `hmac.compare_digest` decides."""
    seen: list[tuple[bytes, bytes]] = []
    real = hmac.compare_digest

    def compare(one: bytes, other: bytes) -> bool:
        seen.append((one, other))
        return real(one, other)

    monkeypatch.setattr(hmac, "compare_digest", compare)
    client.cookie = "wrong"
    assert client.get(_PAGE).status_code == 403
    assert seen == [(b"wrong", TOKEN.encode())]


def test_a_socket_is_closed_before_it_opens(client: Client) -> None:
    """There is no WebSocket here, for any origin."""
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        return {"type": "websocket.connect"}

    asyncio.run(client.app.asgi({"type": "websocket", "path": "/live", "headers": []}, receive, send))
    assert [one["type"] for one in sent] == ["websocket.close"]


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
def test_every_answer_carries_the_headers(client: Client, address: str, status: int) -> None:
    """Pages and errors alike say what a browser may do with them, and nobody else may read them."""
    answer = client.get(address)
    assert answer.status_code == status
    for name, value in guard.HEADERS:
        assert answer.headers[name] == value
    assert "access-control-allow-origin" not in answer.headers
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy


def test_an_error_of_ours_is_told_without_a_word_of_it(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """What goes wrong inside is told on standard error, not in the page."""
    monkeypatch.setattr("threadline.web.session_cache.SessionCache.get", lambda *_: 1 / 0)
    answer = client.get(_PAGE)
    assert answer.status_code == 500
    assert "division" not in answer.text
    assert "Traceback" not in answer.text
