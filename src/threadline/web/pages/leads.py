"""Leads: the address of an entry whose place is known."""

from __future__ import annotations

from typing import TYPE_CHECKING

from threadline.render.html.anchor import named
from threadline.web import addresses

if TYPE_CHECKING:
    from threadline.archive import Archive


def entry_address(session: str | None, agent: str | None, line: int) -> str | None:
    """An entry of a session, or of one of its agents; None where no session is known."""
    if session is None:
        return None
    whose = named(agent) if agent else None
    return addresses.hit(session, whose, f"{whose}.L{line}" if whose else f"L{line}")


def place_address(archive: Archive, transcript: str, line: int) -> str | None:
    """The entry at a line of a transcript; None where the index does not know it."""
    found = archive.owner_of(transcript)
    if found is None or not line:
        return None
    session, agent = found
    return entry_address(session, agent, line)
