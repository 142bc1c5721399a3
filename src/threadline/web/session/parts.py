"""Pages below a session's: sections, turns, entries, calls, file state, images, usage, and find in page."""

from __future__ import annotations

import base64
import binascii
import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from markupsafe import Markup
from msgspec import Struct

from threadline.errors import BadQuery, NotFound
from threadline.model.text import count, no_such_number
from threadline.render import (
    BranchItem,
    CallItem,
    CompactionItem,
    Detail,
    FailureItem,
    Item,
    NoticeItem,
    OutputItem,
    PromptItem,
    ReplyItem,
    TaskItem,
    TaskUpdateItem,
    ThinkingItem,
    View,
    anchor_of,
    shorten,
    visible,
)
from threadline.render.html import (
    EMPTY,
    PlaceLinks,
    Scene,
    el,
    image_data,
    images_of_entry,
    join,
    render_call,
    render_file_content,
    render_raw_entry,
    render_state,
)
from threadline.thread import difference
from threadline.web.request import (
    Fragment,
    Page,
    PageRequest,
    PageResult,
    Picture,
    Redirect,
    parse_number,
)
from threadline.web.session.head import continuation_rows, continuation_text, page_header
from threadline.web.session.insight import cost_head
from threadline.web.session.page import feed_record, open_session
from threadline.web.session.side import turn_outline, turn_rows
from threadline.web.session.usage import usage_rows, usage_table
from threadline.web.session.view import parse_view, resolve_anchor
from threadline.web.urls import carried_inputs, entry_anchor

if TYPE_CHECKING:
    from threadline.model.state import State
    from threadline.web.session_cache import AgentDrawing, CachedSession

MAX_MATCHES = 2000
"""How many matches are listed; further ones are only counted."""
_MAX_LISTED = 200
_MAX_QUERY = 200
_MAX_INPUT, _MAX_OUTPUT = 8_000, 6_000
_SNIPPET_BEFORE, _SNIPPET_LENGTH = 40, 160
_MAX_IMAGE = 64 * 1024 * 1024
_END = "end"
_TURN = re.compile(r"(?:turn[ -]?)?(\d{1,9})", re.IGNORECASE)
_MAX_TURN_OPTIONS = 200


def section_page(request: PageRequest) -> PageResult:
    """The content of a section."""
    renderer = open_session(request).drawing.renderer
    text = request.path_values["number"]
    number = parse_number(text)
    if number is None or not 1 <= number <= len(renderer.sections):
        raise NotFound(f"There is no such section; this conversation has {len(renderer.sections):,}.")
    section = renderer.sections[number - 1]
    rows = [
        {"anchor": placed.anchor, "kind": placed.kind, "turn": placed.turn}
        for placed in renderer.items[section.start : section.stop]
    ]
    return Fragment(f"Section {text}", "part", renderer.articles(section), rows, is_bare=True)


def sections_page(request: PageRequest) -> PageResult:
    """The sections, as data and as links."""
    opened = open_session(request)
    links = opened.view.links
    rows = [
        el("li", el("a", section.first, href=links.this_page(section=section.number)))
        for section in opened.drawing.renderer.sections
    ]
    data = {"version": opened.session.version, **feed_record(opened.drawing)}
    return Page("Sections", "shape", join((el("h1", "Sections"), el("ol", rows))), data)


def position_page(request: PageRequest) -> PageResult:
    """The section that shows an entry."""
    opened = open_session(request)
    anchor = request.text("anchor")
    if anchor is None:
        raise BadQuery("Name an entry, for example anchor=L120.")
    try:
        position = resolve_anchor(opened.session, opened.view, opened.drawing, anchor)
    except NotFound:  # a link may be old or mistyped: that is an answer, not an error
        position = None
    if isinstance(position, Redirect):
        data: dict[str, Any] = {"page": position.url}
        if position.branch is not None:
            data["branch"] = position.branch
        return Page("Position", "where", el("p", el("a", anchor, href=position.url)), data)
    if position is None:
        return Page("Position", "where", el("p", "This page has no such entry."), {"section": None, "anchor": None})
    data = {"section": position.section, "part": position.part, "anchor": position.anchor, "near": position.near}
    link = el("a", position.anchor, href=opened.view.links.this_page(at=position.anchor))
    return Page("Position", "where", el("p", link), data)


def turns_page(request: PageRequest) -> PageResult:
    """The outline of turns around a turn."""
    session = request.session()
    view = parse_view(request, session)
    agent = session.agent(view.agent)
    outline = turn_outline(agent, view.links, request.number("around", 0))
    return Fragment("Turns", "turns", outline, list(turn_rows(agent)), is_bare=True)


def entry_page(request: PageRequest) -> PageResult:
    """The JSON of an entry, formatted and as the line in the transcript."""
    session = request.session()
    entry, _agent = session.entry(request.path_values["anchor"])
    anchor = entry_anchor(request.path_values["anchor"])
    links = session.links
    is_uncut = request.flag("whole")
    page_links = el(
        "p",
        el("a", "Show in the conversation", href=links.entry(anchor)),
        " · ",
        el("a", "Files at this point", href=links.state(anchor)),
        " · ",
        el("a", "Markdown", href=links.below("markdown", anchor=anchor)),
        () if is_uncut else (" · ", el("a", "Show everything", href=links.below("entry", anchor, whole=True))),
        class_="links",
    )
    main = render_raw_entry(entry, Scene(View(), links, uncut=is_uncut, zone=request.zone()))
    data = {
        "anchor": anchor,
        "kind": entry.kind,
        "place": str(entry.place),
        "text": entry.line.raw.decode("utf-8", "replace"),
    }
    title = f"Entry {anchor}"
    return Fragment(title, "entry", _with_title(session, title, page_links, main), data)


def call_page(request: PageRequest) -> PageResult:
    """A tool call with its full input and output."""
    session = request.session()
    call = session.calls.get(request.path_values["call"])
    if call is None:
        raise NotFound("This session has no such call.")
    anchor = anchor_of(call.entry, call.agent)
    links = session.links
    scene = Scene(View(calls=Detail.FULL), links, uncut=True, cwd=session.facts.project or "", zone=request.zone())
    page_links = el(
        "p",
        el("a", "Show in the conversation", href=links.entry(anchor)),
        " · ",
        el("a", "JSON", href=links.raw(anchor)),
        class_="links",
    )
    data = {
        "session": session.id,
        "call": call.id,
        "tool": call.tool,
        "input": call.input,
        "output": call.output,
        "outcome": str(call.outcome),
        "evidence": call.evidence,
        "anchor": anchor,
        "agent": call.agent,
        "turn": call.turn,
        "timestamp": call.timestamp,
        "seconds": call.duration.total_seconds() if call.duration is not None else None,
    }
    title = f"Call {shorten(call.tool, 60)}"
    return Fragment(title, "call", _with_title(session, title, page_links, render_call(call, scene)), data)


def state_page(request: PageRequest) -> PageResult:
    """Files and lists as they were at an entry, or at the `end`; with `against`, compared with another entry."""
    session = request.session()
    links = session.links
    anchor = request.path_values["anchor"]
    against, reason = request.text("against"), ""
    scene = Scene(View(), links, cwd=session.facts.project or "", zone=request.zone())
    state = _state_at(session, anchor)
    try:
        other = _state_at(session, against) if against is not None else None
    except NotFound as error:
        other, reason = None, str(error)
    turn = _TURN.fullmatch(anchor)
    title = f"Files at the end of turn {turn[1]}" if turn else f"Files at {'the end' if anchor == _END else anchor}"
    form = join(
        (
            el(
                "form",
                el(
                    "label",
                    "Compare with turn",
                    el("input", name_="against", value=against or "", placeholder="5", list_="state-turns", size=6),
                ),
                el("datalist", _turn_options(session), id="state-turns"),
                el("button", "Compare"),
                *carried_inputs(),
                method="get",
                action=links.below("state", anchor),
            ),
            el("p", visible(reason), class_="refused", role="alert") if reason else EMPTY,
        )
    )
    if (path := request.text("file")) is not None:
        return _file_state_page(session, state, path, scene)
    changes = difference(other, state) if other is not None else ()
    main = render_state(state, session.session, scene, other, changes)
    return Fragment(title, "state", _with_title(session, title, form, main), state)


def _file_state_page(session: CachedSession, state: State, path: str, scene: Scene) -> PageResult:
    """One file of a state, with its content."""
    file = state.files.get(path)
    if file is None:
        raise NotFound("This session did not use that file before this point.")
    main = el("div", render_file_content(file, PlaceLinks(session.session, scene), scene), class_="state")
    title = shorten(scene.relative_path(path), 200)
    return Fragment(title, "state", main, file, heading=_with_title(session, title))


def _state_at(session: CachedSession, anchor: str) -> State:
    """The state at the end, at the end of a turn (`5`, `turn 5`) or at an entry (`L120`).

    Raises:
        NotFound: there is no such turn or entry.
    """
    if anchor == _END:
        return session.session.at()
    if match := _TURN.fullmatch(anchor):
        turns = {turn.number: turn for turn in session.session.main.turns if turn.entries}
        turn = turns.get(int(match[1]))
        if turn is None:
            last = max(turns, default=0)
            raise NotFound(no_such_number("turn", int(match[1]), last, owner="session"))
        return session.session.at(turn.entries[-1].place)
    entry, _agent = session.entry(anchor)
    return session.session.at(entry.place)


def _turn_options(session: CachedSession) -> list[Markup]:
    """The turns to compare with, for the suggestions of a text field."""
    turns = [turn for turn in session.session.main.turns if turn.act is not None]
    return [
        el("option", shorten(turn.act.text, 60), value=turn.number)
        for turn in turns[:_MAX_TURN_OPTIONS]
        if turn.act is not None
    ]


def image_page(request: PageRequest) -> PageResult:
    """An image of an entry, if its media type cannot contain scripts."""
    entry, _agent = request.session().entry(request.path_values["anchor"])
    number = parse_number(request.path_values["number"])
    images = list(images_of_entry(entry))
    if number is None or not 1 <= number <= len(images):
        raise NotFound("This entry has no such picture.")
    image = image_data(images[number - 1])
    if image is None or len(image[1]) > _MAX_IMAGE:
        raise NotFound("Pictures of this type or size are not shown.")
    media_type, encoded = image
    try:
        return Picture(base64.b64decode(encoded, validate=False), media_type)
    except (binascii.Error, ValueError):
        raise NotFound("This picture is damaged.") from None


def session_usage_page(request: PageRequest) -> PageResult:
    """Context and cost by turn and agent."""
    session = request.session()
    view = parse_view(request, session)
    rows = usage_rows(session, view, request.archive)
    title = "Cost by turn and agent"
    if request.wants_data:  # every open page of a session asks for it
        return Page(title, "insight", EMPTY, rows)
    table = usage_table(session, view, request.archive, rows)
    return Page(title, "insight", join((cost_head(session, title, "along"), table)), rows)


def related_page(request: PageRequest) -> PageResult:
    """The sessions that this one continues, and those that continue it."""
    session = request.session()
    titles = request.archive.titles({str(each.session) for each in session.continuations if each.session is not None})
    rows = [
        el(
            "li",
            continuation_text(each, titles),
            el("p", f"Evidence: {shorten(each.evidence, 200)}", class_="note"),
        )
        for each in session.continuations
    ]
    content = el("ul", rows, class_="plain-list") if rows else el("p", "No related sessions.", class_="nothing")
    title = "Related sessions"
    return Page(title, "related", _with_title(session, title, content), continuation_rows(session.continuations))


def _with_title(session: CachedSession, title: str, *below: Markup) -> Markup:
    """Content below a title and a link back to the session."""
    return join((page_header(session, title), *below))


def find_page(request: PageRequest) -> PageResult:
    """Find text in the conversation."""
    opened = open_session(request)
    words = request.text("q") or ""
    matches, total = find_text(opened.drawing, words)
    rows = [
        el(
            "li",
            el("a", match.anchor, href=opened.view.links.this_page(at=match.anchor, find=words)),
            " ",
            match.snippet,
        )
        for match in matches[:_MAX_LISTED]
    ]
    main = join(
        (el("h1", f"{count(total, 'match', 'matches')} for “{shorten(words, 80)}”"), el("ol", rows, class_="hits"))
    )
    return Page("Find", "find", main, {"q": words, "total": total, "hits": matches})


class Match(Struct, frozen=True):
    """An item that contains the text: its anchor, position among all items (from 1), section and kind.

    `snippet` is the text around the first match.
    """

    anchor: str
    position: int
    section: int
    kind: str
    snippet: str


def find_text(drawing: AgentDrawing, words: str) -> tuple[list[Match], int]:
    """Find the items that contain a text, ignoring case and accents; return the first matches and how many there are.

    Raises:
        BadQuery: the text is empty or too long.
    """
    needle = fold_text(words.strip())
    if not needle:
        raise BadQuery("Enter a text to find: q=TEXT.")
    if len(words) > _MAX_QUERY:
        raise BadQuery(f"The text to find may have at most {_MAX_QUERY} characters.")
    matches: list[Match] = []
    total = 0
    for section in drawing.renderer.sections:
        for position, placed in enumerate(drawing.renderer.items[section.start : section.stop], section.start + 1):
            text = "\n".join(_item_texts(placed.item))
            at = fold_text(text).find(needle)
            if at < 0:
                continue
            total += 1
            if len(matches) < MAX_MATCHES:
                matches.append(Match(placed.anchor, position, section.number, placed.kind, _snippet(text, at)))
    return matches, total


def fold_text(text: str) -> str:
    """Remove case and accents, for comparing.

    >>> fold_text("Crème BRÛLÉE")
    'creme brulee'
    """
    return text.lower() if text.isascii() else "".join(map(_fold_character, text))


@lru_cache(maxsize=8192)
def _fold_character(character: str) -> str:
    base = "".join(part for part in unicodedata.normalize("NFKD", character) if not unicodedata.combining(part))
    return base.casefold()


def _snippet(text: str, at: int) -> str:
    """The text around a match. Folding may change lengths, so the match may be a little off centre."""
    start = max(0, at - _SNIPPET_BEFORE)
    return ("…" if start else "") + shorten(text[start : start + _SNIPPET_LENGTH + _SNIPPET_BEFORE], _SNIPPET_LENGTH)


def _item_texts(item: Item) -> Iterator[str]:
    """The texts that an item shows."""
    match item:
        case PromptItem():
            yield item.act.text
        case TaskItem() | ReplyItem() | ThinkingItem() | OutputItem() | FailureItem():
            yield item.text
        case NoticeItem():
            yield item.what
            yield item.text
        case CallItem():
            yield item.call.tool
            yield from _nested_strings(item.call.input, _MAX_INPUT)
            yield item.call.output[:_MAX_OUTPUT]
            yield item.call.feedback or ""
        case CompactionItem():
            summary = item.compaction.summary
            yield summary.text if summary is not None else ""
        case TaskUpdateItem():
            yield item.notification.summary or ""
            yield item.notification.result or ""
        case BranchItem():
            yield item.text
        case _:
            pass


def _nested_strings(value: Any, max_length: int) -> Iterator[str]:
    """The strings in the input of a call, up to a total length."""
    stack = [value]
    while stack and max_length > 0:
        current = stack.pop()
        if isinstance(current, str):
            yield current[:max_length]
            max_length -= len(current)
        elif isinstance(current, dict):
            stack += reversed(list(current.values()))
        elif isinstance(current, list | tuple):
            stack += reversed(current)
