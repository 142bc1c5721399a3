"""Extract commits, pushes, pull requests, test runs, changed lines and program names from calls, and write them.

The rules are those of `threadline.insight.outcomes`. Rows are keyed by their call; a pull request that Claude Code
links by itself, without a call, is keyed by its entry.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from threadline.index.calls import NO_CALL_POSITION, AnsweredCall, CallKey, EntryIds
from threadline.index.store import name_ids, storable_text
from threadline.insight import (
    ChangedLines,
    changed_lines,
    extract_outcomes,
    link_row,
    may_have_outcome,
    parse_shell_call,
)
from threadline.model.entries import PrLinkEntry, UserEntry
from threadline.model.outcomes import OutcomeRow
from threadline.model.state import EvidenceKind
from threadline.model.text import extract_text
from threadline.shell_syntax import program_names

_INSERT_OUTCOME = f"INSERT OR REPLACE INTO outcome_rows VALUES({', '.join('?' * 16)})"
_INSERT_LINES = "INSERT OR REPLACE INTO line_rows VALUES(?, ?, ?, ?, ?, ?, ?)"
_INSERT_PROGRAM = "INSERT OR IGNORE INTO program_rows VALUES(?, ?, ?)"
_EDITS = frozenset((EvidenceKind.WRITE, EvidenceKind.EDIT, EvidenceKind.USER_MODIFIED))
TABLES_BY_CALL = ("outcome_rows", "line_rows", "program_rows")
"""The tables whose rows are keyed by a call."""


class StoredOutcome(Struct, array_like=True, gc=False):
    """An outcome of a call, or of the entry at that position if there is no call."""

    row: OutcomeRow
    number: int
    call: str | None = None
    at: int = 0


class OutcomeRows(Struct, array_like=True, gc=False):
    """The rows of outcomes, changed lines and programs, as workers send them to the writer."""

    outcomes: list[StoredOutcome] = []
    lines: list[tuple[str, ChangedLines]] = []
    programs: list[tuple[str, list[str]]] = []

    def write(self, connection: sqlite3.Connection, calls: Mapping[str, CallKey], ids: EntryIds) -> None:
        """Write them. `calls` are the keys of the calls."""
        connection.executemany(_INSERT_OUTCOME, [_outcome_values(stored, calls, ids) for stored in self.outcomes])
        connection.executemany(
            _INSERT_LINES,
            [
                (*calls[call], lines.added, lines.removed, lines.added_sums, lines.removed_sums, lines.is_whole)
                for call, lines in self.lines
            ],
        )
        numbers = name_ids(connection, "programs", "program", (name for _, names in self.programs for name in names))
        connection.executemany(
            _INSERT_PROGRAM, [(*calls[call], numbers[name]) for call, names in self.programs for name in names]
        )


def _outcome_values(stored: StoredOutcome, calls: Mapping[str, CallKey], ids: EntryIds) -> tuple[Any, ...]:
    key = calls[stored.call] if stored.call is not None else (ids.of(stored.at), NO_CALL_POSITION)
    row = stored.row
    texts = (row.kind, row.action, row.label, row.ref, row.branch, row.evidence)
    counts = (row.files, row.added, row.removed, row.passed, row.failed, row.skipped, row.is_ok)
    return *key, stored.number, *texts, *counts


class OutcomeFold:
    """Collects outcomes while entries are added."""

    def __init__(self) -> None:
        self.rows = OutcomeRows()

    def answered(self, answered_call: AnsweredCall, touched: EvidenceKind | None) -> None:
        """Add the outcomes of an answered call. `touched` is how it touched a file, if it did."""
        call, tool, entry = answered_call.call, answered_call.tool, answered_call.entry
        if answered_call.is_again:
            self._remove(call)
        raw = entry.tool_use_result if type(entry) is UserEntry else None
        if touched is not None:
            if touched in _EDITS:
                lines = changed_lines(raw, None if _has_patch(raw) else answered_call.input)
                if lines is not None:
                    self.rows.lines.append((call, lines))
            return
        if not may_have_outcome(tool):
            return
        arguments, ending = answered_call.input, answered_call.ending
        commands = parse_shell_call(tool, arguments)
        if commands and (names := program_names(commands)):
            self.rows.programs.append((call, [storable_text(name) or "" for name in names]))
        rows = extract_outcomes(
            tool,
            arguments,
            commands,
            lambda: extract_text(answered_call.block.content),
            raw,
            ending.outcome,
            ending.exit_code,
        )
        self.rows.outcomes += (StoredOutcome(_storable_row(row), number, call) for number, row in enumerate(rows))

    def linked(self, at: int, entry: PrLinkEntry) -> None:
        """Add a pull request that Claude Code linked to the session."""
        row = link_row(entry)
        if row is not None:
            self.rows.outcomes.append(StoredOutcome(_storable_row(row), 0, None, at))

    def _remove(self, call: str) -> None:
        rows = self.rows
        rows.outcomes = [stored for stored in rows.outcomes if stored.call != call]
        rows.lines = [pair for pair in rows.lines if pair[0] != call]
        rows.programs = [pair for pair in rows.programs if pair[0] != call]


def _storable_row(row: OutcomeRow) -> OutcomeRow:
    """The row with texts that can be encoded: a lone surrogate cannot."""
    action, label, evidence = (storable_text(text) or "" for text in (row.action, row.label, row.evidence))
    ref, branch = storable_text(row.ref), storable_text(row.branch)
    return replace(row, action=action, label=label, ref=ref, branch=branch, evidence=evidence)


def _has_patch(raw: Any) -> bool:
    return type(raw) is dict and bool(raw.get("structuredPatch"))


def delete_outcomes(connection: sqlite3.Connection, key: CallKey) -> None:
    """Delete the outcomes of a call, because another of its results counts now."""
    for statement in _deletions():
        connection.execute(statement, key)


def _deletions() -> Iterator[str]:
    return (f"DELETE FROM {table} WHERE entry_id = ? AND position = ?" for table in TABLES_BY_CALL)  # noqa: S608 - our own names
