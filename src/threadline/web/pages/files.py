"""Files that sessions touched; and one file: who touched it, when and how."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import tzinfo
from typing import TYPE_CHECKING

from threadline.render.figures import count
from threadline.render.html.element import EMPTY, Child, el, join
from threadline.render.html.said import project, row_of_facts, times_of, when
from threadline.render.html.table import Cells, Column, folded, table
from threadline.render.html.words import one
from threadline.web import addresses
from threadline.web.page import Page
from threadline.web.pages.asking_again import asking_again
from threadline.web.pages.filters import Field, filters
from threadline.web.pages.leads import entry_address
from threadline.web.pages.paging import pager, part
from threadline.web.pages.sessions import values

if TYPE_CHECKING:
    from threadline.index.touches import Touch
    from threadline.model.listed import ListedFile
    from threadline.web.asked import Asked

_SHOWN = 100
_TOUCHES = 500
_PATH = 110
_COLUMNS = (
    Column("Last touched", "when"),
    Column("File", "path"),
    Column("Reads", "number"),
    Column("Writes", "number"),
    Column("Session", "title"),
    Column("Project", "path"),
)
_TOUCHED = (Column("When", "when"), Column("How", "how"), Column("Session", "title"), Column("By"))


def _fields(asked: Asked) -> list[Field]:
    return [
        Field("path", "File", "a path or its end", kind="search"),
        Field("project", "Project", "part of path", offered=values(asked.archive, "project")),
        Field("session", "Session", "the start of its id"),
        Field("since", "Since", "7d, 2026-11-03"),
        Field("until", "Until", "yesterday"),
    ]


@asking_again("Files", _fields, "limit")
def files(asked: Asked) -> Page:
    """Files that fit what is asked; where that is one file, each time that it was touched."""
    archive = asked.archive
    here = asked.zone()
    shown = part(asked, _SHOWN)
    path = asked.text("path")
    found = archive.files(
        path,
        session=asked.text("session"),
        project=asked.text("project"),
        since=asked.moment("since", zone=here),
        until=asked.moment("until", end=True, zone=here),
        limit=shown.stop,
    )[shown.after :]
    more = len(found) > shown.limit
    found = found[: shown.limit]
    alone = found[0].path if path is not None and len({each.path for each in found}) == 1 else None
    times = archive.touches(alone, _TOUCHES) if alone is not None else []
    held = {str(each.session) for each in found} | {str(each.session) for each in times}
    titles = archive.titles(held)
    main = join(
        (
            el(
                "div",
                el("h1", one(alone, 300) if alone else "Files"),
                _told(found) if alone else EMPTY,
                times_of(here),
                class_="head",
            ),
            filters(asked, _fields(asked), kept=("limit", "tz")),
            _list(found, titles, here) if found else el("p", _why(path), class_="nothing"),
            pager(asked, shown, len(found), None, more=more),
            _times(times, titles, here) if times else EMPTY,
        )
    )
    data = {
        "files": [{"title": titles.get(str(each.session)), "file": each} for each in found],
        "touches": times,
        "after": shown.after,
        "more": more,
    }
    return Page(one(alone, 80) if alone else "Files", "files", main, data)


def _told(found: list[ListedFile]) -> Child:
    reads, writes = sum(each.reads for each in found), sum(each.writes for each in found)
    facts = (count(len(found), "session"), count(reads, "read"), count(writes, "write"))
    return row_of_facts(facts)


def _list(found: list[ListedFile], titles: Mapping[str, str], here: tzinfo) -> Child:
    rows = [_row(each, titles, here) for each in found]
    return table("Files", _COLUMNS, rows, kind="list files", heading=1, hidden_caption=True)


def _row(each: ListedFile, titles: Mapping[str, str], here: tzinfo) -> Cells:
    whole = addresses.address(addresses.FILES, path=each.path)
    cells: list[Child] = [
        when(each.last, here),
        el("a", shortened(each.path), href=whole, title=one(each.path, 400)),
        f"{each.reads:,}" if each.reads else "",
        f"{each.writes:,}" if each.writes else "",
        _session(each.session, titles),
        project(each.project, addresses.address(addresses.FILES, project=each.project)),
    ]
    return Cells(cells, item=True)


def shortened(path: str) -> str:
    """A path in one line; of one that is long, the end, which tells more."""
    return one(path, _PATH) if len(path) <= _PATH else "…" + one(path[1 - _PATH :], _PATH)


def _session(session: str | None, titles: Mapping[str, str]) -> Child:
    if session is None:
        return ""
    return el("a", one(titles.get(str(session)) or str(session), 70), href=addresses.session(str(session)))


def _times(times: list[Touch], titles: Mapping[str, str], here: tzinfo) -> Child:
    rows = [_time(each, titles, here) for each in times]
    note = f"The last {_TOUCHES} times" if len(times) == _TOUCHES else count(len(times), "time")
    made = table("Each time that it was touched", _TOUCHED, rows, kind="list", hidden_caption=True)
    inside = made if len(times) <= _SHOWN else folded(note, made)
    return el("section", el("h2", f"Each time that it was touched: {note}"), inside, class_="block")


def _time(each: Touch, titles: Mapping[str, str], here: tzinfo) -> list[Child]:
    address = entry_address(each.session, each.agent, each.place.line)
    moment = when(each.timestamp, here) or "at no known time"
    return [
        el("a", moment, href=address) if address else moment,
        one(each.how, 20),
        _session(each.session, titles),
        f"agent {one(str(each.agent), 20)}" if each.agent else "main agent",
    ]


def _why(path: str | None) -> str:
    if path is not None:
        return f"No session touched a file whose path is, or ends with, {one(path, 200)}. Write whole names."
    return "No file fits all of that. Take something away above."
