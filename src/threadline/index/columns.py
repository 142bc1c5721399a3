"""The columns of the index's tables and views: their comments in the schema's source, and their types.

`threadline sql --schema`, Parquet exports and the tables of a lake share these definitions.
"""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from enum import Enum
from typing import Any

from threadline.index.schema import TABLES, VIEWS

_COLUMN_COMMENT = re.compile(r"^\s*(\w+)\b[^\n]*?--\s*(.+?)\s*$", re.MULTILINE)
_TABLE_COMMENT = re.compile(r"\A\s*CREATE\b[^\n]*?--\s*(.+?)\s*$", re.MULTILINE)
_FULL_TEXT = "text"
_FULL_TEXT_COMMENTS = {
    "title": "titles and summaries of sessions",
    "prompt": "prompts that a person typed",
    "reply": "the model's replies",
    "thinking": "the model's thinking",
    "command": "shell commands",
    "path": "file paths",
    "input": "other tool input",
    "result": "tool results",
    "injected": "text that Claude Code inserted itself",
}


def schema_columns() -> list[dict[str, Any]]:
    """One row per column of every table and view, from the schema's source."""
    with closing(sqlite3.connect(":memory:")) as connection:
        for statement in (*TABLES.values(), *VIEWS.values()):
            connection.execute(statement)
        return [row for name in (*TABLES, *VIEWS) for row in _table_columns(connection, name)]


def table_descriptions() -> dict[str, str]:
    """The comments on tables and views in the schema's source."""
    comments = {name: _TABLE_COMMENT.search(statement) for name, statement in (TABLES | VIEWS).items()}
    descriptions = {name: match[1] for name, match in comments.items() if match is not None}
    return {_FULL_TEXT: "full text: query with text MATCH 'word'; rowid is the entry_id", **descriptions}


def _table_columns(connection: sqlite3.Connection, table: str) -> list[dict[str, Any]]:
    comments = dict(_COLUMN_COMMENT.findall((TABLES | VIEWS)[table]))
    if table == _FULL_TEXT:
        comments = _FULL_TEXT_COMMENTS
    kind = "view" if table in VIEWS else "table"
    columns = connection.execute("SELECT name, type FROM pragma_table_info(?)", (table,))
    return [
        {"table": table, "kind": kind, "column": column, "type": declared or None, "comment": comments.get(column)}
        for column, declared in columns
    ]


TIME_COLUMNS = frozenset({"timestamp", "first", "last", "started", "ended", "began"})
"""The columns of the schema that contain times."""


class ColumnKind(Enum):
    """The type of a column. Each includes NULL."""

    NOTHING = "nothing"
    INTEGER = "integer"
    REAL = "real"
    AMOUNT = "amount"
    TIME = "time"
    TEXT = "text"
    BLOB = "blob"


_KIND_OF_DECLARATION = {
    "INTEGER": ColumnKind.INTEGER,
    "REAL": ColumnKind.REAL,
    "TEXT": ColumnKind.TEXT,
    "BLOB": ColumnKind.BLOB,
}


_KIND_OF_NAME = {"amount": ColumnKind.AMOUNT, **dict.fromkeys(TIME_COLUMNS, ColumnKind.TIME)}


def declared_kind(column: str, declared: str | None) -> ColumnKind:
    """The kind that the schema declares. Amounts and times are stored as text and recognised by their names."""
    return _KIND_OF_NAME.get(column) or _KIND_OF_DECLARATION.get(declared or "", ColumnKind.NOTHING)
