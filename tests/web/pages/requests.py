"""Call page functions without a server, and parse the pages that they return."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from html.parser import HTMLParser
from typing import Any
from urllib.parse import parse_qsl, urlsplit
from weakref import WeakKeyDictionary

from threadline.archive import Archive
from threadline.json_values import encode_json
from threadline.render.html import el
from threadline.web import ROUTES, ArchivePool, Page, PageRequest, SessionCache

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)
_EMPTY = frozenset({"input", "meta", "br", "link", "img", "hr"})


PAGES = {route.path: route.page for route in ROUTES if "{" not in route.path}
"""The pages about all sessions, by path."""
_POOLS: WeakKeyDictionary[Archive, ArchivePool] = WeakKeyDictionary()


def ask(archive: Archive, address: str) -> Page:
    """The page at a URL. Requests with the same archive share the caches of a server."""
    parts = urlsplit(address)
    if archive not in _POOLS:
        _POOLS[archive] = ArchivePool(archive.homes, index=archive.index)
    request = PageRequest(
        path=parts.path,
        query=parse_qsl(parts.query, keep_blank_values=True),
        archive=archive,
        pool=_POOLS[archive],
        session_cache=SessionCache(),
        now=NOW,
    )
    page = PAGES[parts.path](request)
    assert isinstance(page, Page)
    return page


def data(page: Page) -> Any:
    """The JSON version of a page, as a program reads it."""
    return json.loads(encode_json(page.data), parse_float=Decimal)


class ParsedPage(HTMLParser):
    """A parsed page: its links and its text. Checks that every element is closed."""

    def __init__(self, page: Page) -> None:
        super().__init__()
        self.names: list[str] = []
        self.links: list[str] = []
        self.attributes: list[dict[str, str | None]] = []
        self._open: list[str] = []
        self._words: list[str] = []
        self.html = str(el("main", page.head, page.main, page.after))
        self.feed(self.html)
        assert not self._open

    @property
    def words(self) -> str:
        """The text of the page."""
        return " ".join("".join(self._words).split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Record an element and its attributes."""
        self.names.append(tag)
        self.attributes.append(dict(attrs))
        if tag == "a" and (href := dict(attrs).get("href")):
            self.links.append(href)
        if tag not in _EMPTY:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        """Check that the element that was opened last is closed."""
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        """Record text."""
        self._words.append(data)


def parse_page(archive: Archive, address: str) -> ParsedPage:
    """Parse the page at a URL."""
    return ParsedPage(ask(archive, address))
