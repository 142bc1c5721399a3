"""Links: where a page finds what it names; a server, a site of files and a lone file answer differently."""

from __future__ import annotations

from typing import Protocol

from threadline.model.ids import AgentId, CallId, SessionId


class Links(Protocol):
    """Addresses, or None where there is nothing to go to."""

    def session(self, session: SessionId | str) -> str | None:
        """The page of another session."""

    def agent(self, agent: AgentId | str) -> str | None:
        """The page of an agent of this session."""

    def entry(self, anchor: str) -> str:
        """An entry of this page or another of this session, by its anchor."""

    def raw(self, anchor: str) -> str | None:
        """The page that shows an entry's JSON."""

    def call(self, call: CallId) -> str | None:
        """The page that shows a call whole."""

    def state(self, anchor: str) -> str | None:
        """The page that shows how things stood at an entry."""

    def file(self, path: str) -> str | None:
        """The page of a file: which sessions touched it."""

    def branch(self, number: int | None) -> str | None:
        """The page of a branch; None is the conversation itself."""

    def image(self, anchor: str, number: int, media_type: str, data: str) -> str | None:
        """The picture that stands at so manieth place among those of an entry; `data` is its base64."""
