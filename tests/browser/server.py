"""The real server: `threadline serve` as a process, and a client for it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx

SOURCE = str(Path(__file__).parents[2] / "src")
MAX_SECONDS = 60.0
"""How long to wait for a server that prints nothing."""


@dataclass(frozen=True)
class Server:
    """A running server: its URL without a path, its cookie, and its home."""

    address: str
    cookies: dict[str, str]
    home: Path
    process: int

    def client(self) -> httpx.Client:
        """A client with the cookie."""
        return client_for(self.address, self.cookies)

    def get(self, path: str) -> httpx.Response:
        """The response to one request."""
        with self.client() as client:
            return client.get(path)

    def json(self, path: str) -> Any:
        """The JSON version of a page."""
        answer = self.get(path)
        assert answer.status_code == 200, (path, answer.status_code, answer.text[:300])
        return answer.json()

    def browser_cookies(self) -> list[dict[str, Any]]:
        """The cookie for a browser."""
        return [
            {"name": name, "value": value, "url": self.address, "httpOnly": True, "sameSite": "Strict"}
            for name, value in self.cookies.items()
        ]


@contextmanager
def start_server(
    home: Path, cache: Path, *options: str, source: str = "--home", uri: str | None = None, code: str = SOURCE
) -> Iterator[Server]:
    """Run a server for a home until the block ends; with the source `--lake`, for a lake in a folder or at a URI.

    `code` is the folder that threadline is imported from.
    """
    place = uri or str(home)
    command = [sys.executable, "-m", "threadline", "serve", "--no-open", "--json", source, place, *options]
    environment = {**os.environ, "THREADLINE_CACHE": str(cache), "PYTHONPATH": code}
    environment |= {"XDG_DATA_HOME": str(cache / "data")}  # annotations
    for name in ("CLAUDE_CONFIG_DIR", "CLAUDE_CONFIG_DIRS"):
        environment.pop(name, None)
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "serve.err").open("ab") as errors:
        process = subprocess.Popen(  # noqa: S603 - our own
            command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors
        )
        try:
            yield _log_in(_read_address(process, cache / "serve.err"), home, process.pid)
        finally:
            process.terminate()
            process.communicate(timeout=20)


def _read_address(process: subprocess.Popen[bytes], errors: Path) -> str:
    """Read the address that the server prints when it is ready, with its token."""
    assert process.stdout is not None
    output = b""
    deadline = time.monotonic() + MAX_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        if wait([process.stdout.fileno()], 0.2):
            output += os.read(process.stdout.fileno(), 65536)
        try:
            info = json.loads(output)
        except ValueError:
            continue
        return next(value for value in info.values() if isinstance(value, str) and value.startswith("http://"))
    raise AssertionError(f"serve did not print its address: {output!r} {errors.read_text()[-3000:]}")


def _log_in(address: str, home: Path, process: int) -> Server:
    """Send the token once, like a person who opens the address, and keep the cookie."""
    parts = urlsplit(address)
    origin = f"{parts.scheme}://{parts.netloc}"
    with client_for(origin) as client:
        answer = client.get(f"{parts.path}?{parts.query}", follow_redirects=True)
        assert answer.status_code == 200, (answer.status_code, answer.text[:300])
        return Server(origin, dict(client.cookies), home, process)


def client_for(origin: str, cookies: dict[str, str] | None = None) -> httpx.Client:
    """A client for an origin. Python does not resolve names under `.localhost` like browsers, so it gets an address."""
    parts = urlsplit(origin)
    is_name = (parts.hostname or "").endswith(".localhost")
    base = f"http://127.0.0.1:{parts.port}" if is_name else origin
    headers = {"Host": parts.netloc}
    return httpx.Client(base_url=base, headers=headers, cookies=cookies, timeout=MAX_SECONDS, trust_env=False)
