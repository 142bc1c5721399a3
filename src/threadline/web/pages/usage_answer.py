"""What was spent, as one answer: rows, sums by time and model, and what has to be said about them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from datetime import date, datetime, tzinfo
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from threadline.model.sum import Row, Rows, Sum
from threadline.survey.agent_types import fill_agent_types
from threadline.survey.usage_report import document, notes, report
from threadline.web.pages.listed import every_session
from threadline.web.pages.usage_chart import unit_of

if TYPE_CHECKING:
    from threadline.archive import Archive


class Spending(Struct, frozen=True):
    """What is asked for."""

    names: tuple[str, ...]
    today: date
    since: datetime | None = None
    until: datetime | None = None
    project: str | None = None
    model: str | None = None
    session: str | None = None
    limit: int = 200


class Told(Struct, frozen=True):
    """The answer. `parts` are sums by a unit of time and model; `left_out` is how many values are beyond the limit.

    `openable` are the sessions among the rows that have a page, if one that leads to what is left of them.
    """

    rows: Rows
    total: Sum
    unit: str
    parts: tuple[Row, ...]
    titles: Mapping[str, str]
    openable: frozenset[str]
    notes: tuple[str, ...]
    left_out: int
    rest: Sum
    document: dict[str, Any]


def told_of(archive: Archive, asked: Spending, here: tzinfo) -> Told:
    """What the ledger says; it holds nothing of the ledger itself."""
    chosen = archive.ledger().where(
        since=asked.since, until=asked.until, project=asked.project, model=asked.model, session=asked.session
    )
    if "agent-type" in asked.names:
        fill_agent_types(archive.found, chosen)
    made = report(chosen, asked.names, here, extra={}, limit=asked.limit, since=asked.since, until=asked.until)
    days = chosen.by("day", zone=here)
    unit = unit_of(asked.names[0], [row.keys["day"] for row in days], asked.today)
    sessions = {row.keys["session"] for row in made.rows} if "session" in asked.names else set()
    return Told(
        rows=made.rows,
        total=made.total,
        unit=unit,
        parts=chosen.by(unit, "model", zone=here).rows,
        titles=archive.titles(sessions) if sessions else {},
        openable=frozenset(_openable(archive, sessions)) if sessions else frozenset(),
        notes=tuple(notes(made)),
        left_out=made.left_out,
        rest=made.rest,
        document=document(made),
    )


def _openable(archive: Archive, sessions: Collection[str]) -> Iterator[str]:
    listed = {one.name for one in every_session(archive)}
    listed |= {one.session for home in archive.found for one in home.transcripts if one.session is not None}
    for session in sessions:
        if session in listed or archive.named_inside(session) is not None:
            yield session
