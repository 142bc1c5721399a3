"""Links of a file: they lead to places in it, and in a site to the pages of other sessions."""

from __future__ import annotations

from msgspec import Struct

from threadline.model.ids import AgentId, CallId, SessionId


class FileLinks(Struct, frozen=True):
    """Where a file finds what it names; `pages` are the other sessions of a site by their ids."""

    pages: dict[str, str] = {}

    def session(self, session: SessionId | str) -> str | None:
        """The page of another session, where it was given out, too."""
        return self.pages.get(str(session))

    def agent(self, agent: AgentId | str) -> str | None:
        """None: agents stand in their places."""
        del agent
        return None

    def entry(self, anchor: str) -> str:
        """A place in the same file."""
        return f"#{anchor}"

    def raw(self, anchor: str) -> str | None:
        """None: a file does not hold its JSON."""
        del anchor
        return None

    def call(self, call: CallId) -> str | None:
        """None: calls are whole where they stand."""
        del call
        return None

    def state(self, anchor: str) -> str | None:
        """None."""
        del anchor
        return None

    def file(self, path: str) -> str | None:
        """None."""
        del path
        return None

    def branch(self, number: int | None) -> str | None:
        """None: a branch is given out by its number."""
        del number
        return None

    def image(self, anchor: str, number: int, media_type: str, data: str) -> str | None:
        """The picture itself."""
        del anchor, number
        return f"data:{media_type};base64,{data}"
