"""Usage report: rows, notes about them, days that only Claude Code's statistics know, and the JSON document.

Loaded by every `usage`, also with a fresh index: must not import entries, thread or parallel at the top.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, tzinfo
from itertools import product
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from threadline.account import TIME_KEYS, Calendar, Key, Ledger, key_function, tool_shares
from threadline.errors import Error
from threadline.model.charges import format_decimal
from threadline.model.homes import Found, SideFile, SideFileKind, home_name
from threadline.model.places import Place, Problem, ProblemKind
from threadline.model.reconciliation import ReportedDay, ReportedUsage
from threadline.model.text import count
from threadline.model.times import in_zone, zone_name
from threadline.model.totals import Row, Rows, Sum, sum_fields
from threadline.model.usage import StatsCache
from threadline.parse import decode_side_value, read_side_bytes

KEY_NOTES = {
    "tool": "By tool, a charge is shared equally by the calls that its message makes, whatever each of them did; "
    "`(no call)` is messages that make none.",
    "skill": "By skill, a charge belongs to the skill that Claude Code itself names as its cause (2.1.123 on); "
    "`(none)` is all else.",
}
_MAX_MODELS_NAMED = 4
_KeyPath = tuple[str, ...]


class UsageReport(Struct, frozen=True):
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
    reported: ReportedUsage | None = None
    swept: tuple[ReportedDay, ...] = ()
    is_part: bool = False

    @property
    def zone(self) -> str:
        """The name of the zone whose days these are."""
        return zone_name(self.place)

    @property
    def by(self) -> _KeyPath:
        """The keys."""
        return self.rows.by


def build_usage_report(
    ledger: Ledger,
    names: Sequence[str],
    zone: tzinfo,
    *,
    extra: Mapping[str, Key],
    order: str | None = None,
    limit: int | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
) -> UsageReport:
    """The report on a ledger by these keys. `limit` is how many values of the first key it has at most.

    `since` and `until` are what was asked of the ledger, for the report to repeat.
    """
    rows = ledger.by(*names, zone=zone, extra=extra)
    total = rows.total
    if order is not None:
        rows = Rows(rows.by, tuple(_sort_rows(rows, order, _last_times(ledger, rows.by, zone, extra, order))))
    kept, others = _apply_limit(rows, limit, newest=order == "time" or (order is None and names[0] in TIME_KEYS))
    left_out = len({row.keys[names[0]] for row in others})
    return UsageReport(ledger, Rows(rows.by, kept), total, zone, since, until, left_out, Sum.of(others))


def _sort_rows(rows: Rows, order: str, last: Mapping[_KeyPath, datetime]) -> list[Row]:
    """Rows by time or by amount, key by key, so that parts of a nest stay together."""
    weights: list[dict[_KeyPath, Row]] = [
        {tuple(row.keys.values()): row for row in rows.subtotals(depth + 1)} for depth in range(len(rows.by))
    ]

    def place(row: Row) -> tuple[object, ...]:
        path = tuple(row.keys[name] for name in rows.by)
        return tuple(
            _amount_key(weights[at][path[: at + 1]], path[at])
            if order == "amount"
            else (path[at] if name in TIME_KEYS else last[path[: at + 1]], path[at])
            for at, name in enumerate(rows.by)
        )

    return sorted(rows.rows, key=place)


def _amount_key(row: Row, value: str) -> tuple[object, ...]:
    return -(row.amount or 0), -row.tokens, value


def _last_times(
    ledger: Ledger, names: _KeyPath, zone: tzinfo, extra: Mapping[str, Key], order: str
) -> dict[_KeyPath, datetime]:
    """When each part of the report was last spent on; nothing where nobody asks."""
    if order != "time" or all(name in TIME_KEYS for name in names):
        return {}
    calendar = Calendar(zone)
    keys = [
        tool_shares if name == "tool" else _single_value(extra.get(name) or key_function(name, calendar))
        for name in names
    ]
    last: dict[_KeyPath, datetime] = {}
    for charge in ledger:
        when = charge.timestamp or _EARLIEST
        for path in set(product(*(key(charge) for key in keys))):
            for depth in range(1, len(path) + 1):
                last[path[:depth]] = max(when, last.get(path[:depth], _EARLIEST))
    return last


def _single_value(key: Key) -> Any:
    return lambda charge: (key(charge),)


def _apply_limit(rows: Rows, limit: int | None, *, newest: bool) -> tuple[tuple[Row, ...], tuple[Row, ...]]:
    """The rows that are shown, and the others: of times the newest are shown, of all else the first."""
    values = list(dict.fromkeys(row.keys[rows.by[0]] for row in rows))
    if limit is None or len(values) <= limit:
        return rows.rows, ()
    chosen = set(values[-limit:] if newest else values[:limit])
    return (
        tuple(row for row in rows if row.keys[rows.by[0]] in chosen),
        tuple(row for row in rows if row.keys[rows.by[0]] not in chosen),
    )


def usage_notes(usage_report: UsageReport) -> Iterator[str]:
    """What has to be said about the figures, a sentence each."""
    total = usage_report.total
    if total.unpriced:
        models = _unpriced_models(usage_report.ledger)
        have, are = ("has", "is") if total.unpriced == 1 else ("have", "are")
        yield f"{count(total.unpriced, 'charge')} {have} no price and {are} in no amount ({models})."
    if total.lower_bound:
        yield (
            f"Output is a lower bound for {count(total.lower_bound, 'charge')}: the final count was never written, "
            "as in versions before 2.1.59."
        )
    yield from (KEY_NOTES[name] for name in usage_report.by if name in KEY_NOTES)
    if usage_report.reported is not None and usage_report.is_part:
        yield "What Claude Code reports is of whole sessions, and so are the amounts that are held against it."
    if (words := deleted_days_note(usage_report.swept)) != "":
        yield words
    if usage_report.ledger.problems:
        many = count(len(usage_report.ledger.problems), "transcript")
        yield f"{many} could not be read, or not wholly, and what was spent there is missing."


def _unpriced_models(ledger: Ledger) -> str:
    found = {row.keys["model"]: row.unpriced for row in ledger.by("model") if row.unpriced}
    ordered = sorted(found, key=lambda name: (-found[name], name))
    more = f" and {len(ordered) - _MAX_MODELS_NAMED} more" if len(ordered) > _MAX_MODELS_NAMED else ""
    return ", ".join(ordered[:_MAX_MODELS_NAMED]) + more


def usage_document(usage_report: UsageReport) -> dict[str, Any]:
    """The report for programs."""
    told: dict[str, Any] = {
        "total": sum_as_json(usage_report.total),
        "rows": [row_as_json(row) for row in usage_report.rows],
        "by": list(usage_report.by),
        "zone": usage_report.zone,
        "since": usage_report.since,
        "until": usage_report.until,
        "prices": price_digests(usage_report.ledger),
        "problems": [
            {"kind": p.kind, "place": str(p.place), "message": p.message} for p in usage_report.ledger.problems
        ],
        "left_out": usage_report.left_out,
        "notes": list(usage_notes(usage_report)),
    }
    if usage_report.reported is not None:
        from threadline.render import reconciliation_record  # noqa: PLC0415 - few ask for it

        told["reported"] = reconciliation_record(usage_report.reported)
    elif usage_report.swept:
        from threadline.render import deleted_days_record  # noqa: PLC0415 - few ask for it

        told["reported"] = deleted_days_record(usage_report.swept)
    return told


def price_digests(ledger: Ledger) -> dict[str, Any]:
    """The prices that were applied, by their digests."""
    files = [{"name": name, "digest": digest} for name, digest in ledger.rates.digests]
    return {"digest": ledger.rates.digest, "files": files}


def row_as_json(row: Row) -> dict[str, Any]:
    """A row for programs: its keys, and then its figures."""
    return {**row.keys, **sum_as_json(row)}


def sum_as_json(one: Sum) -> dict[str, Any]:
    """A sum for programs: the amount is a string, so that no reader makes it a float, and has no exponent."""
    amount = format_decimal(one.amount) if one.amount is not None else None
    return {**sum_fields(one), "amount": amount}


_EARLIEST = datetime.fromisoformat("0001-01-01T00:00:00+00:00")


_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_STATS_CACHE = "stats-cache.json"


_HomeDay = tuple[str, str]


def find_deleted_days(
    found: Sequence[Found], ledger: Ledger, problems: list[Problem], *, zone: tzinfo = UTC
) -> Iterator[ReportedDay]:
    """The days of every home's cache that the ledger has nothing of, or less; `zone` is whose days the cache means.

    Transcripts are asked for only where there are several homes, which may share some.
    """
    named = [(one, home_name(one.home.path)) for one in found]
    told = {
        one.home: [
            day
            for cache, place in _read_stats_caches(one, problems)
            for day in _reported_days(cache, place, name, problems)
        ]
        for one, name in named
    }
    if not any(told.values()):
        return
    left = _remaining_by_day(ledger, list(dict.fromkeys(name for _one, name in named)), zone)
    owner = {str(transcript.path): name for one, name in reversed(named) for transcript in one.transcripts}
    few: list[tuple[ReportedDay, set[_HomeDay], Sum]] = []
    for one, name in named:
        # What another home shares through a link is charged to that home.
        homes = {owner[str(transcript.path)] for transcript in one.transcripts} | {name}
        for day in told[one.home]:
            days = {(home, day.date) for home in homes if (home, day.date) in left}
            if not days:
                yield day
            else:
                few.append((day, days, Sum.of(left[key] for key in days)))
    yield from _partly_deleted(
        [one for one in few if one[0].total_tokens > _remaining_tokens(one[0], one[2])], ledger, zone
    )


def _remaining_by_day(ledger: Ledger, homes: Sequence[str], zone: tzinfo) -> dict[_HomeDay, Sum]:
    """What the ledger has of each day of each home."""
    if len(homes) == 1:  # by one key is faster than by two
        return {(homes[0], row.keys["day"]): row for row in ledger.by("day", zone=zone)}
    return {(row.keys["home"], row.keys["day"]): row for row in ledger.by("home", "day", zone=zone)}


def _remaining_tokens(day: ReportedDay, left: Sum) -> int:
    """What is left of a day, counted as the cache counts."""
    return left.tokens if day.with_cache else left.input + left.output


def _partly_deleted(
    few: list[tuple[ReportedDay, set[_HomeDay], Sum]], ledger: Ledger, zone: tzinfo
) -> Iterator[ReportedDay]:
    """The days of which fewer tokens and fewer sessions are left than the cache says.

    Either alone may be fewer although nothing is gone: see the page about reported amounts.
    """
    wanted = {key for _day, keys, _left in few for key in keys}
    if not wanted:
        return
    sessions: dict[_HomeDay, set[str]] = {}
    for row in ledger.by("home", "day", "session", zone=zone):
        key = (row.keys["home"], row.keys["day"])
        if key in wanted:
            sessions.setdefault(key, set()).add(row.keys["session"])
    for day, keys, left in few:
        number = len(set[str]().union(*(sessions.get(key, set()) for key in keys)))
        if day.sessions > number:
            tokens = _remaining_tokens(day, left)
            yield replace(day, is_partly=True, left_charges=left.charges, left_sessions=number, left_tokens=tokens)


def _read_stats_caches(found: Found, problems: list[Problem]) -> Iterator[tuple[StatsCache, Place]]:
    # A look without side files does not list the cache; it lies where it always does.
    path = found.home.path / _STATS_CACHE
    listed = [side for side in found.side_files if side.kind is SideFileKind.STATS_CACHE]
    for side in listed or ([SideFile(path, found.home, SideFileKind.STATS_CACHE, 0)] if path.is_file() else []):
        place = Place(str(side.path), 1)
        try:
            reading = decode_side_value(read_side_bytes(side.path), StatsCache, place)
        except Error as error:
            problems.append(Problem(ProblemKind.UNREADABLE, place, str(error), recovered=False))
            continue
        problems += reading.problems
        if isinstance(reading.content, StatsCache):
            yield reading.content, place


def _reported_days(cache: StatsCache, place: Place, home: str, problems: list[Problem]) -> Iterator[ReportedDay]:
    """The days of a cache that say anything, in order."""
    with_cache = _includes_cache_tokens(cache)
    activity = {one.date: one for one in cache.daily_activity or () if _check_date(one.date, place, problems)}
    tokens = {token.date: token.tokens_by_model for token in cache.daily_model_tokens or () if token.date in activity}
    tokens |= {
        token.date: token.tokens_by_model
        for token in cache.daily_model_tokens or ()
        if token.date not in activity and _check_date(token.date, place, problems)
    }
    for date in sorted(day for day in {*activity, *tokens} if day is not None):
        acted = activity.get(date)
        models = tuple((model, max(0, int(number))) for model, number in (tokens.get(date) or {}).items() if number)
        day = ReportedDay(
            home,
            date,
            (acted.message_count or 0) if acted else 0,
            (acted.session_count or 0) if acted else 0,
            (acted.tool_call_count or 0) if acted else 0,
            models,
            with_cache,
        )
        if day.messages or day.total_tokens or day.calls:
            yield day


def _check_date(date: str | None, place: Place, problems: list[Problem]) -> bool:
    if date is not None and _DATE.fullmatch(date):
        return True
    problems.append(Problem(ProblemKind.WRONG_TYPE, place, "a day that is no date"))
    return False


def _includes_cache_tokens(cache: StatsCache) -> bool:
    """Whether the days' tokens have the cache in them (from 2.1.221): then they come to more than input and output."""
    usage = list((cache.model_usage or {}).values())
    bare = sum((one.input_tokens or 0) + (one.output_tokens or 0) for one in usage)
    cached = sum((one.cache_read_input_tokens or 0) + (one.cache_creation_input_tokens or 0) for one in usage)
    daily = sum(sum((token.tokens_by_model or {}).values()) for token in cache.daily_model_tokens or ())
    return daily > bare + cached / 2


def is_day_within(day: ReportedDay, since: datetime | None, until: datetime | None, zone: tzinfo) -> bool:
    """Whether any of a day is in the time that is wanted."""
    first = in_zone(since, zone).date().isoformat() if since is not None else ""
    last = in_zone(until, zone).date().isoformat() if until is not None else "9999-12-31"
    return first <= day.date <= last


def deleted_days_note(days: Sequence[ReportedDay]) -> str:
    """One sentence about the days of which nothing but statistics is left; empty where there are none."""
    whole = [reported_day for reported_day in days if not reported_day.is_partly]
    if not whole:
        return ""
    dates = sorted(reported_day.date for reported_day in whole)
    tokens = sum(reported_day.total_tokens for reported_day in whole)
    messages = sum(reported_day.messages for reported_day in whole)
    return (
        f"Of {count(len(whole), 'day')} ({dates[0]} to {dates[-1]}) every transcript is gone; "
        f"Claude Code's own statistics, in no total here, report {messages:,} messages and {tokens:,} tokens: "
        "see --mode both."
    )
