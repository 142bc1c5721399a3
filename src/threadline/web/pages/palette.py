"""The command palette: sessions, pages, turns, entries, saved searches and actions that match a text."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING

from msgspec import Struct

from threadline import lake as lakes
from threadline.errors import BadQuery, NotFound
from threadline.model.text import format_time
from threadline.render import shorten
from threadline.render.html import el, join
from threadline.web import urls
from threadline.web.pages.annotations import read_or_none
from threadline.web.pages.search import matching_words
from threadline.web.pages.sessions import all_sessions, names_session
from threadline.web.request import Page

if TYPE_CHECKING:
    from threadline.index import SessionBrief
    from threadline.web.request import PageRequest

_MAX_PALETTE_SESSIONS, _MAX_RECENT, _MAX_TURNS, _MAX_HITS = 24, 8, 8, 6
_MIN_SEARCHED = 3
_PALETTE_ACTIONS = (
    ("Copy link to this page", "copy-link", False),
    ("Change the theme", "theme", False),
    ("Star this session", "star", True),
    ("Expand all thinking", "thinking", True),
    ("Expand all calls", "calls", True),
    ("Show only errors", "errors", True),
    ("Show only prompts and replies", "focus", True),
    ("Find in this session", "find", True),
)
"""Actions of the scripts: title, name, and whether a session must be open."""
_PALETTE_PAGES: tuple[tuple[str, str, dict[str, str]], ...] = (
    ("Home", urls.HOME, {}),
    ("Sessions", urls.SESSIONS, {}),
    ("Search", urls.SEARCH, {}),
    ("Usage", urls.USAGE, {}),
    ("Usage by model", urls.USAGE, {"by": "model"}),
    ("Usage by project", urls.USAGE, {"by": "project"}),
    ("Why it cost this much", urls.WHY, {}),
    ("Avoidable costs", urls.WASTE, {}),
    ("Outcomes", urls.OUTCOMES, {}),
    ("Tools: failures, durations, costs", urls.TOOLS, {}),
    ("Digest of a week", urls.DIGEST, {}),
    ("Calls", urls.CALLS, {}),
    ("Failed calls", urls.CALLS, {"outcome": "error"}),
    ("Errors", urls.ERRORS, {}),
    ("Five-hour windows", urls.BLOCKS, {}),
    ("Prompt history", urls.HISTORY, {}),
    ("Starred sessions", urls.SESSIONS, {"only": "starred"}),
    ("Compare two sessions", urls.COMPARE, {}),
    ("Files", urls.FILES, {}),
    ("Doctor", urls.DOCTOR, {}),
    ("Keyboard shortcuts", urls.KEYS, {}),
)


class PaletteItem(Struct, frozen=True):
    """A page to go to, or an action of the scripts."""

    title: str
    address: str
    detail: str = ""
    action: str = ""


def palette_page(request: PageRequest) -> Page:
    """What matches the typed text: actions and turns of the open session, pages, sessions, entries, a search for it.

    Titles that begin with the text come first, then titles with words that do; among equals, newer sessions first.
    Without a text, the newest sessions come before the pages. `session` is the session that is open.
    """
    text = (request.text("q") or "").strip()
    items = list(_palette_items(request, text))
    rows = [
        el("li", el("a", item.title, href=item.address), " ", item.detail, data_item=True)
        for item in items
        if item.address
    ]
    return Page("Go to", "palette", join((el("h1", "Go to"), el("ul", rows))), items)


def _palette_items(request: PageRequest, text: str) -> Iterator[PaletteItem]:
    words = text.casefold().split()
    session = request.text("session")
    yield from _palette_actions(session, words)
    if session is not None and words:
        yield from _palette_turns(request, session, words)
    if not words:
        yield from _palette_sessions(request, words, _MAX_RECENT)
    offered = [page for page in _PALETTE_PAGES if urls.is_offered(page[1])]
    pages = [page for page in offered if all(word in page[0].casefold() for word in words)]
    for title, path, query in sorted(pages, key=lambda page: _title_rank(page[0], words)):
        yield PaletteItem(title, urls.build_url(path, **query), "page")
    for search in read_or_none().searches:
        if words and all(word in search.name.casefold() for word in words):
            yield PaletteItem(shorten(search.name, 120), search.address, "saved search")
    if words:
        yield from _palette_sessions(request, words, _MAX_PALETTE_SESSIONS)
        yield from _palette_hits(request, text)
    if text:
        yield PaletteItem(f"Search for {shorten(text, 60)}", urls.build_url(urls.SEARCH, q=text), "all sessions")


def _palette_actions(session: str | None, words: list[str]) -> Iterator[PaletteItem]:
    pages = {} if session is None else {"Share this session": "share", "Notes on this session": "notes"}
    items = [
        PaletteItem(title, urls.session_url(session or "", below), "this session") for title, below in pages.items()
    ]
    items += [
        PaletteItem(title, "", "action", action)
        for title, action, is_of_session in _PALETTE_ACTIONS
        if session is not None or not is_of_session
    ]
    if words:
        yield from (item for item in items if all(word in item.title.casefold() for word in words))


def _palette_turns(request: PageRequest, session: str, words: list[str]) -> Iterator[PaletteItem]:
    """The turns of the open session whose prompts contain the words; none if it was deleted since."""
    try:
        name = session if request.pool.lake is None else request.pool.lake.fetch(session)
        cached = request.session_cache.get(name, request.archive)
    except NotFound:
        return
    acts = [(turn.number, turn.act) for turn in cached.session.turns if turn.act is not None]
    matches = ((number, act) for number, act in acts if all(word in act.text.casefold() for word in words))
    for number, act in islice(matches, _MAX_TURNS):
        url = urls.session_url(session, at=f"L{act.place.line}")
        yield PaletteItem(shorten(act.text, 120), url, f"turn {number}")


def _palette_sessions(request: PageRequest, words: list[str], most: int) -> Iterator[PaletteItem]:
    zone = request.zone()
    if request.pool.lake is not None:
        selection = lakes.LakeSessionFilter(text=" ".join(words) or None)
        sessions, _ = request.pool.lake.state.sessions(selection, limit=most)
        for session in sessions:
            day = format_time(session.last, zone)[:10] if session.last is not None else "time unknown"
            detail = f"{day} · {shorten(', '.join(session.people), 60)}"
            yield PaletteItem(shorten(session.title, 120) or "(no title)", urls.session_url(session.session), detail)
        return
    briefs = [brief for brief in all_sessions(request) if _matches_words(brief, words)]
    for brief in sorted(briefs, key=lambda brief: _title_rank(brief.title, words))[:most]:
        day = format_time(brief.last, zone)[:10] if brief.last is not None else "time unknown"
        title = shorten(brief.title, 120) or "(no title)"
        yield PaletteItem(title, urls.session_url(brief.name), f"{day} · {shorten(brief.project, 60)}")


def _palette_hits(request: PageRequest, text: str) -> Iterator[PaletteItem]:
    """The best entries that contain the words."""
    if len(text) < _MIN_SEARCHED or request.pool.lake is not None:
        return
    try:
        hits = request.archive.search(text[:200], limit=_MAX_HITS, zone=request.zone(), now=request.now).hits
    except BadQuery:
        return
    for hit in hits:
        name = urls.session_name(request.archive, hit.session, hit.place.transcript)
        url = None if hit.gone else urls.entry_url(name, hit.agent, hit.place.line, mark=matching_words(hit))
        if url is not None:
            yield PaletteItem(shorten(hit.snippet, 120), url, shorten(hit.title or "", 60))


def _matches_words(brief: SessionBrief, words: list[str]) -> bool:
    """Whether the title or project contains each word, or the id begins with it."""
    text = f"{brief.title}\n{brief.project}".casefold()
    return all(word in text or names_session(word, brief) for word in words)


def _title_rank(title: str, words: list[str]) -> int:
    """0 for a title that begins with the words, 1 for one whose words begin with them, 2 for any other."""
    title_words = title.casefold().split()
    if " ".join(title_words).startswith(" ".join(words)):
        return 0
    return 1 if all(any(each.startswith(word) for each in title_words) for word in words) else 2
