"""The reader's calendar: which day, week, month and hour a moment falls into, across daylight saving."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo

from threadline.errors import BadQuery
from threadline.model.time import parse_timestamp

HOUR = 13
"""How many characters of a time name its hour."""
_ONE_HOUR = timedelta(hours=1)
UNKNOWN = "(no time)"
"""The day of what says no time."""


class Calendar:
    """Days as they are in a time zone. Times are given as transcripts write them."""

    def __init__(self, zone: tzinfo = UTC) -> None:
        self.zone = zone
        self._hours: dict[str, tuple[str, str] | None] = {}
        self._weeks: dict[str, str] = {}

    def day(self, time: str) -> str:
        """The day, as `2026-11-15`."""
        return self._day_and_hour(time)[0]

    def hour(self, time: str) -> str:
        """The hour of the day, as `14:00`."""
        return self._day_and_hour(time)[1]

    def month(self, time: str) -> str:
        """The month, as `2026-11`."""
        day = self.day(time)
        return day if day == UNKNOWN else day[:7]

    def week(self, time: str) -> str:
        """The week, by the day of its Monday."""
        day = self.day(time)
        if day == UNKNOWN:
            return day
        week = self._weeks.get(day)
        if week is None:
            date = datetime.fromisoformat(day).date()
            week = self._weeks[day] = (date - timedelta(days=date.weekday())).isoformat()
        return week

    def is_whole(self, hour: str) -> bool:
        """Whether all of an hour of UTC (`2026-11-15T14`) falls into one day and hour here."""
        return self._hour(hour) is not None

    def _hour(self, hour: str) -> tuple[str, str] | None:
        if hour not in self._hours:
            self._hours[hour] = self._whole_hour(hour)
        return self._hours[hour]

    def _day_and_hour(self, time: str) -> tuple[str, str]:
        # An hour of UTC is nearly always within one hour here, so it is worked out once; never where zones are shifted
        # by parts of an hour or the clock changes in its midst.
        if time.endswith("Z") and time[10:11] == "T":
            known = self._hour(time[:HOUR])
            if known is not None:
                return known
        moment = parse_timestamp(time)
        return self._local(moment) if moment is not None else (UNKNOWN, UNKNOWN)

    def _whole_hour(self, hour: str) -> tuple[str, str] | None:
        start = parse_timestamp(f"{hour}:00:00Z")
        if start is None or start > datetime.max.replace(tzinfo=UTC) - _ONE_HOUR:
            return None
        first, last = self._local(start), self._local(start + _ONE_HOUR - timedelta(microseconds=1))
        return first if first == last else None

    def _local(self, moment: datetime) -> tuple[str, str]:
        try:
            local = moment.astimezone(self.zone)
        except OverflowError:  # the first and last day of all time
            local = moment
        return local.date().isoformat(), f"{local:%H}:00"


def ahead(zone: tzinfo, moment: datetime) -> timedelta | None:
    """How far ahead of UTC the clocks of a zone are at a moment; a zone may have a short way to tell."""
    short = getattr(zone, "ahead", None)
    told: timedelta | None = short(moment) if short is not None else moment.astimezone(zone).utcoffset()
    return told


def zone_named(name: str) -> tzinfo:
    """The zone of a name such as `Europe/Berlin`.

    Raises:
        BadQuery: there is none of that name.
    """
    from zoneinfo import ZoneInfo  # noqa: PLC0415 - few ask for it, and it takes a while

    try:
        return ZoneInfo(name)
    except (OSError, ValueError, LookupError):
        raise BadQuery(f"There is no time zone {name!r}; give one such as 'Europe/Berlin', or UTC.") from None
