"""Calls of all sessions, newest first."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import tzinfo
from typing import TYPE_CHECKING

from threadline.errors import BadQuery
from threadline.model.call import Outcome
from threadline.render.figures import span_of_time
from threadline.render.html.element import EMPTY, Child, el, join
from threadline.render.html.said import project, times_of, when
from threadline.render.html.table import Cells, Column, table
from threadline.render.html.words import one
from threadline.render.html.words import shown as clean
from threadline.render.telling import about
from threadline.web import addresses
from threadline.web.page import Page
from threadline.web.pages.asking_again import asking_again
from threadline.web.pages.filters import Field, filters, is_plain
from threadline.web.pages.leads import entry_address
from threadline.web.pages.paging import pager, part
from threadline.web.pages.recalled import recalled
from threadline.web.pages.sessions import values

if TYPE_CHECKING:
    from threadline.archive import Archive
    from threadline.model.listed import ListedCall
    from threadline.web.asked import Asked

_SHOWN = 100
_LONG = 110
_COLUMNS = (
    Column("When", "when"),
    Column("Tool", "tool"),
    Column("What", "what"),
    Column("Outcome", "outcome"),
    Column("Took", "number"),
    Column("Session", "title"),
    Column("Project", "path"),
)


def _fields(asked: Asked) -> list[Field]:
    archive = asked.archive
    tools = [
        ("", "all tools"),
        *((tool, f"{one(tool, 50)} ({n:,})") for tool, n in tool_counts(archive).items() if is_plain(tool)),
    ]
    outcomes = [("", "any"), *((str(word), str(word)) for word in Outcome)]
    return [
        Field("tool", "Tool", choices=tools),
        Field("outcome", "Outcome", choices=outcomes),
        Field("project", "Project", "part of path", offered=values(archive, "project")),
        Field("session", "Session", "the start of its id"),
        Field("since", "Since", "7d, 2026-11-03"),
        Field("until", "Until", "yesterday"),
    ]


@asking_again("Calls", _fields, "limit")
def calls(asked: Asked) -> Page:
    """Calls that fit what is asked."""
    archive = asked.archive
    here = asked.zone()
    shown = part(asked, _SHOWN)
    tools, outcomes = asked.texts("tool"), asked.texts("outcome")
    if (odd := next((word for word in outcomes if word not in list(Outcome)), None)) is not None:
        raise BadQuery(f"outcome={one(odd, 40)!r} is none of {', '.join(Outcome)}.")
    found = archive.calls(
        tools=tools,
        outcomes=outcomes,
        session=asked.text("session"),
        project=asked.text("project"),
        since=asked.moment("since", zone=here),
        until=asked.moment("until", end=True, zone=here),
        limit=shown.stop,
    )[shown.after :]
    more = len(found) > shown.limit
    found = found[: shown.limit]
    titles = archive.titles({str(call.session) for call in found if call.session is not None})
    told = {call: about(call.tool, archive.call_input(call)) for call in found}
    main = join(
        (
            el("div", el("h1", "Calls"), times_of(here), class_="head"),
            filters(asked, _fields(asked), kept=("limit", "tz")),
            _list(found, told, titles, here) if found else el("p", clean(_why(archive, tools)), class_="nothing"),
            pager(asked, shown, len(found), None, more=more),
        )
    )
    data = {
        "calls": [{"what": told[call], "title": titles.get(str(call.session)), "call": call} for call in found],
        "after": shown.after,
        "more": more,
    }
    return Page("Calls", "calls", main, data)


def tool_counts(archive: Archive) -> Mapping[str, int]:
    """How often each tool was called, most often first."""
    return recalled(archive, "tools", archive.tool_counts)


def _list(found: list[ListedCall], told: Mapping[ListedCall, str], titles: Mapping[str, str], here: tzinfo) -> Child:
    rows = [_row(call, told[call], titles.get(str(call.session)), here) for call in found]
    return table("Calls", _COLUMNS, rows, kind="list calls", heading=2, hidden_caption=True)


def _row(call: ListedCall, told: str, title: str | None, here: tzinfo) -> Cells:
    address = entry_address(call.session, call.agent, call.place.line)
    what = one(told, _LONG) or "(nothing given)"
    code = f" {call.exit_code}" if call.exit_code else ""
    whose = el("span", "agent", class_="agent-mark", title=one(str(call.agent), 80)) if call.agent else EMPTY
    page = addresses.session(str(call.session)) if call.session is not None else None
    name = one(title or str(call.session or ""), 48)
    cells: list[Child] = [
        when(call.timestamp, here),
        one(call.tool, 50),
        el("a", what, href=address) if address else what,
        el("span", f"{call.outcome}{code}", class_=f"outcome {call.outcome}"),
        span_of_time(call.duration),
        [el("a", name, href=page) if page else name, whose],
        project(call.project, addresses.address(addresses.CALLS, project=call.project)),
    ]
    return Cells(cells, str(call.outcome), item=True)


def _why(archive: Archive, tools: tuple[str, ...]) -> str:
    never = archive.never_called(tools) if tools else None
    return f"No call fits all of that: {never}." if never else "No call fits all of that. Take something away above."
