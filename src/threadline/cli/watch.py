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
from datetime import datetime
from itertools import islice
from pathlib import Path

import click

from threadline.cli import EXIT_OK, screen
from threadline.cli import output as out
from threadline.cli.filters import AttributedEntry, EntryFilter
from threadline.cli.live_outline import LiveOutline, is_quiet, item_tools
from threadline.cli.options import colour_option, home_option, limit_option, output_options, since_option
from threadline.cli.resolve import TimeRange, expand_path, is_file, open_archive, session_path
from threadline.cli.rows import entry_row, entry_text
from threadline.errors import NotFound
from threadline.model.entries import KINDS, Entry
from threadline.model.homes import Transcript
from threadline.model.text import count
from threadline.render import EventSource, Item, NoticeItem, Style, live_line
from threadline.watch import FollowedEntry, Follower

_DEFAULT_POLL = 0.2
_MAX_POLL = 60.0
_SEPARATORS = re.compile(r"[\\/]+")
_EPILOG = """
\b
Examples:
  threadline watch                    all sessions of all homes
  threadline watch last               the newest session and its agents
  threadline watch 55604662 --since 10m    starting ten minutes ago
  threadline watch --tool Bash        only shell commands
  threadline watch --agent sub        only subagents
  threadline watch --jsonl | jq .text      for a program
"""


@click.command(epilog=_EPILOG)
@click.argument("session", required=False)
@since_option("Start with entries written from WHEN on: 10m, 2h, 2026-11-03T14:00.")
@click.option("--kind", "kinds", multiple=True, metavar="KIND", help="Only entries of this kind. Repeatable.")
@click.option(
    "--tool", "tools", multiple=True, metavar="TOOL", help="Only calls of this tool, and their results. Repeatable."
)
@click.option(
    "--agent",
    metavar="ID",
    help="Only entries by this agent: an agent id, `main` for main threads, or `sub` for all subagents.",
)
@limit_option("Stop after N entries.")
@click.option(
    "--all", "everything", is_flag=True, help="Include internal entries. Always on for --json, --jsonl, --csv."
)
@click.option(
    "--poll",
    type=click.FloatRange(0.01, _MAX_POLL),
    default=_DEFAULT_POLL,
    show_default=True,
    metavar="SECONDS",
    help="How often to check for changes.",
)
@colour_option
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
    colour: bool,
    homes: tuple[str, ...],
    output: str,
) -> int:
    """Follow all sessions live.

    Prints one line per event as it is written: time (UTC), session, project, agent and text. SESSION is the start of a
    session id, a transcript, or `last`; its agents are included. Without it, follows all sessions, including new ones.
    Stop with Ctrl-C. Since the output has no end, --json prints the same as --jsonl.
    """
    follower, agent = _open_follower(session, homes, TimeRange.parse(since).since, agent)
    _announce(follower, kinds)
    criteria = EntryFilter(kinds, agent, TimeRange()) if kinds or agent else None
    selector = EntrySelector(criteria, tools, everything=everything or bool(kinds))
    batches = poll_batches(follower, poll)
    try:
        if output == "table":
            use = screen.use_colour(enabled=colour)
            print_live_lines(batches, selector, limit, is_single=session is not None, colour=use)
        else:
            print_entry_rows(batches, selector, output, limit)
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # already exiting: ignore a second Ctrl-C
        raise
    return EXIT_OK


def _open_follower(
    session: str | None, homes: Sequence[str], since: datetime | None, agent: str | None
) -> tuple[Follower, str | None]:
    """The follower, and the agent to show: if SESSION is an agent's id, only that agent."""
    if session is not None and (path := _transcript_path(session, homes)) is not None:
        return open_archive((), found=()).watch(path, since=since), agent  # it may be outside any home
    archive = open_archive(homes, index=False, require_home=True)
    if session is not None and (transcript := archive.transcript(session)).session is not None:
        agent = agent or transcript.agent
    return archive.watch(session, since=since), agent


def _transcript_path(session: str, homes: Sequence[str]) -> Path | None:
    """The transcript, if it was named by its path or as `last`."""
    if session == "last":
        return session_path(session, homes)
    path = expand_path(session)
    if path.suffix != ".jsonl" and os.sep not in session:
        return None
    if not is_file(path):
        raise NotFound(f"There is no file {session!r}. Name a transcript, or the start of a session id.")
    return path


def _announce(follower: Follower, kinds: tuple[str, ...]) -> None:
    """On a terminal, say that it has started: the first line may take a while to come."""
    for kind in kinds:
        if kind not in KINDS:
            screen.print_message(f"Unknown kind of entry {kind!r}. `threadline doctor` lists the kinds.")
    if sys.stderr.isatty():
        click.echo(f"Watching {count(follower.transcripts, 'transcript')}. Press Ctrl-C to stop.", err=True)


def poll_batches(follower: Follower, seconds: float) -> Iterator[list[FollowedEntry]]:
    """New entries at each check, endlessly, until the reader closes the pipe."""
    while True:
        batch = follower.poll()
        if batch:
            yield batch
        if not follower.is_behind:
            _check_pipe()
            time.sleep(seconds)


def _check_pipe() -> None:
    """Notice a closed pipe without writing to it: there may be nothing to write for hours."""
    with suppress(ValueError, AttributeError):  # no descriptor, or a system without poll
        poller = select.poll()
        poller.register(sys.stdout.fileno(), 0)
        if any(event & select.POLLERR for _, event in poller.poll(0)):
            raise BrokenPipeError


class EntrySelector:
    """Selects entries by filter and tool, and turns them into events."""

    def __init__(self, criteria: EntryFilter | None, tools: tuple[str, ...], *, everything: bool) -> None:
        self._criteria = criteria
        self._tools = set(tools)
        self._everything = everything
        self._outline = LiveOutline()

    def items(self, transcript: Transcript, entry: Entry) -> list[Item]:
        """The events of an entry, in the order of its blocks; none if it is not selected."""
        items = self._tool_items(transcript, entry)
        if self._tools and not items:
            return []
        if not self._matches(transcript, entry):
            return []
        if not self._everything:
            return [item for item in items if not is_quiet(item)]
        with_text = [item for item in items if not isinstance(item, NoticeItem) or item.text]
        what = next((item.what for item in items if isinstance(item, NoticeItem)), entry.kind)
        return with_text or [NoticeItem(entry, what, entry_text(entry), quiet=True)]

    def select(self, transcript: Transcript, entry: Entry) -> AttributedEntry | None:
        """The entry as `threadline entries` shows it; None if it is not selected."""
        if self._tools and not self._tool_items(transcript, entry):
            return None
        return AttributedEntry(entry, transcript.agent) if self._matches(transcript, entry) else None

    def _tool_items(self, transcript: Transcript, entry: Entry) -> list[Item]:
        items = self._outline.items(transcript, entry)
        return [item for item in items if item_tools(item) & self._tools] if self._tools else items

    def _matches(self, transcript: Transcript, entry: Entry) -> bool:
        return self._criteria is None or any(self._criteria.apply((AttributedEntry(entry, transcript.agent),)))


def print_entry_rows(
    batches: Iterator[list[FollowedEntry]], selector: EntrySelector, output: str, limit: int | None
) -> None:
    """Print rows for a program as they come."""
    selected = (selector.select(transcript, entry) for batch in _flush_each(batches) for transcript, entry in batch)
    rows = islice((entry_row(attributed) for attributed in selected if attributed is not None), limit)
    if output == "csv":
        out.print_rows(rows, output)
        return
    for row in rows:
        sys.stdout.buffer.write(out.json_text(row).encode() + b"\n")


def print_live_lines(
    batches: Iterator[list[FollowedEntry]],
    selector: EntrySelector,
    limit: int | None,
    *,
    is_single: bool,
    colour: bool,
) -> None:
    """Print a line per event. `is_single`: all are from one session, which the lines need not name."""
    style = Style(colour=colour)
    projects: dict[tuple[str, str], str] = {}
    shown = 0
    for batch in _flush_each(batches):
        width = screen.page_width()
        for transcript, entry in batch:
            items = selector.items(transcript, entry)
            if not items:
                continue
            source = _event_source(transcript, entry, projects, is_single=is_single)
            for item in items:
                sys.stdout.write(style.line(live_line(item, source, entry.timestamp, width)) + "\n")
            shown += 1
            if limit is not None and shown >= limit:
                return


def _flush_each(batches: Iterator[list[FollowedEntry]]) -> Iterator[list[FollowedEntry]]:
    """The same batches; output is flushed before waiting for the next one."""
    for batch in batches:
        yield batch
        sys.stdout.flush()


def _event_source(
    transcript: Transcript, entry: Entry, projects: dict[tuple[str, str], str], *, is_single: bool
) -> EventSource:
    agent = AttributedEntry(entry, transcript.agent).agent
    if is_single:
        return EventSource(agent=agent)
    key = (str(transcript.home.path), transcript.folder)
    cwd: str | None = getattr(entry, "cwd", None)
    if cwd and key not in projects:
        projects[key] = _SEPARATORS.split(cwd.rstrip("\\/"))[-1] or cwd
    session = transcript.session or entry.session_id or transcript.path.stem
    return EventSource(session, projects.get(key, transcript.folder or "?"), agent)
