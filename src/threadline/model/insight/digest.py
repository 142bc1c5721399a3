"""A digest: what was done in a day, a week, a month or another period, and what it cost."""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta, tzinfo
from decimal import Decimal
from enum import StrEnum
from typing import Any

from msgspec import Struct

from threadline.errors import BadQuery
from threadline.model.ledger import EXACT, Sum, share_of, sum_fields
from threadline.model.places import SessionId
from threadline.model.text import count, format_time, plain_decimal
from threadline.model.times import FIRST_MOMENT, Moment, TimeRange, in_zone, parse_moment

_RESOLUTION = timedelta(microseconds=1)
_ONE_DAY = timedelta(days=1)
_LAST_MONTH = date.max.replace(day=1)
_LAST_WORDS = frozenset({"last", "previous", "prev", "-1"})
_THIS_WORDS = frozenset({"", "this", "current", "now", "0"})
_AGO = re.compile(r"-(\d{1,4})")
_MIN_MONTH_LETTERS = 3
_MAX_MONTH_DIGITS = 2
_MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_WEEK = re.compile(r"(?:(\d{4})-?)?w?(\d{1,2})", re.IGNORECASE)


class PeriodUnit(StrEnum):
    """The length of a period: a calendar unit, or any range of time."""

    DAY = "day"
    WEEK = "week"
    MONTH = "month"
    RANGE = "range"


class DigestPeriod(Struct, frozen=True):
    """A period, both ends included. `name` is `2026-11-03`, `2026-W45`, `2026-11`, or both ends of a range."""

    unit: PeriodUnit
    name: str
    since: datetime
    until: datetime

    @classmethod
    def parse(cls, unit: PeriodUnit, value: str = "", *, now: datetime, zone: tzinfo) -> DigestPeriod:
        """Parse a day, week or month: empty or `this`, `last`, `-2`, a date in it, or its name (`2026-W45`, `2026-11`).

        A month without a year (`11`, `november`) is the last one of that name, and a week (`w45`) one of this year.

        Raises:
            BadQuery: it is none of these.
        """
        word = value.strip().lower()
        today = in_zone(now, zone).date()
        ago = _AGO.fullmatch(word)
        if word in _THIS_WORDS or word in _LAST_WORDS or ago is not None:
            steps = int(ago[1]) if ago is not None else int(word in _LAST_WORDS)
            try:
                return cls.containing(unit, _step_back(today, unit, steps), zone)
            except (ValueError, OverflowError):
                raise BadQuery(f"{value!r} is before the first year.") from None
        week = _WEEK.fullmatch(word) if unit is PeriodUnit.WEEK else None
        if week is not None:
            year = int(week[1]) if week[1] else today.isocalendar().year
            try:
                return cls.containing(unit, date.fromisocalendar(year, int(week[2]), 1), zone)
            except ValueError:
                raise BadQuery(f"There is no week {int(week[2])} in {year}. Weeks are those of ISO 8601.") from None
        month = _month_number(word) if unit is PeriodUnit.MONTH else None
        if month is not None:
            return cls.containing(unit, date(today.year - (month > today.month), month, 1), zone)
        try:
            moment = parse_moment(word, now=now, tz=zone)
        except BadQuery:
            examples = {PeriodUnit.DAY: "2026-11-03", PeriodUnit.WEEK: "2026-W45", PeriodUnit.MONTH: "2026-11"}
            raise BadQuery(f"{value!r} is not a {unit}. Write {examples[unit]}, a date in it, or `last`.") from None
        return cls.containing(unit, in_zone(moment, zone).date(), zone)

    @classmethod
    def containing(cls, unit: PeriodUnit, day: date, zone: tzinfo) -> DigestPeriod:
        """Return the day, week or month that contains a day."""
        first, last = _calendar_unit(unit, day)
        iso = first.isocalendar()
        name = {
            PeriodUnit.DAY: first.isoformat(),
            PeriodUnit.WEEK: f"{iso.year:04}-W{iso.week:02}",
            PeriodUnit.MONTH: first.isoformat()[:7],
        }[unit]
        return cls(unit, name, parse_moment(first, tz=zone), parse_moment(last, end=True, tz=zone))

    @classmethod
    def between(cls, since: Moment, until: Moment | None = None, *, now: datetime, zone: tzinfo) -> DigestPeriod:
        """Return the period between two times; without an end, up to now.

        Raises:
            BadQuery: a time makes no sense, or the end is before the start.
        """
        time = TimeRange.parse(since, until if until is not None else now, now=now, tz=zone)
        if time.since is None or time.until is None:
            raise BadQuery("A range needs a start.")
        name = f"{format_time(time.since, zone)} to {format_time(time.until, zone)}"
        if _is_midnight(time.since, zone) and _is_last_of_day(time.until, zone):
            first, last = in_zone(time.since, zone).date(), in_zone(time.until, zone).date()
            name = first.isoformat() if first == last else f"{first} to {last}"
        return cls(PeriodUnit.RANGE, name, time.since, time.until)

    def previous(self, zone: tzinfo) -> DigestPeriod:
        """Return the day, week or month before; of a range, the time of the same length before it."""
        if self.unit is not PeriodUnit.RANGE:
            return self.containing(self.unit, _add_days(in_zone(self.since, zone).date(), -1), zone)
        until = _subtract(self.since, _RESOLUTION)
        since = _subtract(until, self.until - self.since)
        return self.between(since, until, now=until, zone=zone)

    def is_running(self, now: datetime) -> bool:
        """Whether it is not over."""
        return self.since <= now < self.until

    def record(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {"unit": str(self.unit), "name": self.name, "since": self.since, "until": self.until}


def _month_number(word: str) -> int | None:
    """The number of a month: `11`, `nov`, `november`."""
    if word.isascii() and word.isdecimal():
        return int(word) if len(word) <= _MAX_MONTH_DIGITS and 1 <= int(word) <= len(_MONTHS) else None
    if len(word) < _MIN_MONTH_LETTERS:
        return None
    return next((number for number, name in enumerate(_MONTHS, 1) if name.startswith(word)), None)


def _step_back(today: date, unit: PeriodUnit, steps: int) -> date:
    if unit is PeriodUnit.MONTH:
        months = today.year * 12 + today.month - 1 - steps
        return date(months // 12, months % 12 + 1, 1)
    return today - steps * (7 if unit is PeriodUnit.WEEK else 1) * _ONE_DAY


def _calendar_unit(unit: PeriodUnit, day: date) -> tuple[date, date]:
    """Return the first and the last day of the week or month of a day; the day itself for a day."""
    if unit is PeriodUnit.WEEK:
        monday = _add_days(day, -day.weekday())
        return monday, _add_days(monday, 6)
    if unit is PeriodUnit.MONTH:
        first = day.replace(day=1)
        return first, _add_days(_add_days(first, 31).replace(day=1), -1) if day < _LAST_MONTH else date.max
    return day, day


def _add_days(day: date, days: int) -> date:
    """Return the day this many days later, but not beyond the first or last day of the calendar."""
    try:
        return day + days * _ONE_DAY
    except OverflowError:
        return date.max if days > 0 else date.min


def _subtract(moment: datetime, length: timedelta) -> datetime:
    """Return the time before; at most the first one of the calendar."""
    try:
        return moment - length
    except OverflowError:
        return FIRST_MOMENT


def _is_midnight(moment: datetime, zone: tzinfo) -> bool:
    local = in_zone(moment, zone)
    return (local.hour, local.minute, local.second, local.microsecond) == (0, 0, 0, 0)


def _is_last_of_day(moment: datetime, zone: tzinfo) -> bool:
    try:
        return _is_midnight(moment + _RESOLUTION, zone)
    except OverflowError:  # the last moment of the calendar
        return True


class WorkDone(Struct, frozen=True):
    """What was produced: how much, and the subjects of commits and addresses of pull requests.

    `added` and `removed` are lines of files that sessions edited.
    """

    commits: int = 0
    pull_requests: int = 0
    files: int = 0
    added: int = 0
    removed: int = 0
    test_runs: int = 0
    failed_runs: int = 0
    results: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        """Whether anything was produced."""
        return any((self.commits, self.pull_requests, self.files, self.test_runs))

    def record(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {
            "commits": self.commits,
            "pull_requests": self.pull_requests,
            "files": self.files,
            "added": self.added,
            "removed": self.removed,
            "test_runs": self.test_runs,
            "failed_runs": self.failed_runs,
            "results": list(self.results),
        }


class DigestSession(Struct, frozen=True):
    """A session in a period: what it cost then, when it was active, and what it produced.

    `first` and `last` are its first and last entry in the period. `worked` is the time between its entries without
    pauses. `prompts` counts what people typed, and `failed_calls` those of its `calls` that failed. `wasted` is what
    could have been avoided.
    """

    session: SessionId | None
    title: str
    project: str
    sum: Sum
    first: datetime | None = None
    last: datetime | None = None
    worked: timedelta = timedelta(0)
    prompts: int = 0
    calls: int = 0
    failed_calls: int = 0
    wasted: Decimal = Decimal(0)
    work: WorkDone = WorkDone()

    def record(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {
            "session": self.session,
            "title": self.title,
            "project": self.project,
            "first": self.first,
            "last": self.last,
            "worked_seconds": int(self.worked.total_seconds()),
            "prompts": self.prompts,
            "calls": self.calls,
            "failed_calls": self.failed_calls,
            **_brief_sum(self.sum),
            "wasted": plain_decimal(self.wasted),
            **self.work.record(),
        }


class DigestProject(Struct, frozen=True):
    """A project in a period: what it cost then and in the period before, and its sessions, most expensive first."""

    project: str
    sum: Sum
    previous: Sum
    worked: timedelta
    sessions: tuple[DigestSession, ...]
    work: WorkDone = WorkDone()

    def record(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {
            "project": self.project,
            "worked_seconds": int(self.worked.total_seconds()),
            **_brief_sum(self.sum),
            "previous": _amount_or_none(self.previous),
            **self.work.record(),
            "sessions": [session.record() for session in self.sessions],
        }


class DigestCause(Struct, frozen=True):
    """Causes of one kind, such as all calls of a tool, with what to do about them.

    `amount` is what they cost, `share` its share of the period, `causes` their number. `example` is the most expensive
    one: its label, `example_amount`, `session` and `place`. `estimated` says that sizes were estimated.
    """

    label: str
    amount: Decimal
    share: Decimal
    tokens: int
    causes: int
    estimated: bool
    suggestion: str
    example: str = ""
    example_amount: Decimal | None = None
    session: SessionId | None = None
    turn: int | None = None
    place: str | None = None

    def record(self) -> dict[str, Any]:
        """Return it as JSON values. The share is rounded to four places."""
        return {
            "label": self.label,
            "amount": plain_decimal(self.amount),
            "share": round(float(self.share), 4),
            "tokens": self.tokens,
            "causes": self.causes,
            "estimated": self.estimated,
            "suggestion": self.suggestion,
            "example": self.example,
            "example_amount": plain_decimal(self.example_amount) if self.example_amount is not None else None,
            "session": self.session,
            "turn": self.turn,
            "place": self.place,
        }


class SessionHint(Struct, frozen=True):
    """A session that is worth a look, and why."""

    session: SessionId | None
    title: str
    project: str
    reasons: tuple[str, ...]

    def record(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {
            "session": self.session,
            "title": self.title,
            "project": self.project,
            "reasons": list(self.reasons),
        }


class Digest(Struct, frozen=True):
    """What was done in a period, and what it cost.

    `sum` is what `threadline usage` says for the period. `previous` is the same for the period before, and
    `previous_so_far` for the part of it that has passed of this one, if this one is not over. `worked` is the time in
    which at least one session was active. `days` are the days with usage. `causes` are the most expensive ones, and
    `waste` what could have been saved, by detector. `error` is the share by which estimated sizes miss the measured
    ones, on average. `notes` are sentences about the figures.
    """

    period: DigestPeriod
    previous_period: DigestPeriod
    zone: str
    sum: Sum
    previous: Sum
    previous_so_far: Sum | None
    worked: timedelta
    days: tuple[tuple[str, Sum], ...]
    projects: tuple[DigestProject, ...]
    causes: tuple[DigestCause, ...]
    waste: tuple[DigestCause, ...]
    hints: tuple[SessionHint, ...]
    work: WorkDone = WorkDone()
    error: float | None = None
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"Digest({self.period.name!r}, {count(len(self.sessions), 'session')}, {self.sum.amount or 0:.2f} USD)"

    @property
    def sessions(self) -> tuple[DigestSession, ...]:
        """The sessions of all projects."""
        return tuple(session for project in self.projects for session in project.sessions)

    @property
    def compared(self) -> Sum:
        """What to compare the period with: the one before, up to the same time if this one is not over."""
        return self.previous_so_far if self.previous_so_far is not None else self.previous

    @property
    def change(self) -> Decimal | None:
        """How much more was spent than before, as a share of that; None if nothing was spent before."""
        before, amount = self.compared.amount, self.sum.amount or Decimal(0)
        return share_of(EXACT.subtract(amount, before), before) if before else None

    def record(self) -> dict[str, Any]:
        """Return it as JSON values. Shares are rounded to four places."""
        return {
            "period": self.period.record(),
            "previous_period": self.previous_period.record(),
            "zone": self.zone,
            "total": _sum_record(self.sum),
            "previous": _sum_record(self.previous),
            "previous_so_far": _sum_record(self.previous_so_far) if self.previous_so_far is not None else None,
            "change": round(float(self.change), 4) if self.change is not None else None,
            "worked_seconds": int(self.worked.total_seconds()),
            "days": [{"day": day, **_brief_sum(total)} for day, total in self.days],
            "work": self.work.record(),
            "projects": [project.record() for project in self.projects],
            "causes": [cause.record() for cause in self.causes],
            "waste": [cause.record() for cause in self.waste],
            "worth_a_look": [hint.record() for hint in self.hints],
            "error": round(self.error, 3) if self.error is not None else None,
            "notes": list(self.notes),
        }


def _sum_record(total: Sum) -> dict[str, Any]:
    return {**sum_fields(total), "tokens": total.tokens, "amount": _amount_or_none(total)}


def _brief_sum(total: Sum) -> dict[str, Any]:
    return {
        "charges": total.charges,
        "tokens": total.tokens,
        "amount": _amount_or_none(total),
        "unpriced": total.unpriced,
    }


def _amount_or_none(total: Sum) -> Decimal | None:
    if total.amount is None:
        return None if total.unpriced else Decimal(0)
    return plain_decimal(total.amount)
