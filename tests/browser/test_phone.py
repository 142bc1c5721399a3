"""On a phone, pages are reached by labelled links, and what matters is on the screen."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect
from tests.browser import homes
from tests.browser.conftest import visiting
from tests.browser.server import Server, start_server
from tests.browser.visitor import Visitor
from tests.transcripts import Pen, call, meta, prompt, reply, transcript, write
from tools import demo

_WIDTH, _HEIGHT = 390, 844
_CUT_OFF = """cells => cells.filter(cell => cell.offsetParent !== null)
  .filter(cell => cell.getBoundingClientRect().right > innerWidth + 1).length"""


_LONG_WORD = "a_word_that_has_no_place_to_break_" * 4
_LONG_TOOL = "mcp__a_server_whose_name_is_as_long_as_names_get__" + "a_tool_with_a_long_name" * 2


@pytest.fixture(scope="module")
def server_with_long_words(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server on a home that no other test changes. Its newest session has words wider than the screen everywhere."""
    home = tmp_path_factory.mktemp("long-words") / "home"
    demo.write(home, megabytes=0.5)
    session = "50000000-0000-4000-8000-000000000009"
    path = f"/work/{_LONG_WORD}/{_LONG_WORD}.py"
    rows = transcript(
        meta("custom-title", customTitle=_LONG_WORD),
        prompt(_LONG_WORD),
        *(call(_LONG_TOOL, {"query": _LONG_WORD}, result=_LONG_WORD, error=True) for _ in range(40)),
        call("Bash", f"./{_LONG_WORD}.sh", result=_LONG_WORD, details={"stdout": _LONG_WORD, "stderr": ""}),
        call("Bash", f"./{_LONG_WORD}.sh --again", result=f"Exit code 1\n{_LONG_WORD}", error=True),
        call("Write", {"file_path": path, "content": _LONG_WORD}, result="File created"),
        call("Read", path, result=_LONG_WORD),
        reply(_LONG_WORD, message={"model": f"claude-{_LONG_WORD}"}),
        prompt("Thank you"),
        reply("You are welcome."),
        pen=Pen(session),
    )
    write(home / "projects" / f"-work-{_LONG_WORD[:60]}" / f"{session}.jsonl", *rows)
    with start_server(home, tmp_path_factory.mktemp("long-words-cache")) as server:
        yield server


@pytest.fixture
def visit_long_words(browser: Browser, server_with_long_words: Server) -> Iterator[Visitor]:
    """Opens pages of the home with long words."""
    yield from visiting(browser, server_with_long_words)


def _open(visit: Visitor, path: str) -> Page:
    return visit(path, width=_WIDTH, height=_HEIGHT)


@pytest.mark.smoke
def test_the_bar_at_the_bottom_has_labels(visit: Visitor) -> None:
    """Four pages and a menu have visible words. The current page is marked. The search box is on the screen."""
    page = _open(visit, "/sessions")
    pages = page.get_by_role("navigation", name="Pages")
    for label in ("Sessions", "Search", "Usage", "Insight", "More"):
        expect(pages.get_by_text(label, exact=True)).to_be_in_viewport()
    assert pages.get_by_role("link", name="Sessions").get_attribute("aria-current") == "page"
    box = pages.bounding_box()
    assert box is not None
    assert box["y"] + box["height"] == _HEIGHT
    expect(page.get_by_role("searchbox", name="Search all sessions")).to_be_in_viewport()


@pytest.mark.parametrize("javascript", [True, False])
def test_the_menu_has_the_other_pages(visit: Visitor, javascript: bool) -> None:
    """More opens the rest of the pages, also without scripts."""
    page = visit("/usage", width=_WIDTH, height=_HEIGHT, javascript=javascript)
    pages = page.get_by_role("navigation", name="Pages")
    expect(pages.get_by_role("link", name="Calls")).to_be_hidden()
    pages.get_by_text("More").click()
    for label in ("Calls", "Files", "Doctor", "Errors", "Prompt history", "Five-hour windows", "Time zone", "Access"):
        expect(pages.get_by_role("link", name=label)).to_be_in_viewport()
    pages.get_by_role("link", name="Files").click()
    page.wait_for_url("**/files")


@pytest.mark.parametrize(("path", "label"), [("/history", "Search"), ("/blocks", "Usage"), ("/access", "More")])
def test_the_bar_marks_one_page(visit: Visitor, path: str, label: str) -> None:
    """The menu is marked only on its own pages: one that belongs to another page marks that page."""
    page = _open(visit, path)
    colours = page.locator(".top nav > ul > li:not(.wide-only) > :is(a, details > summary), .top nav summary")
    looks = dict(
        zip(
            colours.all_text_contents(),
            colours.evaluate_all("all => all.map(one => getComputedStyle(one).color)"),
            strict=True,
        )
    )
    assert [name for name, colour in looks.items() if list(looks.values()).count(colour) == 1] == [label]


@pytest.mark.parametrize(
    "path",
    [
        "/sessions",
        "/usage",
        "/calls",
        "/files",
        "/errors?since=all",
        "/tools?since=all",
        "/blocks",
        "/outcomes?since=all&kind=all",
        "/waste?since=all&min=0",
    ],
)
def test_amounts_and_outcomes_are_on_the_screen(visit_long_words: Visitor, path: str) -> None:
    """No cell of a list is cut off at the right edge: columns that do not fit are left out, not amounts.

    Names and commands wider than the screen are broken, and the page does not scroll sideways.
    """
    page = _open(visit_long_words, path)
    cells = page.locator(".list tbody :is(td, th)")
    expect(cells.filter(visible=True).first).to_be_visible(timeout=20_000)  # tools are counted in the background first
    assert cells.evaluate_all(_CUT_OFF) == 0
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0


def test_failure_rates_by_tool_fit_on_the_screen(visit_long_words: Visitor) -> None:
    """The table above the calls fits when it is unfolded. It is there once the tools have been counted."""
    visit_long_words.server.get("/waste?since=all")
    page = _open(visit_long_words, "/calls")
    title = page.get_by_text("Failure rates and durations by tool")
    deadline = time.monotonic() + 20
    while title.count() == 0 and time.monotonic() < deadline:
        page.wait_for_timeout(500)
        page.reload()
    title.click()
    cells = page.locator("details[open] .list tbody :is(td, th)")
    expect(cells.filter(has_text=_LONG_TOOL[:30])).to_be_visible()
    assert cells.evaluate_all(_CUT_OFF) == 0
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0


def test_the_bar_covers_no_text(visit: Visitor) -> None:
    """At the end of a page, the last line is above the bar."""
    page = _open(visit, f"/session/{homes.SHORT}")
    page.keyboard.press("End")
    page.wait_for_timeout(300)
    bottom = page.locator("main").evaluate("main => main.getBoundingClientRect().bottom")
    top = page.get_by_role("navigation", name="Pages").evaluate("bar => bar.getBoundingClientRect().top")
    assert bottom <= top + 1


def test_only_a_tap_shows_the_buttons_of_an_entry(visit: Visitor) -> None:
    """They would cover the text that a link leads to. A second tap hides them, and a link works as always."""
    page = visit.profile(viewport={"width": _WIDTH, "height": _HEIGHT}, has_touch=True, is_mobile=True).new_page()
    visit.go(page, f"/session/{homes.SHORT}")
    entry, other = page.locator("article.reply").first, page.locator("article.prompt").first
    visit.go(page, f"/session/{homes.SHORT}?at={entry.get_attribute('id')}#{entry.get_attribute('id')}")
    expect(page.locator("article.current")).to_be_in_viewport()
    buttons = page.locator(".item-buttons")
    expect(buttons).to_have_count(0)
    for item, number in ((entry, 1), (entry, 0), (other, 1), (entry, 1)):
        item.tap()
        expect(item.locator(".item-buttons")).to_have_count(number)
        expect(buttons).to_have_count(number)
    buttons.get_by_role("button").first.tap()
    expect(page.locator(".status")).to_contain_text("copied")


@pytest.mark.parametrize("javascript", [True, False])
def test_filters_fold(visit: Visitor, javascript: bool) -> None:
    """Two filters are shown, inside the screen; More filters shows the rest. On a desktop all are shown."""
    page = visit("/sessions", width=_WIDTH, height=_HEIGHT, javascript=javascript)
    fields = page.locator("form.filters > label")
    number = fields.count()
    assert fields.filter(visible=True).count() == 2
    page.get_by_text("More filters").click()
    assert fields.filter(visible=True).count() == number
    assert fields.evaluate_all(_CUT_OFF) == 0
    page.set_viewport_size({"width": 1280, "height": 900})
    expect(page.get_by_text("More filters")).to_be_hidden()
    page.reload()
    assert fields.filter(visible=True).count() == number


def test_turns_fold(visit: Visitor) -> None:
    """The conversation begins on the first screen: the list of turns is folded, and opens with a tap."""
    page = _open(visit, f"/session/{homes.SHORT}")
    expect(page.locator("article.item").first).to_be_in_viewport()
    expect(page.locator(".side .turns")).to_be_hidden()
    page.get_by_text("Turns and sessions").click()
    expect(page.locator(".side .turns")).to_be_visible()


@pytest.mark.parametrize("path", ["/", "/usage?since=all", f"/compare?a={homes.SHORT}&b={homes.PICTURES}"])
def test_charts_have_a_size_for_the_screen(visit: Visitor, path: str) -> None:
    """One drawing of each chart is shown, and its labels are at least 9 px high, on a phone and on a desktop."""
    page = _open(visit, path)
    for width in (_WIDTH, 1280):
        page.set_viewport_size({"width": width, "height": _HEIGHT})
        charts = page.locator(".chart:is(.wide, .narrow) > svg")
        assert charts.filter(visible=True).count() * 2 == charts.count() > 0
        heights = page.locator(".chart:is(.wide, .narrow) text").evaluate_all(
            "texts => texts.map(text => text.getBoundingClientRect().height).filter(height => height > 0)"
        )
        assert heights
        assert min(heights) >= 9
