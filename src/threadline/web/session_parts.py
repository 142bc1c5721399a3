"""What lies below a session's page: sections, turns, entries, calls, states, pictures, and what scripts ask for."""

from __future__ import annotations

import base64
import binascii

from markupsafe import Markup

from threadline.errors import BadQuery, NotFound
from threadline.model.state import State
from threadline.render.as_markdown import entry_markdown, markdown
from threadline.render.html.anchor import anchor
from threadline.render.html.calls import call as drawn_call
from threadline.render.html.element import el, join
from threadline.render.html.pictures import images, source
from threadline.render.html.raw import raw
from threadline.render.html.scene import Scene
from threadline.render.html.state import state
from threadline.render.html.view import Amount, View
from threadline.render.html.words import one
from threadline.thread.state.difference import difference
from threadline.web.asked import Asked
from threadline.web.carried import carried_fields
from threadline.web.kept import Kept
from threadline.web.linked import Linked, entry_of
from threadline.web.page import Elsewhere, Fragment, Made, Page, Picture, Plain
from threadline.web.session_along import table_of
from threadline.web.session_feed import shape
from threadline.web.session_find import find
from threadline.web.session_head import continuation_rows
from threadline.web.session_page import opened
from threadline.web.session_side import turn_rows, turns
from threadline.web.standing import stand_of
from threadline.web.viewing import viewing

_MOST = 64 * 1024 * 1024
_END = "end"


def part(asked: Asked) -> Made:
    """What a section holds."""
    here = opened(asked)
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


def shaped(asked: Asked) -> Made:
    """The sections, as data and as a list of links."""
    here = opened(asked)
    links = here.seen.links
    rows = [el("li", el("a", one_.first, href=links.own(section=one_.number))) for one_ in here.drawn.drawing.sections]
    data = {"version": here.kept.version, **shape(here.drawn)}
    return Page("Sections", "shape", join((el("h1", "Sections"), el("ol", rows))), data)


def where(asked: Asked) -> Made:
    """Where an entry stands."""
    here = opened(asked)
    given = asked.text("anchor")
    if given is None:
        raise BadQuery("Name an entry: anchor=L120.")
    try:
        stand = stand_of(here.kept, here.seen, here.drawn, given)
    except NotFound:  # a link may be old or mistyped: that it leads nowhere is an answer, and no error
        stand = None
    if isinstance(stand, Elsewhere):
        return Page("Where", "where", el("p", el("a", given, href=stand.address)), _there(stand))
    if stand is None:
        return Page("Where", "where", el("p", "There is no such entry here."), {"section": None, "anchor": None})
    data = {"section": stand.section, "part": stand.part, "anchor": stand.anchor, "near": stand.near}
    return Page("Where", "where", el("p", el("a", given, href=here.seen.links.own(at=stand.anchor))), data)


def _there(stand: Elsewhere) -> dict[str, str | int]:
    return {"page": stand.address} | ({"branch": stand.branch} if stand.branch is not None else {})


def listed_turns(asked: Asked) -> Made:
    """The outline around a turn."""
    kept = _kept(asked)
    seen = viewing(asked, kept)
    agent = kept.agent(seen.agent)
    shown = turns(kept, agent, seen.links, asked.number("around", 0))
    return Fragment("Turns", "turns", shown, list(turn_rows(agent)), is_bare=True)


def entry(asked: Asked) -> Made:
    """One entry: its JSON, and the line."""
    kept = _kept(asked)
    found, _agent = kept.entry(asked.named["anchor"])
    here = entry_of(asked.named["anchor"])
    links = Linked(kept.id, agents=kept.agents)
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
    shown = raw(found, Scene(View(), links, whole=is_whole, zone=asked.zone()))
    data = {
        "anchor": here,
        "kind": found.kind,
        "place": str(found.place),
        "text": found.line.raw.decode("utf-8", "replace"),
    }
    return Fragment(f"Entry {here}", "entry", _titled(kept, f"Entry {here}", ways, shown), data)


def call(asked: Asked) -> Made:
    """One call, whole."""
    kept = _kept(asked)
    made = kept.calls.get(asked.named["call"])
    if made is None:
        raise NotFound("This session has no such call.")
    here = anchor(made.entry, made.agent)
    links = Linked(kept.id, agents=kept.agents)
    scene = Scene(View(calls=Amount.FULL), links, whole=True, cwd=kept.facts.project or "", zone=asked.zone())
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
        f"Call {one(made.tool, 60)}",
        "call",
        _titled(kept, f"Call {one(made.tool, 60)}", ways, drawn_call(made, here, scene)),
        data,
    )


def stated(asked: Asked) -> Made:
    """How things stood at an entry; `end` is the end."""
    kept = _kept(asked)
    links = Linked(kept.id, agents=kept.agents)
    here = asked.named["anchor"]
    against = asked.text("against")
    scene = Scene(View(), links, cwd=kept.facts.project or "", zone=asked.zone())
    found = _state(kept, here)
    other = _state(kept, against) if against is not None else None
    title = "State at the end" if here == _END else f"State at {here}"
    form = el(
        "form",
        el("label", "Compare with", el("input", name_="against", value=against or "", placeholder="L120")),
        el("button", "Compare"),
        *carried_fields(),
        method="get",
        action=links.below("state", here),
    )
    changes = difference(other, found) if other is not None else ()
    return Fragment(
        title, "state", _titled(kept, title, form, state(found, kept.session, scene, other, changes)), found
    )


def _state(kept: Kept, where_: str) -> State:
    if where_ == _END:
        return kept.session.at()
    found, _agent = kept.entry(where_)
    return kept.session.at(found.place)


def image(asked: Asked) -> Made:
    """A picture, of a kind that holds nothing but a picture."""
    kept = _kept(asked)
    found, _agent = kept.entry(asked.named["anchor"])
    number = asked.named["number"]
    every = list(images(found))
    if not (number.isascii() and number.isdecimal() and len(number) < 9 and 1 <= int(number) <= len(every)):  # noqa: PLR2004 - digits
        raise NotFound("This entry has no such picture.")
    shown = source(every[int(number) - 1])
    if shown is None or len(shown[1]) > _MOST:
        raise NotFound("This picture is of a kind that is not shown.")
    try:
        return Picture(base64.b64decode(shown[1], validate=False), shown[0])
    except (binascii.Error, ValueError):
        raise NotFound("This picture is damaged.") from None


def found_in(asked: Asked) -> Made:
    """Where words stand."""
    here = opened(asked)
    words = asked.text("q") or ""
    hits, total = find(here.drawn, words)
    rows = [
        el("li", el("a", hit.anchor, href=here.seen.links.own(at=hit.anchor, find=words)), " ", hit.snippet)
        for hit in hits[:200]
    ]
    main = join((el("h1", f"{total:,} with “{one(words, 80)}”"), el("ol", rows, class_="hits")))
    return Page("Find", "find", main, {"q": words, "total": total, "hits": hits})


def as_markdown(asked: Asked) -> Made:
    """The session or one entry as Markdown."""
    kept = _kept(asked)
    seen = viewing(asked, kept)
    given = asked.text("anchor")
    if given is not None:
        found, agent = kept.entry(given)
        lines = entry_markdown(kept.session, agent, found, seen.view)
    else:
        lines = markdown(kept.session, seen.view, kept.news, kept.spent(asked.archive).total)
    return Plain("\n".join(lines) + "\n", "text/markdown")


def along_page(asked: Asked) -> Made:
    """Context and cost, turn by turn."""
    kept = _kept(asked)
    seen = viewing(asked, kept)
    kept.agent(seen.agent)
    shown, rows = table_of(kept, seen, asked.archive)
    return Page("Context and cost", "along", _titled(kept, "Context and cost", shown), rows)


def related(asked: Asked) -> Made:
    """The sessions that this one continues, and those that continue it."""
    kept = _kept(asked)
    found = kept.continuations
    links = Linked(kept.id, agents=kept.agents)
    rows = [
        el(
            "li",
            "goes on in " if one_.forward else "goes on from ",
            el("a", str(one_.session), href=links.session(one_.session))
            if one_.session
            else "a session that is not known",
            f" ({one_.kind}): {one(one_.evidence, 200)}",
        )
        for one_ in found
    ]
    shown = (
        el("ul", rows) if rows else el("p", "No other session of its folder shares anything with it.", class_="nothing")
    )
    return Page("Related sessions", "related", _titled(kept, "Related sessions", shown), continuation_rows(found))


def _titled(kept: Kept, title: str, *below: Markup) -> Markup:
    """What is shown, under its title and the way back to the session."""
    back = el(
        "p",
        el("a", one(kept.session.title.text, 120) or "the session", href=Linked(kept.id, agents=kept.agents).page()),
        class_="up",
    )
    return join((el("header", back, el("h1", title), class_="head"), *below))


def _kept(asked: Asked) -> Kept:
    return asked.shelf.session(asked.named["session"], asked.archive)
