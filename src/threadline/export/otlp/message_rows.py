"""Which messages of a session become spans: their rows, agents and turns, and what was copied from other sessions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from msgspec import Struct

from threadline.model.entries import AssistantEntry, ChainEntry, Entry
from threadline.model.ledger import Charge
from threadline.model.places import AgentId
from threadline.model.session import Agent, Session


class TurnRange(Struct, frozen=True):
    """The turns to export. Without limits, everything is exported, also what belongs to no turn."""

    first: int | None = None
    last: int | None = None

    def contains(self, turn: int | None) -> bool:
        """Whether a turn is exported."""
        if self.first is None and self.last is None:
            return True
        return turn is not None and turn >= (self.first or 0) and (self.last is None or turn <= self.last)


class SessionFacts(Struct, frozen=True):
    """What a trace is built from: a session, the charges that it owns, and those that it copied from other sessions.

    `id` is the session's id, and `folder` the one that its transcript is in. `scope` is its `trace_key`, unless
    another transcript has the same.
    """

    session: Session
    own: Sequence[Charge]
    shared: Sequence[Charge]
    id: str
    folder: str
    scope: str
    project: str | None = None


class RowTable:
    """The rows of messages in a session: which agent and turn they belong to, and which of them were charged."""

    def __init__(self, session: Session) -> None:
        self._turns = {row_key(entry): turn.number for turn in session.main.turns for entry in turn.entries}
        self._agents: dict[str, AgentId | None] = {}
        self._rows: dict[str, AssistantEntry] = {}
        self._entries: dict[str, ChainEntry] = {}
        self._last: set[str] = set()
        self._charged: set[str] = set()
        self._charged_messages: set[str] = set()
        for agent in (session.main, *session.agents):
            chain = [entry for entry in agent.entries if isinstance(entry, ChainEntry)]
            for entry in chain:
                key = row_key(entry)
                self._entries.setdefault(key, entry)
                if isinstance(entry, AssistantEntry) and key not in self._rows:
                    self._rows[key] = entry
                    self._agents[key] = agent.id
            if chain:
                self._last.add(row_key(chain[-1]))

    def of_charge(self, charge: Charge) -> list[AssistantEntry]:
        """The rows that a charge was counted from, in this session; they count as charged from now on."""
        self._charged_messages.add(charge.message)
        for sighting in (charge.owner, *charge.sightings):
            keys = [
                uuid or f"{sighting.origin.transcript}:{sighting.lines[at]}" for at, uuid in enumerate(sighting.uuids)
            ]
            rows = [row for key in keys if (row := self._rows.get(key)) is not None]
            if rows:
                self._charged.update(map(row_key, rows))
                return rows
        return []

    def without_charges(self) -> Iterator[tuple[AgentId | None, list[AssistantEntry]]]:
        """The rows of each message that was not charged, for example because it reports no usage."""
        messages: dict[tuple[AgentId | None, str], list[AssistantEntry]] = {}
        for key, row in self._rows.items():
            if key not in self._charged and message_key(row) not in self._charged_messages:
                messages.setdefault((self._agents[key], message_key(row)), []).append(row)
        for (agent, _message), rows in messages.items():
            yield agent, rows

    def agent_of(self, row: AssistantEntry) -> AgentId | None:
        """The agent that wrote a row; None is the main one."""
        return self._agents[row_key(row)]

    def turn_of(self, row: AssistantEntry) -> int | None:
        """The turn of the main agent that contains a row."""
        return self._turns.get(row_key(row))

    def is_charged(self, row: AssistantEntry) -> bool:
        """Whether a charge was counted from a row."""
        return row_key(row) in self._charged

    def is_followed(self, rows: Sequence[AssistantEntry]) -> bool:
        """Whether something was written after a message, so that no more rows of it will come."""
        return not any(row_key(row) in self._last for row in rows)

    def prompt_time(self, row: AssistantEntry) -> datetime | None:
        """When the entry was written that a message answers; None if that is unknown."""
        parent = self._entries.get(row.parent_uuid or "")
        return None if parent is None or isinstance(parent, AssistantEntry) else parent.timestamp


class CopiedRows:
    """Which rows of a session were copied from another session, whose trace has them."""

    def __init__(self, facts: SessionFacts) -> None:
        self._own = {charge.message for charge in facts.own}
        self._shared = {charge.message for charge in facts.shared} - self._own
        self._copies = {copy for link in facts.session.continues for copy in link.copies}

    def is_copied(self, row: AssistantEntry) -> bool:
        """Whether a row was copied."""
        key = message_key(row)
        return key not in self._own and (key in self._shared or row.uuid in self._copies)

    def is_all_copied(self, agent: Agent) -> bool:
        """Whether all messages of an agent were copied."""
        rows = [entry for entry in agent.entries if isinstance(entry, AssistantEntry)]
        return bool(rows) and all(map(self.is_copied, rows))


def row_key(entry: Entry) -> str:
    """What identifies a row: its uuid, or else its place."""
    return entry.uuid or str(entry.place)


def message_key(row: AssistantEntry) -> str:
    """What identifies a message: its id; if it has none, the request's or the entry's. The ledger uses the same."""
    id_ = row.message.id if row.message is not None else None
    return id_ or row.request_id or row_key(row)
