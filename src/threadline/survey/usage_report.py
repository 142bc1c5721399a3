"""A usage report: its rows in order, what is to be said about them, and the document that programs get."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, tzinfo
from itertools import product
from typing import Any

from msgspec import Struct

from threadline.account.calendar import Calendar
from threadline.account.keys import TIMES, Key, key, shares
from threadline.account.ledger import Ledger
from threadline.model.rate import plain_number
from threadline.model.reported import Reported, ReportedDay
from threadline.model.sum import Row, Rows, Sum, figures
from threadline.model.zone import zone_name
from threadline.render.figures import count
from threadline.survey.usage_swept import gone

METHODS = {
    "tool": "By tool, a charge is shared equally by the calls that its message makes, whatever each of them did; "
    "`(no call)` is messages that make none.",
    "skill": "By skill, a charge belongs to the skill that Claude Code itself names as its cause (2.1.123 on); "
    "`(none)` is all else.",
}
_FEW = 4
_Path = tuple[str, ...]


class Report(Struct, frozen=True):
    """The rows of a report. `left_out` is how many values of the first key are beyond the limit, `rest` their sum.

    `reported` is what Claude Code reports, where that was asked for; `swept` are days whose transcripts are gone;
    `is_part` says that not all charges were asked for.
    """

    ledger: Ledger
    rows: Rows
    total: Sum
    place: tzinfo
    since: datetime | None = None
    until: datetime | None = None
    left_out: int = 0
    rest: Sum = Sum()
    reported: Reported | None = None
    swept: tuple[ReportedDay, ...] = ()
    is_part: bool = False

    @property
    def zone(self) -> str:
        """The name of the zone whose days these are."""
        return zone_name(self.place)

    @property
    def by(self) -> _Path:
        """The keys."""
        return self.rows.by


def report(
    ledger: Ledger,
    names: Sequence[str],
    zone: tzinfo,
    *,
    extra: Mapping[str, Key],
    order: str | None = None,
    limit: int | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
) -> Report:
    """The report on a ledger by these keys. `limit` is how many values of the first key it has at most.

    `since` and `until` are what was asked of the ledger, for the report to repeat.
    """
    rows = ledger.by(*names, zone=zone, extra=extra)
    total = rows.total
    if order is not None:
        rows = Rows(rows.by, tuple(_ordered(rows, order, _last_times(ledger, rows.by, zone, extra, order))))
    kept, others = _cut(rows, limit, newest=order == "time" or (order is None and names[0] in TIMES))
    left_out = len({row.keys[names[0]] for row in others})
    return Report(ledger, Rows(rows.by, kept), total, zone, since, until, left_out, Sum.of(others))


def _ordered(rows: Rows, order: str, last: Mapping[_Path, datetime]) -> list[Row]:
    """Rows by time or by amount, key by key, so that parts of a nest stay together."""
    weights: list[dict[_Path, Row]] = [
        {tuple(row.keys.values()): row for row in rows.subtotals(depth + 1)} for depth in range(len(rows.by))
    ]

    def place(row: Row) -> tuple[object, ...]:
        path = tuple(row.keys[name] for name in rows.by)
        return tuple(
            _weight(weights[at][path[: at + 1]], path[at])
            if order == "amount"
            else (path[at] if name in TIMES else last[path[: at + 1]], path[at])
            for at, name in enumerate(rows.by)
        )

    return sorted(rows.rows, key=place)


def _weight(row: Row, value: str) -> tuple[object, ...]:
    return -(row.amount or 0), -row.tokens, value


def _last_times(
    ledger: Ledger, names: _Path, zone: tzinfo, extra: Mapping[str, Key], order: str
) -> dict[_Path, datetime]:
    """When each part of the report was last spent on; nothing where nobody asks."""
    if order != "time" or all(name in TIMES for name in names):
        return {}
    calendar = Calendar(zone)
    keys = [shares if name == "tool" else _alone(extra.get(name) or key(name, calendar)) for name in names]
    last: dict[_Path, datetime] = {}
    for charge in ledger:
        when = charge.timestamp or _EARLIEST
        for path in set(product(*(one(charge) for one in keys))):
            for depth in range(1, len(path) + 1):
                last[path[:depth]] = max(when, last.get(path[:depth], _EARLIEST))
    return last


def _alone(one: Key) -> Any:
    return lambda charge: (one(charge),)


def _cut(rows: Rows, limit: int | None, *, newest: bool) -> tuple[tuple[Row, ...], tuple[Row, ...]]:
    """The rows that are shown, and the others: of times the newest are shown, of all else the first."""
    values = list(dict.fromkeys(row.keys[rows.by[0]] for row in rows))
    if limit is None or len(values) <= limit:
        return rows.rows, ()
    chosen = set(values[-limit:] if newest else values[:limit])
    return (
        tuple(row for row in rows if row.keys[rows.by[0]] in chosen),
        tuple(row for row in rows if row.keys[rows.by[0]] not in chosen),
    )


def notes(one: Report) -> Iterator[str]:
    """What has to be said about the figures, a sentence each."""
    total = one.total
    if total.unpriced:
        models = _unpriced_models(one.ledger)
        have, are = ("has", "is") if total.unpriced == 1 else ("have", "are")
        yield f"{count(total.unpriced, 'charge')} {have} no price and {are} in no amount ({models})."
    if total.lower_bound:
        yield (
            f"Output is a lower bound for {count(total.lower_bound, 'charge')}: the final count was never written, "
            "as in versions before 2.1.59."
        )
    yield from (METHODS[name] for name in one.by if name in METHODS)
    if one.reported is not None and one.is_part:
        yield "What Claude Code reports is of whole sessions, and so are the amounts that are held against it."
    if (words := gone(one.swept)) != "":
        yield words
    if one.ledger.problems:
        many = count(len(one.ledger.problems), "transcript")
        yield f"{many} could not be read, or not wholly, and what was spent there is missing."


def _unpriced_models(ledger: Ledger) -> str:
    found = {row.keys["model"]: row.unpriced for row in ledger.by("model") if row.unpriced}
    ordered = sorted(found, key=lambda name: (-found[name], name))
    more = f" and {len(ordered) - _FEW} more" if len(ordered) > _FEW else ""
    return ", ".join(ordered[:_FEW]) + more


def document(one: Report) -> dict[str, Any]:
    """The report for programs."""
    told: dict[str, Any] = {
        "total": plain_figures(one.total),
        "rows": [plain_row(row) for row in one.rows],
        "by": list(one.by),
        "zone": one.zone,
        "since": one.since,
        "until": one.until,
        "prices": prices(one.ledger),
        "problems": [{"kind": p.kind, "place": str(p.place), "message": p.message} for p in one.ledger.problems],
        "left_out": one.left_out,
        "notes": list(notes(one)),
    }
    if one.reported is not None:
        from threadline.render.reconciliation import record  # noqa: PLC0415 - few ask for it

        told["reported"] = record(one.reported)
    elif one.swept:
        from threadline.render.reconciliation import swept_record  # noqa: PLC0415 - few ask for it

        told["reported"] = swept_record(one.swept)
    return told


def prices(ledger: Ledger) -> dict[str, Any]:
    """The prices that were applied, by their digests."""
    files = [{"name": name, "digest": digest} for name, digest in ledger.rates.digests]
    return {"digest": ledger.rates.digest, "files": files}


def plain_row(row: Row) -> dict[str, Any]:
    """A row for programs: its keys, and then its figures."""
    return {**row.keys, **plain_figures(row)}


def plain_figures(one: Sum) -> dict[str, Any]:
    """A sum for programs: the amount is a string, so that no reader makes it a float, and has no exponent."""
    amount = plain_number(one.amount) if one.amount is not None else None
    return {**figures(one), "amount": amount}


_EARLIEST = datetime.fromisoformat("0001-01-01T00:00:00+00:00")
