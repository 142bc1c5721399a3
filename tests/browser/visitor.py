"""Visits pages in a fresh profile for each test, and records everything that goes wrong."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Dialog, Page, Request, WebError, expect
from tests.browser.server import Server

TIMEOUT_MS = 20_000
"""The timeout of every wait. Only a failing test waits that long."""
expect.set_options(timeout=TIMEOUT_MS)  # pages are slow beside other tests; `bench/page.py` measures them


@dataclass
class PageErrors:
    """Everything that a page must not do: log errors, fail, open dialogs, or request other hosts."""

    address: str
    messages: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def watch(self, context: BrowserContext) -> None:
        """Watch every page of a profile."""
        context.on("console", self._console)
        context.on("weberror", self._error)
        context.on("dialog", self._dialog)
        context.on("request", self._request)

    def _console(self, message: ConsoleMessage) -> None:
        if message.type in {"error", "warning", "assert"}:
            self.messages.append(f"console {message.type}: {message.text} ({message.location.get('url', '')})")

    def _error(self, error: WebError) -> None:
        self.messages.append(f"error: {error.error}")

    def _dialog(self, dialog: Dialog) -> None:
        self.messages.append(f"dialog: {dialog.type} {dialog.message}")
        dialog.dismiss()

    def _request(self, request: Request) -> None:
        self.requests.append(request.url)
        if not request.url.startswith(f"{self.address}/"):
            self.messages.append(f"request elsewhere: {request.url[:200]}")


class Visitor:
    """Opens pages of one server. `errors` has what went wrong on any of them."""

    def __init__(self, browser: Browser, server: Server) -> None:
        self.server = server
        self.errors = PageErrors(server.address)
        self._browser = browser
        self._contexts: list[BrowserContext] = []

    def __call__(
        self,
        path: str = "/",
        *,
        width: int = 1280,
        height: int = 900,
        javascript: bool = True,
        theme: Literal["light", "dark"] = "light",
        motion: Literal["reduce", "no-preference"] = "reduce",
        wait: Literal["commit", "domcontentloaded", "load"] = "load",
    ) -> Page:
        """Open a path of the server in a new profile."""
        page = self.profile(
            viewport={"width": width, "height": height},
            java_script_enabled=javascript,
            color_scheme=theme,
            reduced_motion=motion,
        ).new_page()
        self.go(page, path, wait=wait)
        return page

    def profile(self, **options: Any) -> BrowserContext:
        """A fresh profile with the server's cookie."""
        context = self._browser.new_context(permissions=["clipboard-read", "clipboard-write"], **options)
        context.set_default_timeout(TIMEOUT_MS)
        context.add_cookies(self.server.browser_cookies())  # type: ignore[arg-type] # they are dicts of that shape
        self.errors.watch(context)
        self._contexts.append(context)
        return context

    def go(self, page: Page, path: str, wait: Literal["commit", "domcontentloaded", "load"] = "load") -> None:
        """Open another path of the server on a page."""
        answer = page.goto(self.server.address + path, wait_until=wait)
        assert answer is None or answer.ok, (path, answer.status)  # None: only the fragment changed

    def close(self) -> None:
        """Close every profile."""
        for context in self._contexts:
            context.close()
        self._contexts.clear()
