"""Listed: sessions with what each cost and how many calls it made, as lists show them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from threadline.model.sum import Sum
from threadline.render.html.lists import SessionRow
from threadline.web import addresses
from threadline.web.pages.recalled import recalled

if TYPE_CHECKING:
    from threadline.archive import Archive
    from threadline.index.briefs import Brief


def costs(archive: Archive) -> Mapping[str, Sum]:
    """What each session spent, its agents included."""
    return recalled(archive, "costs", lambda: {row.keys["session"]: row for row in archive.ledger().by("session")})


def every_session(archive: Archive) -> tuple[Brief, ...]:
    """All sessions, newest first."""
    return recalled(archive, "sessions", archive.briefs)


def every_call_count(archive: Archive) -> Mapping[str, int]:
    """How many calls each session made."""
    return recalled(archive, "calls", archive.call_counts)


def listed(archive: Archive, sessions: Iterable[Brief], calls: Mapping[str, int] | None = None) -> list[SessionRow]:
    """Sessions as rows. `calls` is how many each made, where that is known already."""
    some = list(sessions)
    spent = costs(archive)
    living = archive.running()
    made = calls if calls is not None else archive.call_counts([one.id for one in some if one.id is not None])
    return [
        _row(one, spent.get(one.id or "", Sum()), made.get(one.id or "", 0), is_running=one.id in living)
        for one in some
    ]


def project_address(path: str) -> str:
    """The sessions of a project."""
    return addresses.address(addresses.SESSIONS, project=path)


def _row(one: Brief, spent: Sum, calls: int, *, is_running: bool) -> SessionRow:
    return SessionRow(
        id=one.id,
        title=one.title,
        address=addresses.session(one.name),
        project=one.project,
        first=one.first,
        last=one.last,
        model=one.model,
        turns=one.turns,
        calls=calls,
        agents=one.agents,
        amount=spent.amount,
        unpriced=spent.unpriced,
        tokens=spent.tokens,
        running=is_running,
        kept=one.kept,
    )
