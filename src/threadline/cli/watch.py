"""`threadline watch`: print entries of all sessions as they are written."""

from __future__ import annotations

import os
import re
import select
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import click

from threadline.cli import EXIT_NOTHING, EXIT_OK, screen
from threadline.cli import output as out
from threadline.cli.entries import entry_row
from threadline.cli.filters import AttributedEntry, EntryFilter
from threadline.cli.options import home_option, output_options
from threadline.cli.rows import entry_text
from threadline.model.entries import Entry
from threadline.model.homes import Transcript
from threadline.render import EventSource, Item, NoticeItem, Style, live_line
from threadline.watch import FollowedEntry, Follower, LiveOutline, is_quiet, item_tools

if TYPE_CHECKING:
    from datetime import datetime

_DEFAULT_POLL = 0.2
_MAX_POLL = 60.0
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
    type=click.FloatRange(0.01, _MAX_POLL),
    default=_DEFAULT_POLL,
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
    from threadline.cli.filters import EntryFilter
    from threadline.model.times import parse_moment

    start = parse_moment(since) if since is not None else None
    follower, agent = _open_follower(session, homes, start, agent)
    if follower is None:
        return EXIT_NOTHING
    _announce(follower, kinds)
    wanted = EntryFilter(kinds, agent, None, None, problems=False) if kinds or agent else None
    watching = EntrySelector(wanted, tools, everything=everything or bool(kinds))
    news = poll_batches(follower, poll)
    try:
        if output == "table":
            print_live_lines(
                news, watching, limit, alone=session is not None, coloured=screen.use_colour(wanted=not no_color)
            )
        else:
            print_entry_rows(news, watching, output, limit)
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # it is ending: who presses the keys twice means the same
        raise
    return EXIT_OK


def _open_follower(
    session: str | None, homes: Sequence[str], since: datetime | None, agent: str | None
) -> tuple[Follower | None, str | None]:
    """Who follows what was asked for, and which agent alone, where one was named in place of a session."""
    from threadline.cli.resolve import open_archive
    from threadline.cli.screen import report_no_home

    if session is not None and (path := _transcript_path(session, homes)) is not None:
        return open_archive((), found=()).watch(path, since=since), agent  # it may lie in no home
    archive = open_archive(homes, index=False)
    if not archive.homes:
        report_no_home()
        return None, agent
    if session is not None and (found := archive.transcript(session)).session is not None:
        agent = agent or found.agent
    return archive.watch(session, since=since), agent


def _transcript_path(session: str, homes: Sequence[str]) -> Path | None:
    """The transcript that was named by its path, or as the last one."""
    from threadline.cli.resolve import session_path
    from threadline.errors import NotFound

    place = Path(os.path.expanduser(session))  # noqa: PTH111 - Path.expanduser raises where there is no such user
    if session == "last":
        return session_path(session, homes)
    if place.suffix != ".jsonl" and os.sep not in session:
        return None
    if not os.path.isfile(place):  # noqa: PTH113 - Path.is_file raises where a parent may not be entered
        raise NotFound(f"There is no file {session!r}; name a transcript, or the start of a session's id.")
    return place


def _announce(follower: Follower, kinds: tuple[str, ...]) -> None:
    """On a terminal, that it has begun: the first line may take a while to come."""
    from threadline.model.entries import KINDS
    from threadline.model.text import count
    from threadline.render import plain

    for kind in kinds:
        if kind not in KINDS:
            known = "`threadline doctor` lists the kinds there are"
            click.echo(f"threadline: {plain(repr(kind))} is no kind of entry that is known; {known}.", err=True)
    if sys.stderr.isatty():
        click.echo(f"Watching {count(follower.transcripts, 'transcript')}; Ctrl-C ends it.", err=True)


_SEPARATORS = re.compile(r"[\\/]+")


def poll_batches(follower: Follower, seconds: float) -> Iterator[list[FollowedEntry]]:
    """What is new at each look, for ever: until nobody reads the answer any more."""
    while True:
        found = follower.poll()
        if found:
            yield found
        if not follower.is_behind:
            _check_pipe()
            time.sleep(seconds)


def _check_pipe() -> None:
    """A pipe whose reader has gone is noticed without writing to it: there may be nothing to write for hours."""
    with suppress(ValueError, AttributeError):  # no descriptor, or a system that cannot ask
        asking = select.poll()
        asking.register(sys.stdout.fileno(), 0)
        if any(event & select.POLLERR for _, event in asking.poll(0)):
            raise BrokenPipeError


class EntrySelector:
    """Which entries are wanted, and what they tell of."""

    def __init__(self, wanted: EntryFilter | None, tools: tuple[str, ...], *, everything: bool) -> None:
        self._wanted = wanted
        self._tools = set(tools)
        self._everything = everything
        self._happening = LiveOutline()

    def items(self, transcript: Transcript, entry: Entry) -> list[Item]:
        """What a wanted entry tells of, in the order of its blocks; nothing where it is not wanted."""
        items = self._of_tools(transcript, entry)
        if self._tools and not items:
            return []
        if self._is_unwanted(transcript, entry):
            return []
        if not self._everything:
            return [item for item in items if not is_quiet(item)]
        told = [item for item in items if not isinstance(item, NoticeItem) or item.text]
        what = next((item.what for item in items if isinstance(item, NoticeItem)), entry.kind)
        return told or [NoticeItem(entry, what, entry_text(entry), quiet=True)]

    def written(self, transcript: Transcript, entry: Entry) -> AttributedEntry | None:
        """The entry as `threadline entries` has it, where it is wanted."""
        unwanted = (self._tools and not self._of_tools(transcript, entry)) or self._is_unwanted(transcript, entry)
        return None if unwanted else AttributedEntry(entry, transcript.agent)

    def _of_tools(self, transcript: Transcript, entry: Entry) -> list[Item]:
        items = self._happening.items(transcript, entry)
        return [item for item in items if item_tools(item) & self._tools] if self._tools else items

    def _is_unwanted(self, transcript: Transcript, entry: Entry) -> bool:
        return self._wanted is not None and not any(self._wanted.of((AttributedEntry(entry, transcript.agent),)))


def print_entry_rows(
    news: Iterator[list[FollowedEntry]], watching: EntrySelector, output: str, limit: int | None
) -> None:
    """Rows for a program, each as it comes."""
    written = (watching.written(transcript, entry) for batch in _flush_after_each(news) for transcript, entry in batch)
    rows = islice((entry_row(one, data=False) for one in written if one is not None), limit)
    if output.startswith("csv"):
        out.print_rows(rows, output)
        return
    for row in rows:
        sys.stdout.buffer.write(out.json_text(row).encode() + b"\n")


def print_live_lines(
    news: Iterator[list[FollowedEntry]], watching: EntrySelector, limit: int | None, *, alone: bool, coloured: bool
) -> None:
    """A line for each thing that happens; `alone`: it is one session's, which need not be told."""
    style = Style(colour=coloured)
    projects: dict[tuple[str, str], str] = {}
    shown = 0
    for batch in _flush_after_each(news):
        width = screen.page_width()
        for transcript, entry in batch:
            items = watching.items(transcript, entry)
            if not items:
                continue
            source = _source_of(transcript, entry, projects, alone=alone)
            for item in items:
                sys.stdout.write(style.line(live_line(item, source, entry.timestamp, width)) + "\n")
            shown += 1
            if limit is not None and shown >= limit:
                return


def _flush_after_each(news: Iterator[list[FollowedEntry]]) -> Iterator[list[FollowedEntry]]:
    """The same; what was written for one batch is sent off before the next is waited for."""
    for batch in news:
        yield batch
        sys.stdout.flush()


def _source_of(
    transcript: Transcript, entry: Entry, projects: dict[tuple[str, str], str], *, alone: bool
) -> EventSource:
    agent = AttributedEntry(entry, transcript.agent).agent
    if alone:
        return EventSource(agent=agent)
    key = (str(transcript.home.path), transcript.folder)
    cwd: str | None = getattr(entry, "cwd", None)
    if cwd and key not in projects:
        projects[key] = _SEPARATORS.split(cwd.rstrip("\\/"))[-1] or cwd
    session = transcript.session or entry.session_id or transcript.path.stem
    return EventSource(session, projects.get(key, transcript.folder or "?"), agent)
