"""Crawls a site: follows every link of every page, and reads the JSON version of every page."""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from html.parser import HTMLParser
from urllib.parse import parse_qsl, urljoin, urlsplit

import httpx

_ID = re.compile(r"^/session/[^/]+")
_NUMBERED = re.compile(r"/(entry|call|state|image|part)/.*")
# Elements without an end tag.
_VOID = frozenset({"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "wbr"})


@dataclass
class CrawlResult:
    """The pages by kind, the slowest ones, and each failure with the page that linked to it."""

    pages: Counter[str] = field(default_factory=Counter)
    twins: int = 0
    bytes: int = 0
    slowest: list[tuple[float, str]] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)


class LinkParser(HTMLParser):
    """The links of a page. Checks that elements are closed in order and ids are unique."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.ids: set[str] = set()
        self.duplicate_ids: set[str] = set()
        self.unclosed: list[str] = []
        self._open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Record links and ids, and that the element is open."""
        for name, value in attrs:
            if name in {"href", "src"} and value:
                self.links.append(value)
            if name == "id" and value:
                (self.duplicate_ids if value in self.ids else self.ids).add(value)
        if tag not in _VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Record a self-closing SVG shape."""
        self.handle_starttag(tag, attrs)
        if tag not in _VOID:
            self._open.pop()

    def handle_endtag(self, tag: str) -> None:
        """Check that the element that was opened last is closed."""
        if not self._open or self._open.pop() != tag:
            self.unclosed.append(tag)


def kind_of(path: str) -> str:
    """The kind of page at a path."""
    parts = urlsplit(path)
    below = _ID.sub("/session/ID", parts.path)
    below = re.sub(r"/agent/[^/]+", "/agent/AGENT", below)
    return _NUMBERED.sub(lambda match: f"/{match[1]}/…", below)


def shape_of(path: str) -> tuple[str, frozenset[str]]:
    """The kind of a page and the names in its query. A few pages of each shape are enough."""
    return kind_of(path), frozenset(name for name, _ in parse_qsl(urlsplit(path).query))


def is_session(path: str) -> bool:
    """Whether it is the unfiltered page of a session or an agent."""
    return kind_of(path) in {"/session/ID", "/session/ID/agent/AGENT"} and "?" not in path


def crawl(
    client: httpx.Client,
    start: Iterable[str] = ("/",),
    *,
    alike: int = 1,
    names: int = 2,
    all_of: Callable[[str], bool] = is_session,
) -> CrawlResult:
    """Follow links from some pages: `alike` pages of each shape, and every page for which `all_of` is true.

    A page with more than `names` names in its query is skipped, because the combinations are endless.
    """
    result = CrawlResult()
    queue = [(path, "") for path in start]
    seen_paths = {path for path, _ in queue}
    counts: Counter[object] = Counter()
    while queue:
        path, origin = queue.pop(0)
        shape = shape_of(path)
        if (counts[shape] >= alike or len(shape[1]) > names) and not all_of(path):
            continue
        counts[shape] += 1
        # The JSON of sessions is much alike.
        for link in _visit(client, path, origin, result, twin=counts[shape] <= alike + 1):
            if link not in seen_paths:
                seen_paths.add(link)
                queue.append((link, path))
    result.slowest = sorted(result.slowest, reverse=True)[:10]
    return result


def _visit(client: httpx.Client, path: str, origin: str, result: CrawlResult, *, twin: bool) -> list[str]:
    """Check that a page answers, is well-formed and, if requested, has a JSON version. Returns its local links."""
    started = time.perf_counter()
    answer = client.get(path, follow_redirects=True)
    result.slowest.append((time.perf_counter() - started, path))
    result.pages[kind_of(path)] += 1
    result.bytes += len(answer.content)
    if answer.status_code != 200:
        result.failures.append(f"{answer.status_code} {path} (from {origin})")
        return []
    if not answer.headers["content-type"].startswith("text/html"):
        return []
    page = LinkParser()
    page.feed(answer.text)
    if page.unclosed or page.duplicate_ids:
        result.failures.append(f"not whole: {path}: {page.unclosed[:3]} {sorted(page.duplicate_ids)[:3]}")
    if twin:
        _check_json(client, path, result)
    links = [urljoin(path, link) for link in page.links]
    return [_without_fragment(link) for link in links if link.startswith("/") and not link.startswith("//")]


def _check_json(client: httpx.Client, path: str, result: CrawlResult) -> None:
    """Check the JSON version of a page."""
    parts = urlsplit(path)
    if "/part/" in parts.path or parts.path.endswith(("/turns", ".json")):
        return
    twin = ("/index" if parts.path == "/" else parts.path) + ".json" + (f"?{parts.query}" if parts.query else "")
    answer = client.get(twin, follow_redirects=True)
    result.twins += 1
    try:
        assert answer.status_code == 200, answer.status_code
        json.loads(answer.content)
    except (AssertionError, ValueError) as error:
        result.failures.append(f"twin {twin}: {error}")


def _without_fragment(link: str) -> str:
    """A link without the fragment, which no server sees."""
    return link.partition("#")[0]
