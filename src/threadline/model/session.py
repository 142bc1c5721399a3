"""Session: one session id with all its entries, agents and branches, over all transcripts that hold them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from enum import StrEnum
from pathlib import Path

from msgspec import Struct

from threadline.model.act import Act, Turn
from threadline.model.agent import Agent
from threadline.model.call import Call
from threadline.model.entries import ChainEntry, Entry, PrLinkEntry
from threadline.model.ids import AgentId, EntryId, SessionId
from threadline.model.kept import is_kept
from threadline.model.place import Place
from threadline.model.problem import Problem
from threadline.model.thread import Branch, Compaction, Thread
from threadline.model.title import Title


class ContinuationKind(StrEnum):
    """How one session goes on from another."""

    RESUMED_COPY = "resumed-copy"
    FORK = "fork"
    BRANCH = "branch"
    BACKGROUND = "background"
    CLEARED = "cleared"
    RELOCATED = "relocated"
    TELEPORTED = "teleported"
    SUMMARY = "summary"


class Continuation(Struct, frozen=True):
    """That this session goes on from another (`forward` False) or that another goes on from it (`forward` True).

    `session` is the other one, where it is known; `copies` maps each entry that is a copy to its original.
    """

    kind: ContinuationKind
    session: SessionId | None
    evidence: str
    forward: bool = False
    copies: dict[EntryId, EntryId] = {}


class Session(Struct, frozen=True):
    """One session: the main agent and the others, each with its own entries, and what is known of the whole.

    Every entry of every transcript stands in exactly one agent's `entries`.
    """

    id: SessionId | None
    path: Path | None
    main: Agent
    agents: tuple[Agent, ...] = ()
    title: Title = Title()
    tag: str | None = None
    continuations: tuple[Continuation, ...] = ()
    pr_links: tuple[PrLinkEntry, ...] = ()
    file_problems: tuple[Problem, ...] = ()

    @property
    def kept(self) -> bool:
        """Whether Claude Code has deleted it, and it was read from what the keep has."""
        return self.path is not None and is_kept(self.path)

    @property
    def entries(self) -> tuple[Entry, ...]:
        """Every entry of the session, the main agent's first, each agent's in file order."""
        return tuple(self)

    def __iter__(self) -> Iterator[Entry]:
        for agent in (self.main, *self.agents):
            yield from agent.entries

    def __len__(self) -> int:
        return sum(len(agent.entries) for agent in (self.main, *self.agents))

    @property
    def thread(self) -> Thread:
        """The main thread that Claude Code would resume."""
        return self.main.thread

    @property
    def conversation(self) -> tuple[ChainEntry, ...]:
        """The whole main conversation as a person lived it, across compactions."""
        return self.main.conversation

    @property
    def branches(self) -> tuple[Branch, ...]:
        """What was left of the main conversation by edits, retries and rewinds."""
        return self.main.branches

    @property
    def compactions(self) -> tuple[Compaction, ...]:
        """The compactions of the main conversation."""
        return self.main.compactions

    @property
    def acts(self) -> tuple[Act, ...]:
        """What the person did."""
        return self.main.acts

    @property
    def turns(self) -> tuple[Turn, ...]:
        """The turns of the main conversation."""
        return self.main.turns

    @property
    def calls(self) -> tuple[Call, ...]:
        """Every call of every agent, the main agent's first."""
        return tuple(call for agent in (self.main, *self.agents) for call in agent.calls)

    def calls_of(self, turn: Turn | int) -> tuple[Call, ...]:
        """Every call of a turn, by the turn or its number: the main agent's, and those of the agents started in it."""
        number = turn if isinstance(turn, int) else turn.number
        return tuple(call for call in self.calls if call.turn == number)

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What is wrong with the session's files and entries."""
        return (*self.file_problems, *(problem for entry in self for problem in entry.problems))

    def agent(self, id_: AgentId | str | None) -> Agent | None:
        """The agent of that id; the main one for None."""
        return next((agent for agent in (self.main, *self.agents) if agent.id == id_), None)

    def find(self, place: Place) -> Entry | None:
        """The entry that stands at a place."""
        return next((entry for entry in self if _stands_at(entry, place)), None)

    @property
    def started(self) -> datetime | None:
        """The first time that any of its conversation tells."""
        return min(self._times(), default=None)

    @property
    def ended(self) -> datetime | None:
        """The last time that any of its conversation tells."""
        return max(self._times(), default=None)

    def _times(self) -> Iterator[datetime]:
        return (moment for entry in self if isinstance(entry, ChainEntry) and (moment := entry.timestamp))

    @property
    def wall_time(self) -> timedelta | None:
        """From its first to its last time."""
        return self.ended - self.started if self.started and self.ended else None

    @property
    def active_time(self) -> timedelta:
        """The time its turns took, without the pauses between them."""
        return sum((turn.duration for turn in self.turns if turn.duration), timedelta())

    @property
    def models(self) -> tuple[str, ...]:
        """The models that answered in the main conversation, in order of appearance."""
        named = (getattr(getattr(entry, "message", None), "model", None) for entry in self.main.entries)
        return tuple(dict.fromkeys(name for name in named if name and name != "<synthetic>"))

    @property
    def versions(self) -> tuple[str, ...]:
        """The versions of Claude Code that wrote it, in order of appearance."""
        return tuple(dict.fromkeys(e.version for e in self if isinstance(e, ChainEntry) and e.version))

    @property
    def cwds(self) -> tuple[str, ...]:
        """The directories it worked in, in order of appearance; the first is its project."""
        return tuple(dict.fromkeys(e.cwd for e in self.main.entries if isinstance(e, ChainEntry) and e.cwd))

    @property
    def git_branches(self) -> tuple[str, ...]:
        """The git branches it worked on, in order of appearance."""
        named = (e.git_branch for e in self.main.entries if isinstance(e, ChainEntry))
        return tuple(dict.fromkeys(name for name in named if name))

    def __repr__(self) -> str:
        turns = sum(turn.act is not None for turn in self.turns)
        said = f"{turns} turns, {len(self.agents)} agents, {len(self.calls)} calls, {len(self)} entries"
        return f"Session({str(self.id)!r}, {self.title.text[:50]!r}, {said})"


def _stands_at(entry: Entry, place: Place) -> bool:
    line = entry.line
    return line.number == place.line and (
        line.transcript == place.transcript or line.transcript.endswith(place.transcript)
    )
