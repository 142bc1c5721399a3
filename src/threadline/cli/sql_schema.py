"""The schema of the index for people: every table and view, column by column, in the words of the schema itself.

A comment behind a column is the column's, one behind the opening line the table's. A view lists its columns by name, so
that it can have them, too::

    CREATE VIEW said( -- entries with all that is known of them
        entry_id, -- the entry's number
        line -- the number of its line
    ) AS SELECT …
"""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from typing import Any

from threadline.index.schema import TABLES, VIEWS

_COLUMN = re.compile(r"^\s*(\w+)\b[^\n]*?--\s*(.+?)\s*$", re.MULTILINE)
_ABOUT = re.compile(r"\A\s*CREATE\b[^\n]*?--\s*(.+?)\s*$", re.MULTILINE)
_FULL_TEXT = "text"
_OF_FIELDS = {
    "title": "titles and summaries of sessions",
    "prompt": "what a person typed",
    "reply": "what the model answered",
    "thinking": "what it thought",
    "command": "shell commands",
    "path": "paths of files",
    "input": "other input of tools",
    "result": "what tools gave back",
    "injected": "what the program put in by itself",
}


def columns() -> list[dict[str, Any]]:
    """A row for each column, as the schema's own text tells it."""
    with closing(sqlite3.connect(":memory:")) as connection:
        for made in (*TABLES.values(), *VIEWS.values()):
            connection.execute(made)
        return [row for name in (*TABLES, *VIEWS) for row in _columns(connection, name)]


def about() -> dict[str, str]:
    """What each table and view holds, in a few words, where its opening line says it."""
    found = {name: _ABOUT.search(made) for name, made in (TABLES | VIEWS).items()}
    told = {name: said[1] for name, said in found.items() if said is not None}
    return {_FULL_TEXT: "full text: text MATCH 'word' finds, and its rowid is the entry_id", **told}


def _columns(connection: sqlite3.Connection, table: str) -> list[dict[str, Any]]:
    comments = dict(_COLUMN.findall((TABLES | VIEWS)[table]))
    if table == _FULL_TEXT:
        comments = _OF_FIELDS
    kind = "view" if table in VIEWS else "table"
    found = connection.execute("SELECT name, type FROM pragma_table_info(?)", (table,))
    return [
        {"table": table, "kind": kind, "column": column, "type": typed or None, "comment": comments.get(column)}
        for column, typed in found
    ]
