"""Facts: what the entries of a session have in common, gathered in one go; a long one has very many."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from msgspec import Struct

from threadline.model.entries import ChainEntry
from threadline.model.session import Session
from threadline.model.time import parse_timestamp

_USUAL = len("2026-11-15T10:43:45.885Z")


class Facts(Struct, frozen=True):
    """When a session was, where, with which models and on which branches, each in the order of appearance."""

    started: datetime | None
    ended: datetime | None
    models: tuple[str, ...]
    cwds: tuple[str, ...]
    git_branches: tuple[str, ...]
    calls: int
    turns: int

    @property
    def project(self) -> str | None:
        """The directory that it began in."""
        return self.cwds[0] if self.cwds else None

    @property
    def wall_time(self) -> timedelta | None:
        """From its first to its last time."""
        return self.ended - self.started if self.started and self.ended else None


def facts(session: Session) -> Facts:
    """The facts of a session."""
    started, ended = _span({entry.timestamp_text for entry in session if isinstance(entry, ChainEntry)})
    return Facts(
        started=started,
        ended=ended,
        models=session.models,
        cwds=session.cwds,
        git_branches=session.git_branches,
        calls=sum(len(agent.calls) for agent in (session.main, *session.agents)),
        turns=sum(turn.act is not None for turn in session.turns),
    )


def _span(texts: Iterable[object]) -> tuple[datetime | None, datetime | None]:
    """The first and the last of some times; those that are written as usual are in the order of their letters."""
    usual: list[str] = []
    others: list[object] = []
    for text in texts:
        if isinstance(text, str) and len(text) == _USUAL and text[-1] == "Z" and text[0] == "2":
            usual.append(text)
        else:
            others.append(text)
    ends = [parse_timestamp(text) for text in ((min(usual), max(usual)) if usual else ())]
    if None in ends:
        ends = [parse_timestamp(text) for text in usual]
    known = [moment for moment in (*ends, *map(parse_timestamp, others)) if moment is not None]
    return min(known, default=None), max(known, default=None)
