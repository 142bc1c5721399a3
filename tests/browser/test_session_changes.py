"""Agents below their calls, and what a session changed."""

from __future__ import annotations

from playwright.sync_api import expect
from tests.browser.reviewed_session import AGENT, FILE, REVIEWED
from tests.browser.test_accessibility import violations
from tests.browser.visitor import Visitor

SESSION = f"/session/{REVIEWED}"


def test_an_agent_unfolds_below_its_call(visit: Visitor) -> None:
    """The entries of a long agent are loaded when it is unfolded, without leaving the conversation."""
    page = visit(SESSION)
    agent = page.locator(f"div.agent[data-agent='{AGENT}']")
    expect(agent.locator("article")).to_have_count(0)
    agent.locator("summary").first.click()
    expect(agent.locator("article").last).to_contain_text("There are twenty-five shelves.")
    assert page.url.endswith(SESSION)
    assert violations(page) == []


def test_an_agent_is_linked_without_scripts(visit: Visitor) -> None:
    """Without scripts, the fold has a link to the agent's page."""
    page = visit(SESSION, javascript=False)
    agent = page.locator(f"div.agent[data-agent='{AGENT}']")
    agent.locator("summary").click()
    agent.get_by_role("link", name="entries").click()
    expect(page.locator(".feed")).to_contain_text("There are twenty-five shelves.")


def test_the_changes_of_a_session_are_a_patch(visit: Visitor) -> None:
    """The page shows the difference of each file, and copies all of them as a patch that git accepts."""
    page = visit(f"{SESSION}/changes")
    expect(page.locator("h2")).to_have_text(FILE)
    expect(page.locator(".lines > .del")).to_contain_text("shelf_1 = 1")
    expect(page.locator(".lines > .add")).to_contain_text("shelf_39 = 1")
    assert violations(page) == []
    page.get_by_role("link", name="Copy as patch").click()
    expect(page.get_by_role("status")).to_contain_text("Patch copied")
    patch = page.evaluate("navigator.clipboard.readText()")
    assert patch.startswith("--- a/work/app/shelf.py\n+++ b/work/app/shelf.py\n@@ -1 +1 @@\n")
    edits = visit.server.get(f"/files/log?path={FILE}&session={REVIEWED}&patch=1&limit=100").text
    assert edits.count("@@") == 2 * 38
