"""The keys that charges can be grouped by, and the calendar that days and hours are counted in."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, tzinfo

from threadline.errors import BadQuery
from threadline.model.charges import Charge
from threadline.model.homes import home_name, machine_name
from threadline.model.times import parse_timestamp

Key = Callable[[Charge], str]
MAIN = "main"
NONE = "(none)"
NO_CALL = "(no call)"

TIME_KEYS = ("day", "week", "month", "hour")
"""Keys whose rows are sorted by time. Rows by any other key are sorted by cost."""

KEY_DESCRIPTIONS = {
    "day": "the day it was spent, in the reader's time zone",
    "week": "the week, named by its Monday",
    "month": "the month",
    "hour": "the hour of the day",
    "session": "the session, including its agents",
    "project": "the directory the session was started in",
    "model": "the model, as in the transcript",
    "agent": "the agent's id; `main` for the main agent",
    "agent-type": "the type of agent; `main` for the main agent",
    "tool": "the tools that the message calls, with an equal share for each call; `(no call)` if it calls none",
    "skill": "the skill that Claude Code records as the cause (from 2.1.123 on); `(none)` otherwise",
    "branch": "the git branch",
    "version": "the version of Claude Code",
    "home": "the home of the transcript",
    "machine": "the machine the transcript was written on: this one, or another whose sessions are in the keep",
    "part": "main, agents, or side agents (which Claude Code runs itself)",
}
SESSION_KEY_DESCRIPTIONS = {
    "thread": "the main thread, its abandoned branches, agents, or side agents",
}
"""Keys that need more than charges: the caller reads the sessions and passes a key function to `Ledger.by`."""


def key_function(name: str, calendar: Calendar) -> Key:
    """Return the function that computes a charge's value for a key. `tool` has none, because it shares charges out.

    Raises:
        KeyError: there is no such key.
    """
    times: dict[str, Callable[[str], str]] = {
        "day": calendar.day,
        "week": calendar.week,
        "month": calendar.month,
        "hour": calendar.hour,
    }
    if name in times:
        when = times[name]
        return lambda charge: when(charge.owner.time)
    return _KEY_FUNCTIONS[name]


def tool_shares(charge: Charge) -> tuple[str, ...]:
    """Return the tools that share a charge, one share a call."""
    return charge.calls or (NO_CALL,)


def _part_of(charge: Charge) -> str:
    origin = charge.origin
    return "side agents" if origin.side else "agents" if origin.agent else MAIN


_KEY_FUNCTIONS: dict[str, Key] = {
    "session": lambda charge: charge.origin.session or NONE,
    "project": lambda charge: charge.origin.project or NONE,
    "model": lambda charge: charge.counted.model or NONE,
    "agent": lambda charge: charge.origin.agent or MAIN,
    "agent-type": lambda charge: charge.origin.agent_type or (charge.origin.agent and NONE) or MAIN,
    "skill": lambda charge: charge.origin.skill or NONE,
    "branch": lambda charge: charge.origin.git_branch or NONE,
    "version": lambda charge: charge.origin.version or NONE,
    "home": lambda charge: home_name(charge.origin.home) or NONE,
    "machine": lambda charge: machine_name(charge.origin.home),
    "part": _part_of,
}


HOUR_LENGTH = 13
"""The length of a timestamp up to its hour."""
_ONE_HOUR = timedelta(hours=1)
NO_TIME = "(no time)"
"""The day of charges without a time."""


class Calendar:
    """Days and hours in a time zone, for times as transcripts write them."""

    def __init__(self, zone: tzinfo = UTC) -> None:
        self.zone = zone
        self._hours: dict[str, tuple[str, str] | None] = {}
        self._weeks: dict[str, str] = {}

    def day(self, time: str) -> str:
        """The day, such as `2026-11-15`."""
        return self._day_and_hour(time)[0]

    def hour(self, time: str) -> str:
        """The hour of the day, such as `14:00`."""
        return self._day_and_hour(time)[1]

    def month(self, time: str) -> str:
        """The month, such as `2026-11`."""
        day = self.day(time)
        return day if day == NO_TIME else day[:7]

    def week(self, time: str) -> str:
        """The week, as the day of its Monday."""
        day = self.day(time)
        if day == NO_TIME:
            return day
        week = self._weeks.get(day)
        if week is None:
            date = datetime.fromisoformat(day).date()
            week = self._weeks[day] = (date - timedelta(days=date.weekday())).isoformat()
        return week

    def is_whole(self, hour: str) -> bool:
        """Whether an hour of UTC (`2026-11-15T14`) falls into one day and hour here."""
        return self._hour(hour) is not None

    def _hour(self, hour: str) -> tuple[str, str] | None:
        if hour not in self._hours:
            self._hours[hour] = self._whole_hour(hour)
        return self._hours[hour]

    def _day_and_hour(self, time: str) -> tuple[str, str]:
        # An hour of UTC is nearly always within one local hour, so it is computed once. It is not if the zone is
        # shifted by part of an hour, or if the clock changes within it.
        if time.endswith("Z") and time[10:11] == "T":
            day_and_hour = self._hour(time[:HOUR_LENGTH])
            if day_and_hour is not None:
                return day_and_hour
        moment = parse_timestamp(time)
        return self._local(moment) if moment is not None else (NO_TIME, NO_TIME)

    def _whole_hour(self, hour: str) -> tuple[str, str] | None:
        start = parse_timestamp(f"{hour}:00:00Z")
        if start is None or start > datetime.max.replace(tzinfo=UTC) - _ONE_HOUR:
            return None
        first, last = self._local(start), self._local(start + _ONE_HOUR - timedelta(microseconds=1))
        return first if first == last else None

    def _local(self, moment: datetime) -> tuple[str, str]:
        try:
            local = moment.astimezone(self.zone)
        except OverflowError:  # the first or last day of the calendar
            local = moment
        return local.date().isoformat(), f"{local:%H}:00"


def utc_offset(zone: tzinfo, moment: datetime) -> timedelta | None:
    """Return how far a zone is ahead of UTC at a moment. A zone of ours has a faster way to compute it."""
    short = getattr(zone, "ahead", None)
    offset: timedelta | None = short(moment) if short is not None else moment.astimezone(zone).utcoffset()
    return offset


def time_zone(name: str) -> tzinfo:
    """Return the zone of a name such as `Europe/Berlin`.

    Raises:
        BadQuery: there is no such zone.
    """
    from zoneinfo import ZoneInfo  # noqa: PLC0415 - seldom needed, and slow to import

    try:
        return ZoneInfo(name)
    except (OSError, ValueError, LookupError):
        raise BadQuery(f"Unknown time zone {name!r}. Use a name such as 'Europe/Berlin', or UTC.") from None
