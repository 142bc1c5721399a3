"""Linked: where the server's pages find what a session names."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from msgspec import Struct

from threadline.model.ids import AgentId, CallId, SessionId
from threadline.render.html.anchor import named, parted
from threadline.web import addresses


def entry_of(anchor: str) -> str:
    """The anchor of an item's entry: `L120` for `L120-2`."""
    start, _, number = anchor.rpartition("-")
    return start if number.isdecimal() and parted(start) is not None else anchor


class Linked(Struct, frozen=True):
    """The links of one session's pages. `query` is what says how they are shown, and stays on the way.

    `agents` are the names of the agents that have pages of their own.
    """

    id: str
    agent_name: str | None = None
    query: Sequence[tuple[str, str]] = ()
    agents: Collection[str] = ()

    def page(self, *, at: str | None = None, agent: str | None = None, **query: addresses.Queried) -> str:
        """The page of the session, or of one of its agents, as it is shown now but for what is given."""
        below = ("agent", agent) if agent is not None else ()
        kept = [(name, value) for name, value in self.query if name not in query]
        return addresses.session(self.id, *below, kept=kept, at=at, **query)

    def own(self, *, at: str | None = None, **query: addresses.Queried) -> str:
        """This very page, but for what is given."""
        return self.page(at=at, agent=self.agent_name, **query)

    def below(self, *parts: str, **query: addresses.Queried) -> str:
        """What lies below the session."""
        return addresses.session(self.id, *parts, at=None, kept=(), **query)

    # What follows is what `threadline.render.html.links.Links` asks for.

    def session(self, session: SessionId | str) -> str | None:
        """The page of another session."""
        return addresses.session(str(session))

    def agent(self, agent: AgentId | str) -> str | None:
        """The page of an agent of this session; a branch is that of the main one, and does not stay."""
        kept = [(name, value) for name, value in self.query if name not in _OF_ONE]
        return addresses.session(self.id, "agent", named(agent), kept=kept)

    def entry(self, anchor: str) -> str:
        """An entry in the page of its agent."""
        parts = parted(entry_of(anchor))
        name = parts[0] if parts is not None and parts[0] in self.agents else None
        return self.own(at=anchor) if name == self.agent_name else self.page(at=anchor, agent=name, branch=None)

    def raw(self, anchor: str) -> str | None:
        """The page that shows an entry's JSON."""
        return self.below("entry", entry_of(anchor))

    def call(self, call: CallId) -> str | None:
        """The page that shows a call whole."""
        return self.below("call", str(call)) if call else None

    def state(self, anchor: str) -> str | None:
        """The page that shows how things stood at an entry."""
        return self.below("state", entry_of(anchor))

    def file(self, path: str) -> str | None:
        """The page of a file: which sessions touched it."""
        return addresses.address(addresses.FILES, path=path)

    def branch(self, number: int | None) -> str | None:
        """The page of a branch; None is the conversation itself."""
        return self.own(branch=number)

    def image(self, anchor: str, number: int, media_type: str, data: str) -> str | None:  # noqa: ARG002 - by place
        """A picture."""
        return self.below("image", entry_of(anchor), str(number))


_OF_ONE = frozenset({"branch", "from", "to"})
