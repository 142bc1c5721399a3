"""The events of a session in order of time, of all agents, with their calls, backups and hooks."""

from __future__ import annotations

from collections.abc import Iterator

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
    """One entry in its time, with the call that it answers and the backup that it records, if any.

    `key` orders events: by time, then agent, then position in the agent's entries. An entry without a time has that of
    the one before it.
    """

    key: _EventKey
    entry: Entry
    agent: AgentId | None
    call: Call | None = None
    backup: tuple[str, FileBackup] | None = None


def replay_events(session: Session) -> list[ReplayEvent]:
    """Return every event of a session, with each call's result and each backup once."""
    answered: set[CallId] = set()
    backups: set[tuple[str, str | None, int | None, str | None]] = set()
    events: list[ReplayEvent] = []
    for number, agent in enumerate((session.main, *session.agents)):
        calls = {id(call.answer): call for call in agent.calls if call.answer is not None}
        for key, entry in _timed_entries(agent, number):
            call = calls.get(id(entry))
            if call is not None and call.id in answered:
                call = None  # a copy made on a resume or a fork: it happened once
            elif call is not None:
                answered.add(call.id)
            events.append(ReplayEvent(key, entry, agent.id, call))
            for path, backup in _backups_in(entry):
                identity = (path, backup.backup_file_name, backup.version, backup.backup_time)
                if identity not in backups:
                    backups.add(identity)
                    moment = parse_timestamp(backup.backup_time)
                    at = (moment.timestamp(), *key[1:]) if moment is not None else key
                    events.append(ReplayEvent(at, entry, agent.id, None, (path, backup)))
    events.sort(key=lambda event: event.key)
    return events


def _timed_entries(agent: Agent, number: int) -> Iterator[tuple[_EventKey, Entry]]:
    # Rows before the first one with a time have that time.
    last = next((moment.timestamp() for entry in agent.entries if (moment := entry.timestamp) is not None), 0.0)
    for position, entry in enumerate(agent.entries):
        moment = entry.timestamp
        if moment is not None:
            last = moment.timestamp()
        yield (last, number, position), entry


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
