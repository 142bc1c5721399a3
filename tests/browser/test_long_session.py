"""A session of fifty thousand entries scrolls like a short one."""

from __future__ import annotations

import time

import pytest
from tests.browser.long_session import ENTRIES, LONG
from tests.browser.paths import LONGEST
from tests.browser.probes import (
    count_elements,
    filled,
    is_filled,
    jumps,
    most_elements,
    scroll_to,
    scrolled,
)
from tests.browser.visiting import Visitor
from tests.profiles import scale_examples

MOST = 5_000


def test_the_session_is_long(visit: Visitor) -> None:
    """The transcript that these tests are about has fifty thousand entries, and its page has many sections."""
    (path,) = visit.served.home.glob(f"projects/*/{LONG}.jsonl")
    assert path.read_bytes().count(b"\n") >= scale_examples(ENTRIES)
    page = visit(LONGEST)
    page.wait_for_selector("main:not([data-partial])")
    assert page.locator(".section").count() > 100


def test_the_first_entry_comes_as_soon_as_any_page(visit: Visitor) -> None:
    """Once the server has read it, its first entry is there in about the time that an almost empty page takes."""
    page = visit("/keys")

    def taken(path: str, wanted: str) -> float:
        start = time.perf_counter()
        visit.go(page, path, wait="commit")
        page.wait_for_selector(wanted)
        return time.perf_counter() - start

    taken(LONGEST, "article.item")
    small = min(taken("/keys", "main") for _ in range(3))
    assert min(taken(LONGEST, "article.item") for _ in range(3)) < 15 * small


def test_the_page_stays_small_while_it_is_scrolled(visit: Visitor) -> None:
    """By wheel, by keys, by the scroll bar, to the end and back: no frame has five thousand elements."""
    page = visit(LONGEST)
    page.wait_for_selector("main:not([data-partial])")
    count_elements(page)
    page.mouse.move(640, 500)
    for _ in range(40):
        page.mouse.wheel(0, 700)
        page.wait_for_timeout(15)
    assert scrolled(page) > 10_000
    for _ in range(15):
        page.keyboard.press("PageDown")
        page.wait_for_timeout(15)
    for share in [*(number / 25 for number in range(26)), 0.5, 0.1, 0.9]:
        scroll_to(page, share)
        page.wait_for_timeout(25)
    filled(page)
    page.keyboard.press("End")
    filled(page)
    assert page.locator("article.item").last.is_visible()
    page.keyboard.press("Home")
    page.wait_for_function("() => document.querySelector('#s1 article')?.getBoundingClientRect().top > 0")
    assert scrolled(page) == 0
    assert 0 < most_elements(page) < MOST


@pytest.mark.parametrize(("place", "step"), [(0.4, -90), (0.97, -90), (0.6, 90)], ids=["up", "up-late", "down"])
def test_nothing_jumps_while_scrolling(visit: Visitor, place: float, step: int) -> None:
    """Scrolled frame by frame through parts never seen before, no item moves by more than it is scrolled."""
    page = visit(LONGEST)
    scroll_to(page, place)
    filled(page)
    page.wait_for_timeout(300)
    seen = jumps(page, step, 150)
    moved = [one for one in seen if one["jump"] is not None]
    assert len(moved) > 0.9 * len(seen) > 50
    assert [one for one in moved if abs(one["jump"]) > 2] == []


def test_wherever_the_bar_is_dragged_there_are_entries(visit: Visitor) -> None:
    """Dragged anywhere, the page fills there, and what is seen then stays."""
    page = visit(LONGEST)
    for share in (0.73, 0.21, 0.5, 1.0, 0.02):
        scroll_to(page, share)
        filled(page)
        page.wait_for_timeout(200)
        assert is_filled(page)
