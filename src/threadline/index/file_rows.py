"""Files touched: which paths calls and attachments tell of, and what was done to each."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Mapping
from typing import Any
from zlib import crc32

from msgspec import Struct

from threadline.index.answer import Answered
from threadline.index.call_rows import CallKey, EntryIds
from threadline.index.moment import moment_of
from threadline.index.texts import as_text
from threadline.model.attachments import EditedTextFile, FileAttachment
from threadline.model.call import Outcome
from threadline.model.entries import AttachmentEntry, ChainEntry, UserEntry
from threadline.model.results import (
    TOOL_RESULTS,
    EditResult,
    MultiEditResult,
    NotebookEditResult,
    ReadResult,
    WriteResult,
    result_type,
)
from threadline.model.state import How
from threadline.model.text import extract_text
from threadline.thread.state.numbered import numbered_lines
from threadline.thread.state.paths import full_path

_BY_SHAPE: dict[type, tuple[How, tuple[str, ...]]] = {
    WriteResult: (How.WRITE, ("content",)),
    EditResult: (How.EDIT, ("oldString", "newString")),
    MultiEditResult: (How.EDIT, ("edits",)),
}
NO_CALL = -1
"""In place of a block's position, where no call touched a file."""

_FILES = frozenset({*_BY_SHAPE, ReadResult, NotebookEditResult})
_BY_INPUT: dict[str, tuple[How, tuple[str, ...]]] = {
    "Write": (How.WRITE, ("content",)),
    "Edit": (How.EDIT, ("old_string", "new_string")),
    "MultiEdit": (How.EDIT, ()),
    "NotebookEdit": (How.EDIT, ()),
    "Read": (How.READ, ()),
}
# What a path has that can be told in fewer words.
_DETOURS = re.compile(r"/(?:/|\.\.?(?:/|$)|$)")
# A first line is enough to see that lines are numbered.
_BEGINNING = 100


class Touch(Struct, array_like=True, gc=False):
    """A path, what was done to it, and where that is told: by a call, or in an entry."""

    path: str
    how: str
    at: int
    moment: int | None = None
    call: str | None = None


class Touching:
    """The files, while entries are added. `cwd` is the directory that was told last: most paths are whole, not all."""

    def __init__(self, cwd: str | None) -> None:
        self.cwd = cwd
        self.rows: list[Touch] = []

    def answered(self, one: Answered) -> None:
        """A call got its result."""
        if one.is_again:
            self.rows = [row for row in self.rows if row.call != one.call]
        told = _touched(one)
        if told is not None:
            self._add(one.entry, *told, at=one.at, call=one.call)

    def attached(self, at: int, entry: AttachmentEntry) -> None:
        """A file was put before the model, or it is told that one has changed."""
        match entry.attachment:
            case EditedTextFile(filename=str(path)):
                self._add(entry, path, How.OUTSIDE, at=at)
            case FileAttachment(content=dict(content)):
                if (read := _read_path(content)) is not None:
                    self._add(entry, read, How.ATTACHED, at=at)

    def _add(self, entry: ChainEntry, path: str, how: How, *, at: int, call: str | None = None) -> None:
        cwd = entry.cwd or self.cwd
        is_whole = path[:1] == "/" == (cwd or "/")[0] and not _DETOURS.search(path)
        whole = path if is_whole else full_path(path, cwd)
        self.rows.append(Touch(as_text(whole) or "", how.value, at, moment_of(entry), call))


def write_touches(
    connection: sqlite3.Connection, rows: list[Touch], calls: Mapping[str, CallKey], ids: EntryIds
) -> None:
    """Write down which files were touched. `calls` is where in the index the calls that did it are."""
    paths = dict.fromkeys(one.path for one in rows)
    connection.executemany(
        "INSERT INTO paths(checksum, path) SELECT ?1, ?2"
        " WHERE NOT EXISTS(SELECT 1 FROM paths WHERE checksum = ?1 AND path = ?2)",
        [(_checksum(path), path) for path in paths],
    )
    connection.executemany(
        "INSERT OR IGNORE INTO file_rows SELECT ?, ?, path_id, ?, ? FROM paths WHERE checksum = ? AND path = ?",
        [(*_key(one, calls, ids), one.how, one.moment, _checksum(one.path), one.path) for one in rows],
    )


def forget_touches(connection: sqlite3.Connection, key: CallKey) -> None:
    """Take out what a call did, since another result of it counts now."""
    connection.execute("DELETE FROM file_rows WHERE entry_id = ? AND position = ?", key)


def _key(one: Touch, calls: Mapping[str, CallKey], ids: EntryIds) -> CallKey:
    return calls[one.call] if one.call is not None else (ids.of(one.at), NO_CALL)


def _checksum(path: str) -> int:
    """What paths are found by: an index over paths would be as large as all of them."""
    return crc32(path.encode())


def _touched(one: Answered) -> tuple[str, How] | None:
    """The path that a call touched, and how, as `threadline.thread.state.files` sees it."""
    raw = one.entry.tool_use_result if isinstance(one.entry, UserEntry) else None
    if type(raw) is dict:
        shape = TOOL_RESULTS.get(one.tool) or result_type(raw, one.tool)
        return _by_result(shape, raw, one) if shape in _FILES else None
    if raw is None and one.tool in _BY_INPUT and one.ending.outcome is Outcome.OK:
        return _by_input(one)
    return None


def _by_result(shape: type | None, raw: dict[str, Any], one: Answered) -> tuple[str, How] | None:
    if shape is ReadResult:
        path = _read_path(raw)
        return (path, How.READ) if path is not None else None
    if shape is NotebookEditResult:
        return _notebook(raw, one)
    how, needed = _BY_SHAPE[shape]  # type: ignore[index]
    path = raw.get("filePath")
    if type(path) is not str or not all(isinstance(raw.get(name), str | list) for name in needed):
        return None
    return path, How.USER_MODIFIED if raw.get("userModified") is True else how


def _notebook(raw: dict[str, Any], one: Answered) -> tuple[str, How] | None:
    path = raw.get("notebook_path")
    if type(path) is not str or not path:
        given = one.input
        path = given.get("notebook_path") if isinstance(given, dict) else None
    return (path, How.EDIT) if isinstance(path, str) and path and not raw.get("error") else None


def _by_input(one: Answered) -> tuple[str, How] | None:
    """Calls of agents, whose own results are often not written."""
    given = one.input
    how, needed = _BY_INPUT[one.tool]
    path = given.get("file_path") if isinstance(given, dict) else None
    if not isinstance(path, str) or not path or not all(isinstance(given.get(name), str) for name in needed):
        return None
    if how is How.READ and not numbered_lines(extract_text(one.block.content)[:_BEGINNING]):
        return None
    return path, how


def _read_path(content: dict[str, Any]) -> str | None:
    file = content.get("file")
    path = file.get("filePath") if type(file) is dict else None
    return path if type(path) is str else None
