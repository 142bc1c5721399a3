"""A client that sends requests to the application without a socket."""

from __future__ import annotations

import asyncio
from pathlib import Path

import httpx

from threadline.find import homes
from threadline.web import Access, App, ArchivePool, cookie_name

NAME, PORT = "a-name-of-the-tests.localhost", 8123
HOST = f"{NAME}:{PORT}"
API_TOKEN = "for-scripts-" + 20 * "x"


class Client:
    """A browser that was let in; it sends one request after the other. `cookie` is the value of its cookie."""

    def __init__(self, *home: Path) -> None:
        self.use(ArchivePool(tuple(homes(*home))))

    def use(self, pool: ArchivePool, access: Access | None = None) -> None:
        """Send requests to a new server."""
        self.pool = pool
        self.access = access or Access(f"http://{HOST}", api_token=API_TOKEN)
        self.app = App(pool, self.access, host=NAME, port=PORT)
        self.cookie: str | None = log_in(self.access)

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


def log_in(access: Access) -> str:
    """Let a browser in; return the value of its cookie."""
    link = access.find_link(access.new_url().partition("token=")[2])
    assert link is not None
    browser = access.redeem(link)
    assert browser is not None
    return browser.cookie
