"""What a filter that nothing fits may have meant: the nearest value that there is, or those that there are."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches

from threadline.model.time import parse_timestamp
from threadline.render.figures import moment, some
from threadline.search.match import fits
from threadline.search.query import And, Is, Query, When

_LIKE = 0.6
_TIMES = """SELECT MIN(first), MAX(last) FROM
    (SELECT first, last FROM session_rows UNION ALL SELECT first, last FROM agent_rows)"""
# Of each field, what its values are called, and where they are; those that are most frequent come first.
_VALUES = {
    "tool": (
        "tools",
        "SELECT t.tool FROM tools t JOIN call_rows c USING(tool_id) GROUP BY t.tool_id ORDER BY COUNT(*) DESC",
    ),
    "model": ("models", "SELECT m.model FROM models m ORDER BY m.model_id DESC"),
    "kind": ("kinds", "SELECT kind FROM entries GROUP BY kind ORDER BY COUNT(*) DESC"),
    "project": ("projects", "SELECT COALESCE(path, folder) FROM projects ORDER BY project_id DESC"),
    "branch": (
        "branches",
        "SELECT git_branch FROM origins WHERE git_branch <> '' GROUP BY git_branch ORDER BY COUNT(*) DESC",
    ),
    "version": (
        "versions",
        "SELECT version FROM origins WHERE version <> '' GROUP BY version ORDER BY MAX(began) DESC",
    ),
    "agent": ("types of agents", "SELECT type FROM agents WHERE type <> '' GROUP BY type ORDER BY COUNT(*) DESC"),
}


def missed(connection: sqlite3.Connection, query: Query) -> Iterator[str]:
    """Sentences about the filters of a query that no entry can fit, whatever else is asked for."""
    parts = query.of if isinstance(query, And) else (query,)
    for one in parts:
        if isinstance(one, Is):
            told = _unknown(connection, one)
            if told is not None:
                yield told
    yield from _out_of_time(connection, [one for one in parts if isinstance(one, When)])


def never_called(connection: sqlite3.Connection, tools: Iterable[str]) -> str | None:
    """A sentence about the first of some tools that no session called; None where each was called."""
    called = values(connection, "tool")
    return next((_nearest("tool", tool, called) for tool in tools if tool not in called), None)


def values(connection: sqlite3.Connection, field: str) -> list[str]:
    """The values that a field has anywhere, as far as the index knows them."""
    found = connection.execute(_VALUES[field][1])
    return [value.decode(errors="replace") if isinstance(value, bytes) else value for (value,) in found]


def _unknown(connection: sqlite3.Connection, asked: Is) -> str | None:
    if asked.field == "session":
        told = connection.execute("SELECT DISTINCT session FROM transcripts WHERE session IS NOT NULL")
        if any(fits(asked, one) for (one,) in told):
            return None
        return f"no session's id begins with {asked.value!r}; `threadline list` has them"
    there = values(connection, asked.field)
    if asked.field == "agent":
        named = connection.execute("SELECT DISTINCT agent FROM agents")
        if any(fits(asked, one) for (one,) in named):
            return None
    return _nearest(asked.field, asked.value, there) if not any(fits(asked, one) for one in there) else None


def _nearest(field: str, value: str, there: Sequence[str]) -> str:
    """What is most like it, by all of the name or by its end; or else what there is."""
    alike: dict[str, str] = {}
    for one in there:
        alike.setdefault(one.casefold(), one)
        end = one.replace("\\", "/").rstrip("/").rsplit("/", 1)[-1]
        alike.setdefault(end.casefold(), end)
    near = get_close_matches(value.casefold(), alike, 1, _LIKE)
    what = f"no {field} is {value!r}"
    if near:
        return f"{what}; did you mean {alike[near[0]]}?"
    called = _VALUES[field][0]
    return f"{what}; {called} are {some(there)}" if there else f"{what}: there are no {called}"


def _out_of_time(connection: sqlite3.Connection, asked: Sequence[When]) -> Iterator[str]:
    since = max((one.moment for one in asked if one.field == "since"), default=None)
    until = min((one.moment for one in asked if one.field == "until"), default=None)
    if since is not None and until is not None and since > until:
        yield "since: is later than until:, and nothing lies between them"
        return
    told = connection.execute(_TIMES).fetchone()
    oldest, newest = map(parse_timestamp, told)
    if since is not None and newest is not None and newest < since:
        yield f"the newest entry is of {moment(newest)} (UTC)"
    if until is not None and oldest is not None and oldest > until:
        yield f"the oldest entry is of {moment(oldest)} (UTC)"
