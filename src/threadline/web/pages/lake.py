"""The pages of a lake: a dashboard, usage, the list of sessions, and search. A session has the same pages as any."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import tzinfo
from typing import TYPE_CHECKING, Any

from threadline import lake as lakes
from threadline.account import KEY_DESCRIPTIONS
from threadline.annotations import NO_ANNOTATION, Annotation
from threadline.errors import BadQuery
from threadline.model.ledger import NONE, Row, Sum
from threadline.model.text import count, format_size, last_names, noun_for, short_model_name
from threadline.model.times import parse_timestamp, zone_name
from threadline.render import shorten, visible
from threadline.render.html import (
    EMPTY,
    Child,
    Column,
    SessionRow,
    amount_element,
    el,
    facts_row,
    figures_row,
    join,
    number_element,
    project_link,
    render_table,
    session_table,
    share_bar,
    time_element,
    time_zone_note,
    with_code,
)
from threadline.web import urls
from threadline.web.pages.annotations import SEND_ORIGIN, annotation_facts, read_or_none
from threadline.web.pages.forms import FormField, filter_form, form_on_error, is_safe_value, pager, parse_range
from threadline.web.pages.period import parse_period, period_chips
from threadline.web.pages.search import highlight_text
from threadline.web.pages.sessions import project_url, row_star, sortable_table
from threadline.web.pages.usage import (
    MEASURES,
    UsageAnswer,
    UsageFilter,
    answer_usage,
    render_usage_chart,
    render_usage_table,
    totals_block,
    treemap_block,
    usage_choices,
)
from threadline.web.request import Page

if TYPE_CHECKING:
    from threadline.account import Ledger
    from threadline.lake import LakeReader, LakeSession, LakeState
    from threadline.web.request import PageRequest

_MAIN_KEYS = ("team", "person", "project", "model", "day")
_KEYS = (*_MAIN_KEYS, *(key for key in KEY_DESCRIPTIONS if key not in _MAIN_KEYS))
_COLUMNS = ("time", "title", "project", "model", "turns", "agents", "amount", "duration")
_DASHBOARD_KEYS = ("team", "person", "project", "model")
_PAGE_SIZE, _MAX_ROWS, _MAX_TOP, _MAX_RECENT, _MAX_FACETS = 100, 2000, 8, 8, 60
_DEFAULT_HITS, _MAX_HITS, _MAX_QUERY = 30, 200, 500
_SNIPPET = 240
_MACHINE_COLUMNS = (
    Column("Person"),
    Column("Team", "wide-only"),
    Column("Machine"),
    Column("Last push", "when"),
    Column("Sessions", "number"),
    Column("Size", "number wide-only"),
)


def lake_home_page(request: PageRequest) -> Page:
    """The dashboard: what was spent, by whom and on what, recent sessions, and who pushes."""
    lake, state, zone = _lake(request), _state(request), request.zone()
    usage = state.usage
    period = parse_period(request, usage.ledger)
    ledger = usage.ledger.where(since=period.since, until=period.until)
    key = "team" if state.teams else "person"
    selection = UsageFilter((key,), period.today, period.since, period.until)
    answer = state.cached(lambda: _answer(state, ledger, selection, zone), "home", selection, zone_name(zone))
    keys = [name for name in _DASHBOARD_KEYS if name != "team" or state.teams]
    tables = {name: ledger.by(name, zone=zone, extra=usage.keys).rows for name in keys}
    recent, total = state.sessions(lakes.LakeSessionFilter(), limit=_MAX_RECENT)
    rows = _session_rows(recent)
    main = join(
        (
            el(
                "div",
                el("h1", "Team lake"),
                facts_row((el("span", shorten(lake.bucket.name, 120), class_="path"), *period.describe(zone))),
                _policy_note(state),
                class_="head",
            ),
            el("div", period_chips(request, period), class_="links"),
            figures_row(_figures(state, answer.total, ledger)),
            el("section", render_usage_chart(answer, selection, "amount", zone), class_="block"),
            el(
                "div",
                [_top_block(request, name, tables[name], answer.total) for name in keys],
                class_="side-by-side tight",
            ),
            _section(
                "Recent sessions",
                session_table(
                    "Recent sessions",
                    rows,
                    zone=zone,
                    columns=("time", "title", "project", "turns", "amount"),
                    project_address=project_url,
                    marks=row_star,
                    facts=_person_facts(state, recent),
                ),
                urls.build_url(urls.SESSIONS),
                f"All {total:,}",
            ),
            _section("Machines", _machine_table(state, zone)),
        )
    )
    data = {
        "lake": lake.bucket.uri,
        "policy": state.info.policy,
        "commit": state.commit.number,
        "built": state.commit.built,
        "since": period.since,
        "until": period.until,
        "total": answer.document["total"],
        "usage": {name: [_row_record(row) for row in table] for name, table in tables.items()},
        "sessions": total,
        "recent": recent,
        "machines": state.machines,
    }
    return Page("", "usage", main, data, head=SEND_ORIGIN)


def _lake(request: PageRequest) -> LakeReader:
    lake = request.pool.lake
    if lake is None:
        raise BadQuery("This server shows no lake. Start it with: threadline serve --lake URI")
    return lake


def _state(request: PageRequest) -> LakeState:
    return _lake(request).state


def _policy_note(state: LakeState) -> Child:
    """What the lake's policy means for readers."""
    policy = state.info.policy
    return el("p", with_code(f"Policy {policy}: {lakes.POLICIES[policy]}."), class_="note")


def _figures(state: LakeState, total: Sum, ledger: Ledger) -> Iterator[tuple[Child, Child, str | None]]:
    people = {state.usage.keys["person"](charge) for charge in ledger}
    yield amount_element(total.amount, total.unpriced) or "$0.00", "amount", None
    yield number_element(total.tokens), "tokens", None
    yield f"{len(ledger.sessions):,}", "sessions with usage", None
    yield f"{len(people):,}", noun_for(len(people), "person", "people"), "people who spent something"
    machines = len({row.machine for row in state.machines})
    yield f"{machines:,}", noun_for(machines, "machine"), None


def _top_block(request: PageRequest, key: str, rows: Sequence[Row], total: Sum) -> Child:
    """The largest values of a key, and a link to all of them."""
    period = {name: text for name in ("since", "until") if (text := request.text(name)) is not None}
    all_url = urls.build_url(urls.USAGE, by=key, **period)
    cells = [
        [
            _key_link(key, row.keys[key], period),
            f"{row.charges:,}",
            [_amount(row), share_bar(row.amount / total.amount if row.amount and total.amount else 0)],
        ]
        for row in rows[:_MAX_TOP]
    ]
    columns = (Column(key.capitalize()), Column("Charges", "number"), Column("Amount", "number amount"))
    table = render_table(f"By {key}", columns, cells, kind="list tops", hidden_caption=True)
    label = "All" if len(rows) <= _MAX_TOP else f"All {len(rows):,}"
    return _section(f"By {key}", table if cells else el("p", "Nothing.", class_="nothing"), all_url, label)


def _amount(row: Row) -> Child:
    return amount_element(row.amount, row.unpriced)


def _key_link(key: str, value: str, period: dict[str, str]) -> Child:
    if value == NONE and key == "team":
        return "no team"
    if value.startswith("("):
        return value
    url = urls.build_url(urls.SESSIONS, **{key: value}, **period)
    if key == "project":
        return project_link(value, url)
    return el("a", shorten(short_model_name(value) if key == "model" else value, 60), href=url)


def _row_record(row: Row) -> dict[str, Any]:
    return {**row.keys, "charges": row.charges, "tokens": row.tokens, "amount": row.amount, "unpriced": row.unpriced}


def _section(title: str, content: Child, url: str | None = None, label: str = "") -> Child:
    link = el("a", label, href=url, class_="all") if url is not None else EMPTY
    return el("section", el("h2", title, " ", link), content, class_="block")


def _machine_table(state: LakeState, zone: tzinfo) -> Child:
    rows = [
        [
            el("a", shorten(machine.person, 60), href=urls.build_url(urls.SESSIONS, person=machine.person)),
            shorten(state.teams.get(machine.person, ""), 60),
            shorten(machine.label, 60),
            time_element(parse_timestamp(machine.pushed), zone),
            f"{machine.sessions:,}",
            format_size(machine.bytes),
        ]
        for machine in state.machines
    ]
    return render_table("Machines", _MACHINE_COLUMNS, rows, kind="list", hidden_caption=True)


# --- usage


def _usage_fields(request: PageRequest) -> Iterator[FormField]:
    yield FormField("since", "Since", "30d, 2026-11-03")
    yield FormField("until", "Until", "yesterday")
    yield from _people_fields(request)
    yield FormField("project", "Project", "part of path")
    yield FormField("model", "Model", "part of name")


def _people_fields(request: PageRequest) -> Iterator[FormField]:
    state = _state(request)
    people = [(name, f"{shorten(name, 40)} ({number:,})") for name, number in state.values("person", _MAX_FACETS)]
    yield FormField("person", "Person", choices=[("", "all"), *(pair for pair in people if is_safe_value(pair[0]))])
    teams = [(name, shorten(name, 40)) for name in sorted(set(state.teams.values())) if is_safe_value(name)]
    if teams:
        yield FormField("team", "Team", choices=[("", "all"), *teams])


def _selected_people(request: PageRequest) -> tuple[str, ...] | None:
    """The people that the filters `person` and `team` choose; None for everybody."""
    person, team = request.text("person"), request.text("team")
    if person is None and team is None:
        return None
    people = _state(request).people_of(team) if team is not None else (person or "",)
    return tuple(name for name in people if person is None or name == person)


@form_on_error("Usage", "usage", _usage_fields, "by", "measure", "limit")
def lake_usage_page(request: PageRequest) -> Page:
    """Tokens and cost over time, and by any key."""
    state, zone = _state(request), request.zone()
    keys = tuple(dict.fromkeys(request.texts("by"))) or ("team" if state.teams else "person",)
    lakes.check_keys(keys)
    measure = request.choice("measure", tuple(MEASURES), "amount")
    usage = state.usage
    period = parse_period(request, usage.ledger)
    people = _selected_people(request)
    selection = UsageFilter(
        keys,
        period.today,
        period.since,
        period.until,
        request.text("project"),
        request.text("model"),
        limit=request.number("limit", 200, least=1, most=_MAX_ROWS),
    )

    def compute() -> UsageAnswer:
        predicate = None if people is None else lambda charge: usage.keys["person"](charge) in people
        ledger = usage.ledger.where(
            predicate, since=period.since, until=period.until, project=selection.project, model=selection.model
        )
        return _answer(state, ledger, selection, zone)

    answer = state.cached(compute, "usage", selection, people, zone_name(zone))
    listed = state.known_sessions({row.keys["session"] for row in answer.shares})
    main = join(
        (
            el("div", el("h1", "Usage"), facts_row(period.describe(zone)), class_="head"),
            usage_choices(request, keys, measure, period, choices=_KEYS, main=_MAIN_KEYS),
            filter_form(request, list(_usage_fields(request)), preserve=("by", "measure", "limit")),
            totals_block(answer.total),
            el("section", render_usage_chart(answer, selection, measure, zone), class_="block"),
            treemap_block(request, answer, listed),
            el("section", render_usage_table(request, answer, keys), class_="block"),
            el("ul", [el("li", visible(note)) for note in answer.notes], class_="notes") if answer.notes else EMPTY,
        )
    )
    return Page("Usage", "usage", main, answer.document)


def _answer(state: LakeState, ledger: Ledger, selection: UsageFilter, zone: tzinfo) -> UsageAnswer:
    return answer_usage(
        ledger, selection, zone, extra=state.usage.keys, titles=state.titles, with_page=state.known_sessions
    )


# --- sessions


def _session_fields(request: PageRequest) -> Iterator[FormField]:
    yield FormField("grep", "Title", "words, or an id", kind="search")
    yield from _people_fields(request)
    projects = _state(request).values("project", _MAX_FACETS)
    choices = [
        (name, f"{shorten(last_names(name), 40)} ({number:,})") for name, number in projects if is_safe_value(name)
    ]
    yield FormField("project", "Project", choices=[("", "all"), *choices])
    yield FormField("model", "Model", "part of name")
    yield FormField("since", "Since", "7d, 2026-11-03")
    yield FormField("until", "Until", "yesterday")


@form_on_error("Sessions", "sessions", _session_fields, "sort", "limit")
def lake_sessions_page(request: PageRequest) -> Page:
    """All sessions of the lake that match the filters. A session that several machines have is listed once."""
    state, zone = _state(request), request.zone()
    shown = parse_range(request, _PAGE_SIZE)
    sort = request.choice("sort", tuple(lakes.SESSION_ORDERS), "time")
    since, until = request.time_range()
    selection = lakes.LakeSessionFilter(
        text=request.text("grep"),
        people=_selected_people(request),
        project=request.text("project"),
        model=request.text("model"),
        since=since,
        until=until,
        sort=sort,
    )
    sessions, total = state.sessions(selection, after=shown.after, limit=shown.limit)
    more = shown.after + len(sessions) < total
    rows = _session_rows(sessions)
    main = join(
        (
            el("div", el("h1", count(total, "session")), time_zone_note(zone), _policy_note(state), class_="head"),
            filter_form(request, list(_session_fields(request)), preserve=("sort", "limit")),
            sortable_table(request, rows, sort, _person_facts(state, sessions), _COLUMNS)
            if rows
            else el("p", "No matching sessions. Remove a filter.", class_="nothing"),
            pager(request, shown, len(rows), total, more=more),
        )
    )
    data = {"sessions": sessions, "total": total, "after": shown.after, "more": more, "sort": sort}
    return Page("Sessions", "sessions", main, data, request.list_attributes(), head=SEND_ORIGIN)


def _session_rows(sessions: Sequence[LakeSession]) -> list[SessionRow]:
    annotations = read_or_none().sessions
    return [_session_row(session, annotations.get(session.session, NO_ANNOTATION)) for session in sessions]


def _session_row(session: LakeSession, annotation: Annotation) -> SessionRow:
    return SessionRow(
        id=session.session,
        title=session.title,
        address=urls.session_url(session.session),
        project=session.project,
        first=session.first,
        last=session.last,
        model=session.model,
        turns=session.turns,
        calls=0,
        agents=session.agents,
        amount=session.amount,
        unpriced=session.unpriced,
        tokens=session.tokens,
        starred=annotation.starred,
        tags=annotation.tags,
        note=annotation.note,
    )


def _person_facts(state: LakeState, sessions: Sequence[LakeSession]) -> Callable[[SessionRow], list[Child]]:
    """A function that says who pushed the session of a row, and how many copies there are."""
    by_id = {session.session: session for session in sessions}
    annotations = read_or_none().sessions

    def describe(row: SessionRow) -> list[Child]:
        session = by_id[str(row.id)]
        people = [
            el(
                "a",
                shorten(person, 40),
                href=urls.build_url(urls.SESSIONS, person=person),
                title=state.teams.get(person),
            )
            for person in session.people
        ]
        copies = count(session.copies, "copy", "copies") if session.copies > 1 else None
        return [*people, copies, *annotation_facts(annotations.get(session.session, NO_ANNOTATION))]

    return describe


# --- search


def _search_fields(request: PageRequest) -> Iterator[FormField]:
    yield FormField("q", "Words", "whole words", kind="search")
    yield from _people_fields(request)
    yield FormField("project", "Project", "part of path")
    yield FormField("since", "Since", "7d, 2026-11-03")
    yield FormField("until", "Until", "yesterday")


@form_on_error("Search", "search", _search_fields, "limit")
def lake_search_page(request: PageRequest) -> Page:
    """The texts that contain all words, newest first."""
    state, zone = _state(request), request.zone()
    query = (request.text("q") or "").strip()
    if len(query) > _MAX_QUERY:
        raise BadQuery(f"This query has {len(query):,} characters. At most {_MAX_QUERY:,} are allowed.")
    limit = request.number("limit", _DEFAULT_HITS, least=1, most=_MAX_HITS)
    since, until = request.time_range()
    search = lakes.TextSearch(
        lakes.parse_words(query), _selected_people(request), request.text("project"), since, until, limit + 1
    )
    hits = state.search(search) if search.words else []
    more, hits = len(hits) > limit, hits[:limit]
    head: Child = EMPTY
    if state.info.policy is lakes.Policy.METRICS:
        head = el(
            "p",
            "This lake has the policy metrics: no text is pushed, so there is nothing to search but tool names and"
            " lengths.",
            class_="note",
        )
    elif state.info.policy is lakes.Policy.REDACTED:
        head = el("p", "This lake has the policy redacted: what was removed cannot be found.", class_="note")
    main = join(
        (
            el("div", el("h1", f"Search: {shorten(query, 80)}" if query else "Search"), head, class_="head"),
            filter_form(request, list(_search_fields(request)), preserve=("limit",)),
            _hit_list(state, hits, search, zone) if hits else _explain_no_hits(search),
            el("p", el("a", "Show more", href=request.url_with(limit=_MAX_HITS), class_="button"), class_="pager")
            if more and limit < _MAX_HITS
            else EMPTY,
        )
    )
    data = {"query": query, "hits": [_hit_record(hit, search) for hit in hits], "more": more}
    title = f"{shorten(query, 60)} · Search" if query else "Search"
    return Page(title, "search", main, data)


def _explain_no_hits(search: lakes.TextSearch) -> Child:
    if not search.words:
        text = 'Enter words. Every text with all of them is found, newest first; "rate limit" in quotes is a phrase.'
    else:
        text = "No text contains all of these words. Words have to be complete; try fewer of them."
    return el("p", text, class_="nothing")


def _hit_record(hit: lakes.LakeHit, search: lakes.TextSearch) -> dict[str, Any]:
    snippet, highlights = search.snippet(hit.text, _SNIPPET)
    return {
        "timestamp": hit.timestamp,
        "person": hit.person,
        "project": hit.project,
        "session": hit.session,
        "agent": hit.agent,
        "line": hit.line,
        "field": hit.field,
        "title": hit.title,
        "snippet": snippet,
        "highlights": highlights,
    }


def _hit_list(state: LakeState, hits: Sequence[lakes.LakeHit], search: lakes.TextSearch, zone: tzinfo) -> Child:
    items = []
    for hit in hits:
        url = urls.entry_url(hit.session, hit.agent, hit.line, mark=search.tokens)
        title = shorten(hit.title or "(no title)", 160)
        team = state.teams.get(hit.person)
        facts = [
            time_element(hit.timestamp, zone),
            el("span", shorten(hit.field, 40), class_="field"),
            el("a", shorten(hit.person, 40), href=urls.build_url(urls.SESSIONS, person=hit.person), title=team),
            project_link(hit.project, project_url(hit.project)),
            el("span", f"agent {shorten(hit.agent, 12)}") if hit.agent else None,
        ]
        items.append(
            el(
                "li",
                el("h2", el("a", title, href=url) if url else title),
                el("p", highlight_text(*search.snippet(hit.text, _SNIPPET)), class_="snippet"),
                facts_row(facts),
                data_item=True,
            )
        )
    return el("ol", items, class_="hits")
