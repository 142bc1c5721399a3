"""Render sessions as self-contained HTML files, and as a site with a list and a search page.

A file contains its style and a strict Content-Security-Policy, runs no script (except the search page) and loads
nothing. It is rendered section by section, because a long session as one string would need many times the memory of
the session itself.

Needs markupsafe (the `web` extra), so `formats` and `exporter` import it only when it is used.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from datetime import UTC, tzinfo
from importlib.resources import files
from itertools import chain

from markupsafe import Markup
from msgspec import Struct

from threadline.model.call_summary import summarize_call
from threadline.model.ledger import Sum
from threadline.model.places import AgentId, CallId, SessionId
from threadline.model.session import Session
from threadline.model.text import count, format_duration, format_time, short_model_name
from threadline.model.times import zone_name
from threadline.render import (
    CallItem,
    PromptItem,
    ReplyItem,
    TaskNotification,
    View,
    describe_cost,
    describe_hidden_branches,
    describe_platform,
    describe_tokens,
    place_items,
    shorten,
)
from threadline.render.html import (
    EMPTY,
    Child,
    ConversationRenderer,
    Scene,
    el,
    facts_row,
    join,
    render_page,
    stylesheet,
    stylesheet_hash,
)

_MAX_TITLE, _MAX_TURN_TEXT = 300, 90
# Attributes that are only needed by a page that loads sections while it is scrolled.
_SERVER_ATTRIBUTES = re.compile(r' (?:tabindex="-1"|aria-posinset="[0-9]+"|aria-setsize="[0-9]+"|loading="lazy")')
# This cannot occur in a session's text, where angle brackets are escaped.
_FEED_MARKER = Markup("<!--feed-->")
_BETWEEN_TAGS = re.compile(r">[^<]*&#3[49];[^<]*<")


class PageStream(Struct, frozen=True):
    """An HTML file as `count` pieces. All but the first and last consist of complete elements."""

    count: int
    pieces: Iterator[str]


def render_session_page(
    session: Session,
    view: View,
    news: Iterable[TaskNotification] = (),
    links: FileLinks | None = None,
    total: Sum | None = None,
) -> PageStream:
    """Render the file of a session. `links` are the other pages of a site; `total` is the session's usage and cost.

    The pieces are rendered while they are iterated, to save memory.
    """
    cwd = session.cwds[0] if session.cwds else ""
    scene = Scene(view, links or FileLinks(), uncut=True, cwd=cwd, zone=view.zone)
    renderer = ConversationRenderer(session, session.main, scene, notifications=news, inline=None)
    # No ARIA role `feed`, because the file is complete and loads nothing.
    feed = el("div", _FEED_MARKER, class_="feed")
    main = join((_render_header(session, scene, total), el("div", _render_turn_list(renderer), feed, class_="session")))
    document = render_document(
        shorten(session.title.text, _MAX_TITLE) or "Session", main, kind="session-page", top=_session_navigation(links)
    )
    before, _, after = document.partition(_FEED_MARKER)
    pieces = chain((before,), (_strip_server_attributes(str(piece)) for piece in _draw_sections(renderer)), (after,))
    return PageStream(len(renderer.sections) + 3, pieces)


def _draw_sections(renderer: ConversationRenderer) -> Iterator[Markup]:
    yield from map(renderer.articles, renderer.sections)
    yield renderer.unlinked_agents()


def render_document(title: str, main: Child, *, kind: str, top: Child = EMPTY, script: str = "") -> str:
    """Render a document with its stylesheet and policy. `script` is the hash of the only script that may run."""
    policy = f"default-src 'none'; style-src '{stylesheet_hash()}'; img-src data:; base-uri 'none'; form-action 'none'"
    head_elements = (
        el(
            "meta",
            http_equiv="Content-Security-Policy",
            content=f"{policy}; script-src '{script}'" if script else policy,
        ),
        el("meta", name_="referrer", content="no-referrer"),
        el("meta", name_="generator", content="threadline"),
        Markup(f"<style>{stylesheet()}</style>"),  # noqa: S704 - our own files; a test checks that they contain no `</`
    )
    return _strip_server_attributes(str(render_page(title, main, kind=kind, head=head_elements, top=top))) + "\n"


def session_facts(session: Session, total: Sum | None = None, zone: tzinfo = UTC) -> Iterator[str]:
    """The facts about a session. Its start comes first if it is known."""
    started = session.started
    if started is not None:
        yield f"{format_time(started, zone)} {zone_name(zone)}"
    yield from (short_model_name(model) for model in session.models)
    yield from filter(None, (session.slug, describe_platform(session)))
    yield count(sum(turn.act is not None for turn in session.turns), "turn")
    yield count(len(session.calls), "call")
    if agents := sum(agent.side is None for agent in session.agents):
        yield count(agents, "agent")
    if duration := format_duration(session.wall_time):
        yield duration
    if total is not None:
        yield describe_tokens(total)
        yield describe_cost(total)


def _render_header(session: Session, scene: Scene, total: Sum | None) -> Markup:
    facts = facts_row(shorten(fact, _MAX_TITLE) for fact in session_facts(session, total, scene.zone))
    ids = facts_row(el("code", shorten(text, _MAX_TITLE)) for text in (scene.cwd, str(session.id or "")) if text)
    notes = [
        _continuation_link(scene, link.forward, str(link.session)) for link in session.continuations if link.session
    ]
    title = el("h1", shorten(session.title.text, _MAX_TITLE) or "(no title)")
    hidden_branches = describe_hidden_branches(session.main, scene.view.branch)
    if hidden_branches:
        notes.append(el("p", hidden_branches, class_="branch-note"))
    return el("header", title, facts, ids, *notes, class_="head")


def _continuation_link(scene: Scene, forward: bool, session: str) -> Markup:
    address = scene.links.session(session)
    label: Child = (
        el("a", shorten(session, _MAX_TITLE), href=address) if address else el("code", shorten(session, _MAX_TITLE))
    )
    return el("p", "continues in " if forward else "continues from ", label)


def _render_turn_list(renderer: ConversationRenderer) -> Markup:
    """The list of turns, with links to them."""
    prompts = [
        (placed, placed.item)
        for placed in renderer.items
        if isinstance(placed.item, PromptItem) and placed.item.turn is not None
    ]
    links = []
    for placed, item in prompts:
        text = el("span", shorten(item.act.text, _MAX_TURN_TEXT) or str(item.act.kind), class_="row-text")
        links.append(el("li", el("a", text, href=f"#{placed.anchor}"), value=item.turn))
    return el("nav", el("ol", *links, class_="turns"), class_="side", aria_label="Turns") if links else EMPTY


def _session_navigation(links: FileLinks | None) -> Markup:
    if links is None or not links.pages:
        return EMPTY
    pages = (el("a", "All sessions", href="../index.html"), el("a", "Search", href="../search.html"))
    return el("header", el("nav", *pages, aria_label="Site"), class_="top")


def _strip_server_attributes(text: str) -> str:
    """Remove attributes that only a served page needs, and unescape quotes between tags."""
    return _BETWEEN_TAGS.sub(_unescape_quotes, _SERVER_ATTRIBUTES.sub("", text))


def _unescape_quotes(match: re.Match[str]) -> str:
    return match[0].replace("&#34;", '"').replace("&#39;", "'")


class FileLinks(Struct, frozen=True):
    """Links in an exported file; `pages` maps the ids of a site's other sessions to their pages."""

    pages: dict[str, str] = {}

    def session(self, session: SessionId | str) -> str | None:
        """The page of another session, if it was also exported."""
        return self.pages.get(str(session))

    def agent(self, agent: AgentId | str) -> str | None:
        """None: agents are shown inline."""
        del agent
        return None

    def entry(self, anchor: str) -> str:
        """An anchor in the same file."""
        return f"#{anchor}"

    def raw(self, anchor: str) -> str | None:
        """None: a file does not contain the raw JSON."""
        del anchor
        return None

    def call(self, call: CallId) -> str | None:
        """None: calls are shown in full."""
        del call
        return None

    def state(self, anchor: str) -> str | None:
        """None."""
        del anchor
        return None

    def file_state(self, anchor: str, path: str) -> str | None:
        """None."""
        del anchor, path
        return None

    def file(self, path: str) -> str | None:
        """None."""
        del path
        return None

    def branch(self, number: int | None, at: str | None = None) -> str | None:
        """None: a branch is selected when exporting."""
        del number, at
        return None

    def image(self, anchor: str, number: int, media_type: str, data: str) -> str | None:
        """The image itself, as a data URL."""
        del anchor, number
        return f"data:{media_type};base64,{data}"


_MAX_LIST_TITLE, _MAX_CALL_TEXT, _MAX_SEARCH_TEXT = 160, 300, 4000


class SiteEntry(Struct, frozen=True):
    """A session in the list and the search of a site: the name of its page, its facts and its texts with anchors."""

    name: str
    title: str
    project: str
    started: str
    facts: tuple[str, ...]
    texts: tuple[tuple[str, str, str], ...]


def make_site_entry(session: Session, name: str, view: View, total: Sum | None = None) -> SiteEntry:
    """Make the entry of a session for the list and the search."""
    texts = []
    started = session.started
    for item in place_items(session.main, view):
        content = item.item
        if isinstance(content, PromptItem):
            texts.append((item.anchor, "prompt", shorten(content.act.text, _MAX_SEARCH_TEXT)))
        elif isinstance(content, ReplyItem):
            texts.append((item.anchor, "reply", shorten(content.text, _MAX_SEARCH_TEXT)))
        elif isinstance(content, CallItem):
            summary = shorten(summarize_call(content.call.tool, content.call.input), _MAX_CALL_TEXT)
            texts.append((item.anchor, "call", f"{shorten(content.call.tool, 60)} {summary}".strip()))
    return SiteEntry(
        name,
        shorten(session.title.text, _MAX_LIST_TITLE) or "(no title)",
        shorten(session.cwds[0], _MAX_LIST_TITLE) if session.cwds else "",
        format_time(started, view.zone),
        tuple(shorten(fact, _MAX_LIST_TITLE) for fact in list(session_facts(session, total))[started is not None :]),
        tuple((anchor, kind, text) for anchor, kind, text in texts if text),
    )


def render_index_page(sessions: Iterable[SiteEntry]) -> str:
    """Render the list of all sessions, newest first."""
    rows = [
        el(
            "tr",
            el("td", item.started, class_="faint"),
            el("td", el("a", item.title, href=f"sessions/{item.name}.html")),
            el("td", item.project, class_="faint"),
            el("td", " · ".join(item.facts), class_="faint"),
        )
        for item in _newest_first(sessions)
    ]
    names = ("started", "session", "project", "details")
    heads = el("thead", el("tr", *(el("th", name, scope="col") for name in names)))
    head = el("header", el("h1", "Sessions"), class_="head")
    main = join((head, el("div", el("table", heads, el("tbody", *rows), class_="list"), class_="scroll")))
    return render_document("Sessions", main, kind="site-index", top=_site_navigation("index"))


def render_search_page(sessions: Iterable[SiteEntry]) -> str:
    """Render the search page: one script, which searches the texts in the page."""
    ordered = _newest_first(sessions)
    data = {
        "sessions": [[item.name, item.title] for item in ordered],
        "items": [[at, *text] for at, item in enumerate(ordered) for text in item.texts],
    }
    script = (files("threadline.export") / "assets" / "search.js").read_text(encoding="utf-8")
    main = join(
        (
            el("header", el("h1", "Search"), class_="head"),
            el("p", el("label", "Words in the same prompt, reply or call", for_="query")),
            el(
                "p",
                el("input", id="query", type="search", size=40, autocomplete="off", spellcheck="false", autofocus=True),
            ),
            el("noscript", el("p", "Search needs JavaScript. The other pages do not.")),
            el("p", id="status", role="status", class_="faint"),
            el("div", id="results"),
            Markup(f'<script type="application/json" id="index">{_script_safe_json(data)}</script>'),  # noqa: S704 - no `<` in it
            Markup(f"<script>{script}</script>"),  # noqa: S704 - our own file
        )
    )
    return render_document("Search", main, kind="site-search", top=_site_navigation("search"), script=_csp_hash(script))


def _newest_first(sessions: Iterable[SiteEntry]) -> list[SiteEntry]:
    return sorted(sorted(sessions, key=lambda item: item.name), key=lambda item: item.started, reverse=True)


def _script_safe_json(value: object) -> str:
    """JSON that cannot contain a tag, a comment or a line separator that would end a script."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def _csp_hash(script: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}"


def _site_navigation(here: str) -> Markup:
    links = [
        el("a", label, href=f"{name}.html", aria_current="page" if name == here else None)
        for name, label in (("index", "All sessions"), ("search", "Search"))
    ]
    return el("header", el("nav", *links, aria_label="Site"), class_="top")
