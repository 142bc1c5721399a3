"""The page of a session or of one of its agents, and the feed of its conversation.

A long conversation is divided into sections. The page is sent with the sections around the requested place; the others
are links, which scripts replace with their content when they come into view. The page of a long session that is not in
the cache yet shows its beginning at once, while the rest is read in the background.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from msgspec import Struct
from msgspec.structs import replace

from threadline.errors import NotFound
from threadline.load import read_beginning
from threadline.model.text import count
from threadline.render import Detail, View, agent_slug, shorten
from threadline.render.html import EMPTY, ConversationRenderer, Scene, Section, Value, el, facts_row, icon, join
from threadline.web import urls
from threadline.web.request import Fragment, Page, PageRequest, PageResult, Redirect
from threadline.web.session.head import SessionHead, build_head, head_record, render_head, render_mini_head
from threadline.web.session.side import recent_sessions, render_filters, render_side, turn_rows
from threadline.web.session.usage import render_usage_strip
from threadline.web.session.view import (
    Position,
    PositionIndex,
    SessionView,
    branch_note,
    branch_url,
    first_section_of,
    parse_view,
    part_of,
    resolve_anchor,
)
from threadline.web.session_cache import AgentDrawing, CachedSession
from threadline.web.urls import SessionLinks, escape_segment

if TYPE_CHECKING:
    from datetime import tzinfo

    from markupsafe import Markup

    from threadline.archive import Archive

LONG_BYTES = 6 * 1024 * 1024
"""A main transcript of this size takes noticeably long to read."""
_MAX_INLINE = 80
"""How many entries of an agent are shown below its call; its own page has all."""
FILLED_SECTIONS = 3
"""How many sections a page is sent with: the requested one and its neighbours."""
_MAX_QUICK_BYTES, _MAX_QUICK_FILES = 4 * 1024 * 1024, 60
"""Up to this size and this many neighbours, related sessions are looked up for every page: about a millisecond each."""
_PREVIEW_BYTES, _PREVIEW_ENTRIES = 1024 * 1024, 1000
_FILTERS = frozenset({"errors", "focus", "kind", "tool"})
_UNFOCUSED: dict[str, Any] = {"thinking": Detail.FOLD, "calls": Detail.FOLD}
_PREVIEW_PARAMETERS = frozenset({"find", "mark", "tz", "raw", "state", "context", "open"})


class OpenedSession(Struct, frozen=True):
    """A session, the view that a request asks for, and the conversation rendered for that view."""

    session: CachedSession
    view: SessionView
    drawing: AgentDrawing


def open_session(request: PageRequest, *, with_new_costs: bool = False) -> OpenedSession:
    """Read and render the session that a request names.

    With `with_new_costs`, the index is asked whether costs have changed since the conversation was rendered.

    Raises:
        NotFound: there is no such session, agent or branch.
        BadQuery: a parameter has an unknown value.
    """
    session = request.session()
    view = parse_view(request, session)
    if with_new_costs:
        session.spending(request.archive)
    drawing = session.drawing(view.agent, view.view, view.links, request.archive, request.zone())
    return OpenedSession(session, view, drawing)


def session_page(request: PageRequest) -> PageResult:
    """The page of a session or an agent; a preview if the session is long and not read yet, unless `whole` is set."""
    if not request.flag("whole") and not request.wants_data and (preview := session_preview(request)) is not None:
        return preview
    if (redirect := _redirect_to_lone_agent(request)) is not None:
        return redirect
    opened = open_session(request, with_new_costs=True)
    session, view, drawing = opened.session, opened.view, opened.drawing
    at = request.text("at")
    branch = view.view.branch
    if branch is not None and at is None and not request.wants_data and not _has_position(request):
        return Redirect(branch_url(session.agent(view.agent), view, branch, branch))
    position = resolve_anchor(session, view, drawing, at) if at is not None else None
    if isinstance(position, Redirect):
        return _keep_words(position, request)
    if position is not None and at is not None and position.anchor != at and not position.near:
        redirect = Redirect(view.links.this_page(at=position.anchor, side=request.text("side")))
        return _keep_words(redirect, request)
    section, part = request.optional_number("section", least=1), request.optional_number("part", least=1)
    window = feed_window(drawing, section, position, part)
    turn = request.optional_number("turn") or _first_turn(drawing, window, position)
    frame = _build_frame(request, opened, window.part, turn)
    agent = session.agent(view.agent)
    body = el("div", frame.side, render_feed(drawing, window, view.links), frame.usage_strip, class_="session")
    return Page(
        title=frame.facts.title,
        kind="session" if view.agent is None else "agent",
        main=join(
            (frame.head, frame.filters, frame.branch_note, _panel_links(request, session), frame.mini_head, body)
        ),
        data=(
            {**head_record(frame.facts), **feed_record(drawing), "turns_of": list(turn_rows(agent))}
            if request.wants_data
            else None
        ),
        attributes=_main_attributes(opened, window.part),
        after=ENTRY_TOOLS,
    )


def agent_entries_page(request: PageRequest) -> Fragment:
    """The first entries of an agent, for showing them below the call that started it."""
    opened = open_session(request)
    items, links = opened.drawing.renderer.items, opened.view.links
    rest = len(items) - _MAX_INLINE
    more = el("p", el("a", f"{count(rest, 'more entry', 'more entries')}", href=links.this_page()), class_="more")
    main = join((opened.drawing.renderer.first_articles(_MAX_INLINE), more if rest > 0 else EMPTY))
    data = [{"anchor": placed.anchor, "kind": placed.kind} for placed in items[:_MAX_INLINE]]
    return Fragment("Agent", "part", main, data, is_bare=True)


def session_frame_page(request: PageRequest) -> PageResult:
    """The frame of the conversation: all of a session's page except the conversation, for updating an open page."""
    opened = open_session(request, with_new_costs=True)
    part = min(request.number("part", 1, least=1), opened.drawing.positions.parts)
    frame = _build_frame(request, opened, part, request.number("turn", 0))
    main = el(
        "div",
        frame.head,
        frame.filters,
        frame.branch_note,
        frame.mini_head,
        frame.side,
        frame.usage_strip,
        data_about=True,
        **_main_attributes(opened, part),
    )
    return Fragment(frame.facts.title, "about", main, head_record(frame.facts), is_bare=True)


class _SessionFrame(Struct, frozen=True):
    facts: SessionHead
    head: Markup
    filters: Markup
    branch_note: Markup
    mini_head: Markup
    side: Markup
    usage_strip: Markup


def _build_frame(request: PageRequest, opened: OpenedSession, part: int, turn: int) -> _SessionFrame:
    session, view, archive, zone = opened.session, opened.view, request.archive, request.zone()
    agent = session.agent(view.agent)
    head = build_head(
        session,
        agent,
        view.links,
        archive,
        with_related=_is_quick(session),
        zone=zone,
        open_folds=request.texts("open"),
        origin=request.pool.lake.origin(session.path) if request.pool.lake is not None else None,
    )
    lists_sessions = request.choice("side", ("turns", "sessions"), "turns") == "sessions"
    recent = recent_sessions(request, session.id) if lists_sessions else None
    return _SessionFrame(
        facts=head,
        head=render_head(head),
        filters=render_filters(session.session, agent, view, _filter_counts(opened, archive, zone)),
        branch_note=branch_note(agent, view),
        mini_head=render_mini_head(
            session, agent, head.title, turn=turn, is_timeline_open="timeline" in request.texts("open")
        ),
        side=render_side(agent, view.links, turn, recent),
        usage_strip=render_usage_strip(session, view, opened.drawing, archive, part),
    )


def _filter_counts(opened: OpenedSession, archive: Archive, zone: tzinfo) -> str:
    """How many entries the filters show: `2 of 25 errors, 2 of 210 prompts and replies`; empty without a filter."""
    session, view = opened.session, opened.view
    unfiltered = replace(view.view, kinds=(), tools=(), errors=False, **(_UNFOCUSED if view.focus else {}))
    filters: dict[str, tuple[View, str]] = {}
    if view.view.errors:
        filters["errors"] = replace(unfiltered, errors=True), "errors"
    if view.focus:
        filters["prompts and replies"] = replace(view.view, tools=(), errors=False), "focus"
    elif view.view.kinds:
        filters[f"entries of kind {' or '.join(view.view.kinds)}"] = replace(unfiltered, kinds=view.view.kinds), "kind"
    if view.view.tools:
        tools = shorten(" or ".join(view.view.tools), 60)
        filters[f"calls of {tools}"] = replace(unfiltered, tools=view.view.tools), "tool"
    if len(filters) == 1:
        filters = {"entries": (unfiltered, "")}
    shown = len(opened.drawing.renderer.items)
    totals = {
        name: len(session.drawing(view.agent, each, _without_filters(view.links, kept), archive, zone).renderer.items)
        for name, (each, kept) in filters.items()
    }
    return ", ".join(f"{shown:,} of {total:,} {name}" for name, total in totals.items())


def _without_filters(links: SessionLinks, kept: str) -> SessionLinks:
    """The links of the same view without its filters, or with only one of them."""
    return replace(links, query=tuple(pair for pair in links.query if pair[0] not in _FILTERS - {kept}))


def _main_attributes(opened: OpenedSession, part: int) -> dict[str, Value]:
    """What scripts need to know about the page."""
    session, view, drawing = opened.session, opened.view, opened.drawing
    return {
        "data_session": escape_segment(session.id),
        "data_agent": view.agent,
        "data_version": session.version,
        "data_branches": len(session.agent(view.agent).branches),
        "data_branch": view.view.branch,
        "data_items": len(drawing.renderer.items),
        "data_parts": drawing.positions.parts,
        "data_part": part,
    }


def _has_position(request: PageRequest) -> bool:
    """Whether a request says where the page begins."""
    return any(request.text(name) is not None for name in ("at", "section", "part", "turn"))


def _keep_words(redirect: Redirect, request: PageRequest) -> Redirect:
    """Add the text to find and the words to highlight to a redirect."""
    words = [(name, value) for name, value in request.query if name in {"find", "mark"} and value]
    if not words:
        return redirect
    path, hash_sign, anchor = redirect.url.partition("#")
    query = urlencode(words, errors="replace")
    return Redirect(f"{path}{'&' if '?' in path else '?'}{query}{hash_sign}{anchor}", redirect.branch)


def _panel_links(request: PageRequest, session: CachedSession) -> Markup:
    """Without scripts, links to what the panel would show."""
    links = session.links
    entry, state, context = request.text("raw"), request.text("state"), request.text("context")
    targets = [("Entry", entry, links.raw(entry))] if entry else []
    targets += [("Files at", state, links.state(state))] if state else []
    targets += [("Context at", context, links.below("context", context))] if context else []
    anchors = [el("a", f"{label} {shorten(anchor, 40)}", href=url) for label, anchor, url in targets]
    return el("noscript", el("p", anchors, class_="links")) if anchors else EMPTY


def _redirect_to_lone_agent(request: PageRequest) -> Redirect | None:
    """Redirect to an agent's own page if its transcript names this session but is not stored with it."""
    name = request.path_values.get("agent")
    if name is None or name in request.session().agents:
        return None
    listed = (transcript.agent for home in request.archive.found for transcript in home.transcripts)
    agent = next((agent for agent in listed if agent is not None and agent_slug(agent) == name), None)
    at = request.text("at")
    line = at.removeprefix(f"{name}.") if at is not None else None
    return Redirect(urls.session_url(f"agent-{agent}", at=line)) if agent is not None else None


def _first_turn(drawing: AgentDrawing, window: FeedWindow, position: Position | None) -> int:
    """The turn that the page begins at."""
    if position is not None:
        turn = next((placed.turn for placed in drawing.renderer.items if placed.anchor == position.anchor), None)
        if turn is not None:
            return turn
    sections = drawing.renderer.sections
    return (sections[window.section - 1].first_turn or 0) if sections else 0


def _is_quick(session: CachedSession) -> bool:
    """Whether related sessions can be found without delaying the page."""
    if session.size > _MAX_QUICK_BYTES:
        return False
    try:
        return sum(1 for _ in session.path.parent.glob("*.jsonl")) <= _MAX_QUICK_FILES
    except OSError:
        return False


def session_preview(request: PageRequest) -> Page | None:
    """The beginning of a long session that is not read yet; None if the session is cached or short.

    A request for a place or a filter has to wait for the complete session.
    """
    if "agent" in request.path_values or any(name not in _PREVIEW_PARAMETERS for name, value in request.query if value):
        return None
    place = request.session_cache.find_unread(request.path_values["session"], request.archive, LONG_BYTES)
    if place is None:
        return None
    session = read_beginning(place.path, max_bytes=_PREVIEW_BYTES, max_entries=_PREVIEW_ENTRIES, homes=place.homes)
    links = SessionLinks(place.id)
    cached = CachedSession(place.id, session, "", 0)
    # Agents are not read yet: the page must not say that their transcripts are missing.
    scene = Scene(View(agents=Detail.NONE), links, cwd=cached.facts.project or "", zone=request.zone())
    renderer = ConversationRenderer(session, session.main, scene)
    if not renderer.sections:
        return None
    drawing = AgentDrawing(renderer, PositionIndex(renderer))
    request.session_cache.preload(place)
    title = shorten(request.archive.titles([place.id]).get(place.id) or session.title.text, 200) or "(no title)"
    facts = (cached.facts.project, scene.format_time(cached.facts.started) if cached.facts.started else None)
    head = el(
        "header",
        el("h1", title),
        facts_row(shorten(fact, 120) for fact in facts if fact),
        el(
            "p",
            "Loading the rest of this session. ",
            el("a", "Wait for the full session", href=links.page(whole=True)),
            class_="reading",
        ),
        class_="head",
    )
    body = el(
        "div",
        render_side(session.main, links, 0, None),
        render_feed(drawing, FeedWindow(1, range(1, FILLED_SECTIONS + 1), 1), links, is_preview=True),
        el("nav", EMPTY, class_="usage-strip", aria_label="Map of the conversation"),
        class_="session",
    )
    return Page(
        title=title,
        kind="session",
        main=join((head, body)),
        after=ENTRY_TOOLS,
        attributes={"data_session": escape_segment(place.id), "data_partial": "1", "data_version": ""},
    )


class FeedWindow(Struct, frozen=True):
    """Where a page begins: its first section, the sections that are sent with content, and their part."""

    section: int
    filled: range
    part: int


def feed_window(drawing: AgentDrawing, section: int | None, position: Position | None, part: int | None) -> FeedWindow:
    """Choose where a page begins: at a section, a position, or a part; by default at the start.

    Raises:
        NotFound: there is no such section or part.
    """
    last, parts = len(drawing.renderer.sections), drawing.positions.parts
    if section is not None and not 1 <= section <= max(1, last):
        raise NotFound(f"There is no section {section}; this conversation has {last}.")
    if part is not None and not 1 <= part <= parts:
        raise NotFound(f"There is no part {part}; this conversation has {parts}.")
    begin = section or (position.section if position is not None else first_section_of(part) if part is not None else 1)
    current = part_of(begin)
    first, after = first_section_of(current), min(first_section_of(current + 1), last + 1)
    start = max(first, min(begin - 1, after - FILLED_SECTIONS))
    return FeedWindow(begin, range(start, min(start + FILLED_SECTIONS, after)), current)


def render_feed(drawing: AgentDrawing, window: FeedWindow, links: SessionLinks, *, is_preview: bool = False) -> Markup:
    """Render the sections of a part, and after the last part the agents that no call is known to have started.

    A preview has only the sections with content. Their marks are changed, because they may differ in the full session.
    """
    sections = drawing.positions.sections_of(window.part)
    if is_preview:
        sections = tuple(
            replace(section, mark=f"beginning-{section.mark}")
            for section in sections
            if section.number in window.filled
        )
    rendered = [_render_section(drawing, each, links, is_filled=each.number in window.filled) for each in sections]
    is_last = window.part == drawing.positions.parts
    return el(
        "div",
        _part_link(links, window.part - 1, "Earlier") if window.part > 1 else EMPTY,
        rendered or _empty_feed(links),
        drawing.renderer.unlinked_agents() if is_last else EMPTY,
        EMPTY if is_last else _part_link(links, window.part + 1, "Later"),
        class_="feed",
        role="feed",
        aria_label="Conversation",
    )


def _empty_feed(links: SessionLinks) -> Markup:
    if not links.query:
        return el("p", "This conversation is empty.", class_="nothing")
    all_entries = links.this_page(**dict.fromkeys(dict(links.query)))
    return el("p", "Nothing matches this filter. ", el("a", "Show all", href=all_entries), class_="nothing")


def _part_link(links: SessionLinks, part: int, word: str) -> Markup:
    return el("p", el("a", f"{word}: part {part}", href=links.this_page(part=part)), class_="parts")


def _render_section(drawing: AgentDrawing, section: Section, links: SessionLinks, *, is_filled: bool) -> Markup:
    url = f"{links.this_page(section=section.number)}#{section.first}"
    content = (
        drawing.renderer.articles(section)
        if is_filled
        else el("a", _section_label(section), href=url, class_="unfilled")
    )
    return el(
        "section",
        content,
        class_="section",
        id=f"s{section.number}",
        data_number=section.number,
        data_items=section.stop - section.start,
        data_elements=section.elements,
        data_height=section.height,
        data_turn=section.first_turn,
        data_mark=section.mark,
    )


def _section_label(section: Section) -> str:
    turn = f"turn {section.first_turn:,} · " if section.first_turn is not None else ""
    return f"{turn}{count(section.stop - section.start, 'entry', 'entries')} from {section.first}"


def feed_record(drawing: AgentDrawing) -> dict[str, Any]:
    """The sections as data: what a script needs to know about them, with or without content."""
    return {
        "items": len(drawing.renderer.items),
        "parts": drawing.positions.parts,
        "sections": list(_section_records(drawing)),
    }


def _section_records(drawing: AgentDrawing) -> Iterator[dict[str, Any]]:
    for section in drawing.renderer.sections:
        yield {
            "number": section.number,
            "first": section.first,
            "items": section.stop - section.start,
            "elements": section.elements,
            "height": section.height,
            "turn": section.first_turn,
            "mark": section.mark,
            "part": part_of(section.number),
        }


_ENTRY_ACTIONS = (
    ("link", "copy-link", "Copy a link to this entry (y)"),
    ("copy", "copy-block", "Copy the code, command or output (Y)"),
    ("raw", "raw", "Show the JSON of this entry (r)"),
    ("state", "state", "Show files and lists at this point (s)"),
    ("usage", "context", "Show what fills the context window at this point (x)"),
    ("markdown", "copy-markdown", "Copy this entry as Markdown (m)"),
)
# Icons without text: find in page would find the text of the buttons.
ENTRY_TOOLS = el(
    "template",
    el(
        "div",
        *(
            el("button", icon(name), type="button", data_action=action, title=label, aria_label=label)
            for name, action, label in _ENTRY_ACTIONS
        ),
        class_="item-buttons",
        role="group",
        aria_label="This entry",
    ),
    id="tools",
)
"""The buttons of an entry. A script moves them to the entry under the pointer."""
