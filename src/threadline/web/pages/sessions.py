"""The list of all sessions and the jump palette, and the session rows that other pages share."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import datetime, timedelta, tzinfo
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from threadline.errors import BadQuery
from threadline.model.text import count, format_time
from threadline.model.times import in_zone
from threadline.model.totals import Sum
from threadline.render import shorten
from threadline.render import shorten as line
from threadline.render.html import Child, SessionRow, el, join, session_table, time_zone_note
from threadline.web import urls
from threadline.web.archive_pool import cached_figure
from threadline.web.pages.forms import FormField, PageRange, filter_form, form_on_error, pager, parse_range
from threadline.web.request import Page

if TYPE_CHECKING:
    from threadline.archive import Archive
    from threadline.index import SessionBrief
    from threadline.web.request import PageRequest

_PAGE_SIZE = 100
_SORTS = ("time", "cost", "turns", "calls", "agents", "duration", "title", "project")
_SortKey = Callable[[SessionRow], Any]
_SORT_KEYS: dict[str, _SortKey] = {
    "cost": lambda row: (-(row.amount or 0), -row.tokens),
    "turns": lambda row: -row.turns,
    "calls": lambda row: -row.calls,
    "agents": lambda row: -row.agents,
    "duration": lambda row: -(row.duration or timedelta()).total_seconds(),
    "title": lambda row: row.title.casefold(),
    "project": lambda row: row.project.casefold(),
}


def _fields(asked: PageRequest) -> Iterator[FormField]:
    yield FormField("grep", "Title", "words, or an id", kind="search")
    yield FormField("project", "Project", "part of path", offered=suggested_values(asked.archive, "project"))
    yield FormField("model", "Model", "part of name", offered=suggested_values(asked.archive, "model"))
    yield FormField("branch", "Branch", "a git branch", offered=suggested_values(asked.archive, "branch"))
    yield FormField("since", "Since", "7d, 2026-11-03")
    yield FormField("until", "Until", "yesterday")


@form_on_error("Sessions", _fields, "sort", "limit")
def sessions(asked: PageRequest) -> Page:
    """All sessions that fit what is asked."""
    here = asked.zone()
    shown = parse_range(asked, _PAGE_SIZE)
    order = asked.choice("sort", _SORTS, "time")
    rows, total = _page_rows(asked, here, shown, order)
    more = len(rows) > shown.limit
    rows = rows[: shown.limit]
    told = count(total, "session")
    main = join(
        (
            el("div", el("h1", told), time_zone_note(here), class_="head"),
            filter_form(asked, list(_fields(asked)), kept=("sort", "limit", "tz")),
            _session_table(asked, rows, here, order) if rows else el("p", _explain_nothing(asked), class_="nothing"),
            pager(asked, shown, len(rows), total, more=more),
        )
    )
    data = {"sessions": rows, "total": total, "after": shown.after, "more": more, "sort": order}
    return Page("Sessions", "sessions", main, data)


def _page_rows(asked: PageRequest, here: tzinfo, shown: PageRange, order: str) -> tuple[list[SessionRow], int]:
    """The rows of this part and one more, if there is one; and how many there are in all."""
    archive = asked.archive
    since, until = asked.moment("since", zone=here), asked.moment("until", end=True, zone=here)
    if since is not None and until is not None and since > until:
        raise BadQuery("since is later than until: nothing can lie between them.")
    every = [
        session_brief for session_brief in all_sessions(archive) if _matches_filters(session_brief, asked, since, until)
    ]
    for name, key in (("model", "model"), ("branch", "branch")):
        if (text := asked.text(name)) is not None:
            spenders = _sessions_spending_on(archive, key, text)
            every = [session_brief for session_brief in every if session_brief.id in spenders]
    if order == "time":
        return session_rows(archive, every[shown.after : shown.stop]), len(every)
    # To count all calls takes longer than all else; it is done where they are the order, and else for those shown.
    rows = session_rows(archive, every, all_call_counts(archive) if order == "calls" else {})
    pairs = sorted(zip(rows, every, strict=True), key=lambda pair: _SORT_KEYS[order](pair[0]))
    return session_rows(archive, [one for _row, one in pairs[shown.after : shown.stop]]), len(pairs)


def _matches_filters(
    session_brief: SessionBrief, asked: PageRequest, since: datetime | None, until: datetime | None
) -> bool:
    project, text = asked.text("project"), asked.text("grep")
    return (
        (project is None or _contains(session_brief.project, project))
        and (text is None or _contains(session_brief.title, text) or session_brief.name.startswith(text))
        and (since is None or (session_brief.last is not None and session_brief.last >= since))
        and (until is None or ((begun := session_brief.first or session_brief.last) is not None and begun <= until))
    )


def _sessions_spending_on(archive: Archive, key: str, text: str) -> Collection[str]:
    """The sessions that spent anything on a model, or on a branch, whose name holds a text."""
    pairs = cached_figure(
        archive,
        f"spenders by {key}",
        lambda: frozenset((row.keys["session"], row.keys[key]) for row in archive.ledger().by("session", key)),
    )
    return {session for session, value in pairs if _contains(value, text)}


def _contains(text: str, part_: str) -> bool:
    return part_.casefold() in text.casefold()


def suggested_values(archive: Archive, key: str) -> list[str]:
    """What charges have for a key, most spent first, to be offered in a form."""
    return cached_figure(archive, f"values of {key}", lambda: [row.keys[key] for row in archive.ledger().by(key)])


def _session_table(asked: PageRequest, rows: list[SessionRow], here: tzinfo, order: str) -> Child:
    def head(name: str) -> Child:
        if name not in _SORTS:
            return None
        label = {"time": "Last used"}.get(name, name.capitalize())
        href = asked.here(sort=name if name != "time" else None, after=None)
        return el("a", label, href=href, aria_current="true" if name == order else None, title=f"Order by {name}")

    return session_table("Sessions", rows, zone=here, project_address=project_url, heads=head)


def _explain_nothing(asked: PageRequest) -> str:
    every = all_sessions(asked.archive)
    if not every:
        homes = line(", ".join(str(home.path) for home in asked.archive.homes), 400)
        return f"There are no sessions in {homes}." if homes else "No home was found; name one with --home."
    last = f"; the newest is of {in_zone(every[0].last, asked.zone()):%Y-%m-%d}" if every[0].last is not None else ""
    return f"No session of {len(every):,} fits all of that{last}. Take something away above."


def session_costs(archive: Archive) -> Mapping[str, Sum]:
    """What each session spent, its agents included."""
    return cached_figure(archive, "costs", lambda: {row.keys["session"]: row for row in archive.ledger().by("session")})


def all_sessions(archive: Archive) -> tuple[SessionBrief, ...]:
    """All sessions, newest first."""
    return cached_figure(archive, "sessions", archive.open_index().sessions)


def all_call_counts(archive: Archive) -> Mapping[str, int]:
    """How many calls each session made."""
    return cached_figure(archive, "calls", archive.open_index().call_counts)


def session_rows(
    archive: Archive, sessions: Iterable[SessionBrief], calls: Mapping[str, int] | None = None
) -> list[SessionRow]:
    """Sessions as rows. `calls` is how many each made, where that is known already."""
    some = list(sessions)
    spent = session_costs(archive)
    living = archive.running()
    made = (
        calls
        if calls is not None
        else archive.open_index().call_counts(
            [session_brief.id for session_brief in some if session_brief.id is not None]
        )
    )
    return [
        _session_row(
            session_brief,
            spent.get(session_brief.id or "", Sum()),
            made.get(session_brief.id or "", 0),
            is_running=session_brief.id in living,
        )
        for session_brief in some
    ]


def project_url(path: str) -> str:
    """The sessions of a project."""
    return urls.build_url(urls.SESSIONS, project=path)


def _session_row(session_brief: SessionBrief, spent: Sum, calls: int, *, is_running: bool) -> SessionRow:
    return SessionRow(
        id=session_brief.id,
        title=session_brief.title,
        address=urls.session_url(session_brief.name),
        project=session_brief.project,
        first=session_brief.first,
        last=session_brief.last,
        model=session_brief.model,
        turns=session_brief.turns,
        calls=calls,
        agents=session_brief.agents,
        amount=spent.amount,
        unpriced=spent.unpriced,
        tokens=spent.tokens,
        running=is_running,
        kept=session_brief.kept,
    )


_MAX_OFFERS = 40
_PALETTE_PAGES: tuple[tuple[str, str, dict[str, str]], ...] = (
    ("Home", urls.HOME, {}),
    ("Sessions", urls.SESSIONS, {}),
    ("Search", urls.SEARCH, {}),
    ("Usage", urls.USAGE, {}),
    ("Usage by model", urls.USAGE, {"by": "model"}),
    ("Usage by project", urls.USAGE, {"by": "project"}),
    ("Calls", urls.CALLS, {}),
    ("Calls that failed", urls.CALLS, {"outcome": "error"}),
    ("Files", urls.FILES, {}),
    ("Doctor", urls.DOCTOR, {}),
    ("Keys", urls.KEYS, {}),
)


class PaletteItem(Struct, frozen=True):
    """A place to go to."""

    title: str
    address: str
    detail: str = ""


def palette(asked: PageRequest) -> Page:
    """What fits what was typed: pages, then sessions, then a search for it.

    Of both, those whose title begins with it come first, then those in whose title a word does; of sessions that are
    alike in that, the newest.
    """
    typed = (asked.text("q") or "").strip()
    offers = list(_palette_items(asked, typed))
    rows = [el("li", el("a", each.title, href=each.address), " ", each.detail, data_item=True) for each in offers]
    return Page("Go to", "palette", join((el("h1", "Go to"), el("ul", rows))), offers)


def _palette_items(asked: PageRequest, typed: str) -> Iterator[PaletteItem]:
    words = typed.casefold().split()
    pages = [page for page in _PALETTE_PAGES if all(word in page[0].casefold() for word in words)]
    for title, path, query in sorted(pages, key=lambda page: _title_rank(page[0], words)):
        yield PaletteItem(title, urls.build_url(path, **query), "page")
    here = asked.zone()
    fitting = [each for each in all_sessions(asked.archive) if _matches_words(each, words)]
    for each in sorted(fitting, key=lambda each: _title_rank(each.title, words))[:_MAX_OFFERS]:
        day = format_time(in_zone(each.last, here))[:10] if each.last is not None else "no time told"
        title = shorten(each.title, 120) or "(no title)"
        yield PaletteItem(title, urls.session_url(each.name), f"{day} · {shorten(each.project, 60)}")
    if typed:
        yield PaletteItem(f"Search for {shorten(typed, 60)}", urls.build_url(urls.SEARCH, q=typed), "all sessions")


def _matches_words(each: SessionBrief, words: list[str]) -> bool:
    """Whether every word stands in its title or project, or begins its id."""
    told = f"{each.title}\n{each.project}".casefold()
    return all(word in told or each.name.startswith(word) for word in words)


def _title_rank(title: str, words: list[str]) -> int:
    """0 for a title that begins with what was typed, 1 for one with words that do, 2 for any other."""
    told = title.casefold().split()
    if " ".join(told).startswith(" ".join(words)):
        return 0
    return 1 if all(any(one_.startswith(word) for one_ in told) for word in words) else 2
