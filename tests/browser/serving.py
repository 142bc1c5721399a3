"""The real server: `threadline serve` as a process, and what is needed to ask it."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx

SOURCE = str(Path(__file__).parents[2] / "src")
PATIENCE = 60.0
"""Seconds after which a server that says nothing is given up."""


@dataclass(frozen=True)
class Served:
    """A server that runs: its address without a path, the cookie that it takes for a token, and its home."""

    address: str
    cookies: dict[str, str]
    home: Path
    process: int

    def client(self) -> httpx.Client:
        """Somebody who may ask."""
        return httpx.Client(base_url=self.address, cookies=self.cookies, timeout=PATIENCE, trust_env=False)

    def get(self, path: str) -> httpx.Response:
        """The answer to one question."""
        with self.client() as client:
            return client.get(path)

    def json(self, path: str) -> Any:
        """What a page's twin says."""
        answer = self.get(path)
        assert answer.status_code == 200, (path, answer.status_code, answer.text[:300])
        return answer.json()

    def browser_cookies(self) -> list[dict[str, Any]]:
        """The same, for a browser."""
        return [
            {"name": name, "value": value, "url": self.address, "httpOnly": True, "sameSite": "Strict"}
            for name, value in self.cookies.items()
        ]


@contextmanager
def serving(home: Path, cache: Path, *options: str) -> Iterator[Served]:
    """A server for a home, until the block ends."""
    command = [sys.executable, "-m", "threadline", "serve", "--no-open", "--json", "--home", str(home), *options]
    environment = {**os.environ, "THREADLINE_CACHE": str(cache), "PYTHONPATH": SOURCE}
    for name in ("CLAUDE_CONFIG_DIR", "CLAUDE_CONFIG_DIRS"):
        environment.pop(name, None)
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "serve.err").open("ab") as complaints:
        process = subprocess.Popen(  # noqa: S603 - our own
            command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=complaints
        )
        try:
            yield _entered(_told(process, cache / "serve.err"), home, process.pid)
        finally:
            process.terminate()
            process.communicate(timeout=20)


def _told(process: subprocess.Popen[bytes], complaints: Path) -> str:
    """The address that it tells when it is ready, with its token."""
    assert process.stdout is not None
    said = b""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until and process.poll() is None:
        if select.select([process.stdout], [], [], 0.2)[0]:
            said += os.read(process.stdout.fileno(), 65536)
        try:
            told = json.loads(said)
        except ValueError:
            continue
        return next(value for value in told.values() if isinstance(value, str) and value.startswith("http://"))
    raise AssertionError(f"serve did not tell its address: {said!r} {complaints.read_text()[-3000:]}")


def _entered(address: str, home: Path, process: int) -> Served:
    """Give the token once, as a person does who opens the address, and keep the cookie."""
    parts = urlsplit(address)
    with httpx.Client(timeout=PATIENCE, trust_env=False) as client:
        answer = client.get(address, follow_redirects=True)
        assert answer.status_code == 200, (answer.status_code, answer.text[:300])
        return Served(f"{parts.scheme}://{parts.netloc}", dict(client.cookies), home, process)
