"""A browser opened by `serve` is let in by a private file, so that no command line contains a token."""

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
from tests.web.client import HOST, PORT, Client
from tests.web.conftest import session_rows, write_home

from threadline.web import cookie_name

_NAVIGATION = {"sec_fetch_site": "cross-site", "sec_fetch_mode": "navigate", "sec_fetch_dest": "document"}


def _address(page: Path) -> str:
    match = re.search(r'content="0; url=([^"]+)"', page.read_text())
    assert match is not None
    return unescape(match[1])


@pytest.fixture
def stranger(client: Client) -> Iterator[Client]:
    """A browser without the cookie."""
    client.cookie = None
    yield client
    client.access.log_out_all()  # removes the files


def test_only_the_owner_can_read_the_file(stranger: Client) -> None:
    """The folder and the file are private, whatever the umask."""
    before = os.umask(0)
    try:
        page = stranger.access.write_file()
    finally:
        os.umask(before)
    assert page.stat().st_mode & 0o777 == 0o600
    assert page.parent.stat().st_mode & 0o777 == 0o700
    assert "<script" not in page.read_text()


def test_a_file_works_once(stranger: Client) -> None:
    """The browser gets the cookie and continues. The file is deleted, and its token is refused from then on."""
    page = stranger.access.write_file()
    path = _address(page).removeprefix(f"http://{HOST}")
    answer = stranger.get(path, **_NAVIGATION)
    assert answer.status_code == 200
    assert answer.headers["set-cookie"].startswith(f"{cookie_name(PORT)}=")
    assert "SameSite=strict" in answer.headers["set-cookie"]
    assert 'content="0; url=/"' in answer.text
    assert path.partition("token=")[2] not in answer.text + answer.headers["set-cookie"]
    assert not page.parent.exists()
    assert stranger.get(path, **_NAVIGATION).status_code == 403
    assert stranger.get(path).status_code == 403


def test_other_sites_may_not_link_to_the_printed_url(stranger: Client) -> None:
    """The printed URL is for the person who sees it: another site may not link to it. That does not use it up."""
    query = stranger.access.new_url().partition("/?")[2]
    assert stranger.get(f"/session/{SESSION}?{query}", **_NAVIGATION).status_code == 403
    assert stranger.get(f"/session/{SESSION}?{query}").status_code == 303


def test_the_files_are_removed_at_the_end(stranger: Client) -> None:
    """When the server stops, files that were not used are deleted."""
    page = stranger.access.write_file()
    stranger.access.log_out_all()
    assert not page.parent.exists()


@pytest.mark.parametrize(
    ("method", "headers"),
    [
        ("HEAD", {}),
        ("GET", {"sec_fetch_dest": "iframe"}),
        ("GET", {"sec_fetch_dest": "empty"}),
        ("GET", {"sec_purpose": "prefetch"}),
        ("GET", {"sec_purpose": "prefetch;prerender"}),
        ("GET", {"purpose": "prefetch"}),
        ("GET", {"purpose": "preview"}),
        ("GET", {"x_moz": "prefetch"}),
        ("GET", {"origin": "http://evil.example"}),
        ("GET", {"host": "evil.example"}),
    ],
)
def test_requests_without_navigation_do_not_use_up_the_link(
    stranger: Client, method: str, headers: dict[str, str]
) -> None:
    """A frame, a script or another host gets no cookie, and the link stays valid."""
    path = _address(stranger.access.write_file()).removeprefix(f"http://{HOST}")
    answer = stranger.get(path, method, **headers)
    assert answer.status_code == 403
    assert "set-cookie" not in answer.headers
    assert stranger.get(path, **_NAVIGATION).status_code == 200


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="a script is the browser")
def test_the_browsers_command_line_contains_no_token(tmp_path: Path) -> None:
    """`serve` gives the browser a file to open. Its arguments contain neither token."""
    home = write_home(tmp_path / "home", session_rows())
    arguments = tmp_path / "noted"
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {arguments}.new && mv {arguments}.new {arguments}\n')
    browser.chmod(0o700)
    environment = {**os.environ, "BROWSER": f"{browser} %s", "DISPLAY": ":0"}
    environment.pop("SSH_CONNECTION", None)
    command = [sys.executable, "-m", "threadline", "serve", "--home", str(home)]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:  # noqa: S603 - our own
        try:
            assert process.stdout is not None
            printed = process.stdout.readline().decode().strip()
            deadline = time.monotonic() + 60
            while not arguments.exists() and time.monotonic() < deadline:
                time.sleep(0.05)
            url = arguments.read_text().strip()
            assert url.startswith("file://")
            page = Path(url.removeprefix("file://"))
            token, ticket_token = (address.partition("token=")[2] for address in (printed, _address(page)))
            assert token
            assert ticket_token not in {"", token}
            assert token not in url
            assert ticket_token not in url
            assert page.stat().st_mode & 0o777 == 0o600
        finally:
            process.terminate()
            process.wait(timeout=20)
    assert not page.parent.exists()
