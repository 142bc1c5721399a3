"""`threadline list`: the sessions there are, newest first."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from threadline.cli import FOUND, NOTHING
from threadline.cli.options import home_option, jobs_option, output_options

if TYPE_CHECKING:
    from threadline.archive import Archive
    from threadline.render.style import Spans
    from threadline.survey.sessions import Listing, SessionSummary, Wanted

_SHOWN = 30
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
    help=f"No more than this many; by default {_SHOWN}, and all with --json, --jsonl and --csv.",
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
    from threadline.cli.opening import archive_of
    from threadline.cli.reading import say_no_home
    from threadline.cli.when import moment
    from threadline.survey.sessions import Wanted

    wanted = Wanted(
        project=project,
        title=title,
        machine=machine,
        agent_type=agent_type,
        since=moment(since) if since is not None else None,
        until=moment(until, end=True) if until is not None else None,
        limit=limit or (_SHOWN if output == "table" else None),
    )
    with archive_of(homes, jobs) as archive:
        if not archive.homes:
            say_no_home()
        listing = archive.sessions(wanted)
        if output != "table":
            out.print_rows(map(out.to_plain, listing.sessions), output)
        else:
            coloured = screen.colour(wanted=not no_color)
            for line in _page(listing, coloured=coloured):
                click.echo(line, color=coloured)
        if listing.sessions or not archive.homes:
            return FOUND if listing.sessions else NOTHING
        return screen.nothing(_why(archive, wanted))


def _why(archive: Archive, wanted: Wanted) -> str:
    """Why no session is listed, and what there would be."""
    from collections import Counter

    from threadline.render.figures import some
    from threadline.survey.sessions import Wanted

    every = archive.sessions(Wanted()).sessions
    if not every:
        return f"No sessions in {some(str(home.path) for home in archive.homes)}."
    own = {
        "project": wanted.project,
        "title": wanted.title,
        "machine": wanted.machine,
        "agent-type": wanted.agent_type,
    }
    given = [f"--{name} {value!r}" for name, value in own.items() if value is not None]
    given += [f"--{name}" for name in ("since", "until") if getattr(wanted, name) is not None]
    told = f"No session of {len(every):,} fits {' and '.join(given)}"
    if wanted.machine is not None and not archive.sessions(Wanted(machine=wanted.machine)).sessions:
        return f"{told}; machines are {some(dict.fromkeys(one.machine for one in every))}."
    if wanted.agent_type is not None and not archive.sessions(Wanted(agent_type=wanted.agent_type)).sessions:
        types = Counter(kind for one in every for kind in one.agent_types)
        seen = [f"{kind} ({number})" for kind, number in types.most_common()]
        return f"{told}; the types of agents are {some(seen)}." if seen else f"{told}; no session started an agent."
    if wanted.project is not None and not archive.sessions(Wanted(project=wanted.project)).sessions:
        return f"{told}; projects are {some(dict.fromkeys(one.project for one in every))}."
    if wanted.since is not None or wanted.until is not None:
        last = [one.last for one in every if one.last is not None]
        return f"{told}; the newest is of {max(last):%Y-%m-%d}." if last else f"{told}."
    return f"{told}; the newest is called {every[0].title!r}."


def _page(listing: Listing, *, coloured: bool) -> Iterator[str]:
    from threadline.cli import screen
    from threadline.render.style import Role, Span, Style

    style = Style(colour=coloured)
    width = screen.width()
    several = len({one.machine for one in listing.sessions}) > 1
    for one in listing.sessions:
        for line in _lines(one, width, several=several):
            yield style.line(line)
    if listing.more:
        yield ""
        told = f"The newest {len(listing.sessions)}; {listing.more:,} more: see --limit N."
        yield style.line((Span(told, Role.FAINT),))


def _lines(one: SessionSummary, width: int, *, several: bool) -> Iterator[Spans]:
    """Two lines a session: what it is, and its figures; and the machine, where there are `several`."""
    from threadline.cli import output as out
    from threadline.cli.places import short_path
    from threadline.render.figures import agents, count, model_name, moment
    from threadline.render.layout import cut
    from threadline.render.style import Role, Span

    mark = "running  " if one.running else "kept  " if one.kept else ""
    title = out.one_line(one.title or "(no title)", max(20, width - 10 - len(mark)))
    yield (
        Span(f"{str(one.id)[:8]}  ", Role.CODE),
        Span(mark, Role.GOOD if one.running else Role.FAINT),
        Span(title, Role.TITLE),
    )
    facts = (
        moment(one.last),
        count(one.turns, "turn"),
        agents(one.agents, one.agents_started),
        model_name(one.model),
        out.size(one.size),
        f"on {out.plain(one.machine)}" if several else "",
        f"not read: {one.problem}" if one.problem else "",
    )
    told = " · ".join(fact for fact in facts if fact)
    room = max(20, width - 10 - len(told) - 3)
    yield cut((Span(f"          {told} · {short_path(one.project, room)}", Role.FAINT),), width)
