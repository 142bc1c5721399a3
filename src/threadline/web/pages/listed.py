"""Listed: sessions with what each cost and how many calls it made, as lists show them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from threadline.index.activity import call_counts
from threadline.model.sum import Sum
from threadline.render.html.lists import SessionRow
from threadline.survey.sessions import SessionSummary, Wanted
from threadline.web import addresses
from threadline.web.pages.recalled import recalled

if TYPE_CHECKING:
    from threadline.archive import Archive


def costs(archive: Archive) -> Mapping[str, Sum]:
    """What each session spent, its agents included."""
    return recalled(archive, "costs", lambda: {row.keys["session"]: row for row in archive.ledger().by("session")})


def every_session(archive: Archive) -> tuple[SessionSummary, ...]:
    """All sessions, newest first."""
    return recalled(archive, "sessions", lambda: archive.sessions(Wanted()).sessions)


def every_call_count(archive: Archive) -> Mapping[str, int]:
    """How many calls each session made."""
    return recalled(archive, "calls", lambda: call_counts(archive.connection))


def listed(
    archive: Archive, sessions: Iterable[SessionSummary], calls: Mapping[str, int] | None = None
) -> list[SessionRow]:
    """Sessions as rows. `calls` is how many each made, where that is known already."""
    some = list(sessions)
    spent = costs(archive)
    made = calls if calls is not None else call_counts(archive.connection, [str(one.id) for one in some if one.id])
    return [_row(one, spent.get(str(one.id), Sum()), made.get(str(one.id), 0)) for one in some]


def project_address(path: str) -> str:
    """The sessions of a project."""
    return addresses.address(addresses.SESSIONS, project=path)


def _row(one: SessionSummary, spent: Sum, calls: int) -> SessionRow:
    return SessionRow(
        id=str(one.id) if one.id is not None else None,
        title=one.title,
        address=addresses.session(str(one.id or one.path.stem)),
        project=one.project,
        first=one.first,
        last=one.last,
        model=one.model,
        turns=one.turns,
        calls=calls,
        agents=max(one.agents, one.agents_started),
        amount=spent.amount,
        unpriced=spent.unpriced,
        tokens=spent.tokens,
        running=one.running,
        problem=one.problem,
    )
