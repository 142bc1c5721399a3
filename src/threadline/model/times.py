"""Parse timestamps, times as people write them, and time zones.

All times are aware and in UTC. Days are days in a time zone: the user's own, unless another is specified.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime, timedelta, tzinfo
from functools import cache, lru_cache
from itertools import pairwise
from typing import Any

from msgspec import Struct

from threadline.errors import BadQuery

Moment = datetime | date | str
"""A time as people give it: a datetime, a day, or text such as `2026-11-03`, `7d` or `yesterday`."""
Zone = tzinfo | str
"""A time zone, or its name: `Europe/Berlin`, `UTC`, `local`."""

FIRST_MOMENT = datetime.min.replace(tzinfo=UTC)
"""The first moment of the calendar. What has no time is sorted as if it were from then."""
_LEAP_SECOND = re.compile(r"(T\d\d:\d\d):60")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# Counts since 1970 beyond this are milliseconds, below it seconds (the year 5138).
_MAX_SECONDS = 100_000_000_000
_MAX_DIGITS = len("253402300799999")  # the last millisecond of the year 9999


def parse_timestamp(text: Any) -> datetime | None:
    """Parse a timestamp to an aware datetime in UTC; None if it is not a time.

    Accepts ISO 8601 with `Z`, an offset or nothing (read as UTC), and milliseconds or seconds since 1970, as numbers or
    digits.

    >>> parse_timestamp("2025-07-01T10:43:45.885Z")
    datetime.datetime(2025, 7, 1, 10, 43, 45, 885000, tzinfo=datetime.timezone.utc)
    >>> parse_timestamp(1751366625885) == parse_timestamp("2025-07-01T12:43:45.885+02:00")
    True
    >>> parse_timestamp("yesterday") is None
    True
    """
    if text.__class__ is str and text[-1:] == "Z":  # as nearly all are written
        try:
            return datetime.fromisoformat(text)
        except ValueError:
            return _parse_text(text.strip())
    if isinstance(text, datetime):
        return _to_utc(text)
    if isinstance(text, int | float) and not isinstance(text, bool):
        return _from_epoch(text)
    return _parse_text(text.strip()) if isinstance(text, str) else None


def _parse_text(text: str) -> datetime | None:
    if text.isascii() and text.isdecimal():
        return _from_epoch(int(text)) if len(text) <= _MAX_DIGITS else None
    try:
        return _to_utc(datetime.fromisoformat(text))
    except ValueError:
        # ISO 8601 allows second 60, datetime does not: use the last second of the minute.
        leap = _LEAP_SECOND.sub(r"\1:59", text)
        return _parse_text(leap) if leap != text else None


def _to_utc(moment: datetime) -> datetime | None:
    try:
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except OverflowError:
        return None


def _from_epoch(count: float) -> datetime | None:
    try:
        seconds = count / 1000 if abs(count) >= _MAX_SECONDS else count
        return _EPOCH + timedelta(seconds=seconds)
    except (OverflowError, ValueError):
        return None


# How Claude Code writes times. February 29 is left to the parser: not every year has it.
_USUAL_TIME = re.compile(
    r"[12]\d{3}-(?:(?:0[1-9]|1[0-2])-(?:0[1-9]|1\d|2[0-8])|(?:0[13-9]|1[0-2])-(?:29|30)|(?:0[13578]|1[02])-31)"
    r"T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d\.\d{3}Z",
    re.ASCII,
)


def sortable_time(timestamp: Any) -> str | None:
    """Return a timestamp as text that sorts by time, or None if it is not a time.

    The text is ISO 8601 in UTC without the final `Z`; `parse_timestamp(text)` returns the time. Timestamps in the
    usual format are not parsed, so this is cheap enough for every entry.

    >>> sortable_time("2025-07-01T10:43:45.885Z")
    '2025-07-01T10:43:45.885'
    >>> sortable_time("2025-07-01T12:43:45+02:00")
    '2025-07-01T10:43:45.000'
    """
    return _sortable_text(timestamp) if timestamp.__class__ is str else _format_moment(parse_timestamp(timestamp))


def sortable_times(timestamps: Iterable[Any]) -> list[str | None]:
    """Return the `sortable_time` of each timestamp. One call for many saves a third of the time."""
    is_usual = _USUAL_TIME.fullmatch
    return [
        text[:-1] if text.__class__ is str and is_usual(text) else _format_moment(parse_timestamp(text))
        for text in timestamps
    ]


@lru_cache(maxsize=1024)  # several folds need the time of the same entry
def _sortable_text(timestamp: str) -> str | None:
    if _USUAL_TIME.fullmatch(timestamp):
        return timestamp[:-1]
    return _format_moment(parse_timestamp(timestamp))


def _format_moment(moment: datetime | None) -> str | None:
    if moment is None:
        return None
    precision = "microseconds" if moment.microsecond % 1000 else "milliseconds"
    return moment.replace(tzinfo=None).isoformat(timespec=precision)


def format_sortable(time: str | None) -> str | None:
    """Return a `sortable_time` as an ISO 8601 timestamp: with its `Z`."""
    return f"{time}Z" if time is not None else None


def time_range(timestamps: Iterable[Any]) -> tuple[datetime | None, datetime | None]:
    """Return the first and the last time of these timestamps."""
    times = [time for timestamp in set(timestamps) if (time := sortable_time(timestamp)) is not None]
    return (parse_timestamp(min(times)), parse_timestamp(max(times))) if times else (None, None)


def is_within(when: datetime | None, since: datetime | None, until: datetime | None) -> bool:
    """Whether a moment is in a period. None is in no period."""
    return when is not None and (since is None or when >= since) and (until is None or when <= until)


def moment_from_seconds(seconds: float) -> datetime | None:
    """Return the moment this many seconds after 1970 began; None if it is after the last year of the calendar."""
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, ValueError, OSError):
        return None


def moment_from_mtime(mtime_ns: int) -> datetime | None:
    """Return a file's mtime as a moment; None for an impossible one, which file systems may report."""
    return moment_from_seconds(mtime_ns / 1e9)


def timestamp_from_mtime(mtime_ns: int) -> str:
    """Return a file's mtime as a timestamp, for rows without one. File systems may report impossible times."""
    moment = parse_timestamp(mtime_ns // 1_000_000)
    return (moment or FIRST_MOMENT).isoformat(timespec="milliseconds").replace("+00:00", "Z")


# Patterns that few commands need are compiled when they are used.
_AGO = r"(\d{1,6})\s*(m|min|h|d|w)"
_UNITS = {"m": "minutes", "min": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_ISO_DAY = r"\d{4}-\d\d-\d\d"
_BARE_DAY = r"20\d{6}"
_WEEK = r"(\d{4})-w(\d\d)"
_MONTH_OR_YEAR = r"(\d{4})(?:-(\d\d))?"
_PERIOD = r"(this|last)[\s-]+(week|month|year)"
_ONE_DAY = timedelta(days=1)


def parse_moment(value: Moment, *, now: datetime | None = None, end: bool = False, tz: Zone | None = None) -> datetime:
    """Parse a time as people write it: `2026-11-03`, `2026-11-03T14:00`, `12h`, `7d`, `2w`, `now`, `yesterday`.

    `2026`, `2026-11`, `2026-W45`, `20261103`, `this week`, `last month` and similar also work, and so do dates and
    datetimes. A day, week, month or year means its first moment, or with `end` its last. Weeks begin on Monday. Days,
    and times without an offset, are in the time zone `tz` (default: the user's own), however many hours a day has
    there; `7d` is always seven times 24 hours ago.

    Raises:
        BadQuery: it is not a time, or there is no such time zone.
    """
    local_zone = resolve_zone(tz)
    if isinstance(value, datetime):
        return _to_utc(value if value.tzinfo is not None else value.replace(tzinfo=local_zone)) or value
    if isinstance(value, date):
        return _day_end(value, local_zone) if end else _day_start(value, local_zone)
    if not isinstance(value, str):
        raise BadQuery(f"{value!r} is not a time. Use a datetime, a date, or text such as 2026-11-03, 7d or yesterday.")
    return _parse_moment_text(value, now or datetime.now(UTC), local_zone, end=end)


def _parse_moment_text(text: str, present: datetime, local_zone: tzinfo, *, end: bool) -> datetime:
    word = text.strip().lower()
    if word == "now":
        return present
    ago = re.fullmatch(_AGO, word)
    if ago is not None:
        try:
            return present - timedelta(**{_UNITS[ago[2]]: int(ago[1])})
        except OverflowError:  # before the year 1: from the beginning
            return FIRST_MOMENT
    days = _parse_days(word, in_zone(present, local_zone).date())
    if days is not None:
        return _day_end(days[1], local_zone) if end else _day_start(days[0], local_zone)
    moment = _parse_iso(text.strip(), local_zone) if "-" in text else None
    if moment is None:
        raise BadQuery(
            f"{text!r} is not a time. Write 2026-11-03, 2026-11-03T14:00, 2026-W45, 2026-11, 2026, 12h, 7d, 2w, now, "
            "today, yesterday, 'this week' or 'last month'."
        )
    return moment


class TimeRange(Struct, frozen=True):
    """A range of time, both ends included; None is open-ended."""

    since: datetime | None = None
    until: datetime | None = None

    @classmethod
    def parse(
        cls,
        since: Moment | None = None,
        until: Moment | None = None,
        *,
        now: datetime | None = None,
        tz: Zone | None = None,
    ) -> TimeRange:
        """Parse both ends: every command, page and function takes `since` and `until` like this.

        Raises:
            BadQuery: a time cannot be understood, or the range ends before it starts.
        """
        start = parse_moment(since, now=now, tz=tz) if since is not None else None
        end = parse_moment(until, now=now, end=True, tz=tz) if until is not None else None
        if start is not None and end is not None and start > end:
            raise BadQuery(f"The time range ends before it starts: since {since}, until {until}.")
        return cls(start, end)

    def __bool__(self) -> bool:
        """Whether it excludes any time."""
        return self.since is not None or self.until is not None

    def __contains__(self, when: datetime | None) -> bool:
        """Whether a time is in the range. None is only in a range without ends."""
        return not self if when is None else is_within(when, self.since, self.until)


def _parse_days(word: str, today: date) -> tuple[date, date] | None:
    """Return the first and the last day of a period."""
    ago = {"today": 0, "yesterday": 1}.get(word)
    try:
        if ago is not None:
            return (today - ago * _ONE_DAY,) * 2
        if re.fullmatch(_ISO_DAY, word) or re.fullmatch(_BARE_DAY, word):  # 20261103: as ccusage has it
            return (date.fromisoformat(word),) * 2
        week = re.fullmatch(_WEEK, word)
        if week is not None:
            monday = date.fromisocalendar(int(week[1]), int(week[2]), 1)
            return monday, monday + 6 * _ONE_DAY
        month = re.fullmatch(_MONTH_OR_YEAR, word)
        if month is not None:
            first = date(int(month[1]), int(month[2] or 1), 1)
            return _whole_month(first) if month[2] else (first, first.replace(month=12, day=31))
        match = re.fullmatch(_PERIOD, word)
        return _named_period(match[2], today, before=match[1] == "last") if match is not None else None
    except (ValueError, OverflowError):  # no such day
        return None


def _named_period(unit: str, today: date, *, before: bool) -> tuple[date, date]:
    if unit == "week":
        monday = today - (today.weekday() + 7 * before) * _ONE_DAY
        return monday, monday + 6 * _ONE_DAY
    if unit == "year":
        year = today.year - before
        return date(year, 1, 1), date(year, 12, 31)
    first = today.replace(day=1)
    return _whole_month((first - _ONE_DAY).replace(day=1) if before else first)


def _whole_month(first: date) -> tuple[date, date]:
    from calendar import monthrange  # noqa: PLC0415 - few commands name a month

    return first, first.replace(day=monthrange(first.year, first.month)[1])


def _day_start(day: date, zone: tzinfo) -> datetime:
    """Return the first moment of a day. If clocks skip midnight, that is the moment of the change."""
    try:
        return datetime(day.year, day.month, day.day, tzinfo=zone).astimezone(UTC)
    except OverflowError:  # the first day of the calendar
        return datetime(day.year, day.month, day.day, tzinfo=UTC)


def _day_end(day: date, zone: tzinfo) -> datetime:
    """Return the last moment of a day: the next one begins a microsecond later."""
    try:
        return _day_start(day + _ONE_DAY, zone) - timedelta(microseconds=1)
    except OverflowError:
        return datetime.max.replace(tzinfo=UTC)


def _parse_iso(text: str, zone: tzinfo) -> datetime | None:
    """Parse an ISO 8601 time. Without an offset, it is in the zone."""
    try:
        bare = datetime.fromisoformat(text)
        if bare.tzinfo is None:
            return bare.replace(tzinfo=zone).astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    return parse_timestamp(text)


_LOCAL = "local"
_ZONEINFO_FOLDER = "zoneinfo/"
_MAX_SUGGESTIONS = 5
_MAX_NAME_LENGTH = 64


class LocalZone(tzinfo):
    """This machine's time zone, by the system's own rules: no zone database is needed, and past changes are known."""

    def __init__(self) -> None:
        self.key = _local_zone_name()

    def fromutc(self, dt: datetime) -> datetime:
        """Convert a time to local time."""
        try:
            local = dt.replace(tzinfo=UTC).astimezone()
        except (OSError, OverflowError, ValueError):  # beyond the range of the system's functions
            return dt
        return local.replace(tzinfo=self, fold=self._fold(local))

    def utcoffset(self, dt: datetime | None) -> timedelta | None:
        """Return the UTC offset at a local time."""
        if dt is None:
            return None
        try:
            return dt.replace(tzinfo=None).astimezone().utcoffset()
        except (OSError, OverflowError, ValueError):
            return timedelta(0)

    def ahead(self, moment: datetime) -> timedelta | None:
        """Return the UTC offset at a moment, equal to `utcoffset` at its local time."""
        try:
            return moment.astimezone().utcoffset()
        except (OSError, OverflowError, ValueError):
            return moment.astimezone(self).utcoffset()

    def dst(self, dt: datetime | None) -> timedelta | None:
        """Return None: daylight saving time is not known separately."""
        del dt
        return None

    def tzname(self, dt: datetime | None) -> str:
        """Return the zone's name."""
        del dt
        return self.key

    def __repr__(self) -> str:
        return f"Local({self.key!r})"

    @staticmethod
    def _fold(local: datetime) -> int:
        """Return 1 if a local time is the second of two equal ones, when clocks are set back."""
        try:
            shown = local.replace(tzinfo=None).astimezone()
        except (OSError, OverflowError, ValueError):  # the first and last day of the calendar
            return 0
        return int(shown.utcoffset() != local.utcoffset())


def parse_zone(name: str | None = None) -> tzinfo:
    """Return the time zone of this name. `local`, the default, is the user's own: TZ, or the machine's.

    Raises:
        BadQuery: the zone does not exist; the message suggests similar names.
    """
    word = (name if name is not None else _LOCAL).strip()
    if word.lower() == _LOCAL:
        local = LocalZone()
        return UTC if local.key == "UTC" else local  # much faster
    if word.upper() in {"UTC", "Z"}:
        return UTC
    return _find_zone(word)


def resolve_zone(zone: Zone | None = None) -> tzinfo:
    """Return a time zone that may be specified by name; by default the user's own.

    Raises:
        BadQuery: the zone does not exist.
    """
    return zone if isinstance(zone, tzinfo) else parse_zone(zone)


def zone_name(zone: tzinfo) -> str:
    """Return the name of a zone, such as `Europe/Berlin`; `local` if the name of this machine's zone is unknown."""
    return "UTC" if zone is UTC else str(getattr(zone, "key", zone))


def in_zone(moment: datetime, zone: tzinfo) -> datetime:
    """Convert a time to a zone; unchanged if that overflows, on the first and last day of the calendar."""
    try:
        return moment.astimezone(zone)
    except OverflowError:
        return moment


def utc_offset(zone: tzinfo, moment: datetime) -> timedelta | None:
    """Return how far a zone is ahead of UTC at a moment. `LocalZone` has a faster way to compute it."""
    return zone.ahead(moment) if isinstance(zone, LocalZone) else moment.astimezone(zone).utcoffset()


def _find_zone(name: str) -> tzinfo:
    from zoneinfo import ZoneInfo  # noqa: PLC0415 - most never name a zone

    names = _zone_names()
    if name in names:
        return ZoneInfo(name)
    folded = {zone.casefold(): zone for zone in names}
    spelt = name.casefold().replace(" ", "_")
    if spelt in folded:
        return ZoneInfo(folded[spelt])
    if not names:
        raise BadQuery("This machine has no time zone database. Use UTC or local, or run: pip install tzdata")
    near = list(_suggest_zones(spelt, folded))
    advice = f"Did you mean {' or '.join(near)}?" if near else "Examples: Europe/Berlin, UTC, local."
    raise BadQuery(f"Unknown time zone {name[:_MAX_NAME_LENGTH]!r}. {advice}")


@cache
def _zone_names() -> frozenset[str]:
    """Return the names of all zones. Listing them takes 20 ms, so this is done once per process."""
    from zoneinfo import available_timezones  # noqa: PLC0415 - most never name a zone

    return frozenset(available_timezones())


def _suggest_zones(spelt: str, folded: dict[str, str]) -> Iterator[str]:
    """Yield zones of the same city, or of a city with a similar name."""
    from difflib import get_close_matches  # noqa: PLC0415 - only a mistake needs it

    cities = {zone: zone.rpartition("/")[2] for zone in sorted(folded) if not zone.startswith(("posix/", "right/"))}
    word = spelt.rpartition("/")[2][:_MAX_NAME_LENGTH]
    exact = [zone for zone, city in cities.items() if city == word]
    # Similarity is expensive to compute, so only the names of cities are compared.
    similar = set(get_close_matches(word, set(cities.values()), n=3, cutoff=0.75)) if not exact else set()
    zones = exact or [zone for zone, city in cities.items() if city in similar]
    yield from (folded[zone] for zone in zones[:_MAX_SUGGESTIONS])


def _local_zone_name() -> str:
    """Return the IANA name of this machine's zone, from TZ or the target of /etc/localtime."""
    tz = os.environ.get("TZ")
    if tz is not None:
        return "UTC" if tz in {"", "UTC", "UTC0"} else _zone_name_from_path(tz.removeprefix(":"))
    try:
        return _zone_name_from_path(os.path.realpath("/etc/localtime"), is_link_target=True)
    except OSError:
        return _LOCAL


def _zone_name_from_path(path: str, *, is_link_target: bool = False) -> str:
    """Return the name at the end of a path into the zone database. TZ may be a name, or a rule without one."""
    _, inside, name = path.rpartition(_ZONEINFO_FOLDER)
    if not inside and (is_link_target or "," in path or any(map(str.isdigit, path))):
        return _LOCAL
    return {"Etc/UTC": "UTC", "Universal": "UTC", "Etc/Universal": "UTC"}.get(name, name) or _LOCAL


Span = tuple[datetime, datetime]
MAX_PAUSE = timedelta(minutes=10)
"""The longest time between two entries that counts as work."""


def work_spans(times: Iterable[datetime]) -> list[Span]:
    """Return the spans of time without a pause of more than `MAX_PAUSE`, oldest first."""
    ordered = sorted(times)
    spans: list[Span] = []
    for before, after in pairwise(ordered):
        if after - before > MAX_PAUSE:
            continue
        if spans and spans[-1][1] == before:
            spans[-1] = (spans[-1][0], after)
        else:
            spans.append((before, after))
    return spans


def total_time(spans: Iterable[Span]) -> timedelta:
    """Return how long at least one of the spans lasts: spans that overlap count once."""
    total = timedelta(0)
    last: datetime | None = None
    for start, end in sorted(spans):
        begin = start if last is None or start > last else last
        if end > begin:
            total += end - begin
            last = end
    return total
