"""`threadline list`: list sessions, newest first.

The command function is called `list` and hides the builtin in this module. Do not add code that needs the builtin.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import tzinfo
from itertools import chain
from typing import Any

import click

from threadline.archive import Archive, SpendingBySession, UnlistedSpending
from threadline.cli import EXIT_NOTHING, EXIT_OK
from threadline.cli import output as out
from threadline.cli.options import (
    colour_option,
    complete_with,
    home_option,
    jobs_option,
    limit_option,
    output_options,
    project_option,
    since_option,
    timezone_option,
    until_option,
)
from threadline.cli.resolve import open_archive
from threadline.files import escape_path
from threadline.json_values import to_json_value
from threadline.model.ledger import Sum
from threadline.model.places import is_uuid
from threadline.model.text import (
    count,
    count_agents,
    format_amount,
    format_size,
    format_time,
    format_tokens,
    join_some,
    short_id,
    short_model_name,
)
from threadline.model.times import TimeRange, zone_name
from threadline.render import Role, Span, Spans, Style, cut_line, display_width, fit_facts, one_line, plain, wrap
from threadline.summary import SessionFilter, SessionList, SessionSummary

_DEFAULT_LIMIT = 30
_MIN_PROJECT = 14
_EPILOG = """
\b
Examples:
  threadline list                            newest sessions of all homes
  threadline list --project app --since 7d   one project, last seven days
  threadline list --title parser             title contains "parser"
  threadline list --agent-type Explore       started an Explore agent
  threadline list --limit 0                  all sessions
  threadline list --json                     all sessions, for a program
"""


@click.command(epilog=_EPILOG)
@project_option()
@click.option("--title", metavar="TEXT", help="Only sessions whose title contains TEXT.")
@click.option("--machine", metavar="NAME", help="Only sessions of this machine (the keep may have several).")
@click.option(
    "--agent-type",
    metavar="TYPE",
    shell_complete=complete_with("agent-types"),
    help="Only sessions that started an agent of this type.",
)
@since_option("Only sessions active at or after WHEN: 2026-11-03, 7d, yesterday.")
@until_option("Only sessions started up to WHEN.")
@timezone_option
@limit_option(f"Show at most N sessions. Default: {_DEFAULT_LIMIT}; no limit for --json, --jsonl and --csv.")
@colour_option
@home_option
@jobs_option
@output_options
def list(  # noqa: A001 - a command has the name that people type
    *,
    project: str | None,
    title: str | None,
    machine: str | None,
    agent_type: str | None,
    since: str | None,
    until: str | None,
    zone: tzinfo,
    limit: int | None,
    colour: bool,
    homes: tuple[str, ...],
    jobs: int | None,
    output: str,
) -> int:
    """List sessions, newest first.

    Shows title, time of last use, turns, agents, model, cost, size and project. Agents are counted with their session,
    not listed. `running` marks sessions with a live process; `kept` marks sessions that Claude Code has deleted and
    that exist only in the keep.
    """
    time = TimeRange.parse(since, until, tz=zone)
    criteria = SessionFilter(
        project=project,
        title=title,
        machine=machine,
        agent_type=agent_type,
        since=time.since,
        until=time.until,
        limit=limit or (_DEFAULT_LIMIT if output == "table" else None),
    )
    with open_archive(homes, jobs) as archive:
        if not archive.homes:
            out.report_no_home()
        listing = archive.sessions(criteria)
        spending = _spending_of(archive, listing, output)
        unlisted = _find_unlisted(archive, spending, criteria, listing) if spending is not None else ()
        if output != "table" and spending is not None:
            rows = (_session_row(session, spending) for session in listing)
            out.print_rows(chain(rows, map(_unlisted_row, unlisted)), output)
        else:
            colour = out.use_colour(enabled=colour)
            for line in _page_lines(listing, spending, unlisted, zone, colour=colour):
                click.echo(line, color=colour)
        if listing.sessions or unlisted or not archive.homes:
            return EXIT_OK if listing.sessions or unlisted else EXIT_NOTHING
        return out.report_nothing(_explain_nothing(archive, criteria, zone))


def _spending_of(archive: Archive, listing: SessionList, output: str) -> SpendingBySession | None:
    """What sessions spent; None if an answer would need all transcripts, and a table reads few."""
    if output == "table" and not archive.is_indexed:
        return None
    # A table that is cut does not say what was spent elsewhere.
    is_cut = output == "table" and listing.more
    return archive.spending({session.path for session in listing} if is_cut else None)


def _session_row(session: SessionSummary, spending: SpendingBySession) -> dict[str, Any]:
    cost = spending.of(session.path)
    shared = [
        {"session": part.session, "path": to_json_value(part.transcript), "tokens": part.tokens}
        for part in spending.shared.get(session.path, ())
    ]
    return {
        **to_json_value(session),
        "tokens": cost.tokens,
        "amount": cost.amount,
        "shared": shared,
        "unlisted": None,
    }


def _unlisted_row(spent: UnlistedSpending) -> dict[str, Any]:
    """What was spent without a session, with the keys of a session."""
    row = SessionSummary(
        id=spent.session,
        title="",
        title_source="none",
        project=spent.project,
        first=None,
        last=None,
        turns=0,
        agents=0,
        agents_started=0,
        agent_types={},
        model=None,
        entries=0,
        size=0,
        running=False,
        path=spent.transcripts[0],
    )
    tokens = {"tokens": spent.total.tokens, "amount": spent.total.amount}
    return {**to_json_value(row), **tokens, "shared": [], "unlisted": spent.reason}


def _find_unlisted(
    archive: Archive, spending: SpendingBySession, criteria: SessionFilter, listing: SessionList
) -> tuple[UnlistedSpending, ...]:
    """What was spent in no session. Filters that need a session leave it out, and so does a list that is cut."""
    filters = (criteria.title, criteria.agent_type, criteria.since, criteria.until, criteria.machine)
    if any(filters) or listing.more:
        return ()
    sessions = listing if criteria.project is None else archive.sessions(SessionFilter())
    part = (criteria.project or "").casefold()
    unlisted = spending.unlisted({session.path for session in sessions})
    return tuple(spent for spent in unlisted if part in spent.project.casefold())


def _explain_nothing(archive: Archive, criteria: SessionFilter, zone: tzinfo) -> str:
    """Why no session is listed, and which filters would match."""
    sessions = archive.sessions(SessionFilter()).sessions
    if not sessions:
        return f"No sessions in {join_some(str(home.path) for home in archive.homes)}."
    options = {
        "project": criteria.project,
        "title": criteria.title,
        "machine": criteria.machine,
        "agent-type": criteria.agent_type,
        "since": criteria.since,
        "until": criteria.until,
    }
    return out.no_match_message("session", len(sessions), options, _suggest_filter(archive, criteria, sessions, zone))


def _suggest_filter(
    archive: Archive, criteria: SessionFilter, sessions: tuple[SessionSummary, ...], zone: tzinfo
) -> str:
    """The values that exist, of the first filter that matches nothing by itself."""
    if criteria.machine is not None and not archive.sessions(SessionFilter(machine=criteria.machine)).sessions:
        return f"Machines: {join_some(dict.fromkeys(session.machine for session in sessions))}."
    if criteria.agent_type is not None and not archive.sessions(SessionFilter(agent_type=criteria.agent_type)).sessions:
        types = Counter(kind for session in sessions for kind in session.agent_types)
        counted = [f"{kind} ({number})" for kind, number in types.most_common()]
        return f"Agent types: {join_some(counted)}." if counted else "No session started an agent."
    if criteria.project is not None and not archive.sessions(SessionFilter(project=criteria.project)).sessions:
        return f"Projects: {join_some(dict.fromkeys(session.project for session in sessions))}."
    if criteria.since is not None or criteria.until is not None:
        times = [session.last for session in sessions if session.last is not None]
        return f"The newest is from {format_time(max(times), zone)} ({zone_name(zone)})." if times else ""
    return f"The newest is titled {sessions[0].title!r}."


def _page_lines(
    listing: SessionList,
    spending: SpendingBySession | None,
    unlisted: Sequence[UnlistedSpending],
    zone: tzinfo,
    *,
    colour: bool,
) -> Iterator[str]:
    style = Style(colour=colour)
    width = out.page_width()
    has_machines = len({session.machine for session in listing.sessions}) > 1
    for session in listing.sessions:
        for line in _session_lines(session, spending, width, zone, has_machines=has_machines):
            yield style.line(line)
    if unlisted:
        yield from map(style.line, wrap((Span(_unlisted_note(unlisted), Role.FAINT),), width))
    if listing.sessions:
        yield ""
        yield style.line((Span(f"Times are {zone_name(zone)}.", Role.FAINT),))
    if listing.sessions and spending is None:
        note = (
            "Amounts are not shown: without an index, all transcripts would have to be read. --json reads them."
            " To build an index: threadline index refresh"
        )
        yield from map(style.line, wrap((Span(note, Role.FAINT),), width))
    if number := _count_repeated(listing.sessions):
        note = f"Rows that are copies of a session in another home or project: {number:,}."
        yield from map(style.line, wrap((Span(note, Role.FAINT),), width))
    if listing.more:
        note = f"Showing the newest {len(listing.sessions)}. {listing.more:,} more: use --limit N."
        yield from map(style.line, wrap((Span(note, Role.FAINT),), width))


def _count_repeated(sessions: Sequence[SessionSummary]) -> int:
    """The number of rows whose session has an earlier row. Only a UUID names the same session everywhere."""
    ids = [session.id for session in sessions if session.id is not None and is_uuid(session.id)]
    return len(ids) - len(set(ids))


def _unlisted_note(unlisted: Sequence[UnlistedSpending]) -> str:
    """One sentence about what was spent in no session, with the first file."""
    total = Sum.of(spent.total for spent in unlisted)
    files = [path for spent in unlisted for path in spent.transcripts]
    amount = format_amount(total.amount)
    more = f" and {count(len(files) - 1, 'more file')}" if len(files) > 1 else ""
    spent = f"{format_tokens(total.tokens)} tokens{f' ({amount})' if amount else ''}"
    return f"Spent in no listed session: {spent}, in {escape_path(files[0])}{more} ({unlisted[0].reason})."


def _copy_note(session: SessionSummary, spending: SpendingBySession) -> str:
    """`copy of 5eed0000` if a session spent nothing itself and has messages of another one."""
    shared = spending.shared.get(session.path, ())
    if not shared or spending.of(session.path).charges:
        return ""
    return f"copy of {plain(short_id(shared[0].session or shared[0].transcript.name))}"


def _session_lines(
    session: SessionSummary, spending: SpendingBySession | None, width: int, zone: tzinfo, *, has_machines: bool
) -> Iterator[Spans]:
    """Two lines per session: title and figures; the machine only if there are several."""
    cost = spending.of(session.path) if spending is not None else None
    mark = "running  " if session.running else "kept  " if session.kept else ""
    title = one_line(session.title or "(no title)", max(20, width - 10 - len(mark)))
    yield (
        Span(f"{short_id(session.id):<8}  ", Role.CODE),
        Span(mark, Role.GOOD if session.running else Role.FAINT),
        Span(title, Role.TITLE),
    )
    facts = [
        (format_time(session.last, zone), 0),
        (count(session.turns, "turn"), 2),
        (count_agents(session.agents, session.agents_started), 3),
        (short_model_name(session.model), 4),
        (format_amount(cost.amount if cost is not None else None), 0),
        (_copy_note(session, spending) if spending is not None else "", 0),
        (format_size(session.size), 5),
        (f"on {plain(session.machine)}" if has_machines else "", 1),
        (f"not read: {session.problem}" if session.problem else "", 0),
    ]
    text = fit_facts(facts, width - 10 - 3 - min(_MIN_PROJECT, len(session.project)))
    room = max(8, width - 10 - display_width(text) - 3)
    yield cut_line((Span(f"          {text} · {out.shorten_path(session.project, room)}", Role.FAINT),), width)
