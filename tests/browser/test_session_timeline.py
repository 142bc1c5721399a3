"""The bar at the top of a session, its timeline, and the map beside the conversation."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect
from tests.browser.reviewed_session import REVIEWED
from tests.browser.test_accessibility import violations
from tests.browser.visitor import Visitor

SESSION = f"/session/{REVIEWED}"


def _anchor(visit: Visitor, number: int) -> str:
    rows = visit.server.json(f"{SESSION}.json")["turns_of"]
    return str(next(row["anchor"] for row in rows if row["number"] == number))


@pytest.mark.parametrize("width", [1400, 390])
def test_the_title_stays_visible_after_a_jump(visit: Visitor, width: int) -> None:
    """D5: on a deep link, the title, the turn and the cost so far are on the screen, above the entry."""
    anchor = _anchor(visit, 18)
    page = visit(f"{SESSION}?at={anchor}#{anchor}", width=width)
    bar = page.locator(".mini-head")
    expect(bar).to_be_in_viewport()
    expect(bar).to_contain_text("Shelves, reviewed")
    expect(bar).to_contain_text("turn 18 of 41")
    expect(bar).to_contain_text(re.compile(r"\$\d\.\d\d so far"))
    top = page.locator(f"article#{anchor}").evaluate("item => item.getBoundingClientRect().top")
    assert top >= bar.evaluate("bar => bar.getBoundingClientRect().bottom")
    assert page.evaluate("document.documentElement.scrollWidth") == width


def test_the_timeline_leads_to_its_places(visit: Visitor) -> None:
    """The timeline has turns, agents, failures, a commit, a compaction and idle time. Its shapes lead to entries."""
    anchor = _anchor(visit, 18)
    page = visit(f"{SESSION}?at={anchor}#{anchor}")
    page.locator(".mini-head summary").click()
    chart = page.locator(".wide > svg.timeline")
    expect(chart.locator(".turn-span")).to_have_count(41)
    expect(chart.locator(".agent-span")).to_have_count(1)
    expect(chart.locator(".idle")).to_have_count(1)
    for kind in ("failure", "commit", "compaction"):
        assert chart.locator(f".mark-{kind}").count() > 0, kind
    expect(page.locator(".timeline-view a", has=page.locator(".mark-commit")).first).to_contain_text("<script>alert(1)")
    assert violations(page) == []
    page.locator(".wide > svg.timeline a", has_text="Turn 30:").locator("rect").click()
    expect(page.locator(f"article#{_anchor(visit, 30)}")).to_be_in_viewport()
    page.wait_for_url("**open=timeline**")
    page.keyboard.press("Escape")
    expect(chart).to_be_hidden()


@pytest.mark.parametrize("width", [1400, 390])
def test_the_timelines_own_page_lists_the_turns(visit: Visitor, width: int) -> None:
    """Below the chart, each turn has a row that leads to it. The fold in the session's page has no such list."""
    page = visit(f"{SESSION}/timeline", width=width)
    rows = page.locator(".turns-list tbody tr")
    assert rows.filter(has_text=re.compile(r"\d+: ")).count() >= 41
    expect(rows.first.get_by_text(re.compile(r"\$\d"))).to_be_in_viewport()
    expect(page.locator("header.head")).to_contain_text("41 turns")
    assert page.evaluate("document.documentElement.scrollWidth") == width
    assert violations(page) == []
    rows.get_by_role("link", name=re.compile("^30: ")).click()
    expect(page.locator(f"article#{_anchor(visit, 30)}")).to_be_in_viewport()
    page.locator(".mini-head summary").click()
    expect(page.locator(".timeline-view")).to_be_visible()
    expect(page.locator(".turns-list")).to_have_count(0)
    page.locator(".timeline-view").get_by_role("link", name="List of turns").click()
    expect(rows.first).to_be_in_viewport()


def test_the_timeline_works_without_scripts(visit: Visitor) -> None:
    """Without scripts, the bar links to the timeline's own page."""
    page = visit(SESSION, javascript=False)
    page.locator(".mini-head summary").click()
    page.locator(".mini-head").get_by_role("link", name="Open as page").click()
    expect(page.locator(".wide > svg.timeline")).to_be_visible()
    expect(page.locator("h1")).to_have_text("Timeline")


def test_the_map_explains_itself(visit: Visitor) -> None:
    """The map has a legend, a card for the band under the pointer, and ticks for agents, commits and matches."""
    page = visit(SESSION)
    strip = page.locator("nav.usage-strip")
    for kind in ("agents", "commits", "failures", "compactions"):
        assert strip.locator(f".tick.{kind}").get_attribute("d"), kind
    box = strip.locator("svg").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 1, box["y"] + box["height"] / 2)
    expect(page.locator(".strip-card")).to_contain_text(re.compile(r"turn \d+, \d\d:\d\d: .* tokens in the window, \$"))
    strip.locator("summary").click()
    expect(strip.get_by_text("agent started")).to_be_visible()
    page.keyboard.press("/")
    page.keyboard.type("breathing")
    page.wait_for_function("() => (document.querySelector('.tick.matches').getAttribute('d') ?? '').length > 50")
    assert violations(page) == []
