"""What other servers on this machine learn from a browser that uses the page: nothing that lets them in.

Each test runs in Chromium and in Firefox. On a page whose host is 127.0.0.1, the other servers would get the cookie.
"""

from __future__ import annotations

import http.server
import json
import os
import re
import shutil
import socket
import socketserver
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page
from tests.browser import chromium, firefox
from tests.browser.server import SOURCE, client_for
from tests.transcripts import SESSION, Pen, lines, prompt, reply, transcript
from tests.web.conftest import write_home

pytestmark = pytest.mark.slow
_CONTENT = "There is a shelf in the north"
_PAGE = f"/session/{SESSION}"


class Tab(Protocol):
    """A tab of a browser."""

    def open(self, url: str) -> None:
        """Open a URL as if it was typed."""

    def text(self) -> str:
        """The visible text of the page."""

    def url(self) -> str:
        """The URL of the page."""

    def click(self, selector: str) -> None:
        """Click on an element."""

    def wait_for_text(self, text: str) -> None:
        """Wait until the page contains a text."""


class ChromiumTab:
    """A tab of Chromium."""

    def __init__(self, page: Page) -> None:
        self._page = page

    def open(self, url: str) -> None:
        """Open a URL as if it was typed."""
        self._page.goto(url)

    def text(self) -> str:
        """The visible text of the page."""
        return self._page.inner_text("body")

    def url(self) -> str:
        """The URL of the page."""
        return self._page.url

    def click(self, selector: str) -> None:
        """Click on an element."""
        self._page.click(selector)

    def wait_for_text(self, text: str) -> None:
        """Wait until the page contains a text."""
        self._page.get_by_text(text).first.wait_for()


@dataclass(frozen=True)
class Installed:
    """A browser: how to start it with a profile, and the file and query of its history."""

    launch: Callable[[Path], Any]
    history: str
    query: str


@pytest.fixture(params=["chromium", "firefox"])
def browser_kind(request: pytest.FixtureRequest) -> Installed:
    """Each browser that is installed. CI must have Chromium; Firefox may be missing."""
    if request.param == "firefox":
        if firefox.program() is None:
            pytest.skip("there is no firefox here (Debian: apt-get install firefox-esr)")
        return Installed(firefox.launch, "places.sqlite", "SELECT url FROM moz_places")
    browser: Browser = request.getfixturevalue("browser")

    @contextmanager
    def launch(profile: Path) -> Iterator[ChromiumTab]:
        context = browser.browser_type.launch_persistent_context(
            profile, executable_path=chromium.program(), args=list(chromium.FLAGS)
        )
        try:
            yield ChromiumTab(context.pages[0] if context.pages else context.new_page())
        finally:
            context.close()

    return Installed(launch, "Default/History", "SELECT url FROM urls")


@dataclass
class OtherServer:
    """A server that records every request. It lures the browser to all its names, as a hostile page would."""

    port: int
    requests: list[dict[str, str]] = field(default_factory=list)

    def texts(self) -> str:
        """Everything that it has received."""
        return "\n".join(json.dumps(request) for request in self.requests)


@contextmanager
def _run_other_server(address: str = "127.0.0.1") -> Iterator[OtherServer]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            other.requests.append({"path": self.path, **{name.lower(): value for name, value in self.headers.items()}})
            names = ("127.0.0.1", "localhost")
            pictures = "".join(f"<img src='http://{name}:{other.port}/picture'>" for name in names)
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            with suppress(OSError):
                self.wfile.write(f"<p>other server</p>{pictures}".encode())

        def log_message(self, *_arguments: object) -> None:
            pass

    class Listener(http.server.ThreadingHTTPServer):
        address_family = socket.AF_INET6 if ":" in address else socket.AF_INET

    with Listener((address, 0), Handler) as listener:
        other = OtherServer(listener.server_address[1])
        thread = threading.Thread(target=listener.serve_forever, daemon=True)
        thread.start()
        try:
            yield other
        finally:
            listener.shutdown()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with one session."""
    return write_home(tmp_path / "home", transcript(prompt("Where is a shelf?"), reply(_CONTENT)))


@contextmanager
def _serve(home: Path, *options: str) -> Iterator[dict[str, Any]]:
    """Run `threadline serve`; give what it prints."""
    command = [sys.executable, "-m", "threadline", "serve", "--no-open", "--json", "--home", str(home), *options]
    environment = {**os.environ, "PYTHONPATH": SOURCE}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:  # noqa: S603 - our own
        assert process.stdout is not None
        try:
            yield json.loads(process.stdout.readline())
        finally:
            process.kill()


def _credentials(info: dict[str, Any]) -> Callable[[str], list[str]]:
    """A function that lists what in a text would help to get in: the host name, tokens, cookies."""
    host = urlsplit(info["address"]).hostname or ""
    return lambda text: [word for word in (host, info["token"], f"threadline-{info['port']}") if word in text]


def _replay(info: dict[str, Any], other: OtherServer) -> list[int]:
    """Send everything that the other server got to ours: its cookies, with each host name that it could know."""
    cookies = {request.get("cookie", "") for request in other.requests}
    hosts = {f"127.0.0.1:{info['port']}", f"localhost:{info['port']}", urlsplit(info["address"]).netloc}
    with client_for(info["address"].partition("/?")[0]) as client:
        return [
            client.get("/sessions.json", headers={"Host": host, "Cookie": cookie}).status_code
            for cookie in cookies
            for host in hosts
        ]


@pytest.mark.parametrize(
    "options", [[], ["--host-name", "address"], ["--host", "::1"]], ids=["name", "address", "ipv6"]
)
def test_other_servers_get_nothing_that_grants_access(
    browser_kind: Installed, home: Path, tmp_path: Path, options: list[str]
) -> None:
    """A second server on another port of 127.0.0.1 and localhost (the parent of the random name) gets no cookie.

    Nothing that it receives is a name, a token or a cookie of ours, and replaying it gets 403.
    """
    with _serve(home, *options) as info, _run_other_server() as other:
        origin = info["address"].partition("/?")[0]
        with browser_kind.launch(tmp_path / "profile") as tab:
            tab.open(info["address"])
            tab.open(f"{origin}{_PAGE}")
            tab.wait_for_text(_CONTENT)
            for name in ("127.0.0.1", "localhost", "other.localhost"):
                tab.open(f"http://{name}:{other.port}/")
                tab.wait_for_text("other server")
            tab.open(f"{origin}{_PAGE}")
            tab.wait_for_text(_CONTENT)  # the browser still has its cookie
        assert {request["host"] for request in other.requests} >= {
            f"{name}:{other.port}" for name in ("127.0.0.1", "localhost", "other.localhost")
        }
        assert _credentials(info)(other.texts()) == []
        assert set(_replay(info, other)) == {403}


def test_a_link_in_a_session_tells_the_other_server_nothing(browser_kind: Installed, tmp_path: Path) -> None:
    """A session may contain a link to another server. Whoever follows it sends neither cookie nor referrer."""
    with _run_other_server() as other:
        text = f"Look at [this](http://localhost:{other.port}/linked)."
        home = write_home(tmp_path / "home", transcript(prompt("Where?"), reply(text)))
        with _serve(home) as info, browser_kind.launch(tmp_path / "profile") as tab:
            tab.open(info["address"])
            tab.open(f"{info['address'].partition('/?')[0]}{_PAGE}")
            tab.click(f"a[href='http://localhost:{other.port}/linked']")
            deadline = time.monotonic() + 20
            while not other.requests and time.monotonic() < deadline:
                time.sleep(0.1)
            assert other.requests[0]["path"] == "/linked"
            assert _credentials(info)(other.texts()) == []


def test_the_history_lets_no_other_browser_in(browser_kind: Installed, home: Path, tmp_path: Path) -> None:
    """Every URL in the history of the browser is refused in a fresh profile, but still works in the old one."""
    first = tmp_path / "first"
    with _serve(home) as info:
        with browser_kind.launch(first) as tab:
            tab.open(info["address"])
            tab.open(f"{info['address'].partition('/?')[0]}{_PAGE}")
            tab.wait_for_text(_CONTENT)
            tab.open(info["address"])  # used before, and by this browser
            assert "token=" not in tab.url()
            tab.wait_for_text("Sessions")
            time.sleep(2)  # browsers write their history in the background
        urls = [url for url in _read_history(browser_kind, first) if urlsplit(url).port == info["port"]]
        assert any(_PAGE in url for url in urls)
        urls.append(info["address"])
        with browser_kind.launch(tmp_path / "second") as tab:
            for url in urls:
                tab.open(url)
                assert "Forbidden" in tab.text()
                assert _CONTENT not in tab.text()


def _read_history(browser_kind: Installed, profile: Path) -> list[str]:
    copy = profile / "history-copy.sqlite"
    for suffix in ("", "-wal"):
        original = profile / f"{browser_kind.history}{suffix}"
        if original.exists():
            shutil.copyfile(original, f"{copy}{suffix}")
    connection = sqlite3.connect(copy)
    try:
        return [str(url) for (url,) in connection.execute(browser_kind.query)]
    finally:
        connection.close()


def test_a_person_can_add_a_browser_and_log_out(browser_kind: Installed, home: Path, tmp_path: Path) -> None:
    """The access page creates a link for another profile. Logging out ends the first one only. It needs no script."""
    with _serve(home) as info:
        origin = info["address"].partition("/?")[0]
        with browser_kind.launch(tmp_path / "first") as tab:
            tab.open(info["address"])
            tab.click("a[aria-label=Access]")
            tab.wait_for_text("Log out all browsers")
            tab.click("form[action='/access/link'] button")
            tab.wait_for_text("Open this link in the other browser")
            match = re.search(r"http://\S+token=\S+", tab.text())
            assert match is not None
            tab.open(f"{origin}/access")
            tab.click("form[action='/access/logout'] button")
            tab.wait_for_text("This browser is logged out")
            tab.open(f"{origin}{_PAGE}")
            assert "Forbidden" in tab.text()
        with browser_kind.launch(tmp_path / "second") as tab:
            tab.open(match[0])
            tab.open(f"{origin}{_PAGE}")
            tab.wait_for_text(_CONTENT)


def test_an_open_page_says_that_it_was_logged_out(browser_kind: Installed, home: Path, tmp_path: Path) -> None:
    """A page that is open when its access ends says so at the next event, and what to do."""
    with _serve(home, "--api-token") as info, browser_kind.launch(tmp_path / "profile") as tab:
        origin = info["address"].partition("/?")[0]
        tab.open(info["address"])
        tab.open(f"{origin}{_PAGE}")
        tab.wait_for_text(_CONTENT)
        with client_for(origin) as client:
            answer = client.post("/access/logout-all", headers={"Authorization": f"Bearer {info['api_token']}"})
            assert answer.status_code == 200
        with next(home.glob(f"projects/*/{SESSION}.jsonl")).open("ab") as file:
            file.write(lines(*transcript(prompt("Another word"), pen=Pen())))
        tab.wait_for_text("This browser is logged out")


def test_the_private_file_opens_the_page(browser_kind: Installed, home: Path, tmp_path: Path) -> None:
    """`serve` starts the browser with a private file, which leads to the page and is then deleted."""
    noted = tmp_path / "noted"
    script = tmp_path / "browser"
    script.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {noted}.new && mv {noted}.new {noted}\n')
    script.chmod(0o700)
    environment = {**os.environ, "PYTHONPATH": SOURCE, "BROWSER": f"{script} %s", "DISPLAY": ":0"}
    environment.pop("SSH_CONNECTION", None)
    command = [sys.executable, "-m", "threadline", "serve", "--home", str(home)]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:  # noqa: S603 - our own
        try:
            deadline = time.monotonic() + 60
            while not noted.exists() and time.monotonic() < deadline:
                time.sleep(0.1)
            url = noted.read_text().strip()
            with browser_kind.launch(tmp_path / "profile") as tab:
                tab.open(url)
                tab.wait_for_text("Sessions")
                assert re.fullmatch(r"http://threadline-\w+\.localhost:\d+/", tab.url())
                assert not Path(url.removeprefix("file://")).exists()
                tab.open(tab.url().rstrip("/") + _PAGE)
                tab.wait_for_text(_CONTENT)
        finally:
            process.kill()


def test_a_forwarded_port_works(browser_kind: Installed, home: Path, tmp_path: Path) -> None:
    """Like `ssh -L 8900:127.0.0.1:PORT`: the printed URL with the other port opens the page, with live updates."""
    with _serve(home) as info, _forward_port(info["port"]) as port:
        url = info["address"].replace(f":{info['port']}/", f":{port}/")
        with browser_kind.launch(tmp_path / "profile") as tab:
            tab.open(url)
            tab.open(url.partition("/?")[0] + _PAGE)
            tab.wait_for_text(_CONTENT)
            tab.open(url.partition("/?")[0] + "/access")
            tab.click("form[action='/access/link'] button")
            tab.wait_for_text(f":{port}/?token=")


@contextmanager
def _forward_port(target: int) -> Iterator[int]:
    """Listen on another port, and pass everything on."""

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            with socket.create_connection(("127.0.0.1", target)) as far, suppress(OSError):
                while True:
                    ready = wait([self.request, far])
                    for source in filter(ready.__contains__, (self.request, far)):
                        chunk = source.recv(65536)
                        if not chunk:
                            return
                        (far if source is self.request else self.request).sendall(chunk)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as forwarder:
        threading.Thread(target=forwarder.serve_forever, daemon=True).start()
        try:
            yield forwarder.server_address[1]
        finally:
            forwarder.shutdown()


def test_plain_addresses_explain_what_to_open(browser_kind: Installed, home: Path, tmp_path: Path) -> None:
    """Who opens 127.0.0.1 or localhost reads what to do instead, even in a browser that is logged in."""
    with _serve(home) as info, browser_kind.launch(tmp_path / "profile") as tab:
        tab.open(info["address"])
        for name in ("127.0.0.1", "localhost"):
            tab.open(f"http://{name}:{info['port']}{_PAGE}")
            tab.wait_for_text("Open the URL that threadline serve printed")
            assert _credentials(info)(tab.text()) == []
