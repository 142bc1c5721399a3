"""`threadline watch`: print entries of all sessions as they are written."""

from __future__ import annotations

import os
import re
import select
import signal
import sys
import time
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import datetime, tzinfo
from itertools import islice
from pathlib import Path

import click

from threadline.cli import EXIT_OK
from threadline.cli import output as out
from threadline.cli.filters import ExplainedEntryFilter
from threadline.cli.options import (
    Number,
    colour_option,
    complete_with,
    exact_tools_option,
    home_option,
    kinds_option,
    limit_option,
    output_options,
    since_option,
    timezone_option,
    tools_option,
)
from threadline.cli.resolve import expand_path, is_file, open_archive, session_path, transcript_path
from threadline.cli.rows import entry_row, entry_text
from threadline.errors import BadQuery, NotFound, did_you_mean
from threadline.model.blocks import McpToolUseBlock, ServerToolUseBlock, ToolUseBlock
from threadline.model.calls import Call
from threadline.model.entries import KINDS, AssistantEntry, AttachmentEntry, Entry, SystemEntry, UserEntry
from threadline.model.entry_filter import AttributedEntry
from threadline.model.homes import Transcript
from threadline.model.names import names_tool
from threadline.model.places import AgentId
from threadline.model.session import ActKind, Agent, AgentKind, Compaction, Thread
from threadline.model.text import count
from threadline.model.times import TimeRange, zone_name
from threadline.render import (
    CallItem,
    EventSource,
    Item,
    NoticeItem,
    NotificationsByEntry,
    PromptItem,
    Style,
    ThinkingItem,
    build_outline,
    entry_key,
    live_line,
)
from threadline.thread import Graph, act_of, find_calls, find_compactions, find_notifications, result_blocks
from threadline.watch import FollowedEntry, Follower

_DEFAULT_POLL = 0.2
_MAX_POLL = 60
_SEPARATORS = re.compile(r"[\\/]+")
_EPILOG = """
\b
Examples:
  threadline watch                        all sessions of all homes
  threadline watch last                   the newest session and its agents
  threadline watch 55604662 --since 10m   starting ten minutes ago
  threadline watch --tool Bash            only shell commands
  threadline watch --agent sub            only subagents
  threadline watch --jsonl | jq .text     for a program
"""


@click.command(epilog=_EPILOG)
@click.argument("session", required=False, shell_complete=complete_with("sessions"))
@since_option("Start with entries written from WHEN on: 10m, 2h, 2026-11-03T14:00.")
@timezone_option
@kinds_option
@tools_option("Only calls of this tool, and their results. Repeatable.")
@exact_tools_option
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
    type=Number(0.01, _MAX_POLL),
    default=_DEFAULT_POLL,
    metavar="SECONDS",
    help=f"How often to check for changes. Default: {_DEFAULT_POLL}.",
)
@colour_option
@home_option
@output_options
def watch(
    session: str | None,
    *,
    since: str | None,
    zone: tzinfo,
    kinds: tuple[str, ...],
    tools: tuple[str, ...],
    exact_tools: bool,
    agent: str | None,
    limit: int | None,
    everything: bool,
    poll: float,
    colour: bool,
    homes: tuple[str, ...],
    output: str,
) -> int:
    """Follow all sessions live.

    Prints one line per event as it is written: time, session, project, agent and text. SESSION is the start of a
    session id, a transcript, or `last`; its agents are included. Without it, follows all sessions, including new ones.
    Stop with Ctrl-C. Since the output has no end, --json prints the same as --jsonl.
    """
    _check_kinds(kinds)
    follower, agent = _open_follower(session, homes, TimeRange.parse(since, tz=zone).since, agent)
    _announce(follower, zone)
    criteria = ExplainedEntryFilter(kinds, agent, TimeRange()) if kinds or agent else None
    selector = EntrySelector(criteria, tools, exact_tools=exact_tools, everything=everything or bool(kinds))
    batches = poll_batches(follower, poll)
    try:
        if output == "table":
            colour = out.use_colour(enabled=colour)
            print_live_lines(batches, selector, limit, zone, is_single=session is not None, colour=colour)
        else:
            print_entry_rows(batches, selector, output, limit)
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # already exiting: ignore a second Ctrl-C
        raise
    return EXIT_OK


def _check_kinds(kinds: Sequence[str]) -> None:
    """Check that all kinds of entries exist: otherwise the command would wait for ever.

    Raises:
        BadQuery: one does not.
    """
    for kind in kinds:
        if kind not in KINDS:
            match = did_you_mean(kind, KINDS)
            hint = f"Did you mean {match}?" if match else f"Kinds: {', '.join(KINDS)}."
            raise BadQuery(f"Unknown kind of entry {kind!r}. {hint}")


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
    return transcript_path(session)


def _announce(follower: Follower, zone: tzinfo) -> None:
    """On a terminal, say that it has started: the first line may take a while to come."""
    if sys.stderr.isatty():
        transcripts = count(follower.transcripts, "transcript")
        click.echo(f"Watching {transcripts}. Times are {zone_name(zone)}. Press Ctrl-C to stop.", err=True)


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


# How many calls without a result are remembered. The result of an older one is shown without its call.
_MAX_PENDING_CALLS = 2048
_MAX_BOUNDARIES = 256
_TOOL_USE_BLOCKS = (ToolUseBlock, ServerToolUseBlock, McpToolUseBlock)
_NO_THREAD = Thread()


class LiveOutline:
    """Makes outline items from entries, and remembers the calls that have no result yet."""

    def __init__(self) -> None:
        self._calls: OrderedDict[str, AssistantEntry] = OrderedDict()
        self._boundaries: OrderedDict[str, None] = OrderedDict()

    def items(self, transcript: Transcript, entry: Entry) -> list[Item]:
        """Return the items of an entry; a result is shown as its call, which is then no longer pending."""
        is_agents = transcript.agent is not None
        act = act_of(entry, agent=is_agents)
        answered = self._answer_calls(entry) if isinstance(entry, UserEntry) else []
        started = self._start_calls(entry) if isinstance(entry, AssistantEntry) else []
        shown = [CallItem(entry, call) for call in answered]
        if act is not None:
            # The words of a person who refused a call are shown with the call.
            return [*shown, *([] if act.kind is ActKind.FEEDBACK and shown else [PromptItem(entry, act)])]
        agent = Agent(
            id=AgentId(transcript.agent) if transcript.agent is not None else None,
            kind=AgentKind.BELOW if is_agents else AgentKind.MAIN,
            entries=(entry,),
            thread=_NO_THREAD,
            conversation=(),
            calls=(*started, *answered),
            compactions=tuple(self._compactions(entry)),
        )
        return [*shown, *build_outline(agent, notifications=_task_notifications(entry))]

    def _start_calls(self, entry: AssistantEntry) -> list[Call]:
        blocks = entry.message.blocks if entry.message is not None else ()
        uses = [block for block in blocks if isinstance(block, _TOOL_USE_BLOCKS)]
        for use in uses:
            if use.id:
                self._calls[use.id] = entry
        while len(self._calls) > _MAX_PENDING_CALLS:
            self._calls.popitem(last=False)
        return find_calls((entry,)) if uses else []

    def _answer_calls(self, entry: UserEntry) -> list[Call]:
        calls: list[Call] = []
        for block in result_blocks(entry):
            use = self._calls.pop(block.tool_use_id or "", None)
            if use is not None:
                calls += (call for call in find_calls((use, entry)) if call.id == block.tool_use_id)
        return calls

    def _compactions(self, entry: Entry) -> Iterator[Compaction]:
        """Yield a compaction at its boundary, or at its summary if there was no boundary before it."""
        if isinstance(entry, SystemEntry) and entry.subtype in {"compact_boundary", "microcompact_boundary"}:
            self._boundaries[entry.uuid or ""] = None
            while len(self._boundaries) > _MAX_BOUNDARIES:
                self._boundaries.popitem(last=False)
        elif not (isinstance(entry, UserEntry) and entry.is_compact_summary) or entry.parent_uuid in self._boundaries:
            return
        yield from find_compactions(Graph((entry,)))


def _task_notifications(entry: Entry) -> NotificationsByEntry | None:
    """Return the notifications about background tasks in an entry that the model sees, not in those only queued."""
    if not isinstance(entry, UserEntry | AttachmentEntry):
        return None
    notifications = find_notifications((entry,))
    return {entry_key(entry): notifications} if notifications else None


def is_quiet(item: Item) -> bool:
    """Whether an item is shown only with `--all`."""
    return (isinstance(item, NoticeItem) and item.quiet) or (isinstance(item, ThinkingItem) and not item.text.strip())


class EntrySelector:
    """Selects entries by filter and tool, and turns them into events."""

    def __init__(
        self, criteria: ExplainedEntryFilter | None, tools: tuple[str, ...], *, exact_tools: bool, everything: bool
    ) -> None:
        self._criteria = criteria
        self._tools = tools
        self._exact_tools = exact_tools
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
        attributed = AttributedEntry(entry, transcript.agent, transcript.session)
        return attributed if self._matches(transcript, entry) else None

    def _tool_items(self, transcript: Transcript, entry: Entry) -> list[Item]:
        items = self._outline.items(transcript, entry)
        if not self._tools:
            return items
        return [
            item
            for item in items
            if isinstance(item, CallItem) and names_tool(self._tools, item.call.tool, exact=self._exact_tools)
        ]

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
    zone: tzinfo,
    *,
    is_single: bool,
    colour: bool,
) -> None:
    """Print a line per event. `is_single`: all are from one session, which the lines need not name."""
    style = Style(colour=colour)
    projects: dict[tuple[str, str], str] = {}
    shown = 0
    for batch in _flush_each(batches):
        width = out.page_width()
        for transcript, entry in batch:
            items = selector.items(transcript, entry)
            if not items:
                continue
            source = _event_source(transcript, entry, projects, is_single=is_single)
            for item in items:
                sys.stdout.write(style.line(live_line(item, source, entry.timestamp, width, zone)) + "\n")
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
