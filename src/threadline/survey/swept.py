"""Days of which only `stats-cache.json` tells: Claude Code has deleted their transcripts, or some of them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, tzinfo

from msgspec import Struct
from msgspec.structs import replace

from threadline.account.calendar import Calendar
from threadline.account.ledger import Ledger
from threadline.errors import Error
from threadline.model.found import Found, SideFile, SideFileKind
from threadline.model.place import Place
from threadline.model.problem import Problem, ProblemKind
from threadline.model.reported import ReportedDay
from threadline.model.stats_cache import StatsCache
from threadline.parse.side_value import file_bytes, side_value

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_CACHE = "stats-cache.json"


class _Left(Struct):
    """What the ledger has of one day."""

    charges: int = 0
    without_cache: int = 0
    tokens: int = 0
    sessions: set[str | None] = set()


_Days = dict[tuple[str, str], _Left]


def swept(
    found: Sequence[Found], ledger: Ledger, problems: list[Problem], *, zone: tzinfo = UTC
) -> Iterator[ReportedDay]:
    """The days of every home's cache that the ledger has nothing of, or less; `zone` is whose days the cache means."""
    told = {
        str(one.home.path): [
            day for cache, place in _caches(one, problems) for day in _told(cache, place, str(one.home.path), problems)
        ]
        for one in found
    }
    dates = {day.date for days in told.values() for day in days}
    if not dates:
        return
    days = _days(ledger, dates, zone)
    owner = {str(transcript.path): one.home for one in reversed(found) for transcript in one.transcripts}
    for one in found:
        # What another home shares through a link is charged to that home.
        homes = {str(owner[str(transcript.path)].path) for transcript in one.transcripts} | {str(one.home.path)}
        for day in told[str(one.home.path)]:
            left = [days[home, day.date] for home in sorted(homes) if (home, day.date) in days]
            if not left:
                yield day
            elif (partly := _partly(day, left)) is not None:
                yield partly


def _days(ledger: Ledger, dates: set[str], zone: tzinfo) -> _Days:
    """What the ledger has of some days."""
    day_of = Calendar(zone).day
    days: _Days = {}
    for charge in ledger.charges:
        date = day_of(charge.owner.time)
        if date not in dates:
            continue
        day = days.get((charge.origin.home, date))
        if day is None:
            day = days[charge.origin.home, date] = _Left(sessions=set())
        day.charges += 1
        day.without_cache += charge.input + charge.output
        day.tokens += charge.tokens
        day.sessions.add(charge.session)
    return days


def _caches(found: Found, problems: list[Problem]) -> Iterator[tuple[StatsCache, Place]]:
    # A look without side files does not list the cache; it lies where it always does.
    path = found.home.path / _CACHE
    listed = [side for side in found.side_files if side.kind is SideFileKind.STATS_CACHE]
    for side in listed or ([SideFile(path, found.home, SideFileKind.STATS_CACHE, 0)] if path.is_file() else []):
        place = Place(str(side.path), 1)
        try:
            reading = side_value(file_bytes(side.path), StatsCache, place)
        except Error as error:
            problems.append(Problem(ProblemKind.UNREADABLE, place, str(error), recovered=False))
            continue
        problems += reading.problems
        if isinstance(reading.content, StatsCache):
            yield reading.content, place


def _partly(day: ReportedDay, left: list[_Left]) -> ReportedDay | None:
    """A day of which less is left than the cache says; None where all of it may be left."""
    tokens = sum(one.tokens if day.with_cache else one.without_cache for one in left)
    sessions = len(set[str | None]().union(*(one.sessions for one in left)))
    # Either alone may be more than is left although nothing is gone: see the page about reported amounts.
    if day.total_tokens <= tokens or day.sessions <= sessions:
        return None
    charges = sum(one.charges for one in left)
    return replace(day, is_partly=True, left_charges=charges, left_sessions=sessions, left_tokens=tokens)


def _told(cache: StatsCache, place: Place, home: str, problems: list[Problem]) -> Iterator[ReportedDay]:
    """The days of a cache that say anything, in order."""
    with_cache = _counts_cache(cache)
    activity = {one.date: one for one in cache.daily_activity or () if _is_date(one.date, place, problems)}
    tokens = {one.date: one.tokens_by_model for one in cache.daily_model_tokens or () if one.date in activity}
    tokens |= {
        one.date: one.tokens_by_model
        for one in cache.daily_model_tokens or ()
        if one.date not in activity and _is_date(one.date, place, problems)
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


def _is_date(date: str | None, place: Place, problems: list[Problem]) -> bool:
    if date is not None and _DATE.fullmatch(date):
        return True
    problems.append(Problem(ProblemKind.WRONG_TYPE, place, "a day that is no date"))
    return False


def _counts_cache(cache: StatsCache) -> bool:
    """Whether the days' tokens have the cache in them (from 2.1.221): then they come to more than input and output."""
    usage = list((cache.model_usage or {}).values())
    bare = sum((one.input_tokens or 0) + (one.output_tokens or 0) for one in usage)
    cached = sum((one.cache_read_input_tokens or 0) + (one.cache_creation_input_tokens or 0) for one in usage)
    daily = sum(sum((one.tokens_by_model or {}).values()) for one in cache.daily_model_tokens or ())
    return daily > bare + cached / 2
