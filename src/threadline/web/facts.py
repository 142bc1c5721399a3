"""Facts: what the entries of a session have in common, gathered in one go; a long one has very many."""

from __future__ import annotations

from datetime import datetime, timedelta

from msgspec import Struct

from threadline.model.session import Session
from threadline.render.lasting import ends


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
    started, ended = ends(session)
    return Facts(
        started=started,
        ended=ended,
        models=session.models,
        cwds=session.cwds,
        git_branches=session.git_branches,
        calls=sum(len(agent.calls) for agent in (session.main, *session.agents)),
        turns=sum(turn.act is not None for turn in session.turns),
    )
