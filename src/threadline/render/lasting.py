"""When a session was and how long it lasted: one meaning for lists, heads and files."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from threadline.model.entries import ChainEntry, Entry
from threadline.model.session import Session
from threadline.model.time import parse_timestamp

_USUAL = len("2026-11-15T10:43:45.885Z")


def ends(session: Session) -> tuple[datetime | None, datetime | None]:
    """The first and the last time of its main transcript, as the list has them.

    Not its agents': one that goes on in the background, or whose transcript was copied from an older session, does not
    make the session longer. Where the main transcript tells no time, theirs are all there is.
    """
    own = _ends(session.main.entries)
    return own if own[0] is not None else _ends(session)


def lasted(session: Session) -> timedelta | None:
    """From its first to its last time."""
    first, last = ends(session)
    return last - first if first is not None and last is not None else None


def _ends(entries: Iterable[Entry]) -> tuple[datetime | None, datetime | None]:
    """The first and the last of some times; those that are written as usual are in the order of their letters."""
    usual: list[str] = []
    others: list[object] = []
    for text in {entry.timestamp_text for entry in entries if isinstance(entry, ChainEntry)}:
        if isinstance(text, str) and len(text) == _USUAL and text[-1] == "Z" and text[0] == "2":
            usual.append(text)
        else:
            others.append(text)
    known = [parse_timestamp(text) for text in ((min(usual), max(usual)) if usual else ())]
    if None in known:
        known = [parse_timestamp(text) for text in usual]
    found = [moment for moment in (*known, *map(parse_timestamp, others)) if moment is not None]
    return min(found, default=None), max(found, default=None)
