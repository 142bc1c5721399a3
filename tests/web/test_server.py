"""`threadline serve` as a process, requested over a real socket."""

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
    """The first line of the answer to a raw request, and the rest."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        connection.sendall(head.encode() + b"\r\n\r\n")
        answer = b""
        while chunk := connection.recv(65536):
            answer += chunk
    first, _, rest = answer.partition(b"\r\n")
    return first, rest


def test_prints_its_address_and_stops_on_ctrl_c(home: Path) -> None:
    """The printed URL works. Ctrl-C stops the server at once and silently, even while a page listens for changes."""
    with _serving(home) as (process, info):
        assert info["sessions"] == 1
        page = (Path(__file__).parents[2] / "docs" / "cli.md").read_text()
        section = page.partition("## threadline serve\n")[2].partition("\n## ")[0]
        assert set(re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)) == set(info)
        opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        assert opener.open(info["address"], timeout=30).status == 200
        base = info["address"].partition("?")[0]
        page = opener.open(f"{base}session/{SESSION}", timeout=30).read()
        assert b"It is" in page
        stream = opener.open(f"{base}live?session={SESSION}", timeout=30)
        assert stream.readline().startswith(b"retry")
        process.send_signal(signal.SIGINT)
        code = process.wait(timeout=20)
        assert process.stderr is not None
        assert (code, process.stderr.read()) in {(0, b""), (130, b"")}


def test_listens_only_on_localhost(home: Path) -> None:
    """The socket is bound to the loopback address."""
    with _serving(home) as (process, info):
        rows = [line.split() for line in Path(f"/proc/{process.pid}/net/tcp").read_text().splitlines()[1:]]
        port = f"{info['port']:04X}"
        bound = [row[1] for row in rows if row[1].endswith(f":{port}") and row[3] == "0A"]
        assert bound == [f"0100007F:{port}"]


def test_raw_requests_get_no_content(home: Path) -> None:
    """No Host, another Host, no token, another origin or a POST gets 403 (or 400 if it is not HTTP), and no content."""
    with _serving(home) as (_process, info):
        port, token = info["port"], info["token"]
        host, cookie = f"Host: 127.0.0.1:{port}", f"Cookie: threadline-{port}={token}"
        close = "Connection: close"
        page = f"/session/{SESSION}"
        requests = [
            f"GET {page} HTTP/1.1\r\nHost: evil.example\r\n{cookie}\r\n{close}",
            f"GET {page} HTTP/1.1\r\n{host}\r\n{close}",
            f"GET {page} HTTP/1.1\r\n{host}\r\nOrigin: http://evil.example\r\n{cookie}\r\n{close}",
            f"GET {page} HTTP/1.1\r\n{host}\r\nOrigin: null\r\n{cookie}\r\n{close}",
            f"GET {page} HTTP/1.1\r\n{host}\r\nSec-Fetch-Site: cross-site\r\n{cookie}\r\n{close}",
            f"POST {page} HTTP/1.1\r\n{host}\r\nContent-Length: 0\r\n{cookie}\r\n{close}",
            f"GET {page} HTTP/1.0\r\n{cookie}",
        ]
        for head in requests:
            first, rest = _status(port, head)
            assert b" 403 " in first
            assert b"pixel" not in rest
        first, rest = _status(port, f"GET {page} HTTP/1.1\r\n{cookie}\r\n{close}")
        assert b" 400 " in first or b" 403 " in first
        first, rest = _status(port, f"GET {page} HTTP/1.1\r\n{host}\r\n{cookie}\r\n{close}")
        assert b" 200 " in first
        assert b"pixel" in rest
        assert b"server:" not in rest.partition(b"\r\n\r\n")[0].lower()


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_curl_gets_403_without_the_token_and_the_page_with_it(home: Path) -> None:
    """Curl gets 403 without the cookie, with another host or with another origin."""
    with _serving(home) as (_process, info):
        base = info["address"].partition("/?")[0]
        page = f"{base}/session/{SESSION}"
        cookie = ["-H", f"Cookie: threadline-{info['port']}={info['token']}"]

        def curl(*options: str) -> tuple[str, str]:
            command = ["curl", "-s", "-w", "\n%{http_code}", *options]
            result = subprocess.run(command, capture_output=True, check=True, text=True)  # noqa: S603 - our own words
            text, _, status = result.stdout.rpartition("\n")
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
def test_reports_a_port_in_use(home: Path) -> None:
    """The error names the port, and the exit code is 2."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        command = [sys.executable, "-m", "threadline", "serve", "--no-open", "--home", str(home), "--port", str(port)]
        result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)  # noqa: S603 - our own
        assert result.returncode == 2
        assert f"port {port}" in result.stderr
        assert "Traceback" not in result.stderr


def test_says_what_to_install_without_the_web_extra(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If Starlette is not installed, the error contains the command that installs it."""
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "starlette" else object())
    # Through the group, whose settings the command inherits.
    result = CliRunner().invoke(threadline, ["serve", "--no-open", "--home", str(home)])
    assert isinstance(result.exception, Missing)
    assert "pip install 'threadline[web]'" in str(result.exception)


@pytest.mark.slow
def test_reports_a_missing_home(tmp_path: Path) -> None:
    """A wrong --home is an error in one sentence."""
    command = [sys.executable, "-m", "threadline", "serve", "--no-open", "--home", str(tmp_path / "none")]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)  # noqa: S603 - our own
    assert result.returncode == 2
    assert "none" in result.stderr
