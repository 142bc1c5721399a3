"""The browser that is opened for a person is let in by a file of its own: no command line ever has a token."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pytest
from tests.transcripts import SESSION
from tests.web.client import HOST, PORT, TOKEN, Client
from tests.web.conftest import session_rows, write_home

from threadline.web import App, Ticket, cookie_name

_LED = {"sec_fetch_site": "cross-site", "sec_fetch_mode": "navigate", "sec_fetch_dest": "document"}


def _address(page: Path) -> str:
    found = re.search(r'content="0; url=([^"]+)"', page.read_text())
    assert found is not None
    return unescape(found[1])


@pytest.fixture
def ticket() -> Iterator[Ticket]:
    """A ticket for the server of the tests."""
    made = Ticket(f"http://{HOST}/")
    yield made
    made.invalidate()


@pytest.fixture
def stranger(client: Client, ticket: Ticket) -> Client:
    """A browser without the cookie, before a server that has sold a ticket."""
    client.app = App(client.pool, token=TOKEN, port=PORT, ticket=ticket)
    client.cookie = None
    return client


def test_only_its_owner_may_read_the_file(ticket: Ticket) -> None:
    """Folder and file are for nobody else, whatever the mask is."""
    before = os.umask(0)
    try:
        page = ticket.write_page()
    finally:
        os.umask(before)
    assert page.stat().st_mode & 0o777 == 0o600
    assert page.parent.stat().st_mode & 0o777 == 0o700
    assert "<script" not in page.read_text()


def test_it_lets_in_once_and_is_worth_nothing_after(stranger: Client, ticket: Ticket) -> None:
    """Who is led by the file gets the cookie and goes on; the file is gone, and its token is refused from then on."""
    page = ticket.write_page()
    path = _address(page).removeprefix(f"http://{HOST}")
    answer = stranger.get(path, **_LED)
    assert answer.status_code == 200
    assert answer.headers["set-cookie"].startswith(f"{cookie_name(PORT)}={TOKEN};")
    assert "SameSite=strict" in answer.headers["set-cookie"]
    assert 'content="0; url=/"' in answer.text
    assert TOKEN not in answer.text
    assert not page.parent.exists()
    assert stranger.get(path, **_LED).status_code == 403
    assert stranger.get(path).status_code == 403


def test_the_printed_token_stays_good_and_leads_from_no_other_site(stranger: Client, ticket: Ticket) -> None:
    """The address that was printed is the person's for as long as it runs; another site may not lead to it."""
    ticket.invalidate()
    assert stranger.get(f"/session/{SESSION}?token={TOKEN}").status_code == 303
    assert stranger.get(f"/session/{SESSION}?token={TOKEN}", **_LED).status_code == 403


@pytest.mark.parametrize(
    ("method", "headers"),
    [
        ("HEAD", {}),
        ("GET", {"sec_fetch_dest": "iframe"}),
        ("GET", {"sec_fetch_dest": "empty"}),
        ("GET", {"origin": "http://evil.example"}),
        ("GET", {"host": "evil.example"}),
    ],
)
def test_what_is_no_page_to_be_shown_does_not_spend_it(
    stranger: Client, ticket: Ticket, method: str, headers: dict[str, str]
) -> None:
    """A frame, a script or another host gets no cookie, and the ticket is still good."""
    path = _address(ticket.write_page()).removeprefix(f"http://{HOST}")
    answer = stranger.get(path, method, **headers)
    assert answer.status_code == 403
    assert "set-cookie" not in answer.headers
    assert stranger.get(path, **_LED).status_code == 200


@pytest.mark.skipif(sys.platform == "win32", reason="a script is the browser")
def test_the_command_line_of_the_browser_has_no_token(tmp_path: Path) -> None:
    """`serve` gives the browser a file to open: neither token is among its arguments."""
    home = write_home(tmp_path / "home", session_rows())
    noted = tmp_path / "noted"
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {noted}.new && mv {noted}.new {noted}\n')
    browser.chmod(0o700)
    environment = {**os.environ, "BROWSER": f"{browser} %s", "DISPLAY": ":0"}
    environment.pop("SSH_CONNECTION", None)
    command = [sys.executable, "-m", "threadline", "serve", "--home", str(home)]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:  # noqa: S603 - our own
        try:
            assert process.stdout is not None
            printed = process.stdout.readline().decode().strip()
            until = time.monotonic() + 60
            while not noted.exists() and time.monotonic() < until:
                time.sleep(0.05)
            given = noted.read_text().strip()
            assert given.startswith("file://")
            page = Path(given.removeprefix("file://"))
            token, once = (address.partition("token=")[2] for address in (printed, _address(page)))
            assert token
            assert once not in {"", token}
            assert token not in given
            assert once not in given
            assert page.stat().st_mode & 0o777 == 0o600
        finally:
            process.terminate()
            process.wait(timeout=20)
    assert not page.parent.exists()
