"""Files that sessions touched, newest first, as the index tells them."""

# ruff: noqa: S608 - statements are made of our own words
from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator

from threadline.index.tables.calls import SESSION
from threadline.index.transcripts_of import transcripts_of
from threadline.index.wanted import Wanted
from threadline.model.ids import SessionId
from threadline.model.listed import ListedFile
from threadline.model.time import parse_timestamp

_Key = tuple[int, str | None]
_PLACE = """CROSS JOIN entries e ON e.entry_id = f.entry_id
    CROSS JOIN transcripts t ON t.transcript_id = e.transcript_id"""
_WALK = f"SELECT f.path_id, {SESSION} FROM file_rows f {_PLACE}"
_DIRECT = f"""SELECT f.path_id, {SESSION} FROM transcripts t
    CROSS JOIN entries e ON e.transcript_id = t.transcript_id
    CROSS JOIN file_rows f ON f.entry_id = e.entry_id"""
_AT_ONCE = 5_000
_NEWEST = "ORDER BY f.moment DESC, f.entry_id DESC, f.position DESC"
_TOLD = f"""SELECT f.path_id, {SESSION}, p.path, MIN(COALESCE(o.path, o.folder)),
        SUM(f.how IN ('read', 'attached')), SUM(f.how IN ('write', 'edit', 'user-modified')),
        MIN(w.timestamp), MAX(w.timestamp)
    FROM file_rows f {_PLACE}
    CROSS JOIN paths p ON p.path_id = f.path_id
    CROSS JOIN projects o ON o.project_id = t.project_id
    LEFT JOIN call_rows c ON c.entry_id = f.entry_id AND c.position = f.position
    CROSS JOIN entries w ON w.entry_id = COALESCE(c.result_entry_id, f.entry_id)"""


def files(
    connection: sqlite3.Connection,
    wanted: Wanted,
    path: str | None = None,
) -> list[ListedFile]:
    """The files that fit all of these, one for each session that touched it; those touched last come first.

    `path` is a file's path or the end of it. With a time, only what was done in it counts.
    """
    conditions = wanted.seconds("f.moment")
    if path is not None:
        conditions.append(f"f.path_id IN ({', '.join(map(str, _paths(connection, path)))})")
    question = _WALK
    if wanted.is_of_some:
        some = transcripts_of(connection, wanted.session, wanted.project)
        conditions.append(some.condition)
        question = _DIRECT if path is None and (wanted.session is not None or some.is_few) else _WALK
    where = f"WHERE {' AND '.join(conditions)}" if conditions else ""
    keys = _first(connection.execute(f"{question} {where} {_NEWEST}"), wanted.limit)
    return _told(connection, keys, conditions)


def _paths(connection: sqlite3.Connection, path: str) -> Iterator[int]:
    """The files of that path, or whose path ends with it: whole names, whatever the signs between them."""
    wanted = "/" + path.replace("\\", "/").lstrip("/")
    for number, one in connection.execute("SELECT path_id, path FROM paths"):
        if one == path or one.replace("\\", "/").endswith(wanted):
            yield number


def _first(rows: Iterator[_Key], limit: int | None) -> list[_Key]:
    """The first files, each once a session."""
    found: dict[_Key, None] = {}
    for key in rows:
        if limit is not None and len(found) >= limit:
            break
        found[key] = None
    return list(found)


def _told(connection: sqlite3.Connection, keys: list[_Key], conditions: list[str]) -> list[ListedFile]:
    """What is told of files, in the order given."""
    numbers = list(dict.fromkeys(number for number, _ in keys))
    told: dict[_Key, ListedFile] = {}
    for at in range(0, len(numbers), _AT_ONCE):
        named = f"f.path_id IN ({', '.join(map(str, numbers[at : at + _AT_ONCE]))})"
        where = " AND ".join([named, *conditions])
        for row in connection.execute(f"{_TOLD} WHERE {where} GROUP BY 1, 2"):
            number, session, path, project, reads, writes, first, last = row
            told[number, session] = ListedFile(
                path=path,
                session=SessionId(session) if session is not None else None,
                project=os.fsdecode(project),
                reads=reads,
                writes=writes,
                first=parse_timestamp(first),
                last=parse_timestamp(last),
            )
    return [told[key] for key in keys]
