"""`threadline list`: list sessions, newest first.

The command function is called `list` and hides the builtin in this module. Do not add code that needs the builtin.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import tzinfo
from pathlib import Path
from typing import Any

import click

from threadline.archive import Archive
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
from threadline.json_values import to_json_value
from threadline.model.ledger import Sum
from threadline.model.places import is_uuid
from threadline.model.text import (
    count,
    count_agents,
    format_amount,
    format_size,
    format_time,
    join_some,
    short_model_name,
)
from threadline.model.times import TimeRange, zone_name
from threadline.render import Role, Span, Spans, Style, cut_line, one_line, plain, wrap
from threadline.summary import SessionFilter, SessionList, SessionSummary

_DEFAULT_LIMIT = 30
_EPILOG = """
\b
Examples:
  threadline list                            newest sessions of all homes
  threadline list --project app --since 7d   one project, last seven days
  threadline list --title parser             title contains "parser"
  threadline list --agent-type Explore       started an Explore agent
  threadline list --limit 1000               more sessions
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

    Shows title, project, time of last use, turns, agents, model and size. Agents are counted with their session, not
    listed. `running` marks sessions with a live process; `kept` marks sessions that Claude Code has deleted and that
    exist only in the keep.
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
        costs = archive.session_costs(listing)
        if output != "table":
            out.print_rows((_session_row(session, costs) for session in listing), output)
        else:
            colour = out.use_colour(enabled=colour)
            for line in _page_lines(listing, costs, zone, colour=colour):
                click.echo(line, color=colour)
        if listing.sessions or not archive.homes:
            return EXIT_OK if listing.sessions else EXIT_NOTHING
        return out.report_nothing(_explain_nothing(archive, criteria, zone))


def _session_row(session: SessionSummary, costs: Mapping[Path, Sum]) -> dict[str, Any]:
    cost = costs.get(session.path)
    tokens, amount = (cost.tokens, cost.amount) if cost is not None else (None, None)
    return {**to_json_value(session), "tokens": tokens, "amount": amount}


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


def _page_lines(listing: SessionList, costs: Mapping[Path, Sum], zone: tzinfo, *, colour: bool) -> Iterator[str]:
    style = Style(colour=colour)
    width = out.page_width()
    has_machines = len({session.machine for session in listing.sessions}) > 1
    for session in listing.sessions:
        for line in _session_lines(session, costs.get(session.path), width, zone, has_machines=has_machines):
            yield style.line(line)
    if listing.sessions:
        yield ""
        yield style.line((Span(f"Times are {zone_name(zone)}.", Role.FAINT),))
    if listing.sessions and not costs:
        note = "Amounts need an index. To build one: threadline index refresh"
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


def _session_lines(
    session: SessionSummary, cost: Sum | None, width: int, zone: tzinfo, *, has_machines: bool
) -> Iterator[Spans]:
    """Two lines per session: title and figures; the machine only if there are several."""
    mark = "running  " if session.running else "kept  " if session.kept else ""
    title = one_line(session.title or "(no title)", max(20, width - 10 - len(mark)))
    yield (
        Span(f"{str(session.id)[:8]}  ", Role.CODE),
        Span(mark, Role.GOOD if session.running else Role.FAINT),
        Span(title, Role.TITLE),
    )
    facts = (
        format_time(session.last, zone),
        count(session.turns, "turn"),
        count_agents(session.agents, session.agents_started),
        short_model_name(session.model),
        format_amount(cost.amount if cost is not None else None),
        format_size(session.size),
        f"on {plain(session.machine)}" if has_machines else "",
        f"not read: {session.problem}" if session.problem else "",
    )
    text = " · ".join(fact for fact in facts if fact)
    room = max(8, width - 10 - len(text) - 3)
    yield cut_line((Span(f"          {text} · {out.shorten_path(session.project, room)}", Role.FAINT),), width)
