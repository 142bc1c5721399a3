"""The page of all sessions: filtered, ordered and in parts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from datetime import datetime, timedelta, tzinfo
from typing import TYPE_CHECKING, Any

from threadline.errors import BadQuery
from threadline.model.zone import in_zone
from threadline.render.figures import count
from threadline.render.html.element import Child, el, join
from threadline.render.html.lists import SessionRow, session_list
from threadline.render.html.said import times_of
from threadline.render.html.words import one as line
from threadline.web.page import Page
from threadline.web.pages.asking_again import asking_again
from threadline.web.pages.filters import Field, filters
from threadline.web.pages.listed import every_call_count, every_session, listed, project_address
from threadline.web.pages.paging import Part, pager, part
from threadline.web.pages.recalled import recalled

if TYPE_CHECKING:
    from threadline.archive import Archive
    from threadline.index.briefs import Brief
    from threadline.web.asked import Asked

_SHOWN = 100
_SORTS = ("time", "cost", "turns", "calls", "agents", "duration", "title", "project")
_Key = Callable[[SessionRow], Any]
_KEYS: dict[str, _Key] = {
    "cost": lambda row: (-(row.amount or 0), -row.tokens),
    "turns": lambda row: -row.turns,
    "calls": lambda row: -row.calls,
    "agents": lambda row: -row.agents,
    "duration": lambda row: -(row.duration or timedelta()).total_seconds(),
    "title": lambda row: row.title.casefold(),
    "project": lambda row: row.project.casefold(),
}


def _fields(asked: Asked) -> Iterator[Field]:
    yield Field("grep", "Title", "words, or an id", kind="search")
    yield Field("project", "Project", "part of path", offered=values(asked.archive, "project"))
    yield Field("model", "Model", "part of name", offered=values(asked.archive, "model"))
    yield Field("branch", "Branch", "a git branch", offered=values(asked.archive, "branch"))
    yield Field("since", "Since", "7d, 2026-11-03")
    yield Field("until", "Until", "yesterday")


@asking_again("Sessions", _fields, "sort", "limit")
def sessions(asked: Asked) -> Page:
    """All sessions that fit what is asked."""
    here = asked.zone()
    shown = part(asked, _SHOWN)
    order = asked.choice("sort", _SORTS, "time")
    rows, total = _rows(asked, here, shown, order)
    more = len(rows) > shown.limit
    rows = rows[: shown.limit]
    told = count(total, "session")
    main = join(
        (
            el("div", el("h1", told), times_of(here), class_="head"),
            filters(asked, list(_fields(asked)), kept=("sort", "limit", "tz")),
            _list(asked, rows, here, order) if rows else el("p", _why(asked), class_="nothing"),
            pager(asked, shown, len(rows), total, more=more),
        )
    )
    data = {"sessions": rows, "total": total, "after": shown.after, "more": more, "sort": order}
    return Page("Sessions", "sessions", main, data)


def _rows(asked: Asked, here: tzinfo, shown: Part, order: str) -> tuple[list[SessionRow], int]:
    """The rows of this part and one more, if there is one; and how many there are in all."""
    archive = asked.archive
    since, until = asked.moment("since", zone=here), asked.moment("until", end=True, zone=here)
    if since is not None and until is not None and since > until:
        raise BadQuery("since is later than until: nothing can lie between them.")
    every = [one for one in every_session(archive) if _fits(one, asked, since, until)]
    for name, key in (("model", "model"), ("branch", "branch")):
        if (text := asked.text(name)) is not None:
            spenders = _spenders(archive, key, text)
            every = [one for one in every if one.id in spenders]
    if order == "time":
        return listed(archive, every[shown.after : shown.stop]), len(every)
    # To count all calls takes longer than all else; it is done where they are the order, and else for those shown.
    rows = listed(archive, every, every_call_count(archive) if order == "calls" else {})
    pairs = sorted(zip(rows, every, strict=True), key=lambda pair: _KEYS[order](pair[0]))
    return listed(archive, [one for _row, one in pairs[shown.after : shown.stop]]), len(pairs)


def _fits(one: Brief, asked: Asked, since: datetime | None, until: datetime | None) -> bool:
    project, text = asked.text("project"), asked.text("grep")
    return (
        (project is None or _holds(one.project, project))
        and (text is None or _holds(one.title, text) or one.name.startswith(text))
        and (since is None or (one.last is not None and one.last >= since))
        and (until is None or ((begun := one.first or one.last) is not None and begun <= until))
    )


def _spenders(archive: Archive, key: str, text: str) -> Collection[str]:
    """The sessions that spent anything on a model, or on a branch, whose name holds a text."""
    pairs = recalled(
        archive,
        f"spenders by {key}",
        lambda: frozenset((row.keys["session"], row.keys[key]) for row in archive.ledger().by("session", key)),
    )
    return {session for session, value in pairs if _holds(value, text)}


def _holds(text: str, part_: str) -> bool:
    return part_.casefold() in text.casefold()


def values(archive: Archive, key: str) -> list[str]:
    """What charges have for a key, most spent first, to be offered in a form."""
    return recalled(archive, f"values of {key}", lambda: [row.keys[key] for row in archive.ledger().by(key)])


def _list(asked: Asked, rows: list[SessionRow], here: tzinfo, order: str) -> Child:
    def head(name: str) -> Child:
        if name not in _SORTS:
            return None
        label = {"time": "Last used"}.get(name, name.capitalize())
        href = asked.here(sort=name if name != "time" else None, after=None)
        return el("a", label, href=href, aria_current="true" if name == order else None, title=f"Order by {name}")

    return session_list("Sessions", rows, zone=here, project_address=project_address, heads=head)


def _why(asked: Asked) -> str:
    every = every_session(asked.archive)
    if not every:
        homes = line(", ".join(str(home.path) for home in asked.archive.homes), 400)
        return f"There are no sessions in {homes}." if homes else "No home was found; name one with --home."
    last = f"; the newest is of {in_zone(every[0].last, asked.zone()):%Y-%m-%d}" if every[0].last is not None else ""
    return f"No session of {len(every):,} fits all of that{last}. Take something away above."
