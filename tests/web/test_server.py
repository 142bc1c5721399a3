"""`threadline serve` as a process, requested over a real socket."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import wait
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
import uvicorn
from click.testing import CliRunner
from tests.transcripts import SESSION
from tests.web.conftest import session_rows, write_home

from threadline.cli.commands import threadline
from threadline.errors import Missing, Unreadable
from threadline.find import homes
from threadline.web import ArchivePool, Live
from threadline.web import serve as run_server
from threadline.web import server as web_server


@contextmanager
def _serving(home: Path, *options: str) -> Iterator[tuple[subprocess.Popen[bytes], dict[str, Any]]]:
    command = [sys.executable, "-m", "threadline", "serve", "--no-open", "--json", "--home", str(home), *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:  # noqa: S603 - our own
        assert process.stdout is not None
        try:
            yield process, json.loads(process.stdout.readline())
        finally:
            process.kill()


def _host(info: dict[str, Any]) -> str:
    return str(urlsplit(info["address"]).netloc)


def _client(info: dict[str, Any]) -> httpx.Client:
    """A client that knows the address of the server's name, like a browser."""
    base = f"http://127.0.0.1:{info['port']}"
    return httpx.Client(base_url=base, headers={"Host": _host(info)}, timeout=30, trust_env=False)


def _log_in(info: dict[str, Any]) -> str:
    """Open the printed URL; return the value of the cookie."""
    with _client(info) as client:
        return str(client.get(f"/?token={info['token']}").cookies[f"threadline-{info['port']}"])


def _has_ipv6() -> bool:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True


def _read_until(terminal: int, pattern: bytes) -> bytes:
    output, deadline = b"", time.monotonic() + 60
    while not re.search(pattern, output):
        assert time.monotonic() < deadline, output
        if wait([terminal], 0.5):
            output += os.read(terminal, 65536)
    return output


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with one session."""
    return write_home(tmp_path / "home", session_rows())


def _status(port: int, head: str, address: str = "127.0.0.1") -> tuple[bytes, bytes]:
    """The first line of the answer to a raw request, and the rest."""
    with socket.create_connection((address, port), timeout=30) as connection:
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
        with _client(info) as client:
            assert client.get(f"/?token={info['token']}", follow_redirects=True).status_code == 200
            assert "It is" in client.get(f"/session/{SESSION}").text
            with client.stream("GET", f"/live?session={SESSION}") as stream:
                assert next(stream.iter_text()).startswith("retry")
                process.send_signal(signal.SIGINT)
                code = process.wait(timeout=20)
        assert process.stderr is not None
        assert (code, process.stderr.read()) in {(0, b""), (130, b"")}


def test_listens_only_on_localhost(home: Path) -> None:
    """The sockets are bound to the loopback addresses of IPv4 and, if there is one, of IPv6.

    Browsers look for names under `.localhost` at both. At the other one, another program would get the cookie.
    """
    with _serving(home) as (process, info):
        rows = [line.split() for line in Path(f"/proc/{process.pid}/net/tcp").read_text().splitlines()[1:]]
        port = f"{info['port']:04X}"
        bound = [row[1] for row in rows if row[1].endswith(f":{port}") and row[3] == "0A"]
        assert bound == [f"0100007F:{port}"]
        if not _has_ipv6():
            return
        rows = [line.split() for line in Path(f"/proc/{process.pid}/net/tcp6").read_text().splitlines()[1:]]
        bound = [row[1] for row in rows if row[1].endswith(f":{port}") and row[3] == "0A"]
        assert bound == [f"00000000000000000000000001000000:{port}"]
        first, _rest = _status(info["port"], "GET / HTTP/1.1\r\nHost: x\r\nConnection: close", "::1")
        assert b" 403 " in first


def test_raw_requests_get_no_content(home: Path) -> None:
    """No Host, another Host, no token, another origin or a POST gets 403 (or 400 if it is not HTTP), and no content."""
    with _serving(home) as (_process, info):
        port = info["port"]
        host, cookie = f"Host: {_host(info)}", f"Cookie: threadline-{port}={_log_in(info)}"
        close = "Connection: close"
        page = f"/session/{SESSION}"
        requests = [
            f"GET {page} HTTP/1.1\r\nHost: evil.example\r\n{cookie}\r\n{close}",
            f"GET {page} HTTP/1.1\r\n{host}\r\n{close}",
            f"GET {page} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n{cookie}\r\n{close}",
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


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_curl_gets_403_without_the_token_and_the_page_with_it(home: Path) -> None:
    """Curl gets 403 without the cookie, with another host or with another origin."""
    with _serving(home) as (_process, info):
        base = info["address"].partition("/?")[0]
        page = f"{base}/session/{SESSION}"
        cookie = ["-H", f"Cookie: threadline-{info['port']}={_log_in(info)}"]

        def curl(*options: str) -> tuple[str, str]:
            resolve = ["--resolve", f"{_host(info)}:127.0.0.1"]  # old versions do not know .localhost
            command = ["curl", "-s", "-w", "\n%{http_code}", *resolve, *options]
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


@pytest.mark.slow
def test_prints_a_token_for_scripts_on_request(home: Path) -> None:
    """The token for scripts works with the plain address. The host may be an address of its own instead of a name."""
    with _serving(home, "--api-token", "--host-name", "address", "--expire", "30m") as (_process, info):
        assert re.fullmatch(r"127\.\d+\.\d+\.\d+", info["host"])
        assert info["address"].startswith(f"http://{info['host']}:{info['port']}/?token=")
        headers = {"Authorization": f"Bearer {info['api_token']}"}
        base = f"http://{info['host']}:{info['port']}"
        answer = httpx.get(f"{base}/sessions.json", headers=headers, timeout=30, trust_env=False)
        assert answer.json()["total"] == 1
        assert httpx.get(f"{base}/sessions.json", timeout=30, trust_env=False).status_code == 403
        assert httpx.get(info["address"], timeout=30, trust_env=False).status_code == 303


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_enter_prints_another_url(home: Path) -> None:
    """In a terminal, Enter prints a URL that lets another browser in. The server stops on Ctrl-C as before."""
    parent, child = os.openpty()
    command = [sys.executable, "-m", "threadline", "serve", "--no-open", "--home", str(home)]
    with subprocess.Popen(command, stdin=child, stdout=child, stderr=child, start_new_session=True) as process:  # noqa: S603 - our own
        os.close(child)
        try:
            output = _read_until(parent, rb"Press Enter for another URL")
            os.write(parent, b"\n")
            output += _read_until(parent, rb"token=\S+\s")
            os.write(parent, b"\n")
            output += _read_until(parent, rb"token=\S+\s")
            urls = re.findall(r"http://\S+", output.decode())
            assert len(set(urls)) == 3
            for url in urls:
                parts = urlsplit(url)
                answer = httpx.get(
                    f"http://127.0.0.1:{parts.port}/?{parts.query}",
                    headers={"Host": parts.netloc},
                    timeout=30,
                    trust_env=False,
                )
                assert answer.status_code == 303
            process.send_signal(signal.SIGINT)
            assert process.wait(timeout=20) in {0, 130}
            with suppress(OSError):  # the end of a pseudo-terminal
                assert b"Error" not in os.read(parent, 65536)
        finally:
            process.kill()
            os.close(parent)


@pytest.mark.parametrize("expiry", ["0h", "8d", "1w", "12", "-1h", "soon", ""])
def test_refuses_a_wrong_expiry(home: Path, expiry: str) -> None:
    """The message says what to write."""
    result = CliRunner().invoke(threadline, ["serve", "--no-open", "--home", str(home), "--expire", expiry])
    assert result.exit_code == 2
    assert "30m, 12h" in result.output


@pytest.mark.skipif(not _has_ipv6(), reason="there is no IPv6 here")
def test_another_program_cannot_answer_for_the_name(home: Path) -> None:
    """If the port of the other loopback address is in use, the server does not start with this port."""
    for address, host in (("::1", "127.0.0.1"), ("127.0.0.1", "::1")):
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        with socket.create_server((address, 0), family=family) as squatter:
            port = squatter.getsockname()[1]
            with pytest.raises(Unreadable, match=f"Cannot listen on {address} port {port}"):
                run_server(ArchivePool(tuple(homes(home))), host, port, lambda _served: None, host_name="me.localhost")


def test_says_what_to_install_without_the_web_extra(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If Starlette is not installed, the error contains the command that installs it."""
    monkeypatch.setattr("threadline.cli.serve.find_spec", lambda name: None if name == "starlette" else object())
    # Through the group, whose settings the command inherits.
    result = CliRunner().invoke(threadline, ["serve", "--no-open", "--home", str(home)])
    assert isinstance(result.exception, Missing)
    assert "pip install 'threadline[web]'" in result.exception.args[0]


@pytest.mark.slow
def test_reports_a_missing_home(tmp_path: Path) -> None:
    """A wrong --home is an error in one sentence."""
    command = [sys.executable, "-m", "threadline", "serve", "--no-open", "--home", str(tmp_path / "none")]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)  # noqa: S603 - our own
    assert result.returncode == 2
    assert "none" in result.stderr


def test_signal_does_not_wait_for_a_lock_of_the_interrupted_thread() -> None:
    """Ctrl-C may arrive while the server's thread notes a new listener. The handler runs in that same thread."""
    live = Live([])
    server = web_server._Server(uvicorn.Config("none"), live.stop, lambda: None)

    def interrupt() -> None:
        with live._lock:
            server.handle_exit(signal.SIGINT, None)

    thread = Thread(target=interrupt, daemon=True)
    thread.start()
    thread.join(10)
    assert not thread.is_alive()
    assert server.should_exit
