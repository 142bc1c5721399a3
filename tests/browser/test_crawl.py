"""Every link of every page works, and every page has a JSON version."""

from __future__ import annotations

import pytest
from tests.browser import hostile
from tests.browser.crawler import crawl
from tests.browser.homes import SHORT
from tests.browser.server import Server


def test_every_link_works(server: Server) -> None:
    """From the home page on, each link gives 200, each page is well-formed, and each JSON version is valid."""
    with server.client() as client:
        result = crawl(client, ["/", "/keys"])
    assert result.failures == []
    assert {"/", "/sessions", "/search", "/usage", "/calls", "/files", "/doctor", "/keys"} <= set(result.pages)
    assert {"/session/ID", "/session/ID/agent/AGENT", "/session/ID/entry/…", "/session/ID/call/…"} <= set(result.pages)
    assert result.pages["/session/ID"] > 20


def test_every_link_of_one_session_works(server: Server) -> None:
    """In a short session all links are followed, whatever they change about the view."""
    with server.client() as client:
        result = crawl(client, [f"/session/{SHORT}"], alike=0, names=0, all_of=_is_short)
    assert result.failures == []
    assert sum(result.pages.values()) > 20


def _is_short(path: str) -> bool:
    """Whether a page belongs to the short session and changes at most one thing about the view."""
    return path.startswith(f"/session/{SHORT}") and path.count("=") <= 1


@pytest.mark.slow
def test_every_link_of_hostile_sessions_works(hostile_server: Server) -> None:
    """Ids, names and paths full of markup, quotes and control characters give working links."""
    with hostile_server.client() as client:
        result = crawl(client, ["/", *(f"/session/{session}" for session in hostile.sessions())])
    # An id with a slash, which no client writes, has no page.
    assert [failure for failure in result.failures if "%2F" not in failure.partition("?")[0]] == []
    assert result.pages["/session/ID"] > len(hostile.MARKUP)
