"""Moments as people write them."""

from __future__ import annotations

import re
from calendar import monthrange
from datetime import UTC, date, datetime, timedelta, tzinfo

from threadline.errors import BadQuery
from threadline.model.time import parse_timestamp

_AGO = re.compile(r"(\d{1,6})\s*(m|min|h|d|w)")
_UNITS = {"m": "minutes", "min": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_BARE_DAY = re.compile(r"20\d{6}")
_WEEK = re.compile(r"(\d{4})-w(\d\d)")
_MONTH = re.compile(r"(\d{4})-(\d\d)")
_PERIOD = re.compile(r"(this|last)[\s-]+(week|month|year)")
_ONE_DAY = timedelta(days=1)


def moment(text: str, *, now: datetime | None = None, end: bool = False, zone: tzinfo | None = None) -> datetime:
    """The moment that `2026-11-03`, `2026-11-03T14:00`, `12h`, `7d`, `2w`, `now`, `today` or `yesterday` means, in UTC.

    So do `2026-11`, `2026-W45`, `20261103`, `this week`, `last month` and more. A day, week, month or year means its
    first moment, or with `end` its last; weeks begin on Monday. Days are days in `zone`, which is UTC unless one is
    given, however many hours they have there; `7d` is always seven times 24 hours ago.
    """
    present = now or datetime.now(UTC)
    here = zone or UTC
    word = text.strip().lower()
    if word == "now":
        return present
    ago = _AGO.fullmatch(word)
    if ago is not None:
        try:
            return present - timedelta(**{_UNITS[ago[2]]: int(ago[1])})
        except OverflowError:  # before the year 1: from the beginning
            return datetime.min.replace(tzinfo=UTC)
    days = _days(word, _shown(present, here).date())
    if days is not None:
        return _ends(days[1], here) if end else _begins(days[0], here)
    written = _written(text.strip(), here) if "-" in text else None
    if written is None:
        raise BadQuery(
            f"{text!r} is no time; write 2026-11-03, 2026-11-03T14:00, 2026-11, 12h, 7d, 2w, now, today, yesterday, "
            "'this week' or 'last month'."
        )
    return written


def _shown(moment: datetime, zone: tzinfo) -> datetime:
    """A moment as the clocks of a zone show it; as it is on the first and last day of all time, where they cannot."""
    try:
        return moment.astimezone(zone)
    except OverflowError:
        return moment


def _days(word: str, today: date) -> tuple[date, date] | None:
    """The days that are meant: the first one and the last one."""
    ago = {"today": 0, "yesterday": 1}.get(word)
    try:
        if ago is not None:
            return (today - ago * _ONE_DAY,) * 2
        if _DAY.fullmatch(word) or _BARE_DAY.fullmatch(word):  # 20261103: as ccusage has it
            return (date.fromisoformat(word),) * 2
        week = _WEEK.fullmatch(word)
        if week is not None:
            monday = date.fromisocalendar(int(week[1]), int(week[2]), 1)
            return monday, monday + 6 * _ONE_DAY
        month = _MONTH.fullmatch(word)
        if month is not None:
            return _month(date(int(month[1]), int(month[2]), 1))
        named = _PERIOD.fullmatch(word)
        return _period(named[2], today, before=named[1] == "last") if named is not None else None
    except (ValueError, OverflowError):  # no such day
        return None


def _period(what: str, today: date, *, before: bool) -> tuple[date, date]:
    if what == "week":
        monday = today - (today.weekday() + 7 * before) * _ONE_DAY
        return monday, monday + 6 * _ONE_DAY
    if what == "year":
        year = today.year - before
        return date(year, 1, 1), date(year, 12, 31)
    first = today.replace(day=1)
    return _month((first - _ONE_DAY).replace(day=1) if before else first)


def _month(first: date) -> tuple[date, date]:
    return first, first.replace(day=monthrange(first.year, first.month)[1])


def _begins(day: date, zone: tzinfo) -> datetime:
    """The first moment of a day. Where the clocks skip midnight, that is when they do."""
    try:
        return datetime(day.year, day.month, day.day, tzinfo=zone).astimezone(UTC)
    except OverflowError:  # the first day of all time
        return datetime(day.year, day.month, day.day, tzinfo=UTC)


def _ends(day: date, zone: tzinfo) -> datetime:
    """The last moment of a day: the next one begins with the moment after it."""
    try:
        return _begins(day + _ONE_DAY, zone) - timedelta(microseconds=1)
    except OverflowError:
        return datetime.max.replace(tzinfo=UTC)


def _written(text: str, zone: tzinfo) -> datetime | None:
    """A time that is written out; one that says no offset is in the zone."""
    try:
        bare = datetime.fromisoformat(text)
        if bare.tzinfo is None:
            return bare.replace(tzinfo=zone).astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    return parse_timestamp(text)
