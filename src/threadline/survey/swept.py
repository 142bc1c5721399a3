"""Days of which only `stats-cache.json` tells: Claude Code has deleted their transcripts, or some of them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, tzinfo

from msgspec.structs import replace

from threadline.account.ledger import Ledger
from threadline.errors import Error
from threadline.model.found import Found, SideFile, SideFileKind
from threadline.model.kept import home_name
from threadline.model.place import Place
from threadline.model.problem import Problem, ProblemKind
from threadline.model.reported import ReportedDay
from threadline.model.stats_cache import StatsCache
from threadline.model.sum import Sum
from threadline.parse.side_value import file_bytes, side_value

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_CACHE = "stats-cache.json"


_Day = tuple[str, str]


def swept(
    found: Sequence[Found], ledger: Ledger, problems: list[Problem], *, zone: tzinfo = UTC
) -> Iterator[ReportedDay]:
    """The days of every home's cache that the ledger has nothing of, or less; `zone` is whose days the cache means.

    Transcripts are asked for only where there are several homes, which may share some.
    """
    named = [(one, home_name(one.home.path)) for one in found]
    told = {
        one.home: [day for cache, place in _caches(one, problems) for day in _told(cache, place, name, problems)]
        for one, name in named
    }
    if not any(told.values()):
        return
    left = _left(ledger, list(dict.fromkeys(name for _one, name in named)), zone)
    owner = {str(transcript.path): name for one, name in reversed(named) for transcript in one.transcripts}
    few: list[tuple[ReportedDay, set[_Day], Sum]] = []
    for one, name in named:
        # What another home shares through a link is charged to that home.
        homes = {owner[str(transcript.path)] for transcript in one.transcripts} | {name}
        for day in told[one.home]:
            days = {(home, day.date) for home in homes if (home, day.date) in left}
            if not days:
                yield day
            else:
                few.append((day, days, Sum.of(left[key] for key in days)))
    yield from _partly([one for one in few if one[0].total_tokens > _tokens(one[0], one[2])], ledger, zone)


def _left(ledger: Ledger, homes: Sequence[str], zone: tzinfo) -> dict[_Day, Sum]:
    """What the ledger has of each day of each home."""
    if len(homes) == 1:  # by one key is faster than by two
        return {(homes[0], row.keys["day"]): row for row in ledger.by("day", zone=zone)}
    return {(row.keys["home"], row.keys["day"]): row for row in ledger.by("home", "day", zone=zone)}


def _tokens(day: ReportedDay, left: Sum) -> int:
    """What is left of a day, counted as the cache counts."""
    return left.tokens if day.with_cache else left.input + left.output


def _partly(few: list[tuple[ReportedDay, set[_Day], Sum]], ledger: Ledger, zone: tzinfo) -> Iterator[ReportedDay]:
    """The days of which fewer tokens and fewer sessions are left than the cache says.

    Either alone may be fewer although nothing is gone: see the page about reported amounts.
    """
    wanted = {key for _day, keys, _left in few for key in keys}
    if not wanted:
        return
    sessions: dict[_Day, set[str]] = {}
    for row in ledger.by("home", "day", "session", zone=zone):
        key = (row.keys["home"], row.keys["day"])
        if key in wanted:
            sessions.setdefault(key, set()).add(row.keys["session"])
    for day, keys, left in few:
        number = len(set[str]().union(*(sessions.get(key, set()) for key in keys)))
        if day.sessions > number:
            tokens = _tokens(day, left)
            yield replace(day, is_partly=True, left_charges=left.charges, left_sessions=number, left_tokens=tokens)


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
