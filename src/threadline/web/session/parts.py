"""Pages below a session's: sections, turns, entries, calls, file state, images, Markdown, and what scripts request."""

from __future__ import annotations

import base64
import binascii

from markupsafe import Markup

from threadline.errors import BadQuery, NotFound
from threadline.model.state import State
from threadline.render import Detail, View, anchor_of, entry_to_markdown, session_to_markdown, shorten
from threadline.render.html import Scene, el, image_data, images_of_entry, join, render_raw_entry, render_state
from threadline.render.html import render_call as drawn_call
from threadline.thread import difference
from threadline.web.request import Fragment, Page, PageRequest, PageResult, Picture, PlainText, Redirect
from threadline.web.session.feed import feed_record
from threadline.web.session.find import find_text
from threadline.web.session.head import continuation_rows
from threadline.web.session.page import open_session
from threadline.web.session.side import turn_outline, turn_rows
from threadline.web.session.usage import usage_table
from threadline.web.session.view import parse_view, resolve_anchor
from threadline.web.session_cache import CachedSession
from threadline.web.urls import SessionLinks, carried_inputs, entry_anchor

_MAX_IMAGE = 64 * 1024 * 1024
_END = "end"


def section_page(asked: PageRequest) -> PageResult:
    """What a section holds."""
    here = open_session(asked)
    number = asked.named["number"]
    sections = here.drawn.drawing.sections
    if not (number.isascii() and number.isdecimal() and len(number) < 9 and 1 <= int(number) <= len(sections)):  # noqa: PLR2004 - digits
        raise NotFound(f"There is no such section; this conversation has {len(sections):,}.")
    section = sections[int(number) - 1]
    rows = [
        {"anchor": item.anchor, "kind": item.kind, "turn": item.turn}
        for item in here.drawn.drawing.items[section.start : section.stop]
    ]
    return Fragment(f"Section {number}", "part", here.drawn.drawing.articles(section), rows, is_bare=True)


def sections_page(asked: PageRequest) -> PageResult:
    """The sections, as data and as a list of links."""
    here = open_session(asked)
    links = here.seen.links
    rows = [
        el("li", el("a", section.first, href=links.own(section=section.number)))
        for section in here.drawn.drawing.sections
    ]
    data = {"version": here.kept.version, **feed_record(here.drawn)}
    return Page("Sections", "shape", join((el("h1", "Sections"), el("ol", rows))), data)


def position_page(asked: PageRequest) -> PageResult:
    """Where an entry stands."""
    here = open_session(asked)
    given = asked.text("anchor")
    if given is None:
        raise BadQuery("Name an entry: anchor=L120.")
    try:
        stand = resolve_anchor(here.kept, here.seen, here.drawn, given)
    except NotFound:  # a link may be old or mistyped: that it leads nowhere is an answer, and no error
        stand = None
    if isinstance(stand, Redirect):
        return Page("Where", "where", el("p", el("a", given, href=stand.address)), _redirect_record(stand))
    if stand is None:
        return Page("Where", "where", el("p", "There is no such entry here."), {"section": None, "anchor": None})
    data = {"section": stand.section, "part": stand.part, "anchor": stand.anchor, "near": stand.near}
    return Page("Where", "where", el("p", el("a", given, href=here.seen.links.own(at=stand.anchor))), data)


def _redirect_record(stand: Redirect) -> dict[str, str | int]:
    return {"page": stand.address} | ({"branch": stand.branch} if stand.branch is not None else {})


def turns_page(asked: PageRequest) -> PageResult:
    """The outline around a turn."""
    kept = _cached_session(asked)
    seen = parse_view(asked, kept)
    agent = kept.agent(seen.agent)
    shown = turn_outline(kept, agent, seen.links, asked.number("around", 0))
    return Fragment("Turns", "turns", shown, list(turn_rows(agent)), is_bare=True)


def entry_page(asked: PageRequest) -> PageResult:
    """One entry: its JSON, and the line."""
    kept = _cached_session(asked)
    found, _agent = kept.entry(asked.named["anchor"])
    here = entry_anchor(asked.named["anchor"])
    links = SessionLinks(kept.id, agents=kept.agents)
    is_whole = asked.flag("whole")
    ways = el(
        "p",
        el("a", "in the conversation", href=links.entry(here)),
        " · ",
        el("a", "state here", href=links.state(here)),
        " · ",
        el("a", "Markdown", href=links.below("markdown", anchor=here)),
        () if is_whole else (" · ", el("a", "all of it", href=links.below("entry", here, whole=True))),
        class_="ways",
    )
    shown = render_raw_entry(found, Scene(View(), links, whole=is_whole, zone=asked.zone()))
    data = {
        "anchor": here,
        "kind": found.kind,
        "place": str(found.place),
        "text": found.line.raw.decode("utf-8", "replace"),
    }
    return Fragment(f"Entry {here}", "entry", _with_title(kept, f"Entry {here}", ways, shown), data)


def call_page(asked: PageRequest) -> PageResult:
    """One call, whole."""
    kept = _cached_session(asked)
    made = kept.calls.get(asked.named["call"])
    if made is None:
        raise NotFound("This session has no such call.")
    here = anchor_of(made.entry, made.agent)
    links = SessionLinks(kept.id, agents=kept.agents)
    scene = Scene(View(calls=Detail.FULL), links, whole=True, cwd=kept.facts.project or "", zone=asked.zone())
    ways = el(
        "p",
        el("a", "in the conversation", href=links.entry(here)),
        " · ",
        el("a", "JSON", href=links.raw(here)),
        class_="ways",
    )
    data = {
        "id": made.id,
        "tool": made.tool,
        "input": made.input,
        "output": made.output,
        "outcome": str(made.outcome),
        "evidence": made.evidence,
        "anchor": here,
        "agent": made.agent,
        "turn": made.turn,
        "timestamp": made.timestamp,
        "duration": made.duration,
    }
    return Fragment(
        f"Call {shorten(made.tool, 60)}",
        "call",
        _with_title(kept, f"Call {shorten(made.tool, 60)}", ways, drawn_call(made, here, scene)),
        data,
    )


def state_page(asked: PageRequest) -> PageResult:
    """How things stood at an entry; `end` is the end."""
    kept = _cached_session(asked)
    links = SessionLinks(kept.id, agents=kept.agents)
    here = asked.named["anchor"]
    against = asked.text("against")
    scene = Scene(View(), links, cwd=kept.facts.project or "", zone=asked.zone())
    found = _state_at(kept, here)
    other = _state_at(kept, against) if against is not None else None
    title = "State at the end" if here == _END else f"State at {here}"
    form = el(
        "form",
        el("label", "Compare with", el("input", name_="against", value=against or "", placeholder="L120")),
        el("button", "Compare"),
        *carried_inputs(),
        method="get",
        action=links.below("state", here),
    )
    changes = difference(other, found) if other is not None else ()
    return Fragment(
        title, "state", _with_title(kept, title, form, render_state(found, kept.session, scene, other, changes)), found
    )


def _state_at(kept: CachedSession, where_: str) -> State:
    if where_ == _END:
        return kept.session.at()
    found, _agent = kept.entry(where_)
    return kept.session.at(found.place)


def image_page(asked: PageRequest) -> PageResult:
    """A picture, of a kind that holds nothing but a picture."""
    kept = _cached_session(asked)
    found, _agent = kept.entry(asked.named["anchor"])
    number = asked.named["number"]
    every = list(images_of_entry(found))
    if not (number.isascii() and number.isdecimal() and len(number) < 9 and 1 <= int(number) <= len(every)):  # noqa: PLR2004 - digits
        raise NotFound("This entry has no such picture.")
    shown = image_data(every[int(number) - 1])
    if shown is None or len(shown[1]) > _MAX_IMAGE:
        raise NotFound("This picture is of a kind that is not shown.")
    try:
        return Picture(base64.b64decode(shown[1], validate=False), shown[0])
    except (binascii.Error, ValueError):
        raise NotFound("This picture is damaged.") from None


def find_page(asked: PageRequest) -> PageResult:
    """Where words stand."""
    here = open_session(asked)
    words = asked.text("q") or ""
    hits, total = find_text(here.drawn, words)
    rows = [
        el("li", el("a", hit.anchor, href=here.seen.links.own(at=hit.anchor, find=words)), " ", hit.snippet)
        for hit in hits[:200]
    ]
    main = join((el("h1", f"{total:,} with “{shorten(words, 80)}”"), el("ol", rows, class_="hits")))
    return Page("Find", "find", main, {"q": words, "total": total, "hits": hits})


def markdown_page(asked: PageRequest) -> PageResult:
    """The session or one entry as Markdown."""
    kept = _cached_session(asked)
    seen = parse_view(asked, kept)
    given = asked.text("anchor")
    if given is not None:
        found, agent = kept.entry(given)
        lines = entry_to_markdown(kept.session, agent, found, seen.view)
    else:
        lines = session_to_markdown(kept.session, seen.view, kept.news, kept.spent(asked.archive).total)
    return PlainText("\n".join(lines) + "\n", "text/markdown")


def usage_page(asked: PageRequest) -> PageResult:
    """Context and cost, turn by turn."""
    kept = _cached_session(asked)
    seen = parse_view(asked, kept)
    kept.agent(seen.agent)
    shown, rows = usage_table(kept, seen, asked.archive)
    return Page("Context and cost", "along", _with_title(kept, "Context and cost", shown), rows)


def related_page(asked: PageRequest) -> PageResult:
    """The sessions that this one continues, and those that continue it."""
    kept = _cached_session(asked)
    found = kept.continuations
    links = SessionLinks(kept.id, agents=kept.agents)
    rows = [
        el(
            "li",
            "goes on in " if one_.forward else "goes on from ",
            el("a", str(one_.session), href=links.session(one_.session))
            if one_.session
            else "a session that is not known",
            f" ({one_.kind}): {shorten(one_.evidence, 200)}",
        )
        for one_ in found
    ]
    shown = (
        el("ul", rows) if rows else el("p", "No other session of its folder shares anything with it.", class_="nothing")
    )
    return Page("Related sessions", "related", _with_title(kept, "Related sessions", shown), continuation_rows(found))


def _with_title(kept: CachedSession, title: str, *below: Markup) -> Markup:
    """What is shown, under its title and the way back to the session."""
    back = el(
        "p",
        el(
            "a",
            shorten(kept.session.title.text, 120) or "the session",
            href=SessionLinks(kept.id, agents=kept.agents).page(),
        ),
        class_="up",
    )
    return join((el("header", back, el("h1", title), class_="head"), *below))


def _cached_session(asked: PageRequest) -> CachedSession:
    return asked.session_cache.session(asked.named["session"], asked.archive)
