"""A session of fifty thousand entries scrolls like a short one."""

from __future__ import annotations

import time

import pytest
from tests.browser.long_session import ENTRIES, LONG
from tests.browser.paths import LONGEST
from tests.browser.probes import (
    is_filled,
    max_element_count,
    measure_jumps,
    scroll_position,
    scroll_to,
    wait_until_filled,
    watch_element_count,
)
from tests.browser.visitor import Visitor
from tests.profiles import scale_examples

MAX_ELEMENTS = 5_000


def test_the_session_is_long(visit: Visitor) -> None:
    """The transcript for these tests has fifty thousand entries, and its page has many sections."""
    (path,) = visit.server.home.glob(f"projects/*/{LONG}.jsonl")
    assert path.read_bytes().count(b"\n") >= scale_examples(ENTRIES)
    page = visit(LONGEST)
    page.wait_for_selector("main:not([data-partial])")
    assert page.locator(".section").count() > scale_examples(400)


def test_the_first_entry_loads_as_fast_as_a_small_page(visit: Visitor) -> None:
    """Once the server has read the session, its first entry loads in about the time of an almost empty page."""
    page = visit("/keys")

    def measure_seconds(path: str, selector: str) -> float:
        start = time.perf_counter()
        visit.go(page, path, wait="commit")
        page.wait_for_selector(selector)
        return time.perf_counter() - start

    measure_seconds(LONGEST, "article.item")
    small = min(measure_seconds("/keys", "main") for _ in range(3))
    assert min(measure_seconds(LONGEST, "article.item") for _ in range(3)) < 15 * small


def test_the_page_stays_small_while_it_is_scrolled(visit: Visitor) -> None:
    """By wheel, by keys, by the scroll bar, to the end and back: no frame has five thousand elements."""
    page = visit(LONGEST)
    page.wait_for_selector("main:not([data-partial])")
    watch_element_count(page)
    page.mouse.move(640, 500)
    for _ in range(40):
        page.mouse.wheel(0, 700)
        page.wait_for_timeout(15)
    assert scroll_position(page) > 10_000
    for _ in range(15):
        page.keyboard.press("PageDown")
        page.wait_for_timeout(15)
    for share in [*(number / 25 for number in range(26)), 0.5, 0.1, 0.9]:
        scroll_to(page, share)
        page.wait_for_timeout(25)
    wait_until_filled(page)
    page.keyboard.press("End")
    wait_until_filled(page)
    assert page.locator("article.item").last.is_visible()
    page.keyboard.press("Home")
    page.wait_for_function("() => document.querySelector('#s1 article')?.getBoundingClientRect().top > 0")
    assert scroll_position(page) == 0
    assert 0 < max_element_count(page) < MAX_ELEMENTS


@pytest.mark.parametrize(("place", "step"), [(0.4, -90), (0.97, -90), (0.6, 90)], ids=["up", "up-late", "down"])
def test_nothing_jumps_while_scrolling(visit: Visitor, place: float, step: int) -> None:
    """Scrolling frame by frame through new sections, no item moves by more than the scrolled distance."""
    page = visit(LONGEST)
    scroll_to(page, place)
    wait_until_filled(page)
    page.wait_for_timeout(300)
    frames = measure_jumps(page, step, 150)
    measured = [frame for frame in frames if frame["jump"] is not None]
    assert len(measured) > 0.9 * len(frames) > 50
    assert [frame for frame in measured if abs(frame["jump"]) > 2] == []


def test_the_page_fills_wherever_the_scroll_bar_is_dragged(visit: Visitor) -> None:
    """Dragged anywhere, the page fills there and stays filled."""
    page = visit(LONGEST)
    for share in (0.73, 0.21, 0.5, 1.0, 0.02):
        scroll_to(page, share)
        wait_until_filled(page)
        page.wait_for_timeout(200)
        assert is_filled(page)
