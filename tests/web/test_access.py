"""Links that work once, the browsers they let in, logging out, expiry, and the token for scripts."""

from __future__ import annotations

import asyncio
import re
from contextlib import aclosing
from html import unescape

import pytest
from tests.transcripts import SESSION
from tests.web.client import API_TOKEN, HOST, NAME, PORT, Client, log_in

from threadline.cli import serve
from threadline.errors import BadQuery
from threadline.web import IDLE_SECONDS, MAX_SECONDS, Access, choose_host_name

_PAGE = f"/session/{SESSION}"
_ORIGIN = {"origin": f"http://{HOST}", "sec_fetch_site": "same-origin"}


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def read(self) -> float:
        """The time."""
        return self.now


@pytest.fixture
def clock(client: Client) -> Clock:
    """The clock of the server."""
    moved = Clock()
    client.use(client.pool, Access(f"http://{HOST}", clock=moved.read))
    return moved


def _path(url: str) -> str:
    return url.removeprefix(f"http://{HOST}")


def _open(client: Client, path: str) -> int:
    """Open a URL as a browser that takes the cookie."""
    answer = client.get(path)
    if "set-cookie" in answer.headers:
        client.cookie = answer.headers["set-cookie"].partition("=")[2].partition(";")[0]
    return answer.status_code


def test_a_link_works_once(client: Client) -> None:
    """Whoever finds the URL in a history or a terminal afterwards is refused, and gets no cookie."""
    path = _path(client.access.new_url())
    client.cookie = None
    assert _open(client, path) == 303
    assert client.get(_PAGE).status_code == 200
    client.cookie = None
    answer = client.get(path)
    assert answer.status_code == 403
    assert "set-cookie" not in answer.headers
    assert "was used before" in answer.text


def test_a_used_link_still_leads_its_own_browser_to_the_page(client: Client) -> None:
    """With the cookie, the same URL redirects to the page, and the cookie stays the same."""
    path = _path(client.access.new_url())
    client.cookie = None
    _open(client, path)
    cookie = client.cookie
    answer = client.get(path)
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    assert f"={cookie};" in answer.headers["set-cookie"]


def test_a_browser_that_is_logged_in_uses_a_new_link_up(client: Client) -> None:
    """Its history must not contain a link that would let another browser in."""
    path, cookie = _path(client.access.new_url()), client.cookie
    assert _open(client, path) == 303
    assert client.cookie == cookie
    client.cookie = None
    assert _open(client, path) == 403


def test_each_browser_has_a_cookie_of_its_own(client: Client) -> None:
    """Two links let two browsers in. Logging one out leaves the other alone."""
    first = client.cookie
    second = log_in(client.access)
    assert first != second
    assert client.get("/access/logout", "POST", **_ORIGIN).status_code == 200
    assert client.get(_PAGE).status_code == 403
    client.cookie = second
    assert client.get(_PAGE).status_code == 200


def test_logging_out_deletes_the_cookie(client: Client) -> None:
    """The browser is told to delete it, and its value is worth nothing."""
    answer = client.get("/access/logout", "POST", **_ORIGIN)
    assert re.match(rf'threadline-{PORT}=(""|);', answer.headers["set-cookie"])
    assert "max-age=0" in answer.headers["set-cookie"].lower()
    assert client.get(_PAGE).status_code == 403


def test_link_for_another_browser_survives_logging_out(client: Client) -> None:
    """People create a link for another browser, and then log out in this one."""
    link = client.get("/access/link.json", "POST", **_ORIGIN).json()["address"]
    assert client.get("/access/logout", "POST", **_ORIGIN).status_code == 200
    client.cookie = None
    assert _open(client, _path(link)) == 303


def test_logging_out_all_browsers_also_ends_links(client: Client) -> None:
    """After it, only the terminal can let a browser in."""
    other, path = log_in(client.access), _path(client.access.new_url())
    assert client.get("/access/logout-all", "POST", **_ORIGIN).status_code == 200
    for cookie in (client.cookie, other):
        client.cookie = cookie
        assert client.get(_PAGE).status_code == 403
    assert _open(client, path) == 403
    assert _open(client, _path(client.access.new_url())) == 303


@pytest.mark.parametrize("path", ["/access/logout", "/access/logout-all", "/access/link"])
@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"origin": "null", "sec_fetch_site": "cross-site"},
        {"origin": "null", "sec_fetch_site": "same-origin"},
        {"origin": "http://evil.example"},
        {"origin": f"http://{NAME}:{PORT + 1}", "sec_fetch_site": "same-site"},
        {**_ORIGIN, "sec_fetch_site": "cross-site"},
        {**_ORIGIN, "host": f"127.0.0.1:{PORT}"},
    ],
)
def test_only_our_own_forms_change_something(client: Client, path: str, headers: dict[str, str]) -> None:
    """A form of another site, or of another port, does not log anybody out, and gets no link."""
    answer = client.get(path, "POST", **headers)
    assert answer.status_code == 403
    assert "token=" not in answer.text
    assert client.get(_PAGE).status_code == 200


def test_get_changes_nothing(client: Client) -> None:
    """A link or a picture cannot log anybody out."""
    for path in ("/access/logout", "/access/logout-all", "/access/link"):
        assert client.get(path).status_code in {404, 405}
    assert client.get(_PAGE).status_code == 200


def test_the_access_page_creates_links(client: Client) -> None:
    """The link has the host and port of the request, which may be forwarded. It works once."""
    host = f"{NAME}:8900"
    page = client.get("/access", host=host).text
    data = client.get("/access.json").json()
    assert data["browsers"] == 1
    assert data["expires"].endswith("Z")
    assert '<meta name="referrer" content="same-origin">' in page  # else browsers would send no origin
    assert re.findall(r'<form action="([^"]+)" method="post"', page) == [
        "/access/link",
        "/access/logout",
        "/access/logout-all",
    ]
    answer = client.get("/access/link", "POST", host=host, origin=f"http://{host}")
    match = re.search(rf"http://{re.escape(host)}(/\?token=[\w-]+)", unescape(answer.text))
    assert match is not None
    client.cookie = None
    assert _open(client, match[1]) == 303
    client.cookie = None
    assert _open(client, match[1]) == 403


def test_an_idle_browser_is_logged_out(client: Client, clock: Clock) -> None:
    """Every request extends its time, up to a limit."""
    for _ in range(3):
        clock.now += IDLE_SECONDS - 1
        assert client.get(_PAGE).status_code == 200
    clock.now += IDLE_SECONDS
    assert client.get(_PAGE).status_code == 403


def test_access_ends_after_seven_days(client: Client, clock: Clock) -> None:
    """However often it sends requests."""
    end = clock.now + MAX_SECONDS
    while clock.now + IDLE_SECONDS / 2 < end:
        clock.now += IDLE_SECONDS / 2
        assert client.get("/keys").status_code == 200
    clock.now = end
    assert client.get("/keys").status_code == 403


def test_links_expire(client: Client, clock: Clock) -> None:
    """The printed one like a browser; one from the page within ten minutes."""
    printed = _path(client.access.new_url())
    created = client.get("/access/link.json", "POST", **_ORIGIN).json()["address"]
    clock.now += 601
    cookie, client.cookie = client.cookie, None
    assert _open(client, _path(created)) == 403
    client.cookie = cookie
    clock.now += IDLE_SECONDS - 602
    assert client.get("/keys").status_code == 200
    client.cookie = None
    assert _open(client, printed) == 303
    late = _path(client.access.new_url())
    clock.now += IDLE_SECONDS + 1
    assert _open(client, late) == 403


def test_the_number_of_links_and_browsers_is_limited(client: Client) -> None:
    """Old ones are dropped."""
    links = [_path(client.access.new_url()) for _ in range(200)]
    cookie = client.cookie
    for _ in range(200):
        log_in(client.access)
    assert client.access.count_browsers() < 100
    assert client.get("/keys").status_code == 403
    client.cookie = None
    assert _open(client, links[0]) == 403
    assert client.cookie != cookie


def test_scripts_use_a_token_of_their_own(client: Client) -> None:
    """It works in a header only, with every name of this machine, and sets no cookie."""
    client.cookie = None
    for host in (HOST, f"127.0.0.1:{PORT}", f"localhost:{PORT}", f"[::1]:{PORT}", "127.0.0.1:8900"):
        answer = client.get("/sessions.json", host=host, authorization=f"Bearer {API_TOKEN}")
        assert answer.json()["total"] == 1
        assert "set-cookie" not in answer.headers
    for address, headers in (
        ("/sessions.json", {"authorization": "Bearer wrong"}),
        ("/sessions.json", {"authorization": API_TOKEN}),
        (f"/sessions.json?token={API_TOKEN}", {}),
        ("/sessions.json", {"authorization": f"Bearer {API_TOKEN}", "host": "evil.example"}),
        ("/sessions.json", {"authorization": f"Bearer {API_TOKEN}", "origin": "http://evil.example"}),
        ("/sessions.json", {"authorization": f"Bearer {API_TOKEN}", "sec_fetch_site": "cross-site"}),
    ):
        answer = client.get(address, **headers)
        assert answer.status_code == 403
        assert SESSION not in answer.text
    assert "threadline serve" in client.get("/sessions.json").json()["error"]


def test_scripts_can_create_links(client: Client) -> None:
    """For a server without a terminal. The link has the name of the server, not the address that the script used."""
    client.cookie = None
    headers = {"host": f"127.0.0.1:{PORT}", "authorization": f"Bearer {API_TOKEN}"}
    url = client.get("/access/link.json", "POST", **headers).json()["address"]
    assert _open(client, _path(url)) == 303
    assert client.get("/access", authorization=f"Bearer {API_TOKEN}").status_code == 200


def test_there_is_no_token_for_scripts_by_default(client: Client) -> None:
    """An empty or missing token lets nobody in."""
    client.use(client.pool, Access(f"http://{HOST}"))
    client.cookie = None
    for text in ("", "None", "null", API_TOKEN):
        assert client.get("/sessions.json", authorization=f"Bearer {text}").status_code == 403


def test_the_event_stream_ends_when_the_browser_is_logged_out(client: Client) -> None:
    """An open page is told that it lost access, and nothing about sessions."""
    live, access = client.app.live, client.access
    browser = access.find_browser(client.cookie or "")
    assert browser is not None

    async def listen() -> list[str]:
        events = live.listen_while(lambda: access.is_allowed(browser), SESSION)
        async with aclosing(events) as stream:
            assert (await anext(stream)).startswith("retry")
            access.log_out(browser)
            live.notify(SESSION)
            return [event async for event in stream]

    assert asyncio.run(listen()) == ["event: logged-out\ndata: \n\n"]


def test_host_names() -> None:
    """Random names and addresses, or others that browsers resolve to this machine and that have their own cookies."""
    names = {choose_host_name(None) for _ in range(100)}
    assert len(names) == 100
    assert all(re.fullmatch(r"threadline-[a-z2-7]{16}\.localhost", name) for name in names)
    addresses = {choose_host_name("address") for _ in range(100)}
    assert len(addresses) > 95
    assert all(re.fullmatch(r"127(\.[1-9]\d{0,2}){3}", address) for address in addresses)
    for name in ("me.localhost", "Me.LOCALHOST", "a.b.localhost", "127.34.5.6"):
        assert choose_host_name(name) == name.lower()
    wrong = ["localhost", "127.0.0.1", "::1", "example.com", "localhost.example.com", "10.0.0.1", "126.0.0.1", "127.1"]
    for name in (
        *wrong,
        "127.0.0.256",
        ".localhost",
        "a..localhost",
        "a b.localhost",
        "x/.localhost",
        "",
        "a:1.localhost",
    ):
        with pytest.raises(BadQuery, match="host name"):
            choose_host_name(name)


def test_the_longest_expiry_is_the_longest_access() -> None:
    """`--expire` promises no more than the server grants."""
    assert serve.MAX_EXPIRY == MAX_SECONDS
