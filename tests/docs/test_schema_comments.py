"""`threadline sql --schema` describes every table, view and column."""

from __future__ import annotations

from tests.subtests import for_each

from threadline.index import TABLES, VIEWS, schema_columns, table_descriptions


@for_each("name", [*TABLES, *VIEWS])
def test_every_column_has_a_comment(name: str) -> None:
    """Each column of each table and view has a comment in the SQL that creates it."""
    assert [row["column"] for row in schema_columns() if row["table"] == name and not row["comment"]] == []


def test_every_view_has_a_comment() -> None:
    """Each view has a comment after its first line."""
    assert set(VIEWS) - set(table_descriptions()) == set()
