"""A crawl: every link of every page is followed, and every page's twin is read."""

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
# Elements that need no end.
_VOID = frozenset({"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "wbr"})


@dataclass
class Crawled:
    """What came of it: pages by kind, the slowest, and each failure with the page that led to it."""

    pages: Counter[str] = field(default_factory=Counter)
    twins: int = 0
    bytes: int = 0
    slowest: list[tuple[float, str]] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)


class Links(HTMLParser):
    """The links of a page, and whether its elements are closed as they were opened."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.ids: set[str] = set()
        self.twice: set[str] = set()
        self.wrong: list[str] = []
        self._open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note where an element leads, and that it is open."""
        for name, value in attrs:
            if name in {"href", "src"} and value:
                self.links.append(value)
            if name == "id" and value:
                (self.twice if value in self.ids else self.ids).add(value)
        if tag not in _VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """A shape of SVG."""
        self.handle_starttag(tag, attrs)
        if tag not in _VOID:
            self._open.pop()

    def handle_endtag(self, tag: str) -> None:
        """The element opened last is the one that is closed."""
        if not self._open or self._open.pop() != tag:
            self.wrong.append(tag)


def kind_of(path: str) -> str:
    """What kind of page lies at a path."""
    parts = urlsplit(path)
    below = _ID.sub("/session/ID", parts.path)
    below = re.sub(r"/agent/[^/]+", "/agent/AGENT", below)
    return _NUMBERED.sub(lambda found: f"/{found[1]}/…", below)


def shape_of(path: str) -> tuple[str, frozenset[str]]:
    """A page's kind and the names in its query: of pages alike in these, a few are enough."""
    return kind_of(path), frozenset(name for name, _ in parse_qsl(urlsplit(path).query))


def is_session(path: str) -> bool:
    """Whether it is the page of a session or an agent, as it is at first."""
    return kind_of(path) in {"/session/ID", "/session/ID/agent/AGENT"} and "?" not in path


def crawl(
    client: httpx.Client,
    start: Iterable[str] = ("/",),
    *,
    alike: int = 1,
    names: int = 2,
    all_of: Callable[[str], bool] = is_session,
) -> Crawled:
    """Follow links from some pages; of pages of the same shape so many, except those of which all are wanted.

    A page with more than so many names in its query is left alone: there is no end to what can be put together.
    """
    done = Crawled()
    waiting = [(path, "") for path in start]
    known = {path for path, _ in waiting}
    taken: Counter[object] = Counter()
    while waiting:
        path, origin = waiting.pop(0)
        shape = shape_of(path)
        if (taken[shape] >= alike or len(shape[1]) > names) and not all_of(path):
            continue
        taken[shape] += 1
        # Twins of sessions are much alike.
        for link in _look(client, path, origin, done, twin=taken[shape] <= alike + 1):
            if link not in known:
                known.add(link)
                waiting.append((link, path))
    done.slowest = sorted(done.slowest, reverse=True)[:10]
    return done


def _look(client: httpx.Client, path: str, origin: str, done: Crawled, *, twin: bool) -> list[str]:
    """One page: that it answers, is whole, and where wanted has a twin; gives where it leads on this server."""
    began = time.perf_counter()
    answer = client.get(path, follow_redirects=True)
    done.slowest.append((time.perf_counter() - began, path))
    done.pages[kind_of(path)] += 1
    done.bytes += len(answer.content)
    if answer.status_code != 200:
        done.failures.append(f"{answer.status_code} {path} (from {origin})")
        return []
    if not answer.headers["content-type"].startswith("text/html"):
        return []
    page = Links()
    page.feed(answer.text)
    if page.wrong or page.twice:
        done.failures.append(f"not whole: {path}: {page.wrong[:3]} {sorted(page.twice)[:3]}")
    if twin:
        _twin(client, path, done)
    found = [urljoin(path, link) for link in page.links]
    return [_bare(link) for link in found if link.startswith("/") and not link.startswith("//")]


def _twin(client: httpx.Client, path: str, done: Crawled) -> None:
    """The data of a page."""
    parts = urlsplit(path)
    if "/part/" in parts.path or parts.path.endswith(("/turns", ".json")):
        return
    twin = ("/index" if parts.path == "/" else parts.path) + ".json" + (f"?{parts.query}" if parts.query else "")
    answer = client.get(twin, follow_redirects=True)
    done.twins += 1
    try:
        assert answer.status_code == 200, answer.status_code
        json.loads(answer.content)
    except (AssertionError, ValueError) as error:
        done.failures.append(f"twin {twin}: {error}")


def _bare(link: str) -> str:
    """A link without the part that no server sees."""
    return link.partition("#")[0]
