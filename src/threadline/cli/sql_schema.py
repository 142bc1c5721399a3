"""The schema of the index for people: every table and view, column by column."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from typing import Any

from threadline.index.schema import FIELDS, TABLES, VIEWS

_COMMENTED = re.compile(r"^\s*(\w+)\s[^\n]*?--\s*(.+?)\s*$", re.MULTILINE)
_OF_VIEWS = "view"


def columns() -> list[dict[str, Any]]:
    """A row for each column, as the schema's own text tells it."""
    with closing(sqlite3.connect(":memory:")) as connection:
        for made in (*TABLES.values(), *VIEWS.values()):
            connection.execute(made)
        return [row for name in (*TABLES, *VIEWS) for row in _columns(connection, name)]


def _columns(connection: sqlite3.Connection, table: str) -> list[dict[str, Any]]:
    comments = dict(_COMMENTED.findall(TABLES.get(table, "")))
    if table == "text":
        comments = dict.fromkeys(FIELDS, "full text: text MATCH 'word'; its rowid is the entry_id")
    kind = _OF_VIEWS if table in VIEWS else "table"
    found = connection.execute("SELECT name, type FROM pragma_table_info(?)", (table,))
    return [
        {"table": table, "kind": kind, "column": column, "type": typed or None, "comment": comments.get(column)}
        for column, typed in found
    ]
