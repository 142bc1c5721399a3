"""Why a session cost this much, on its page."""

from __future__ import annotations

import re

from playwright.sync_api import expect
from tests.browser.reviewed_session import REVIEWED
from tests.browser.test_accessibility import violations
from tests.browser.visitor import Visitor

SESSION = f"/session/{REVIEWED}"


def test_the_cost_unfolds_in_the_header(visit: Visitor) -> None:
    """The fold shows a bar for each turn, and cache breaks with cause and amount. The URL says that it is open."""
    page = visit(SESSION)
    page.get_by_text("Why it cost this much").click()
    fold = page.locator(".folds details[data-open=cost]")
    expect(fold.locator(".cost-summary")).to_contain_text(re.compile(r"\d+ cache breaks?: .* for \$\d+\.\d\d \(\d+"))
    assert page.evaluate("scrollY") == 0
    assert fold.locator(".wide > svg.turn-costs a").count() >= 38
    row = fold.locator("section", has_text="Cache breaks").locator("tbody tr", has_text="idle")
    expect(row).to_contain_text(re.compile(r"turn 3\d.*\$0\.\d+"))
    expect(fold.locator("section", has_text="Most expensive requests").locator("tbody a")).to_have_count(5)
    page.wait_for_url("**open=cost**")
    assert violations(page) == []
    fold.get_by_text("Most expensive pieces").click()
    expect(fold.locator("table.causes, table.list").last.locator("tbody tr").first).to_be_visible()
    page.reload()
    expect(page.locator(".cost-summary")).to_be_visible()


def test_the_cost_works_without_scripts(visit: Visitor) -> None:
    """Without scripts, a link leads to the same content, whose bars lead to their turns."""
    page = visit(SESSION, javascript=False)
    page.get_by_text("Why it cost this much").click()
    page.locator(".folds").get_by_role("link", name="Open as page").first.click()
    expect(page.locator("h1")).to_have_text("Cost by turn")
    page.locator("details.twin summary").first.click()
    page.locator("details.twin tbody a").nth(20).click()
    expect(page.locator("h2.turn").first).to_be_visible()


def test_parts_of_a_request_add_up(visit: Visitor) -> None:
    """The requests and their parts add up to the amount in the header."""
    requests = visit.server.json(f"{SESSION}/cost.json")["requests"]
    total = float(visit.server.json(f"{SESSION}.json")["amount"])
    assert abs(sum(float(request["amount"]) for request in requests) - total) < 1e-9
    for request in requests:
        parts = sum(float(request[name]) for name in ("new", "rewrite", "read", "output"))
        assert abs(parts - float(request["amount"])) < 1e-9
    assert any(request["cause"] == "idle" and float(request["rewrite"]) > 0 for request in requests)


def test_the_panel_shows_what_fills_the_window(visit: Visitor) -> None:
    """`x` shows the composition of the context window at the current entry, within the panel's width."""
    page = visit(SESSION)
    page.keyboard.press("j")
    page.keyboard.press("x")
    panel = page.locator("aside.panel")
    expect(panel.locator("table tbody tr").first).to_be_visible()
    assert panel.locator(".scrollable").evaluate("box => box.scrollWidth <= box.clientWidth")
    assert violations(page) == []
