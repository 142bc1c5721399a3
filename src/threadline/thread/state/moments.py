"""Moments: all that happened in a session, of all agents, in the order of time."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from threadline.model.agent import Agent
from threadline.model.call import Call
from threadline.model.entries import Entry, FileHistoryDeltaEntry, FileHistorySnapshotEntry
from threadline.model.entries.files import FileBackup
from threadline.model.ids import AgentId, CallId
from threadline.model.session import Session
from threadline.model.time import parse_timestamp

_Key = tuple[float, int, int]


class Moment(Struct, frozen=True):
    """One entry in its time, with the call that it answers and the backup that it tells of, if any.

    `key` orders moments: by time, then agent, then position in the agent's entries. An entry without a time has that
    of the one before it.
    """

    key: _Key
    entry: Entry
    agent: AgentId | None
    call: Call | None = None
    backup: tuple[str, FileBackup] | None = None


def moments(session: Session) -> list[Moment]:
    """Every moment of a session, each call's result and each backup once."""
    answered: set[CallId] = set()
    backups: set[tuple[str, str | None, int | None, str | None]] = set()
    found: list[Moment] = []
    for number, agent in enumerate((session.main, *session.agents)):
        calls = {id(call.answer): call for call in agent.calls if call.answer is not None}
        for key, entry in _timed(agent, number):
            call = calls.get(id(entry))
            if call is not None and call.id in answered:
                call = None  # a copy of an entry, made on a resume or a fork: it happened once
            elif call is not None:
                answered.add(call.id)
            found.append(Moment(key, entry, agent.id, call))
            for path, backup in _backups(entry):
                mark = (path, backup.backup_file_name, backup.version, backup.backup_time)
                if mark not in backups:
                    backups.add(mark)
                    moment = parse_timestamp(backup.backup_time)
                    at = (moment.timestamp(), *key[1:]) if moment is not None else key
                    found.append(Moment(at, entry, agent.id, None, (path, backup)))
    found.sort(key=lambda one: one.key)
    return found


def _timed(agent: Agent, number: int) -> Iterator[tuple[_Key, Entry]]:
    # Rows before the first that has a time are as old as that one.
    last = next((moment.timestamp() for entry in agent.entries if (moment := entry.timestamp) is not None), 0.0)
    for position, entry in enumerate(agent.entries):
        moment = entry.timestamp
        if moment is not None:
            last = moment.timestamp()
        yield (last, number, position), entry


def _backups(entry: Entry) -> Iterator[tuple[str, FileBackup]]:
    """The backups an entry tells of; a snapshot repeats those of the snapshots before it."""
    if isinstance(entry, FileHistorySnapshotEntry) and entry.snapshot is not None:
        yield from (entry.snapshot.tracked_file_backups or {}).items()
    elif isinstance(entry, FileHistoryDeltaEntry) and entry.tracking_path and entry.backup is not None:
        yield entry.tracking_path, entry.backup
