"""Asking the page's server without a socket."""

from __future__ import annotations

import asyncio
from pathlib import Path

import httpx

from threadline.find import homes
from threadline.web.app import App
from threadline.web.archive_pool import ArchivePool
from threadline.web.guard import cookie_name

TOKEN, PORT = "a-token-of-the-tests", 8123
HOST = f"127.0.0.1:{PORT}"


class Client:
    """A browser that has the cookie, one request after the other."""

    def __init__(self, *home: Path, cookie: str | None = TOKEN) -> None:
        self.holding = ArchivePool(tuple(homes(*home)))
        self.app = App(self.holding, token=TOKEN, port=PORT)
        self.cookie = cookie

    def get(self, address: str, method: str = "GET", **headers: str) -> httpx.Response:
        """The answer; underscores in names of headers are hyphens."""
        return asyncio.run(self._get(address, method, headers))

    async def _get(self, address: str, method: str, headers: dict[str, str]) -> httpx.Response:
        sent = {name.replace("_", "-").encode(): value.encode() for name, value in headers.items()}
        if self.cookie is not None:
            sent.setdefault(b"cookie", f"{cookie_name(PORT)}={self.cookie}".encode())
        transport = httpx.ASGITransport(app=self.app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url=f"http://{HOST}") as client:
            return await client.request(method, address, headers=sent)
