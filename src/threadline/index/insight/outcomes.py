"""Extract commits, pushes, pull requests, test runs, changed lines and program names from stored calls, and store them.

A refresh does not: few questions need them, and finding them takes a shell parser. They are extracted when somebody
asks for the first time, transcript by transcript, with the rules of `threadline.insight.outcomes`. A transcript whose
outcomes are stored is in the table `outcome_transcripts` until a refresh adds to it.

Rows are keyed by their call; a pull request that Claude Code links by itself, without a call, is keyed by its entry.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Self

from msgspec import Struct

from threadline.errors import Error, IndexBusy, Unreadable
from threadline.files import read_at
from threadline.home_files import open_transcript
from threadline.index.insight.queries import UnstoredTranscript
from threadline.index.rows.calls import NO_CALL_POSITION, CallKey, call_input, read_entry_at
from threadline.index.store import (
    decode_path,
    name_ids,
    open_for_writing,
    open_read_only,
    read_generation,
    storable_text,
)
from threadline.insight import changed_lines, extract_outcomes, link_row, may_have_outcome
from threadline.model.calls import Outcome
from threadline.model.entries import AssistantEntry, Entry, PrLinkEntry, UserEntry
from threadline.model.insight.outcomes import OutcomeRow
from threadline.model.places import Place
from threadline.model.text import extract_text
from threadline.parse import decode_object
from threadline.shell_syntax import parse_shell_call, program_names
from threadline.thread import result_blocks

# ruff: noqa: S608 - statements are made of our own words

_EDITS_SQL = "('write', 'edit', 'user-modified')"
_SELECT_CALLS = f"""SELECT c.entry_id, c.position, c.call, k.tool, c.outcome, c.exit_code, f.how, e.offset, e.line,
    e.length, x.path, r.offset, r.line, r.length
    FROM entries e
    CROSS JOIN call_rows c ON c.entry_id = e.entry_id
    JOIN tools k ON k.tool_id = c.tool_id
    JOIN entries r ON r.entry_id = c.result_entry_id
    JOIN transcripts x ON x.transcript_id = r.transcript_id
    LEFT JOIN file_rows f ON f.entry_id = c.entry_id AND f.position = c.position
    WHERE e.transcript_id = ? AND (f.how IN {_EDITS_SQL} OR (f.how IS NULL AND c.tool_id IN ({{tools}})))"""
_SELECT_LINKS = "SELECT entry_id, offset, line, length FROM entries WHERE transcript_id = ? AND kind = 'pr-link'"
_INSERT_OUTCOME = f"INSERT OR REPLACE INTO outcome_rows VALUES({', '.join('?' * 16)})"
_INSERT_LINES = "INSERT OR REPLACE INTO line_rows VALUES(?, ?, ?, ?, ?, ?, ?)"
_INSERT_PROGRAM = "INSERT OR IGNORE INTO program_rows VALUES(?, ?, ?)"
_ROW_TABLES = ("outcome_rows", "line_rows", "program_rows")


class TranscriptOutcomes(Struct, array_like=True, gc=False):
    """The rows of the outcomes of a transcript's calls, of the lines they changed, and of the programs they ran."""

    number: int
    outcomes: list[tuple[Any, ...]] = []
    lines: list[tuple[Any, ...]] = []
    programs: list[tuple[int, int, str]] = []


class OutcomeReader:
    """Extracts the outcomes of transcripts. Each process opens a connection of its own: it may be forked."""

    def __init__(self, index: Path) -> None:
        self._index = index
        self._process = 0
        self._connection: sqlite3.Connection | None = None
        self._statement = ""

    def __call__(self, transcript: UnstoredTranscript) -> TranscriptOutcomes:
        """Extract the outcomes of a transcript."""
        if self._connection is None or self._process != os.getpid():
            self._connection, self._process = open_read_only(self._index), os.getpid()
            tools = self._connection.execute("SELECT tool_id, tool FROM tools").fetchall()
            numbers = (str(number) for number, tool in tools if may_have_outcome(tool))
            self._statement = _SELECT_CALLS.format(tools=", ".join(numbers))
        rows = TranscriptOutcomes(transcript.number, [], [], [])
        path = str(transcript.path)
        with _LineReader() as read_line:
            for values in self._connection.execute(self._statement, (transcript.number,)).fetchall():
                _add_call(rows, _StoredCall(*values), path, read_line)
            for entry_id, *place in self._connection.execute(_SELECT_LINKS, (transcript.number,)).fetchall():
                entry = read_line(path, *place)
                row = link_row(entry) if isinstance(entry, PrLinkEntry) else None
                if row is not None:
                    rows.outcomes.append(_outcome_values((entry_id, NO_CALL_POSITION), 0, row))
        return rows


class _StoredCall(Struct, gc=False):
    """A call of the index that has a result: the places of both, and how it touched a file, if it did."""

    entry_id: int
    position: int
    call: str
    tool: str
    outcome: str
    exit_code: int | None
    how: str | None
    offset: int
    line: int
    length: int
    result_path: bytes
    result_offset: int
    result_line: int
    result_length: int


class _LineReader:
    """Reads entries at known places, mostly from one file."""

    def __init__(self) -> None:
        self._path = ""
        self._descriptor = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def __call__(self, path: str, offset: int, line: int, length: int) -> Entry | None:
        """The entry of a line; None if it cannot be read any more."""
        try:
            if path != self._path:
                self._close()
                self._descriptor, self._path = open_transcript(path), path
            entry = decode_object(read_at(self._descriptor, offset, offset + length), Place(path))[0]
        except (Error, OSError, ValueError, RecursionError):
            entry = None
        return entry if entry is not None else read_entry_at(path, offset, line)

    def _close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor, self._path = -1, ""


def _add_call(rows: TranscriptOutcomes, call: _StoredCall, path: str, read_line: _LineReader) -> None:
    result_path = decode_path(call.result_path)
    result = read_line(result_path, call.result_offset, call.result_line, call.result_length)
    if not isinstance(result, UserEntry | AssistantEntry):
        return
    raw = result.tool_use_result if isinstance(result, UserEntry) else None
    key = (call.entry_id, call.position)
    if call.how is not None:
        # The result of most edits contains the changed lines: the call need not be read.
        arguments = None if _has_patch(raw) else _read_input(call, path, read_line)
        lines = changed_lines(raw, arguments)
        if lines is not None:
            rows.lines.append((*key, lines.added, lines.removed, lines.added_sums, lines.removed_sums, lines.is_whole))
        return
    arguments = _read_input(call, path, read_line)
    commands = parse_shell_call(call.tool, arguments)
    rows.programs += ((*key, storable_text(name) or "") for name in program_names(commands))
    outcomes = extract_outcomes(
        call.tool,
        arguments,
        commands,
        lambda: extract_text(_result_content(result, call.call)),
        raw,
        Outcome(call.outcome),
        call.exit_code,
    )
    rows.outcomes += (_outcome_values(key, number, row) for number, row in enumerate(outcomes))


def _read_input(call: _StoredCall, path: str, read_line: _LineReader) -> Any:
    return call_input(read_line(path, call.offset, call.line, call.length), call.call)


def _result_content(entry: UserEntry | AssistantEntry, call: str) -> Any:
    """What a call returned. A result that names no call, or another name of it, is the last of its entry."""
    blocks = list(result_blocks(entry))
    answers = [block for block in blocks if storable_text(block.tool_use_id) == call]
    candidates = answers or [block for block in blocks if not block.tool_use_id] or blocks
    return candidates[-1].content if candidates else None


def _outcome_values(key: CallKey, number: int, row: OutcomeRow) -> tuple[Any, ...]:
    """The row with texts that can be encoded: a lone surrogate cannot."""
    action, label, evidence = (storable_text(text) or "" for text in (row.action, row.label, row.evidence))
    texts = (str(row.kind), action, label, storable_text(row.ref), storable_text(row.branch), evidence)
    counts = (row.files, row.added, row.removed, row.passed, row.failed, row.skipped, row.is_ok)
    return *key, number, *texts, *counts


def _has_patch(raw: Any) -> bool:
    return type(raw) is dict and bool(raw.get("structuredPatch"))


def store_outcomes(index: Path, generation: str, transcripts: Sequence[TranscriptOutcomes]) -> bool:
    """Store the outcomes of transcripts, as they were in this generation of the index.

    Returns False if nothing was stored, because the index has changed since, or cannot be written now.
    """
    try:
        with open_for_writing(index) as connection:
            connection.execute("BEGIN IMMEDIATE")
            if read_generation(connection) != generation:
                connection.execute("ROLLBACK")
                return False
            for transcript in transcripts:
                _write(connection, transcript)
            connection.execute("COMMIT")
    except (IndexBusy, Unreadable):
        return False
    return True


def _write(connection: sqlite3.Connection, transcript: TranscriptOutcomes) -> None:
    """Replace what is stored about a transcript."""
    number = (transcript.number,)
    for table in _ROW_TABLES:
        connection.execute(
            f"DELETE FROM {table} WHERE entry_id IN (SELECT entry_id FROM entries WHERE transcript_id = ?)", number
        )
    connection.executemany(_INSERT_OUTCOME, transcript.outcomes)
    connection.executemany(_INSERT_LINES, transcript.lines)
    numbers = name_ids(connection, "programs", "program", _names(transcript.programs))
    connection.executemany(_INSERT_PROGRAM, [(*key, numbers[name]) for *key, name in transcript.programs])
    connection.execute("INSERT OR REPLACE INTO outcome_transcripts VALUES(?)", number)


def _names(programs: Iterable[tuple[int, int, str]]) -> Iterator[str]:
    return (name for _, _, name in programs)
