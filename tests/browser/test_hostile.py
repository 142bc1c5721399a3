"""Text that wants to run something, call somebody or hide something does nothing but be read (hostile.md 31 to 33)."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest
from playwright.sync_api import Page
from tests.browser import hostile
from tests.browser.probes import elements, settled
from tests.browser.visiting import Visitor
from tests.profiles import scale_examples

# What is in the document that no page of ours has.
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
# What a person can read or hear of it: texts, and attributes that are shown.
_READ = """() => document.documentElement.textContent + [...document.querySelectorAll('*')]
  .flatMap(one => ['title', 'alt', 'aria-label', 'placeholder'].map(name => one.getAttribute(name) || '')).join(' ')"""
NOTHING: dict[str, list[str]] = {"scripts": [], "evil": [], "handlers": [], "embedded": [], "links": [], "far": []}
PAGES = (
    "/",
    "/sessions",
    "/search?q=evil",
    "/search?q=alert",
    "/usage",
    "/usage?by=model",
    "/calls",
    "/files",
    "/doctor",
)


def strange(page: Page) -> dict[str, Any]:
    """What a page has that came from a text, all that is folded opened."""
    page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
    settled(page)
    found: dict[str, Any] = page.evaluate(_STRANGE)
    return found


@pytest.mark.parametrize(("session", "name"), hostile.sessions().items(), ids=hostile.MARKUP.keys())
def test_a_hostile_session_runs_nothing(visit_hostile: Visitor, session: str, name: str) -> None:
    """In texts, names, models, titles, paths, questions, diffs, pictures: nothing of it becomes part of the page."""
    page = visit_hostile(f"/session/{session}?thinking=full&calls=full&everything=1")
    assert strange(page) == NOTHING
    assert page.locator("article.item").count() > 20, name
    for path in (f"/session/{session}/agent/a1b2c3", f"/session/{session}/entry/L1", f"/session/{session}/state/L60"):
        visit_hostile.go(page, path)
        assert strange(page) == NOTHING, path


@pytest.mark.parametrize("path", PAGES)
def test_lists_of_hostile_sessions_run_nothing(visit_hostile: Visitor, path: str) -> None:
    """The same on every other page, which show titles, projects, models, branches, tools and files."""
    page = visit_hostile(path)
    assert strange(page) == NOTHING
    assert len(page.locator("main").inner_text()) > 20


@pytest.mark.parametrize("path", PAGES)
def test_lists_of_hostile_sessions_are_readable_without_scripts(visit_hostile: Visitor, path: str) -> None:
    """Readable as well where scripts are off, and the text is there as text."""
    page = visit_hostile(path, javascript=False)
    assert len(page.locator("main").inner_text()) > 20


@pytest.mark.smoke
def test_hostile_text_in_the_address_runs_nothing(visit_hostile: Visitor) -> None:
    """What somebody put into a link is text, too: in a search, a filter, a find."""
    session = next(iter(hostile.sessions()))
    page = visit_hostile("/")
    for name in ("script", "quote", "attribute", "closing")[: scale_examples(4)]:
        text = quote(hostile.MARKUP[name], safe="")
        for path in (f"/search?q={text}", f"/sessions?project={text}", f"/session/{session}?find={text}"):
            answer = page.goto(visit_hostile.served.address + path)
            assert answer is not None
            assert answer.status in {200, 400, 404}
            assert strange(page) == NOTHING, path
    visit_hostile.watched.complaints = [
        complaint
        for complaint in visit_hostile.watched.complaints
        if "status of 400" not in complaint and "status of 404" not in complaint
    ]


def test_lines_of_megabytes_are_cut_and_lead_on(visit_hostile: Visitor) -> None:
    """A text of five million characters does not stop the page: it is cut, and leads to where it is whole."""
    page = visit_hostile(f"/session/{hostile.LONGEST}")
    assert page.locator("a.more").count() >= 2
    assert len(page.content()) < 1_000_000
    page.keyboard.press("End")
    page.get_by_text("The end.", exact=True).wait_for()
    assert elements(page) < 5_000


def test_hidden_characters_are_seen(visit_hostile: Visitor) -> None:
    """Controls, bidi marks and tags are shown by no page as they are: they are told by their numbers."""
    session = {name: one for one, name in hostile.sessions().items()}["ansi and bidi"]
    page = visit_hostile("/")
    for path in ("/", "/sessions", "/calls", f"/session/{session}", f"/session/{session}/entry/L1"):
        visit_hostile.go(page, path)
        text = page.evaluate(_READ)
        assert not {one for one in "\x1b\x9b\u202e\u2066\u200b\u2028\x07\x08\U000e0069" if one in text}, path
        assert "\\u202e" in text or "/session/" not in path, path
