"""`threadline list`: list sessions, newest first.

The command function is called `list` and hides the builtin in this module: merge nothing into it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from threadline.cli import EXIT_NOTHING, EXIT_OK
from threadline.cli.options import home_option, jobs_option, output_options

if TYPE_CHECKING:
    from threadline.archive import Archive
    from threadline.render import Spans
    from threadline.summary import SessionFilter, SessionList, SessionSummary

_DEFAULT_LIMIT = 30
_EPILOG = """
\b
Examples:
  threadline list                            the newest sessions of all homes
  threadline list --project app --since 7d   of one project, of the last week
  threadline list --title parser             by a part of the title
  threadline list --agent-type Explore       that started such an agent
  threadline list --limit 1000               more of them
  threadline list --json                     all of them, for a program
"""


@click.command(epilog=_EPILOG)
@click.option("--project", metavar="TEXT", help="Only of projects whose path holds this.")
@click.option("--title", metavar="TEXT", help="Only sessions whose title holds this.")
@click.option("--machine", metavar="NAME", help="Only of this machine: this one, or another whose sessions are kept.")
@click.option("--agent-type", metavar="TYPE", help="Only sessions that started an agent of this type.")
@click.option("--since", metavar="WHEN", help="Only sessions that went on after then: 2026-11-03, 7d, yesterday.")
@click.option("--until", metavar="WHEN", help="Only sessions that began before then.")
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    metavar="N",
    help=f"No more than this many; by default {_DEFAULT_LIMIT}, and all with --json, --jsonl and --csv.",
)
@click.option("--no-color", is_flag=True, help="No colours; NO_COLOR in the environment says the same.")
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
    limit: int | None,
    no_color: bool,
    homes: tuple[str, ...],
    jobs: int | None,
    output: str,
) -> int:
    """List sessions, newest first: title, project, when it was last used, turns, agents, model, size.

    Agents are counted to their session and never listed as one. `running` marks sessions with a living process, and
    `kept` those that Claude Code has deleted and only the keep still has.
    """
    from threadline.cli import output as out
    from threadline.cli import screen
    from threadline.cli.resolve import open_archive
    from threadline.cli.screen import report_no_home
    from threadline.model.times import parse_moment
    from threadline.summary import SessionFilter

    wanted = SessionFilter(
        project=project,
        title=title,
        machine=machine,
        agent_type=agent_type,
        since=parse_moment(since) if since is not None else None,
        until=parse_moment(until, end=True) if until is not None else None,
        limit=limit or (_DEFAULT_LIMIT if output == "table" else None),
    )
    with open_archive(homes, jobs) as archive:
        if not archive.homes:
            report_no_home()
        listing = archive.sessions(wanted)
        if output != "table":
            out.print_rows(map(out.to_json_value, listing.sessions), output)
        else:
            coloured = screen.use_colour(wanted=not no_color)
            for line in _page_lines(listing, coloured=coloured):
                click.echo(line, color=coloured)
        if listing.sessions or not archive.homes:
            return EXIT_OK if listing.sessions else EXIT_NOTHING
        return screen.report_nothing(_explain_nothing(archive, wanted))


def _explain_nothing(archive: Archive, wanted: SessionFilter) -> str:
    """Why no session is listed, and what there would be."""
    from collections import Counter

    from threadline.model.text import join_some
    from threadline.summary import SessionFilter

    every = archive.sessions(SessionFilter()).sessions
    if not every:
        return f"No sessions in {join_some(str(home.path) for home in archive.homes)}."
    own = {
        "project": wanted.project,
        "title": wanted.title,
        "machine": wanted.machine,
        "agent-type": wanted.agent_type,
    }
    given = [f"--{name} {value!r}" for name, value in own.items() if value is not None]
    given += [f"--{name}" for name in ("since", "until") if getattr(wanted, name) is not None]
    told = f"No session of {len(every):,} fits {' and '.join(given)}"
    if wanted.machine is not None and not archive.sessions(SessionFilter(machine=wanted.machine)).sessions:
        return f"{told}; machines are {join_some(dict.fromkeys(one.machine for one in every))}."
    if wanted.agent_type is not None and not archive.sessions(SessionFilter(agent_type=wanted.agent_type)).sessions:
        types = Counter(kind for one in every for kind in one.agent_types)
        seen = [f"{kind} ({number})" for kind, number in types.most_common()]
        return (
            f"{told}; the types of agents are {join_some(seen)}." if seen else f"{told}; no session started an agent."
        )
    if wanted.project is not None and not archive.sessions(SessionFilter(project=wanted.project)).sessions:
        return f"{told}; projects are {join_some(dict.fromkeys(one.project for one in every))}."
    if wanted.since is not None or wanted.until is not None:
        last = [one.last for one in every if one.last is not None]
        return f"{told}; the newest is of {max(last):%Y-%m-%d}." if last else f"{told}."
    return f"{told}; the newest is called {every[0].title!r}."


def _page_lines(listing: SessionList, *, coloured: bool) -> Iterator[str]:
    from threadline.cli import screen
    from threadline.render import Role, Span, Style

    style = Style(colour=coloured)
    width = screen.page_width()
    several = len({session.machine for session in listing.sessions}) > 1
    for session in listing.sessions:
        for line in _session_lines(session, width, several=several):
            yield style.line(line)
    if listing.more:
        yield ""
        told = f"The newest {len(listing.sessions)}; {listing.more:,} more: see --limit N."
        yield style.line((Span(told, Role.FAINT),))


def _session_lines(summary: SessionSummary, width: int, *, several: bool) -> Iterator[Spans]:
    """Two lines a session: what it is, and its figures; and the machine, where there are `several`."""
    from threadline.cli import output as out
    from threadline.cli.output import shorten_path
    from threadline.model.text import count, count_agents, format_time, short_model_name
    from threadline.render import Role, Span, cut_line

    mark = "running  " if summary.running else "kept  " if summary.kept else ""
    title = out.one_line(summary.title or "(no title)", max(20, width - 10 - len(mark)))
    yield (
        Span(f"{str(summary.id)[:8]}  ", Role.CODE),
        Span(mark, Role.GOOD if summary.running else Role.FAINT),
        Span(title, Role.TITLE),
    )
    facts = (
        format_time(summary.last),
        count(summary.turns, "turn"),
        count_agents(summary.agents, summary.agents_started),
        short_model_name(summary.model),
        out.format_size(summary.size),
        f"on {out.plain(summary.machine)}" if several else "",
        f"not read: {summary.problem}" if summary.problem else "",
    )
    told = " · ".join(fact for fact in facts if fact)
    room = max(20, width - 10 - len(told) - 3)
    yield cut_line((Span(f"          {told} · {shorten_path(summary.project, room)}", Role.FAINT),), width)
