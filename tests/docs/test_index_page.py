"""docs/index.md describes exactly the tables, views and columns of a real index."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest
from tests.docs.pages import DOCS, sections, strip_markup
from tools.demo import write

from threadline.find import homes
from threadline.index import open_read_only, refresh_index
from threadline.index.store import VERSION

PAGE = DOCS / "index.md"
_FULL_TEXT_PREFIX = "text_"


@pytest.fixture(scope="module")
def columns(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """The columns of each table and view of a real index, as SQLite lists them."""
    folder = tmp_path_factory.mktemp("schema")
    write(folder / "home", megabytes=0.2)
    refresh_index(folder / "index.sqlite", homes(folder / "home"))
    with closing(open_read_only(folder / "index.sqlite")) as connection:
        names = [
            name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type IN ('table','view')")
        ]
        return {
            name: [column for (column,) in connection.execute("SELECT name FROM pragma_table_info(?)", (name,))]
            for name in names
            if not name.startswith((_FULL_TEXT_PREFIX, "sqlite_"))
        }


def documented_tables() -> Iterator[tuple[str, list[dict[str, str]]]]:
    """Each table of the page: its name, and its rows."""
    for section in sections(PAGE).values():
        if section.level == 3:
            yield section.title, section.table


def test_page_lists_every_table_and_column(columns: dict[str, list[str]]) -> None:
    """Each table and view has a heading with its columns in order, and the page has no others."""
    assert {name: [strip_markup(row["column"]) for row in rows] for name, rows in documented_tables()} == columns


def test_every_column_has_a_meaning() -> None:
    """Each column has a description."""
    assert [(name, row["column"]) for name, rows in documented_tables() for row in rows if not row["meaning"]] == []


def test_page_names_the_schema_version() -> None:
    """The page names the current version of the schema."""
    assert sections(PAGE)["The schema"].text.strip().startswith(f"Version {VERSION}.")
