"""Text that tries to run, request or hide something is only displayed (hostile.md 31 to 33)."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest
from playwright.sync_api import Page
from tests.browser import hostile
from tests.browser.probes import element_count, wait_for_frame
from tests.browser.visitor import Visitor
from tests.profiles import scale_examples

# Everything in the document that no page of ours has.
_STRANGE = """() => {
  const ours = one => one.src.startsWith(location.origin + '/assets/') || (one.type === 'application/json' && !one.src);
  const all = [...document.querySelectorAll('*')];
  const named = one => `${one.tagName} ${one.id} ${[...one.attributes].map(a => a.name).join(' ')}`;
  const leads = one => ['href', 'src', 'action', 'formaction', 'data', 'xlink:href', 'poster', 'srcset']
    .map(name => one.getAttribute(name)).filter(text => text !== null);
  const safe = text => /^([?#]|\\/(?!\\/)|https?:\\/\\/|mailto:)/i.test(text.trim()) || text === '';
  return {
    scripts: [...document.scripts].filter(one => !ours(one)).map(named),
    evil: all.filter(one => one.id === 'evil' || one.hasAttribute('evil')).map(named),
    handlers: all.filter(one => [...one.attributes].some(a => /^on/i.test(a.name))).map(named),
    embedded: [...document.querySelectorAll('iframe, object, embed, base, applet, meta[http-equiv], frame')].map(named),
    links: all.flatMap(leads).filter(text => !safe(text)),
    far: [...document.querySelectorAll('link, img, source, use, image, form, script')].flatMap(leads)
      .filter(text => /^(https?:)?\\/\\//i.test(text) && !text.startsWith(location.origin)),
  };
}"""
# Everything that a person can read or hear: texts, and attributes that are shown.
_READ = """() => document.documentElement.textContent + [...document.querySelectorAll('*')]
  .flatMap(one => ['title', 'alt', 'aria-label', 'placeholder'].map(name => one.getAttribute(name) || '')).join(' ')"""
NOTHING: dict[str, list[str]] = {"scripts": [], "evil": [], "handlers": [], "embedded": [], "links": [], "far": []}
_FIRST, _SECOND, *_OTHERS = hostile.sessions()
PAGES = (
    "/",
    "/sessions",
    "/search?q=evil",
    "/search?q=alert",
    "/usage",
    "/usage?by=model",
    "/calls",
    "/files",
    "/files/log?path=evil",
    "/why?since=all",
    "/why?since=all&by=file",
    "/why?since=all&by=session",
    "/waste?since=all&min=0",
    "/outcomes?since=all&kind=all",
    "/tools?since=all",
    "/tools?since=all&by=command",
    "/digest?unit=month",
    "/doctor",
    "/usage?by=session",
    "/usage?by=project",
    "/usage?by=tool",
    "/usage?by=branch&by=agent-type",
    "/calls?sort=duration",
    "/why?since=all&by=project",
    "/errors?since=all",
    "/blocks",
    "/history",
    "/palette?q=evil",
    "/files/blame?path=evil",
    f"/compare?a={_FIRST}&b={_SECOND}",
    f"/receipt?session={_FIRST}",
    "/calls?sort=outcome",
    "/sessions?only=agents",
    "/sessions?sort=title",
)
BELOW = (
    "agent/a1b2c3",
    "entry/L1",
    "state/L60",
    "why",
    "why?by=file",
    "why?by=turn",
    "waste?min=0",
    "outcomes",
    "cost",
    "timeline",
    "agents",
    "changes",
    "context/end",
    "along",
    "related",
    "todos",
    "notes",
    "share",
    "share?format=html&preview=1",
    "share?format=md&preview=1",
    "state/L60?against=L3",
    "why?by=agent",
)
"""Pages below that of a session."""


def foreign_content(page: Page) -> dict[str, Any]:
    """Everything in a page that came from a text, with all folds open."""
    page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
    wait_for_frame(page)
    content: dict[str, Any] = page.evaluate(_STRANGE)
    return content


@pytest.mark.parametrize(("session", "name"), hostile.sessions().items(), ids=hostile.MARKUP.keys())
def test_a_hostile_session_runs_nothing(visit_hostile: Visitor, session: str, name: str) -> None:
    """Nothing in texts, names, models, titles, paths, questions, diffs or pictures becomes part of the page."""
    page = visit_hostile(f"/session/{session}?thinking=full&calls=full&everything=1")
    assert foreign_content(page) == NOTHING
    assert page.locator("article.item").count() > 20, name
    for path in (f"/session/{session}/{below}" for below in BELOW):
        visit_hostile.go(page, path)
        assert foreign_content(page) == NOTHING, path


def overflow(page: Page) -> int:
    """By how many pixels a page is wider than its window."""
    return int(page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth"))


@pytest.mark.parametrize("path", PAGES)
def test_lists_of_hostile_sessions_run_nothing(visit_hostile: Visitor, path: str) -> None:
    """The same on every other page, which show titles, projects, models, branches, tools and files."""
    page = visit_hostile(path)
    assert foreign_content(page) == NOTHING
    assert len(page.locator("main").inner_text()) > 20
    page.set_viewport_size({"width": 390, "height": 844})
    assert overflow(page) <= 0


@pytest.mark.parametrize("path", PAGES)
def test_lists_of_hostile_sessions_are_readable_without_scripts(visit_hostile: Visitor, path: str) -> None:
    """The pages are readable without scripts, and the text is there as text."""
    page = visit_hostile(path, javascript=False)
    assert len(page.locator("main").inner_text()) > 20


def test_hostile_text_in_the_url_runs_nothing(visit_hostile: Visitor) -> None:
    """Text in a link is only text too: in a search, a filter and a find."""
    session = next(iter(hostile.sessions()))
    page = visit_hostile("/")
    for name in ("script", "quote", "attribute", "closing")[: scale_examples(4)]:
        text = quote(hostile.MARKUP[name], safe="")
        for path in (f"/search?q={text}", f"/sessions?project={text}", f"/session/{session}?find={text}"):
            answer = page.goto(visit_hostile.server.address + path)
            assert answer is not None
            assert answer.status in {200, 400, 404}
            assert foreign_content(page) == NOTHING, path
    visit_hostile.errors.messages = [
        message
        for message in visit_hostile.errors.messages
        if "status of 400" not in message and "status of 404" not in message
    ]


def test_truncates_lines_of_megabytes_with_a_link(visit_hostile: Visitor) -> None:
    """A text of five million characters is truncated and links to the complete one."""
    page = visit_hostile(f"/session/{hostile.LONGEST}")
    assert page.locator("a.more").count() >= 2
    assert len(page.content()) < 1_000_000
    page.keyboard.press("End")
    page.get_by_text("The end.", exact=True).wait_for()
    assert element_count(page) < 5_000


@pytest.mark.parametrize("name", ["quote", "closing", "attribute", "link", "ansi and bidi"])
def test_hostile_tags_and_notes_run_nothing(visit_hostile: Visitor, name: str) -> None:
    """Tags and notes are only text, wherever they are shown."""
    text = " ".join(hostile.MARKUP[name].replace("\x00", "").split())[:80]
    page = visit_hostile(f"/session/{_FIRST}/notes")
    page.locator("form [name=starred]").check()
    page.locator("form [name=tags]").fill(text[:40])
    page.locator("form [name=note]").fill(text)
    page.locator("form:has([name=note]) button").click()
    page.wait_for_load_state()
    assert foreign_content(page) == NOTHING
    for path in ("/", "/sessions", "/sessions?only=starred", f"/session/{_FIRST}", f"/session/{_FIRST}/notes"):
        visit_hostile.go(page, path)
        assert foreign_content(page) == NOTHING, path
        assert overflow(page) <= 0, path


@pytest.mark.parametrize("name", ["quote", "closing", "attribute", "link"])
def test_hostile_names_of_saved_searches_run_nothing(visit_hostile: Visitor, name: str) -> None:
    """The name of a saved search is only text on the search page, on the home page and in the palette."""
    text = " ".join(hostile.MARKUP[name].split())[:60]
    page = visit_hostile("/search?q=evil")
    page.get_by_text("Save this search").click()
    page.locator(".save-search [name=name]").fill(text)
    page.locator(".save-search button").click()
    page.wait_for_load_state()
    for path in ("/search", "/"):
        visit_hostile.go(page, path)
        assert text in page.locator(".saved").inner_text()
        assert foreign_content(page) == NOTHING, path
        assert overflow(page) <= 0, path
    page.keyboard.press("Control+k")
    page.wait_for_selector(".palette [role=option]")
    assert foreign_content(page) == NOTHING
    page.keyboard.press("Escape")
    page.locator(".saved button").first.click()  # other tests have none
    page.wait_for_load_state()


def test_shows_hidden_characters(visit_hostile: Visitor) -> None:
    """Control characters, bidi marks and tags are shown as escapes on every page."""
    session = {name: identity for identity, name in hostile.sessions().items()}["ansi and bidi"]
    visit_hostile.server.json("/why.json")  # until costs are attributed, pages show the progress, and then reload
    page = visit_hostile("/")
    sessions = [f"/session/{session}", *(f"/session/{session}/{below}" for below in BELOW)]
    for path in (*PAGES, *sessions):
        visit_hostile.go(page, path)
        text = page.evaluate(_READ)
        assert not {char for char in "\x1b\x9b\u202e\u2066\u200b\u2028\x07\x08\U000e0069" if char in text}, path
    visit_hostile.go(page, f"/session/{session}/entry/L1")
    assert "\\u202e" in page.evaluate(_READ)
