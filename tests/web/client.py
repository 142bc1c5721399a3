"""A client that sends requests to the application without a socket."""

from __future__ import annotations

import asyncio
from pathlib import Path

import httpx

from threadline.find import homes
from threadline.web import App, ArchivePool, cookie_name

TOKEN, PORT = "a-token-of-the-tests", 8123
HOST = f"127.0.0.1:{PORT}"


class Client:
    """A browser that has the cookie; it sends one request after the other."""

    def __init__(self, *home: Path, cookie: str | None = TOKEN) -> None:
        self.pool = ArchivePool(tuple(homes(*home)))
        self.app = App(self.pool, token=TOKEN, port=PORT)
        self.cookie = cookie

    def get(self, address: str, method: str = "GET", **headers: str) -> httpx.Response:
        """Send a request; underscores in the names of headers become hyphens."""
        return asyncio.run(self._get(address, method, headers))

    async def _get(self, address: str, method: str, headers: dict[str, str]) -> httpx.Response:
        encoded = {name.replace("_", "-").encode(): value.encode() for name, value in headers.items()}
        if self.cookie is not None:
            encoded.setdefault(b"cookie", f"{cookie_name(PORT)}={self.cookie}".encode())
        transport = httpx.ASGITransport(app=self.app.asgi, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url=f"http://{HOST}") as client:
            return await client.request(method, address, headers=encoded)
