"""Work: what agents did in a transcript, entry by entry: calls, files touched, lists, compactions, agents started."""

from __future__ import annotations

import sqlite3

import msgspec
from msgspec import Struct

from threadline.index.agent_rows import AgentRows, Agents, AgentsState
from threadline.index.answer import LISTS, Answered
from threadline.index.call_rows import CallRows, EntryIds
from threadline.index.calling import Calling, CallState
from threadline.index.compaction_rows import Compacting, CompactionRow, CompactionState, write_compactions
from threadline.index.file_rows import Touch, Touching, forget_touches, write_touches
from threadline.index.texts import as_text
from threadline.index.todo_rows import Listing, ListRows, ListState, write_again, write_lists
from threadline.model.attachments import TaskReminder, TodoReminder
from threadline.model.entries import (
    AgentMetadataEntry,
    AssistantEntry,
    AttachmentEntry,
    ChainEntry,
    Entry,
    ProgressEntry,
    SystemEntry,
    UserEntry,
)
from threadline.model.found import Transcript

_REMINDERS = (TodoReminder, TaskReminder)


class WorkState(Struct, array_like=True):
    """What is remembered of the work in a transcript between refreshes: little, however long it is."""

    calls: CallState
    compactions: CompactionState
    agents: AgentsState
    lists: ListState
    cwd: str | None = None


def no_work() -> WorkState:
    """The state before the first line."""
    return WorkState(CallState(), CompactionState(), AgentsState(), ListState())


class Work:
    """What agents did, while entries are added."""

    def __init__(self, state: WorkState, transcript: Transcript, *, is_whole: bool) -> None:
        self.state = state
        self._has_main = False
        self._calls = Calling(state.calls, str(transcript.path), self._answered, is_whole=is_whole)
        self._compactions = Compacting(state.compactions)
        self._agents = Agents(state.agents, transcript)
        self._files = Touching(state.cwd)
        self._lists = Listing(state.lists)

    def add(self, at: int, entry: Entry) -> None:
        """One more entry, the one of that number among those that are read now."""
        if self._agents.counts:
            self._agents.own(entry)
        if isinstance(entry, ChainEntry):
            self._chain(at, entry)
        elif isinstance(entry, AgentMetadataEntry):
            self._agents.metadata(entry)

    def _chain(self, at: int, entry: ChainEntry) -> None:
        agent = None
        if entry.is_agent:
            agent = self._agents.inside(entry)
        elif not self._has_main:
            self._has_main = True
            self._agents.main()
        if entry.cwd:
            self._files.cwd = entry.cwd
        if isinstance(entry, AssistantEntry):
            self._calls.reply(at, entry, agent)
        elif isinstance(entry, UserEntry):
            self._user(at, entry, agent)
        elif isinstance(entry, AttachmentEntry):
            self._attachment(at, entry, agent)
        elif isinstance(entry, SystemEntry):
            self._compactions.system(at, entry, agent)
        elif isinstance(entry, ProgressEntry):
            self._agents.progress(entry)

    def _user(self, at: int, entry: UserEntry, agent: str | None) -> None:
        self._calls.user(at, entry, agent)
        if entry.is_compact_summary:
            self._compactions.summary(at, entry, agent)
        if entry.todos:
            self._lists.told(entry, agent)

    def _attachment(self, at: int, entry: AttachmentEntry, agent: str | None) -> None:
        self._files.attached(at, entry)
        if isinstance(entry.attachment, _REMINDERS):
            self._lists.told(entry, agent)

    def _answered(self, one: Answered, agent: str | None) -> None:
        self._files.answered(one)
        if one.ending.started is not None:
            self._agents.answered(one)
        if one.tool in LISTS:
            self._lists.answered(one, agent)

    def done(self) -> bytes:
        """The rows, when all entries have been added; packed, since there are many, and they go to another process."""
        lists = self._lists.done()
        self.state.cwd = as_text(self._files.cwd)
        return msgspec.msgpack.encode(
            WorkRows(self._calls.done(), self._files.rows, lists, self._compactions.done(), self._agents.done())
        )


class WorkRows(Struct, array_like=True, gc=False):
    """What some entries tell of the work, as workers hand it on."""

    calls: CallRows
    files: list[Touch]
    lists: ListRows | None
    compactions: list[CompactionRow]
    agents: AgentRows

    def write(self, connection: sqlite3.Connection, number: int, first: int) -> None:
        """Write it down for the transcript of that number; its new entries begin at `first`."""
        ids = EntryIds(connection, number, first)
        keys = self.calls.write(connection, number, ids)
        write_touches(connection, self.files, keys, ids)
        if self.lists is not None:
            write_lists(connection, self.lists, number, ids)
        for late in self.calls.late(connection, number, ids):
            write_again(connection, late, number, ids)
            forget_touches(connection, late.key)
            files = Touching(None)
            files.answered(late.answered)
            write_touches(connection, files.rows, {late.answered.call: late.key}, ids)
        write_compactions(connection, self.compactions, number, ids, is_whole=self.calls.is_whole)
        self.agents.write(connection, number)


_decode = msgspec.msgpack.Decoder(WorkRows).decode


def write_work(connection: sqlite3.Connection, packed: bytes, number: int, first: int) -> None:
    """Write down rows for the transcript of that number; its new entries begin at `first`."""
    _decode(packed).write(connection, number, first)
