"""The page about the index names every table, view and column of a real one, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest
from tests.docs.pages import DOCS, sections, unquoted
from tools.demo import write

from threadline.find import homes
from threadline.index import open_read_only, refresh_index
from threadline.index.store import VERSION

PAGE = DOCS / "index.md"
_OF_FULL_TEXT = "text_"


@pytest.fixture(scope="module")
def columns(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """The columns of each table and view of an index that was really made, as SQLite tells them."""
    folder = tmp_path_factory.mktemp("schema")
    write(folder / "home", megabytes=0.2)
    refresh_index(folder / "index.sqlite", homes(folder / "home"))
    with closing(open_read_only(folder / "index.sqlite")) as connection:
        named = [
            name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type IN ('table','view')")
        ]
        return {
            name: [column for (column,) in connection.execute("SELECT name FROM pragma_table_info(?)", (name,))]
            for name in named
            if not name.startswith((_OF_FULL_TEXT, "sqlite_"))
        }


def _told() -> Iterator[tuple[str, list[dict[str, str]]]]:
    """Each table of the page: its name, and its rows."""
    for section in sections(PAGE).values():
        if section.level == 3:
            yield section.title, section.table


def test_every_table_and_column_is_on_the_page(columns: dict[str, list[str]]) -> None:
    """Each table and view has a heading with its columns in their order; the page tells of no others."""
    assert {name: [unquoted(row["column"]) for row in rows] for name, rows in _told()} == columns


def test_every_column_has_a_meaning() -> None:
    """No column is named without a word about it."""
    assert [(name, row["column"]) for name, rows in _told() for row in rows if not row["meaning"]] == []


def test_the_page_is_of_this_version() -> None:
    """The page says which version of the schema it tells of."""
    assert sections(PAGE)["The schema"].text.strip().startswith(f"Version {VERSION}.")
