"""The defects of sessions, files and states that a review of the page found. Each test names one of them."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect
from tests.browser.long_session import LONG
from tests.browser.reviewed_session import ABANDONED, FILE, REVIEWED
from tests.browser.visitor import Visitor

SESSION = f"/session/{REVIEWED}"
_MARKED_TEXT = "() => [...(CSS.highlights.get('match') ?? [])].map(range => range.toString().toLowerCase())"


def _find(page: Page, words: str, key: str = "/") -> None:
    page.keyboard.press(key)
    page.keyboard.type(words)
    page.keyboard.press("Enter")


def _anchor_of_turn(visit: Visitor, number: int) -> str:
    rows = visit.server.json(f"{SESSION}.json")["turns_of"]
    return str(next(row["anchor"] for row in rows if row["number"] == number))


@pytest.mark.smoke
def test_enter_goes_to_the_next_match(visit: Visitor) -> None:
    """D1: each Enter goes to the next match, Shift-Enter to the one before it. `o` still unfolds."""
    page = visit(SESSION)
    _find(page, "breathing")
    count = page.locator("form.find output")
    expect(count).to_contain_text("1 of ")
    page.keyboard.press("Enter")
    expect(count).to_contain_text("2 of ")
    page.keyboard.press("Enter")
    expect(count).to_contain_text("3 of ")
    page.keyboard.press("Shift+Enter")
    expect(count).to_contain_text("2 of ")
    expect(page.locator("article.current")).to_be_in_viewport()


def test_find_begins_at_the_reader(visit: Visitor) -> None:
    """D2: the first match is the next one from the current entry on, not one before it."""
    anchor = _anchor_of_turn(visit, 18)
    page = visit(f"{SESSION}?at={anchor}#{anchor}")
    expect(page.locator(f"article#{anchor}")).to_be_in_viewport()
    _find(page, "breathing")
    expect(page.locator("form.find output")).to_contain_text(" of ")
    expect(page.locator("article.current")).to_contain_text("Shelf 18 is sorted")


def test_control_f_finds_in_the_whole_session(visit: Visitor) -> None:
    """D3: Ctrl-F opens the find box of the page. Pressed again, it is left to the browser."""
    page = visit(SESSION)
    page.evaluate("addEventListener('keydown', event => { window.prevented = event.defaultPrevented; })")
    _find(page, "breathing", "Control+f")
    expect(page.locator("form.find output")).to_contain_text("1 of ")
    assert page.evaluate("window.prevented") is not None
    page.locator("form.find input").focus()
    page.keyboard.press("Control+f")
    assert page.evaluate("window.prevented") is False


def test_search_terms_are_highlighted_on_arrival(visit: Visitor) -> None:
    """D4: the entry that a search hit leads to has its words highlighted, until Escape."""
    page = visit(f"/search?q=sorted+breathing+session:{REVIEWED}&every=1")
    page.locator("main li h2 a").first.click()
    page.wait_for_function(f"() => ({_MARKED_TEXT})().length > 1")
    assert {"breathing", "sorted"} == set(page.evaluate(f"({_MARKED_TEXT})()"))
    page.keyboard.press("Escape")
    assert page.evaluate("CSS.highlights.size") == 0
    assert "mark=" not in page.url


def test_combined_filters_show_counts(visit: Visitor) -> None:
    """D9: Focus and Errors together say how many errors there are."""
    page = visit(f"{SESSION}?errors=1")
    shown = page.locator(".feed").get_by_role("article").count()
    expect(page.locator("nav.filters .count")).to_have_text(re.compile(rf"{shown} of \d\d+ entries"))
    page.keyboard.press("f")
    page.wait_for_url("**focus=1**")
    expect(page.locator("nav.filters .count")).to_have_text(re.compile(rf"\d+ of {shown} errors, \d+ of \d+ prompts"))


def test_a_branch_opens_at_its_fork(visit: Visitor) -> None:
    """D10: `b` leads to the fork, and from the last branch back to the same place of the conversation."""
    page = visit(SESSION)
    page.keyboard.press("b")
    page.wait_for_url("**branch=1**")
    expect(page.get_by_role("article").filter(has_text=ABANDONED).first).to_be_in_viewport()
    assert page.evaluate("scrollY") > 1000
    page.keyboard.press("b")
    page.wait_for_url(lambda url: "branch=" not in url)
    expect(page.get_by_role("article").filter(has_text="Rewound here").first).to_be_in_viewport()


@pytest.mark.parametrize("width", [1400, 1000, 390])
def test_buttons_of_an_entry_cover_no_figures(visit: Visitor, width: int) -> None:
    """D12: the bar of buttons covers no context and cost figures."""
    page = visit(SESSION, width=width)
    calls = page.locator("article.call:has(.figure)")
    for at in range(1, 4):
        calls.nth(at).hover(position={"x": 100, "y": 10})
        page.wait_for_selector(".item-buttons")
        overlaps = page.evaluate("""() => {
          const bar = document.querySelector('.item-buttons').getBoundingClientRect();
          return [...document.querySelectorAll('.figure')].map(figure => figure.getBoundingClientRect())
            .filter(box => box.width > 0 && box.left < bar.right && bar.left < box.right
              && box.top < bar.bottom && bar.top < box.bottom).length;
        }""")
        assert overlaps == 0, at


def test_prompts_of_the_desktop_app_are_prompts(visit: Visitor) -> None:
    """D6: a prompt that a person typed in the desktop app is drawn like any other, in a filled box."""
    page = visit(SESSION)
    colours = [
        page.locator("article.prompt .words").nth(at).evaluate("box => getComputedStyle(box).backgroundColor")
        for at in (0, 1)
    ]
    assert colours[0] == colours[1]


def test_the_header_counts_agents_without_a_transcript(visit: Visitor) -> None:
    """D7: the header counts every agent that was started, and leads to a table of them."""
    page = visit(SESSION)
    page.locator(".head").get_by_role("link", name="2 agents, 1 transcript").click()
    rows = page.locator("table.agents tbody tr")
    expect(rows).to_have_count(2)
    expect(rows.filter(has_text="plan the shelves")).to_contain_text("transcript missing")
    expect(rows.filter(has_text="count <b>shelves</b>")).to_contain_text("twenty-five shelves")


def test_the_page_of_a_file_names_it_once(visit: Visitor) -> None:
    """D13: headings of the history look alike, and the path is not repeated in each row."""
    page = visit(f"/files?path={FILE}")
    heads = page.locator("section.block th[scope=col]")
    colours = {heads.nth(at).evaluate("cell => getComputedStyle(cell).color") for at in range(heads.count())}
    assert len(colours) == 1
    assert page.locator("table.files tbody").get_by_text("shelf.py").count() == 0


def test_files_of_a_state_look_alike(visit: Visitor) -> None:
    """D14: every file of a state is a fold with the same marks, whose content is loaded when it is opened."""
    page = visit(f"/session/{LONG}/state/end", wait="domcontentloaded")
    files = page.locator(".state > section.files")
    assert files.locator("> details.file").count() > 12
    assert files.locator("> ul").count() == 0
    last = files.locator("> details.file").last
    last.locator("summary").click()
    expect(last.locator("p.facts").first).to_be_visible()


def test_states_are_compared_by_turn(visit: Visitor) -> None:
    """D17: `5` and `turn 5` name the end of a turn. Anything else is explained beside the form."""
    page = visit(f"{SESSION}/state/end")
    page.get_by_label("Compare with turn").fill("turn 5")
    page.get_by_role("button", name="Compare").click()
    expect(page.locator(".compared .lines > .del").first).to_contain_text("shelf_5")
    page.get_by_label("Compare with turn").fill("5000")
    page.get_by_role("button", name="Compare").click()
    expect(page.get_by_role("alert")).to_contain_text("No turn 5000")
    expect(page.get_by_label("Compare with turn")).to_have_value("5000")


def test_the_table_of_costs_has_every_turn(visit: Visitor) -> None:
    """D18: a turn without a reply has a row, and amounts are in cents, as in the header."""
    page = visit(f"{SESSION}/along")
    turns = len(visit.server.json(f"{SESSION}.json")["turns_of"])
    rows = page.locator("main tbody tr")
    expect(rows.filter(has_text="no reply")).to_have_count(1)
    labels = rows.locator("th").all_text_contents()
    assert [str(number) for number in range(1, turns + 1)] == [label for label in labels if label.isdecimal()]
    assert all(re.fullmatch(r"\$\d+\.\d\d", text) for text in page.locator("tfoot td:last-child").all_text_contents())
