"""Sessions as self-contained HTML files, and a site of them with a list and a search page.

A file contains its style and a strict Content-Security-Policy, runs no script (except the search page) and loads
nothing. It is rendered section by section, since a long session as one string would take many times the session's own
memory.

Needs markupsafe (the `web` extra), so `formats` and `exporter` import it only when it is used.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from importlib.resources import files
from itertools import chain

from markupsafe import Markup
from msgspec import Struct

from threadline.model.places import AgentId, CallId, SessionId
from threadline.model.session import Session
from threadline.model.text import count, format_duration, format_time, short_model_name
from threadline.model.totals import Sum
from threadline.render import (
    CallItem,
    PromptItem,
    ReplyItem,
    TaskNotification,
    View,
    describe_cost,
    describe_hidden_branches,
    describe_tokens,
    place_items,
    shorten,
    summarize_call,
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
# What a page that is filled and emptied needs, and a file does not.
_SERVER_ATTRIBUTES = re.compile(r' (?:tabindex="-1"|aria-posinset="[0-9]+"|aria-setsize="[0-9]+"|loading="lazy")')
# No text of a session can hold it: its brackets are escaped.
_FEED_MARKER = Markup("<!--feed-->")
_BETWEEN_TAGS = re.compile(r">[^<]*&#3[49];[^<]*<")


class PageStream(Struct, frozen=True):
    """A file as it is written: one piece after the other, each of whole elements but for the frame around all."""

    many: int
    each: Iterator[str]


def render_session_page(
    whole: Session,
    view: View,
    news: Iterable[TaskNotification] = (),
    links: FileLinks | None = None,
    total: Sum | None = None,
) -> PageStream:
    """The file of a session. `links` leads to the other pages of a site; `total` is what the session spent.

    It is drawn section by section: a long session as one text would take many times the memory that the session does.
    """
    cwd = whole.cwds[0] if whole.cwds else ""
    scene = Scene(view, links or FileLinks(), whole=True, cwd=cwd)
    drawing = ConversationRenderer(whole, whole.main, scene, news=news, inline=None)
    # Not a feed by its role: the file is whole, and nothing will be filled in.
    feed = el("div", _FEED_MARKER, class_="feed")
    main = join((_render_header(whole, scene, total), el("div", _render_turn_list(drawing), feed, class_="session")))
    around = render_document(
        shorten(whole.title.text, _MAX_TITLE) or "Session", main, kind="session-page", top=_session_navigation(links)
    )
    before, _, after = around.partition(_FEED_MARKER)
    each = chain((before,), (_strip_server_attributes(str(piece)) for piece in _draw_sections(drawing)), (after,))
    return PageStream(len(drawing.sections) + 3, each)


def _draw_sections(drawing: ConversationRenderer) -> Iterator[Markup]:
    yield from map(drawing.articles, drawing.sections)
    yield drawing.apart()


def render_document(
    title: str, main: Child, *, kind: str, top: Child = EMPTY, head: Child = EMPTY, script: str = ""
) -> str:
    """A document with its style and its policy inside; `script` is the hash of the one that may run, if any."""
    policy = f"default-src 'none'; style-src '{stylesheet_hash()}'; img-src data:; base-uri 'none'; form-action 'none'"
    declared = (
        el(
            "meta",
            http_equiv="Content-Security-Policy",
            content=f"{policy}; script-src '{script}'" if script else policy,
        ),
        el("meta", name_="referrer", content="no-referrer"),
        el("meta", name_="generator", content="threadline"),
        Markup(f"<style>{stylesheet()}</style>"),  # noqa: S704 - our own files, which a test holds to have no `</`
        head,
    )
    return _strip_server_attributes(str(render_page(title, main, kind=kind, head=declared, top=top))) + "\n"


def session_facts(whole: Session, total: Sum | None = None) -> Iterator[str]:
    """What is known of a session at a glance; the time it began first, where there is one."""
    started = whole.started
    if started is not None:
        yield f"{format_time(started)} UTC"
    yield from (short_model_name(model) for model in whole.models)
    yield count(sum(turn.act is not None for turn in whole.turns), "turn")
    yield count(len(whole.calls), "call")
    if agents := sum(agent.side is None for agent in whole.agents):
        yield count(agents, "agent")
    if took := format_duration(whole.wall_time):
        yield took
    if total is not None:
        yield describe_tokens(total)
        yield describe_cost(total)


def _render_header(whole: Session, scene: Scene, total: Sum | None) -> Markup:
    known = facts_row(shorten(fact, _MAX_TITLE) for fact in session_facts(whole, total))
    where = facts_row(el("code", shorten(text, _MAX_TITLE)) for text in (scene.cwd, str(whole.id or "")) if text)
    more = [_continuation_link(scene, link.forward, str(link.session)) for link in whole.continuations if link.session]
    title = el("h1", shorten(whole.title.text, _MAX_TITLE) or "(no title)")
    left = describe_hidden_branches(whole.main, scene.view.branch)
    if left:
        more.append(el("p", left, class_="left-note"))
    return el("header", title, known, where, *more, class_="head")


def _continuation_link(scene: Scene, forward: bool, session: str) -> Markup:
    there = scene.links.session(session)
    label: Child = (
        el("a", shorten(session, _MAX_TITLE), href=there) if there else el("code", shorten(session, _MAX_TITLE))
    )
    return el("p", "goes on in " if forward else "goes on from ", label)


def _render_turn_list(drawing: ConversationRenderer) -> Markup:
    """The turns, each a link to where it begins."""
    begun = [
        (one_, one_.item) for one_ in drawing.items if isinstance(one_.item, PromptItem) and one_.item.turn is not None
    ]
    links = []
    for one_, item in begun:
        words = el("span", shorten(item.act.text, _MAX_TURN_TEXT) or str(item.act.kind), class_="words-of")
        links.append(el("li", el("a", el("span", item.turn, class_="number"), words, href=f"#{one_.anchor}")))
    return el("nav", el("ol", *links, class_="turns"), class_="side", aria_label="Turns") if links else EMPTY


def _session_navigation(links: FileLinks | None) -> Markup:
    if links is None or not links.pages:
        return EMPTY
    ways = (el("a", "All sessions", href="../index.html"), el("a", "Search", href="../search.html"))
    return el("header", el("nav", *ways, aria_label="Site"), class_="top")


def _strip_server_attributes(text: str) -> str:
    """The same document without what only a server's page needs; quotes between tags need no escape."""
    return _BETWEEN_TAGS.sub(_unescape_quotes, _SERVER_ATTRIBUTES.sub("", text))


def _unescape_quotes(found: re.Match[str]) -> str:
    return found[0].replace("&#34;", '"').replace("&#39;", "'")


class FileLinks(Struct, frozen=True):
    """Where a file finds what it names; `pages` are the other sessions of a site by their ids."""

    pages: dict[str, str] = {}

    def session(self, session: SessionId | str) -> str | None:
        """The page of another session, where it was given out, too."""
        return self.pages.get(str(session))

    def agent(self, agent: AgentId | str) -> str | None:
        """None: agents stand in their places."""
        del agent
        return None

    def entry(self, anchor: str) -> str:
        """A place in the same file."""
        return f"#{anchor}"

    def raw(self, anchor: str) -> str | None:
        """None: a file does not hold its JSON."""
        del anchor
        return None

    def call(self, call: CallId) -> str | None:
        """None: calls are whole where they stand."""
        del call
        return None

    def state(self, anchor: str) -> str | None:
        """None."""
        del anchor
        return None

    def file(self, path: str) -> str | None:
        """None."""
        del path
        return None

    def branch(self, number: int | None) -> str | None:
        """None: a branch is given out by its number."""
        del number
        return None

    def image(self, anchor: str, number: int, media_type: str, data: str) -> str | None:
        """The picture itself."""
        del anchor, number
        return f"data:{media_type};base64,{data}"


_MAX_LIST_TITLE, _MAX_CALL_TEXT, _MAX_SEARCH_TEXT = 160, 300, 4000


class SiteEntry(Struct, frozen=True):
    """What the list and the search know of a session: its page's name, and what was said in it where."""

    name: str
    title: str
    project: str
    started: str
    facts: tuple[str, ...]
    said: tuple[tuple[str, str, str], ...]


def make_site_entry(whole: Session, name: str, view: View, total: Sum | None = None) -> SiteEntry:
    """A session as the list and the search know it."""
    said = []
    started = whole.started
    for item in place_items(whole.main, view):
        found = item.item
        if isinstance(found, PromptItem):
            said.append((item.anchor, "prompt", shorten(found.act.text, _MAX_SEARCH_TEXT)))
        elif isinstance(found, ReplyItem):
            said.append((item.anchor, "reply", shorten(found.text, _MAX_SEARCH_TEXT)))
        elif isinstance(found, CallItem):
            told = shorten(summarize_call(found.call.tool, found.call.input), _MAX_CALL_TEXT)
            said.append((item.anchor, "call", f"{shorten(found.call.tool, 60)} {told}".strip()))
    return SiteEntry(
        name,
        shorten(whole.title.text, _MAX_LIST_TITLE) or "(no title)",
        shorten(whole.cwds[0], _MAX_LIST_TITLE) if whole.cwds else "",
        format_time(started),
        tuple(shorten(fact, _MAX_LIST_TITLE) for fact in list(session_facts(whole, total))[started is not None :]),
        tuple((anchor, kind, text) for anchor, kind, text in said if text),
    )


def render_index_page(sessions: Iterable[SiteEntry]) -> str:
    """The list of all sessions, the newest first."""
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
    heads = el("thead", el("tr", *(el("th", name, scope="col") for name in ("started", "session", "project", "what"))))
    head = el("header", el("h1", "Sessions"), class_="head")
    main = join((head, el("div", el("table", heads, el("tbody", *rows), class_="list"), class_="scroll")))
    return render_document("Sessions", main, kind="site-index", top=_site_navigation("index"))


def render_search_page(sessions: Iterable[SiteEntry]) -> str:
    """The search: one script, which looks through the texts that the page holds."""
    ordered = _newest_first(sessions)
    data = {
        "sessions": [[item.name, item.title] for item in ordered],
        "items": [[at, *said] for at, item in enumerate(ordered) for said in item.said],
    }
    script = (files("threadline.export") / "assets" / "search.js").read_text(encoding="utf-8")
    main = join(
        (
            el("header", el("h1", "Search"), class_="head"),
            el("p", el("label", "Words that stand together in a prompt, a reply or a call", for_="words")),
            el(
                "p",
                el("input", id="words", type="search", size=40, autocomplete="off", spellcheck="false", autofocus=True),
            ),
            el("noscript", el("p", "Searching needs JavaScript; the pages do not.")),
            el("p", id="told", role="status", class_="faint"),
            el("div", id="found"),
            Markup(f'<script type="application/json" id="index">{_script_safe_json(data)}</script>'),  # noqa: S704 - no `<` in it
            Markup(f"<script>{script}</script>"),  # noqa: S704 - our own file
        )
    )
    return render_document("Search", main, kind="site-search", top=_site_navigation("search"), script=_csp_hash(script))


def _newest_first(sessions: Iterable[SiteEntry]) -> list[SiteEntry]:
    return sorted(sorted(sessions, key=lambda item: item.name), key=lambda item: item.started, reverse=True)


def _script_safe_json(value: object) -> str:
    """JSON that no tag, comment or line end of a script can be in."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def _csp_hash(script: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}"


def _site_navigation(here: str) -> Markup:
    ways = [
        el("a", label, href=f"{name}.html", aria_current="page" if name == here else None)
        for name, label in (("index", "All sessions"), ("search", "Search"))
    ]
    return el("header", el("nav", *ways, aria_label="Site"), class_="top")
