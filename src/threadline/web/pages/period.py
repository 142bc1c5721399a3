"""The period that a page about all sessions covers: links to choose one, and the default."""

from __future__ import annotations

from datetime import date, datetime, timedelta, tzinfo
from typing import TYPE_CHECKING

from markupsafe import Markup
from msgspec import Struct

from threadline.model.times import in_zone, parse_moment, zone_name
from threadline.render.html import chip_row, choice_chip
from threadline.web.pages.forms import ALL
from threadline.web.request import check_time_range

if TYPE_CHECKING:
    from threadline.account import Ledger
    from threadline.web.request import PageRequest

_DEFAULT_DAYS = 30
_TIME_SPANS = (("7d", "7 days", 7), ("30d", "30 days", 30), ("90d", "90 days", 90), ("365d", "a year", 365))
_DAY = timedelta(days=1)


class Period(Struct, frozen=True):
    """A range of time. `today` is the day of the request in its zone."""

    today: date
    since: datetime | None = None
    until: datetime | None = None

    def describe(self, zone: tzinfo) -> list[str]:
        """The first and the last day, and the zone of days."""
        zone_note = f"days in {zone_name(zone)}"
        last = in_zone(self.until, zone).date().isoformat() if self.until is not None else "today"
        if self.since is None:
            return ["all time" if self.until is None else f"up to {last}", zone_note]
        return [f"{in_zone(self.since, zone).date().isoformat()} to {last}", zone_note]


def parse_period(request: PageRequest, ledger: Ledger | None = None) -> Period:
    """Parse `since` and `until`. By default, it is the last thirty days, or everything if they are empty.

    `ledger` says whether they are; it is that of the archive unless another is given.

    Raises:
        BadQuery: a value is not a time, or `since` is later than `until`.
    """
    text = request.text("since")
    zone = request.zone()
    today = in_zone(request.now, zone).date()
    span_days = {name: days for name, _label, days in _TIME_SPANS}
    until = request.moment("until", end=True)
    since: datetime | None
    if text == ALL:
        since = None
    elif text is None and until is None:
        since = _midnight(today - (_DEFAULT_DAYS - 1) * _DAY, zone)
        if not (request.archive.ledger() if ledger is None else ledger).where(since=since).total.charges:
            since = None
    elif text in span_days:
        since = _midnight(today - (span_days[text] - 1) * _DAY, zone)
    else:
        since = request.moment("since")
    check_time_range(since, until)
    return Period(today, since, until)


def _midnight(day: date, zone: tzinfo) -> datetime:
    return parse_moment(day, tz=zone)


def period_chips(request: PageRequest, period: Period) -> Markup:
    """Links to the usual periods."""
    text, until = request.text("since"), request.text("until")
    is_all = period.since is None
    chips = [
        choice_chip(
            request.url_with(since=name, until=None, after=None),
            label,
            is_chosen=until is None and (text == name or (text is None and days == _DEFAULT_DAYS and not is_all)),
        )
        for name, label, days in _TIME_SPANS
    ]
    chips.append(
        choice_chip(request.url_with(since=ALL, until=None, after=None), "all", is_chosen=is_all and until is None)
    )
    return chip_row("Time", chips)
