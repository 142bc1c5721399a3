"""Which entries match: the session and the agent of an entry, and the filter that commands and the library share."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct

from threadline.model.places import starts_id
from threadline.model.times import TimeRange

if TYPE_CHECKING:
    from threadline.model.entries import Entry
    from threadline.model.places import Problem

MAIN = "main"
SUB = "sub"


class AttributedEntry(NamedTuple):
    """An entry, and the agent and session whose own transcript contains it."""

    entry: Entry
    transcript_agent: str | None = None
    transcript_session: str | None = None

    @property
    def session(self) -> str | None:
        """The session it belongs to: its transcript's. For an agent in that folder, the one that it names."""
        return self.transcript_session or self.entry.session_id

    @property
    def agent(self) -> str | None:
        """The subagent that wrote it. Everything in an agent's own transcript is the agent's, even without an id."""
        names = (getattr(self.entry, name, None) for name in ("author_agent_id", "agent_id"))
        return next(filter(None, names), None) or self.transcript_agent

    @property
    def is_agent(self) -> bool:
        """Whether a subagent wrote it, named or not."""
        return bool(self.agent or getattr(self.entry, "is_agent", None))

    @property
    def problems(self) -> tuple[Problem, ...]:
        """The entry's problems, including invalid timestamps, as `threadline doctor` reports them."""
        return self.entry.all_problems


class EntryFilter(Struct, frozen=True):
    """Which entries to read: those that match all fields that are set.

    `session` is the start of a session's id. `kinds` are kinds of entries, such as `user`. `agent` is the start of an
    agent's id, `main` for the main agents, or `sub` for all others. An entry without a time is in no period.
    """

    session: str | None = None
    kinds: tuple[str, ...] = ()
    agent: str | None = None
    time: TimeRange = TimeRange()
    limit: int | None = None

    def matches(self, attributed: AttributedEntry) -> bool:
        """Whether an entry matches all fields; the limit is not considered."""
        return (
            (not self.kinds or attributed.entry.kind in self.kinds)
            and (self.session is None or starts_id(self.session, attributed.session))
            and (self.agent is None or self._is_by_agent(attributed))
            and (not self.time or attributed.entry.timestamp in self.time)
        )

    def _is_by_agent(self, attributed: AttributedEntry) -> bool:
        """Whether the chosen agent wrote the entry. Entries outside any conversation count as main's."""
        if self.agent in {MAIN, SUB}:
            return attributed.is_agent == (self.agent == SUB)
        return names_agent(self.agent or "", attributed.agent)


def names_agent(start: str, agent: str | None) -> bool:
    """Whether a text is an agent's id or the start of it, with or without `agent-` before it. Ignores case.

    >>> names_agent("agent-a1B2", "a1b2c3d4"), names_agent("b2", "a1b2c3d4"), names_agent("", "a1b2c3d4")
    (True, False, False)
    """
    prefix = start.removeprefix("agent-")
    return bool(prefix) and starts_id(prefix, agent)
