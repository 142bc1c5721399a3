"""The schema tells of itself: `threadline sql --schema` says a word about every table, view and column."""

from __future__ import annotations

from tests.subtests import for_each

from threadline.cli.sql_answers import schema_columns, table_descriptions
from threadline.index import TABLES, VIEWS


@for_each("name", [*TABLES, *VIEWS])
def test_every_column_has_a_comment(name: str) -> None:
    """Each column of each table and view has a comment in the statement that makes it."""
    assert [row["column"] for row in schema_columns() if row["table"] == name and not row["comment"]] == []


def test_every_view_says_what_it_shows() -> None:
    """Each view has a comment behind its opening line."""
    assert set(VIEWS) - set(table_descriptions()) == set()
