"""The order of a session's lines, and its events in that order, with their calls, backups and hooks.

`order_lines` is the only definition of what comes before what: of the state at a place, of the difference between two
places, and of the history of a file.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from itertools import pairwise

from msgspec import Struct

from threadline.model.attachments import HookAttachment
from threadline.model.calls import Call
from threadline.model.entries import (
    AttachmentEntry,
    Entry,
    FileHistoryDeltaEntry,
    FileHistorySnapshotEntry,
    ProgressEntry,
)
from threadline.model.entries.bookkeeping import FileBackup
from threadline.model.entries.conversation import HookProgress
from threadline.model.places import AgentId, CallId
from threadline.model.session import Agent, Session
from threadline.model.times import parse_timestamp

_EventKey = tuple[float, int, int]


class ReplayEvent(Struct, frozen=True):
    """One entry in its time, with a call that it answers and a backup that it records, if any.

    `key` orders events: by time, then transcript, then line. `order_lines` defines the time of a line.
    """

    key: _EventKey
    entry: Entry
    agent: AgentId | None
    call: Call | None = None
    backup: tuple[str, FileBackup] | None = None


class OrderedLine(Struct, frozen=True):
    """An entry with its agent, and its position in the order of the session.

    `key` is when the entry happened. `reached` is when the transcript reached this line. They differ only for entries
    that were written again.
    """

    key: _EventKey
    reached: _EventKey
    entry: Entry
    agent: Agent


def order_lines(session: Session) -> list[OrderedLine]:
    """Return every line of a session with its position in the order of the session.

    - Lines of a transcript are in the order of the file.
    - Lines of different transcripts are in the order of their times.
    - A line's time is its timestamp, as long as timestamps increase from line to line. Lines that contradict most
      others (`_ascending_positions`), and lines without a timestamp, have the time of the line before; at the beginning
      of a file, that of the first line with a time.
    - An entry that was written again, as after a compaction, keeps its own time if that is earlier.
    """
    transcripts: dict[str, list[tuple[Entry, Agent]]] = {}
    for agent in (session.main, *session.agents):
        for entry in agent.entries:
            transcripts.setdefault(entry.line.transcript, []).append((entry, agent))
    lines: list[OrderedLine] = []
    for number, transcript in enumerate(transcripts.values()):
        transcript.sort(key=lambda line: line[0].line.offset)
        lines += _order_transcript(transcript, number)
    return lines


def _order_transcript(transcript: list[tuple[Entry, Agent]], number: int) -> Iterator[OrderedLine]:
    events = [entry.timestamp for entry, _ in transcript]
    times = _monotonic_times([event.timestamp() if event is not None else None for event in events])
    seen: set[str] = set()
    for position, ((entry, agent), time) in enumerate(zip(transcript, times, strict=True)):
        reached = happened = time
        if entry.uuid is not None:
            if entry.uuid in seen and (event := entry.timestamp) is not None:
                happened = min(reached, event.timestamp())
            seen.add(entry.uuid)
        yield OrderedLine((happened, number, position), (reached, number, position), entry, agent)


def _monotonic_times(times: list[float | None]) -> list[float]:
    """Return times that never decrease: those that contradict the others, or are missing, become the one before."""
    known = [position for position, time in enumerate(times) if time is not None]
    kept = {known[at] for at in _ascending_positions([times[position] or 0.0 for position in known])}
    last = next((times[position] or 0.0 for position in known if position in kept), 0.0)
    result = []
    for position, time in enumerate(times):
        if time is not None and position in kept:
            last = time
        result.append(last)
    return result


def _ascending_positions(times: list[float]) -> Iterable[int]:
    """Return the positions of the longest subsequence that never decreases.

    >>> list(_ascending_positions([9.0, 1.0, 2.0, 2.0, 0.5, 3.0]))
    [5, 3, 2, 1]
    """
    if all(first <= second for first, second in pairwise(times)):
        return range(len(times))
    smallest_ends: list[float] = []
    end_positions: list[int] = []
    previous: list[int | None] = []
    for position, time in enumerate(times):
        length = bisect_right(smallest_ends, time)
        previous.append(end_positions[length - 1] if length else None)
        smallest_ends[length : length + 1] = [time]
        end_positions[length : length + 1] = [position]
    ascending: list[int] = []
    step: int | None = end_positions[-1]
    while step is not None:
        ascending.append(step)
        step = previous[step]
    return ascending


def replay_events(session: Session, lines: list[OrderedLine] | None = None) -> list[ReplayEvent]:
    """Return every event of a session, with each call's result and each backup once.

    An entry with the results of several calls is as many events.

    `lines` are those of `order_lines`.
    """
    calls: dict[int, list[Call]] = {}
    for agent in (session.main, *session.agents):
        for call in agent.calls:
            if call.answer is not None:
                calls.setdefault(id(call.answer), []).append(call)
    answered: set[CallId] = set()
    backups: set[tuple[str, str | None, int | None, str | None]] = set()
    events: list[ReplayEvent] = []
    for line in order_lines(session) if lines is None else lines:
        key, entry, author = line.key, line.entry, line.agent.id
        # A copy of a result, made on a resume or a fork, does not count: the call happened once.
        new_calls = [call for call in calls.get(id(entry), ()) if call.id not in answered]
        answered.update(call.id for call in new_calls)
        events += (ReplayEvent(key, entry, author, call) for call in new_calls or (None,))
        for path, backup in _backups_in(entry):
            identity = (path, backup.backup_file_name, backup.version, backup.backup_time)
            if identity not in backups:
                backups.add(identity)
                event = parse_timestamp(backup.backup_time)
                at = (min(event.timestamp(), key[0]), *key[1:]) if event is not None else key
                events.append(ReplayEvent(at, entry, author, None, (path, backup)))
    events.sort(key=lambda event: event.key)
    return events


def _backups_in(entry: Entry) -> Iterator[tuple[str, FileBackup]]:
    """Yield the backups that an entry records. A snapshot repeats those of earlier snapshots."""
    if isinstance(entry, FileHistorySnapshotEntry) and entry.snapshot is not None:
        yield from (entry.snapshot.tracked_file_backups or {}).items()
    elif isinstance(entry, FileHistoryDeltaEntry) and entry.tracking_path and entry.backup is not None:
        yield entry.tracking_path, entry.backup


# A function inside Claude Code that watches its own tools, not a user's hook.
_INTERNAL_COMMAND = "callback"


class HookRun(Struct, frozen=True):
    """A hook that ran: at which event, after which call."""

    event: str
    call: str | None


def hook_run_in(entry: Entry) -> HookRun | None:
    """Return the hook that an entry records, if it is a user's."""
    if isinstance(entry, ProgressEntry) and isinstance(entry.progress, HookProgress):
        event, command, call = entry.progress.hook_event, entry.progress.command, entry.tool_use_id
    elif isinstance(entry, AttachmentEntry) and isinstance(entry.attachment, HookAttachment):
        event, command, call = entry.attachment.hook_event, entry.attachment.command, entry.attachment.tool_use_id
    else:
        return None
    return HookRun(event, call) if event and command != _INTERNAL_COMMAND else None
