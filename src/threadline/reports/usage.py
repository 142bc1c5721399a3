"""Usage report: rows, notes about them, days that only Claude Code's statistics know, and the JSON document.

Every `usage` loads this module, also with a fresh index, so it must not import entries, `thread` or `parallel`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, tzinfo
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from threadline.account import TIME_KEYS, Ledger, group_function
from threadline.errors import Error
from threadline.model.homes import Found, SideFile, SideFileKind
from threadline.model.ledger import Charge, Key, MissingAgent, Row, Rows, Sum, sum_fields
from threadline.model.places import Place, Problem, ProblemKind
from threadline.model.reported_costs import ReportedDay, ReportedUsage
from threadline.model.text import count, format_tokens, join_some, plain_decimal
from threadline.model.times import FIRST_MOMENT, in_zone, zone_name
from threadline.model.usage import StatsCache, parse_token_count
from threadline.parse import decode_content, read_side_bytes

if TYPE_CHECKING:
    from threadline.model.budgets import BudgetUse

KEY_NOTES = {
    "tool": "By tool, a charge is shared equally by the calls in its message; `(no call)` is messages without calls. "
    "A renamed tool counts under its current name.",
    "skill": "By skill, a charge belongs to the skill that Claude Code names as its cause (from 2.1.123); "
    "`(none)` is everything else.",
}
_MAX_MODELS_NAMED = 4
_KeyPath = tuple[str, ...]


class UsageReport(Struct, frozen=True):
    """The rows of a report. `left_out` counts the groups of the first key beyond the limit, `rest` is their sum.

    `reported` is what Claude Code reports, if requested. `swept` are days whose transcripts were deleted. `is_part`
    says that the ledger was filtered. `agents_only` are sessions that have no transcript of their own. `prompts` are
    the prompts of turns, by session and turn, if the report is by turn. `budgets` are the user's budgets and what is
    left of them now, whatever the report is about.
    """

    ledger: Ledger
    rows: Rows
    total: Sum
    tz: tzinfo
    since: datetime | None = None
    until: datetime | None = None
    left_out: int = 0
    rest: Sum = Sum()
    reported: ReportedUsage | None = None
    swept: tuple[ReportedDay, ...] = ()
    is_part: bool = False
    agents_only: tuple[str, ...] = ()
    prompts: Mapping[tuple[str, str], str] = {}
    budgets: tuple[BudgetUse, ...] = ()

    @property
    def zone(self) -> str:
        """The name of the time zone of its days."""
        return zone_name(self.tz)

    @property
    def by(self) -> _KeyPath:
        """The keys."""
        return self.rows.by


def add_session_key(keys: Sequence[str], *, is_one_session: bool) -> list[str]:
    """Return the keys with `session` before `turn`, unless the report is about one session.

    The turns of different sessions have nothing in common.
    """
    added = list(keys)
    if "turn" in added and not is_one_session and "session" not in added[: added.index("turn")]:
        added.insert(added.index("turn"), "session")
    return list(dict.fromkeys(added))


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
    exact_tools: bool = False,
    found: Iterable[Found] = (),
) -> UsageReport:
    """Report on a ledger by these keys. `limit` is the maximum number of groups of the first key.

    `since` and `until` are how the ledger was filtered, to be repeated in the report. With `exact_tools`, tools that
    were renamed are counted under both names. `found` are the homes; they are used if `session` is a key.
    """
    rows = ledger.by(*names, zone=zone, extra=extra, exact_tools=exact_tools)
    total = rows.total
    if order is not None:
        groups_of = group_function(rows.by, zone, extra, exact_tools=exact_tools)
        last = _last_times(ledger, rows.by, groups_of) if order == "time" else {}
        rows = Rows(rows.by, tuple(_sort_rows(rows, order, last)))
    kept, others = _apply_limit(rows, limit, newest=order == "time" or (order is None and names[0] in TIME_KEYS))
    left_out = len({row.keys[names[0]] for row in others})
    report = UsageReport(ledger, Rows(rows.by, kept), total, zone, since, until, left_out, Sum.of(others))
    report = replace(report, prompts=getattr(extra.get("turn"), "prompts", {}))
    return replace(report, agents_only=sessions_without_main(ledger.sessions, found)) if "session" in names else report


def sessions_without_main(sessions: Iterable[str], found: Iterable[Found]) -> tuple[str, ...]:
    """Return those of the sessions of which only agents' transcripts exist; none if no home is given."""
    transcripts = [transcript for home in found for transcript in home.transcripts]
    mains = {str(transcript.session) for transcript in transcripts if transcript.is_main}
    return tuple(sorted(set(sessions) - mains)) if transcripts else ()


def agents_only_note(sessions: Sequence[str]) -> str:
    """Explain why a report counts more sessions than the list; empty if there are no such sessions."""
    if not sessions:
        return ""
    have, them = ("has", "it") if len(sessions) == 1 else ("have", "them")
    names = join_some(session[:8] for session in sessions)
    return (
        f"{count(len(sessions), 'session')} {have} only transcripts of agents, so `threadline list` does not count"
        f" {them}: {names}."
    )


def _sort_rows(rows: Rows, order: str, last: Mapping[_KeyPath, datetime]) -> list[Row]:
    """Sort rows by time or by amount, key by key, so that nested groups stay together."""
    weights: list[dict[_KeyPath, Row]] = [
        {tuple(row.keys.values()): row for row in rows.subtotals(depth + 1)} for depth in range(len(rows.by))
    ]

    def sort_key(row: Row) -> tuple[object, ...]:
        path = tuple(row.keys[name] for name in rows.by)
        return tuple(
            _amount_key(weights[level][path[: level + 1]], path[level])
            if order == "amount"
            else (path[level] if name in TIME_KEYS else last[path[: level + 1]], path[level])
            for level, name in enumerate(rows.by)
        )

    return sorted(rows.rows, key=sort_key)


def _amount_key(row: Row, value: str) -> tuple[object, ...]:
    return -(row.amount or 0), -row.tokens, value


def _last_times(
    ledger: Ledger, names: _KeyPath, groups_of: Callable[[Charge], set[_KeyPath]]
) -> dict[_KeyPath, datetime]:
    """Return when each group of the report was last spent on; empty if the names of all groups are times."""
    if all(name in TIME_KEYS for name in names):
        return {}
    last: dict[_KeyPath, datetime] = {}
    for charge in ledger:
        when = charge.timestamp or FIRST_MOMENT
        for path in groups_of(charge):
            for depth in range(1, len(path) + 1):
                last[path[:depth]] = max(when, last.get(path[:depth], FIRST_MOMENT))
    return last


def _apply_limit(rows: Rows, limit: int | None, *, newest: bool) -> tuple[tuple[Row, ...], tuple[Row, ...]]:
    """Split rows into those shown and the others: the newest times, the hours that cost most, or the first groups."""
    values = list(dict.fromkeys(row.keys[rows.by[0]] for row in rows))
    if limit is None or len(values) <= limit:
        return rows.rows, ()
    if newest and rows.by[0] == "hour":  # of the day: no hour is newer than another
        sums = {value: Sum.of(row for row in rows if row.keys["hour"] == value) for value in values}
        values.sort(key=lambda value: (sums[value].amount or 0, sums[value].tokens))
    included = set(values[-limit:] if newest else values[:limit])
    return (
        tuple(row for row in rows if row.keys[rows.by[0]] in included),
        tuple(row for row in rows if row.keys[rows.by[0]] not in included),
    )


def usage_notes(report: UsageReport) -> Iterator[str]:
    """Yield notes about the figures, a sentence each."""
    total = report.total
    if total.unpriced:
        models = _unpriced_models(report.ledger)
        have, are = ("has", "is") if total.unpriced == 1 else ("have", "are")
        yield f"{count(total.unpriced, 'charge')} {have} no price and {are} not included in amounts ({models})."
    if total.lower_bound:
        yield (
            f"Output tokens are a minimum for {count(total.lower_bound, 'charge')}: Claude Code did not record the "
            "final count, as was common before version 2.1.59."
        )
    if missing := report.ledger.missing_agents:
        yield describe_missing_agents(missing)
    yield from (KEY_NOTES[name] for name in report.by if name in KEY_NOTES)
    if report.reported is not None and report.is_part:
        yield "Claude Code reports whole sessions, so they are compared with the amounts of whole sessions."
    if (note := deleted_days_note(report.swept)) != "":
        yield note
    if note := agents_only_note(report.agents_only):
        yield note
    if report.ledger.problems:
        transcripts = count(len(report.ledger.problems), "transcript")
        yield f"{transcripts} could not be read completely. What was spent there is missing."


def describe_missing_agents(agents: Sequence[MissingAgent]) -> str:
    """Say how many agents are missing from the totals, and the least that they used."""
    reported = [agent.tokens for agent in agents if agent.tokens is not None]
    have, their = ("has", "its") if len(agents) == 1 else ("have", "their")
    text = (
        f"{count(len(agents), 'subagent')} no longer {have} a transcript, so {their} spending is missing or incomplete."
    )
    if not reported:
        return f"{text} {their.capitalize()} results do not report tokens."
    verb = "reports" if len(reported) == 1 else "report"
    who = f"{len(reported):,} of them {verb}" if len(agents) > 1 else "Its result reports"
    return f"{text} {who} {format_tokens(sum(reported))} tokens, a lower bound."


def missing_agents_record(agents: Sequence[MissingAgent]) -> dict[str, Any]:
    """Return what is known about missing agents as JSON values: how many, and the least that they used."""
    reported = [agent.tokens for agent in agents if agent.tokens is not None]
    return {"agents": len(agents), "reporting": len(reported), "tokens_at_least": sum(reported)}


def _unpriced_models(ledger: Ledger) -> str:
    counts = {row.keys["model"]: row.unpriced for row in ledger.by("model") if row.unpriced}
    ordered = sorted(counts, key=lambda name: (-counts[name], name))
    more = f" and {len(ordered) - _MAX_MODELS_NAMED} more" if len(ordered) > _MAX_MODELS_NAMED else ""
    return ", ".join(ordered[:_MAX_MODELS_NAMED]) + more


def usage_document(report: UsageReport) -> dict[str, Any]:
    """Return the report as JSON values."""
    document: dict[str, Any] = {
        "total": sum_as_json(report.total),
        "rows": [row_as_json(row, report.prompts) for row in report.rows],
        "by": list(report.by),
        "zone": report.zone,
        "since": report.since,
        "until": report.until,
        "prices": price_digests(report.ledger),
        "problems": [
            {"kind": problem.kind, "place": str(problem.place), "message": problem.message}
            for problem in report.ledger.problems
        ],
        "left_out": report.left_out,
        "missing_agents": missing_agents_record(report.ledger.missing_agents),
        "notes": list(usage_notes(report)),
        "budgets": [use.record() for use in report.budgets],
    }
    if report.reported is not None:
        from threadline.reports.reconciliation import reconciliation_record  # noqa: PLC0415 - seldom needed, and it imports this module

        document["reported"] = reconciliation_record(report.reported)
    elif report.swept:
        from threadline.reports.reconciliation import deleted_days_record  # noqa: PLC0415 - seldom needed, and it imports this module

        document["reported"] = deleted_days_record(report.swept)
    return document


def price_digests(ledger: Ledger) -> dict[str, Any]:
    """Return the digests of the prices that were applied."""
    files = [{"name": name, "digest": digest} for name, digest in ledger.price_files]
    return {"digest": ledger.price_digest, "files": files}


def row_as_json(row: Row, prompts: Mapping[tuple[str, str], str] | None = None) -> dict[str, Any]:
    """Return a row as JSON values: its keys, then its figures. A turn is a number, with its prompt."""
    keys: dict[str, Any] = dict(row.keys)
    if "turn" in keys:
        number = keys["turn"]
        keys["turn"] = int(number) if number.isdecimal() else None
        keys["prompt"] = (prompts or {}).get((row.keys.get("session", ""), number))
    return {**keys, **sum_as_json(row)}


def sum_as_json(total: Sum) -> dict[str, Any]:
    """Return a sum as JSON values. The amount has no exponent and no trailing zeros."""
    amount = plain_decimal(total.amount) if total.amount is not None else None
    return {**sum_fields(total), "amount": amount}


_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_STATS_CACHE = "stats-cache.json"


_HomeDay = tuple[str, str]


def find_deleted_days(
    found: Sequence[Found], ledger: Ledger, problems: list[Problem], *, zone: tzinfo = UTC
) -> Iterator[ReportedDay]:
    """Yield the days in each home's statistics of which the ledger has nothing, or less.

    `zone` is the time zone of the statistics. Transcripts are needed only if there are several homes, which may share
    some.
    """
    days_of = {
        home.home: [
            day
            for cache, place in _read_stats_caches(home, problems)
            for day in _reported_days(cache, place, home.home.name, problems)
        ]
        for home in found
    }
    if not any(days_of.values()):
        return
    remaining = _remaining_by_day(ledger, list(dict.fromkeys(home.home.name for home in found)), zone)
    owner = {str(transcript.path): home.home.name for home in reversed(found) for transcript in home.transcripts}
    fewer: list[tuple[ReportedDay, set[_HomeDay], Sum]] = []
    for home in found:
        # What another home shares through a link is charged to that home.
        names = {owner[str(transcript.path)] for transcript in home.transcripts} | {home.home.name}
        for day in days_of[home.home]:
            keys = {(name, day.date) for name in names if (name, day.date) in remaining}
            left = Sum.of(remaining[key] for key in keys)
            if not keys:
                yield day
            elif day.total_tokens > _remaining_tokens(day, left):
                fewer.append((day, keys, left))
    yield from _partly_deleted(fewer, ledger, zone)


def _remaining_by_day(ledger: Ledger, homes: Sequence[str], zone: tzinfo) -> dict[_HomeDay, Sum]:
    """Return what the ledger has of each day of each home."""
    if len(homes) == 1:  # by one key is faster than by two
        return {(homes[0], row.keys["day"]): row for row in ledger.by("day", zone=zone)}
    return {(row.keys["home"], row.keys["day"]): row for row in ledger.by("home", "day", zone=zone)}


def _remaining_tokens(day: ReportedDay, remaining: Sum) -> int:
    """Return what is left of a day, counted as the statistics count."""
    return remaining.tokens if day.with_cache else remaining.input + remaining.output


def _partly_deleted(
    fewer_tokens: list[tuple[ReportedDay, set[_HomeDay], Sum]], ledger: Ledger, zone: tzinfo
) -> Iterator[ReportedDay]:
    """Yield those of these days, which have fewer tokens than the statistics say, that also have fewer sessions.

    Only one of the two may be fewer although nothing was deleted: see docs/reported-costs.md.
    """
    home_days = {key for _day, keys, _sum in fewer_tokens for key in keys}
    if not home_days:
        return
    sessions: dict[_HomeDay, set[str]] = {}
    for row in ledger.by("home", "day", "session", zone=zone):
        key = (row.keys["home"], row.keys["day"])
        if key in home_days:
            sessions.setdefault(key, set()).add(row.keys["session"])
    for day, keys, remaining in fewer_tokens:
        number = len(set[str]().union(*(sessions.get(key, set()) for key in keys)))
        if day.sessions > number:
            tokens = _remaining_tokens(day, remaining)
            yield replace(day, is_partly=True, left_charges=remaining.charges, left_sessions=number, left_tokens=tokens)


def _read_stats_caches(found: Found, problems: list[Problem]) -> Iterator[tuple[StatsCache, Place]]:
    # Homes listed without side files do not list the statistics; they are always at the same path.
    path = found.home.path / _STATS_CACHE
    caches = [side for side in found.side_files if side.kind is SideFileKind.STATS_CACHE]
    for side in caches or ([SideFile(path, found.home, SideFileKind.STATS_CACHE, 0)] if path.is_file() else []):
        place = Place(str(side.path), 1)
        try:
            data = read_side_bytes(side.path, found.home.path)
        except Error as error:
            problems.append(Problem(ProblemKind.UNREADABLE, place, str(error), recovered=False))
            continue
        cache, defects = decode_content(data, StatsCache, place)
        problems += defects
        if cache is not None:
            yield cache, place


def _reported_days(cache: StatsCache, place: Place, home: str, problems: list[Problem]) -> Iterator[ReportedDay]:
    """Yield the days of a statistics file that say anything, sorted."""
    with_cache = _includes_cache_tokens(cache)
    activity = {
        day_activity.date: day_activity
        for day_activity in cache.daily_activity or ()
        if _check_date(day_activity.date, place, problems)
    }
    tokens = {token.date: token.tokens_by_model for token in cache.daily_model_tokens or () if token.date in activity}
    tokens |= {
        token.date: token.tokens_by_model
        for token in cache.daily_model_tokens or ()
        if token.date not in activity and _check_date(token.date, place, problems)
    }
    for date in sorted(day for day in {*activity, *tokens} if day is not None):
        counts = activity.get(date)
        models = tuple(
            (model, parse_token_count(int(number)) or 0) for model, number in (tokens.get(date) or {}).items() if number
        )
        day = ReportedDay(
            home,
            date,
            (counts.message_count or 0) if counts else 0,
            (counts.session_count or 0) if counts else 0,
            (counts.tool_call_count or 0) if counts else 0,
            models,
            with_cache,
        )
        if day.messages or day.total_tokens or day.calls:
            yield day


def _check_date(date: str | None, place: Place, problems: list[Problem]) -> bool:
    if date is not None and _DATE.fullmatch(date):
        return True
    problems.append(Problem(ProblemKind.WRONG_TYPE, place, "a day that is not a date"))
    return False


def _includes_cache_tokens(cache: StatsCache) -> bool:
    """Whether the tokens of days include the cache (from 2.1.221): they are more than input and output then."""
    usage = list((cache.model_usage or {}).values())
    uncached = sum((model.input_tokens or 0) + (model.output_tokens or 0) for model in usage)
    cached = sum((model.cache_read_input_tokens or 0) + (model.cache_creation_input_tokens or 0) for model in usage)
    daily = sum(sum((token.tokens_by_model or {}).values()) for token in cache.daily_model_tokens or ())
    return daily > uncached + cached / 2


def is_day_within(day: ReportedDay, since: datetime | None, until: datetime | None, zone: tzinfo) -> bool:
    """Whether any part of a day is in a period."""
    first = in_zone(since, zone).date().isoformat() if since is not None else ""
    last = in_zone(until, zone).date().isoformat() if until is not None else "9999-12-31"
    return first <= day.date <= last


def deleted_days_note(days: Sequence[ReportedDay]) -> str:
    """Return a note about the days of which only statistics are left; empty if there are none."""
    deleted = [day for day in days if not day.is_partly]
    if not deleted:
        return ""
    dates = sorted(day.date for day in deleted)
    which = f"{len(deleted):,} of the days from {dates[0]} to {dates[-1]}" if len(deleted) > 1 else str(dates[0])
    tokens = sum(day.total_tokens for day in deleted)
    messages = sum(day.messages for day in deleted)
    return (
        f"The transcripts of {which} have been deleted. Claude Code's "
        f"statistics list {messages:,} messages and {format_tokens(tokens)} tokens for those days, not included here. "
        "See --mode both."
    )
