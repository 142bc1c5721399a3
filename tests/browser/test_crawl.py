"""Every link of every page leads somewhere, and every page has a twin for programs."""

from __future__ import annotations

import pytest
from tests.browser import hostile
from tests.browser.crawling import crawl
from tests.browser.homes import SHORT
from tests.browser.serving import Served


def test_every_link_answers(served: Served) -> None:
    """From the home page on, each link gives 200, each page is well-formed, and each twin is JSON."""
    with served.client() as client:
        done = crawl(client, ["/", "/keys"])
    assert done.failures == []
    assert {"/", "/sessions", "/search", "/usage", "/calls", "/files", "/doctor", "/keys"} <= set(done.pages)
    assert {"/session/ID", "/session/ID/agent/AGENT", "/session/ID/entry/…", "/session/ID/call/…"} <= set(done.pages)
    assert done.pages["/session/ID"] > 20


def test_every_link_of_one_session_answers(served: Served) -> None:
    """In a short session all of them are followed, whatever they change about the view."""
    with served.client() as client:
        done = crawl(client, [f"/session/{SHORT}"], alike=0, names=0, all_of=_is_short)
    assert done.failures == []
    assert sum(done.pages.values()) > 20


def _is_short(path: str) -> bool:
    """Whether a page is of the short session, and changes no more than one thing about the view."""
    return path.startswith(f"/session/{SHORT}") and path.count("=") <= 1


@pytest.mark.slow
def test_every_link_of_hostile_sessions_answers(hostile_served: Served) -> None:
    """Ids, names and paths full of markup, quotes and controls make links that lead where they say."""
    with hostile_served.client() as client:
        done = crawl(client, ["/", *(f"/session/{session}" for session in hostile.sessions())])
    # An id with a slash in it, which no client writes, has no page of its own.
    assert [failure for failure in done.failures if "%2F" not in failure.partition("?")[0]] == []
    assert done.pages["/session/ID"] > len(hostile.MARKUP)
