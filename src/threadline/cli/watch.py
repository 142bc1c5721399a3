"""`threadline watch`: what happens in all sessions, as it is written."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from threadline.cli import FOUND, NOTHING
from threadline.cli.options import home_option, output_options

if TYPE_CHECKING:
    from datetime import datetime

    from threadline.survey.follow import Follower

_POLL = 0.2
_LONGEST_POLL = 60.0
_EPILOG = """
\b
Examples:
  threadline watch                    all sessions of all homes
  threadline watch last               the newest session and its agents
  threadline watch 55604662 --since 10m    beginning a little earlier
  threadline watch --tool Bash        only what is done in a shell
  threadline watch --agent sub        only what subagents do
  threadline watch --jsonl | jq .text      for a program
"""


@click.command(epilog=_EPILOG)
@click.argument("session", required=False)
@click.option("--since", metavar="WHEN", help="Begin with what was written from then on: 10m, 2h, 2026-11-03T14:00.")
@click.option("--kind", "kinds", multiple=True, metavar="KIND", help="Only this kind; may be given several times.")
@click.option("--tool", "tools", multiple=True, metavar="TOOL", help="Only calls of this tool, and their results.")
@click.option(
    "--agent",
    metavar="ID",
    help="Only what this agent writes: `main` for main threads, `sub` for all subagents, or an agent's id.",
)
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="End after this many entries.")
@click.option("--all", "everything", is_flag=True, help="The program's bookkeeping, too; programs always get it.")
@click.option(
    "--poll",
    type=click.FloatRange(0.01, _LONGEST_POLL),
    default=_POLL,
    show_default=True,
    metavar="SECONDS",
    help="How long to wait between two looks.",
)
@click.option("--no-color", is_flag=True, help="No colours; NO_COLOR in the environment says the same.")
@home_option
@output_options
def watch(
    session: str | None,
    *,
    since: str | None,
    kinds: tuple[str, ...],
    tools: tuple[str, ...],
    agent: str | None,
    limit: int | None,
    everything: bool,
    poll: float,
    no_color: bool,
    homes: tuple[str, ...],
    output: str,
) -> int:
    """Show what happens as it is written: time (UTC), session, project, agent, and what it is, a line each.

    SESSION is the start of its id, a transcript, or `last`; its agents are included. Without it, all sessions are
    watched, new ones too. Ends with Ctrl-C. There is no last row, so --json prints what --jsonl does.
    """
    from threadline.cli import screen
    from threadline.cli.wanted import Wanted
    from threadline.cli.watch_lines import Watching, batches, print_entries, show
    from threadline.cli.when import moment

    start = moment(since) if since is not None else None
    follower, agent = _follower(session, homes, start, agent)
    if follower is None:
        return NOTHING
    _say_what(follower, kinds)
    wanted = Wanted(kinds, agent, None, None, problems=False) if kinds or agent else None
    watching = Watching(wanted, tools, everything=everything or bool(kinds))
    news = batches(follower, poll)
    try:
        if output == "table":
            show(news, watching, limit, alone=session is not None, coloured=screen.colour(wanted=not no_color))
        else:
            print_entries(news, watching, output, limit)
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # it is ending: who presses the keys twice means the same
        raise
    return FOUND


def _follower(
    session: str | None, homes: Sequence[str], since: datetime | None, agent: str | None
) -> tuple[Follower | None, str | None]:
    """Who follows what was asked for, and which agent alone, where one was named in place of a session."""
    from threadline.cli.opening import archive_of
    from threadline.cli.reading import say_no_home

    if session is not None and (path := _path(session, homes)) is not None:
        return archive_of((), found=()).watch(path, since=since), agent  # it may lie in no home
    archive = archive_of(homes, index=False)
    if not archive.homes:
        say_no_home()
        return None, agent
    if session is not None and (found := archive.transcript(session)).session is not None:
        agent = agent or found.agent
    return archive.watch(session, since=since), agent


def _path(session: str, homes: Sequence[str]) -> Path | None:
    """The transcript that was named by its path, or as the last one."""
    from threadline.cli.session import path_of
    from threadline.errors import NotFound

    place = Path(os.path.expanduser(session))  # noqa: PTH111 - Path.expanduser raises where there is no such user
    if session == "last":
        return path_of(session, homes)
    if place.suffix != ".jsonl" and os.sep not in session:
        return None
    if not os.path.isfile(place):  # noqa: PTH113 - Path.is_file raises where a parent may not be entered
        raise NotFound(f"There is no file {session!r}; name a transcript, or the start of a session's id.")
    return place


def _say_what(follower: Follower, kinds: tuple[str, ...]) -> None:
    """On a terminal, that it has begun: the first line may take a while to come."""
    from threadline.cli.output import counted, plain
    from threadline.model.entries import KINDS

    for kind in kinds:
        if kind not in KINDS:
            known = "`threadline doctor` lists the kinds there are"
            click.echo(f"threadline: {plain(repr(kind))} is no kind of entry that is known; {known}.", err=True)
    if sys.stderr.isatty():
        click.echo(f"Watching {counted(follower.transcripts, 'transcript')}; Ctrl-C ends it.", err=True)
