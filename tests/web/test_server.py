"""`threadline serve` as a process, asked over a real socket."""

from __future__ import annotations

import json
import re
import shutil
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.transcripts import SESSION
from tests.web.conftest import session_rows, write_home

from threadline.cli.commands import threadline
from threadline.errors import Missing


@contextmanager
def _serving(home: Path, *options: str) -> Iterator[tuple[subprocess.Popen[bytes], dict[str, Any]]]:
    command = [sys.executable, "-m", "threadline", "serve", "--no-open", "--json", "--home", str(home), *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:  # noqa: S603 - our own
        assert process.stdout is not None
        try:
            yield process, json.loads(process.stdout.readline())
        finally:
            process.kill()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with one session."""
    return write_home(tmp_path / "home", session_rows())


def _status(port: int, head: str) -> tuple[bytes, bytes]:
    """The first line of the answer to a request that is written by hand, and the rest."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as made:
        made.sendall(head.encode() + b"\r\n\r\n")
        answer = b""
        while more := made.recv(65536):
            answer += more
    first, _, rest = answer.partition(b"\r\n")
    return first, rest


def test_it_says_where_it_is_and_ends_with_ctrl_c(home: Path) -> None:
    """The address answers; with a page listening for news, Ctrl-C still ends it at once and with no complaint."""
    with _serving(home) as (process, told):
        assert told["sessions"] == 1
        page = (Path(__file__).parents[2] / "docs" / "cli.md").read_text()
        explained = page.partition("## threadline serve\n")[2].partition("\n## ")[0]
        assert set(re.findall(r"^\| `(\w+)` \|", explained, re.MULTILINE)) == set(told)
        opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        assert opener.open(told["address"], timeout=30).status == 200
        base = told["address"].partition("?")[0]
        page = opener.open(f"{base}session/{SESSION}", timeout=30).read()
        assert b"It is" in page
        stream = opener.open(f"{base}live?session={SESSION}", timeout=30)
        assert stream.readline().startswith(b"retry")
        process.send_signal(signal.SIGINT)
        code = process.wait(timeout=20)
        assert process.stderr is not None
        assert (code, process.stderr.read()) in {(0, b""), (130, b"")}


def test_only_this_machine_is_listened_to(home: Path) -> None:
    """The socket is bound to the loopback address alone."""
    with _serving(home) as (process, told):
        listening = [line.split() for line in Path(f"/proc/{process.pid}/net/tcp").read_text().splitlines()[1:]]
        port = f"{told['port']:04X}"
        bound = [row[1] for row in listening if row[1].endswith(f":{port}") and row[3] == "0A"]
        assert bound == [f"0100007F:{port}"]


def test_a_request_by_hand_gets_nothing_of_the_content(home: Path) -> None:
    """No Host, another Host, no token, another origin, a POST: 403 (or 400 where it is no HTTP), and not a word."""
    with _serving(home) as (_process, told):
        port, token = told["port"], told["token"]
        own, cookie = f"Host: 127.0.0.1:{port}", f"Cookie: threadline-{port}={token}"
        close = "Connection: close"
        page = f"/session/{SESSION}"
        refused = [
            f"GET {page} HTTP/1.1\r\nHost: evil.example\r\n{cookie}\r\n{close}",
            f"GET {page} HTTP/1.1\r\n{own}\r\n{close}",
            f"GET {page} HTTP/1.1\r\n{own}\r\nOrigin: http://evil.example\r\n{cookie}\r\n{close}",
            f"GET {page} HTTP/1.1\r\n{own}\r\nOrigin: null\r\n{cookie}\r\n{close}",
            f"GET {page} HTTP/1.1\r\n{own}\r\nSec-Fetch-Site: cross-site\r\n{cookie}\r\n{close}",
            f"POST {page} HTTP/1.1\r\n{own}\r\nContent-Length: 0\r\n{cookie}\r\n{close}",
            f"GET {page} HTTP/1.0\r\n{cookie}",
        ]
        for head in refused:
            first, rest = _status(port, head)
            assert b" 403 " in first
            assert b"pixel" not in rest
        first, rest = _status(port, f"GET {page} HTTP/1.1\r\n{cookie}\r\n{close}")
        assert b" 400 " in first or b" 403 " in first
        first, rest = _status(port, f"GET {page} HTTP/1.1\r\n{own}\r\n{cookie}\r\n{close}")
        assert b" 200 " in first
        assert b"pixel" in rest
        assert b"server:" not in rest.partition(b"\r\n\r\n")[0].lower()


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_curl_gets_403_without_the_token_and_the_page_with_it(home: Path) -> None:
    """What the issue asks to be shown with curl."""
    with _serving(home) as (_process, told):
        base = told["address"].partition("/?")[0]
        page = f"{base}/session/{SESSION}"
        cookie = ["-H", f"Cookie: threadline-{told['port']}={told['token']}"]

        def curl(*options: str) -> tuple[str, str]:
            asked = ["curl", "-s", "-w", "\n%{http_code}", *options]
            text, _, status = subprocess.run(asked, capture_output=True, check=True, text=True).stdout.rpartition("\n")  # noqa: S603 - our own words
            return status, text

        for options in (
            [page],
            [page, *cookie, "-H", "Host: evil.example"],
            [page, *cookie, "-H", "Origin: http://evil.example"],
        ):
            status, text = curl(*options)
            assert status == "403"
            assert "pixel" not in text
        status, text = curl(page, *cookie)
        assert status == "200"
        assert "pixel" in text


@pytest.mark.slow
def test_a_port_that_is_taken_is_a_sentence(home: Path) -> None:
    """What to do is said, and the exit code is 2."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        command = [sys.executable, "-m", "threadline", "serve", "--no-open", "--home", str(home), "--port", str(port)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)  # noqa: S603 - our own
        assert done.returncode == 2
        assert f"port {port}" in done.stderr
        assert "Traceback" not in done.stderr


def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where Starlette is not installed, the answer is the command that installs it."""
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "starlette" else object())
    result = CliRunner().invoke(threadline, ["serve", "--no-open"])  # by its group, whose settings a command keeps
    assert isinstance(result.exception, Missing)
    assert "pip install 'threadline[web]'" in str(result.exception)


@pytest.mark.slow
def test_a_home_that_is_not_there_is_said(tmp_path: Path) -> None:
    """A wrong --home is an error in one sentence."""
    command = [sys.executable, "-m", "threadline", "serve", "--no-open", "--home", str(tmp_path / "none")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)  # noqa: S603 - our own
    assert done.returncode == 2
    assert "none" in done.stderr
