"""A small archive to search: transcripts made of parts, indexed, and read one entry after the other beside that."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.make import Part, Pen, transcript, write

from threadline.find import homes
from threadline.index import open_read_only, refresh_index
from threadline.search import search
from threadline.search.documents import ENTRY_COLUMNS, ENTRY_JOINS, DocumentReader, EntryRow
from threadline.search.match import matches
from threadline.search.parse import parse_query

FIRST, SECOND = "5e551011-0000-4000-8000-000000000001", "5e551022-0000-4000-8000-000000000002"


class Archive:
    """A home in a folder, and its index."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.index = folder / "index.sqlite"
        (self.home / "projects").mkdir(parents=True, exist_ok=True)

    def write(self, *parts: Part, session: str = FIRST, project: str = "-work-app", pen: Pen | None = None) -> Path:
        """A session's transcript."""
        path = self.home / "projects" / project / f"{session}.jsonl"
        return write(path, *transcript(*parts, pen=pen or Pen(session)))

    def refresh(self) -> None:
        """Bring the index up to date."""
        refresh_index(self.index, homes(os.fspath(self.home)), jobs=1)

    @contextmanager
    def opened(self) -> Iterator[sqlite3.Connection]:
        """The index, up to date."""
        self.refresh()
        connection = open_read_only(self.index)
        try:
            yield connection
        finally:
            connection.close()

    def places(self, text: str) -> set[tuple[str, int]]:
        """The session and line of everything that a search finds."""
        with self.opened() as connection:
            return found(connection, text)


def found(connection: sqlite3.Connection, text: str) -> set[tuple[str, int]]:
    """The session and line of everything that a search finds."""
    hits = search(connection, text, limit=None, every=True).hits
    return {(Path(hit.place.transcript).stem, hit.place.line) for hit in hits}


def scanned(connection: sqlite3.Connection, text: str) -> set[tuple[str, int]]:
    """The same, found by reading every entry and asking each; copies are not told apart."""
    query = parse_query(text)
    rows = connection.execute(f"SELECT e.entry_id, 0.0, {ENTRY_COLUMNS} FROM entries e {ENTRY_JOINS}").fetchall()  # noqa: S608 - our own names
    places = set()
    with DocumentReader(connection, query) as documents:
        for row in map(EntryRow._make, rows):
            entry = documents.entry(row)
            assert entry is not None
            if matches(query, documents.whole(row, entry)):
                places.add((Path(row.transcript).stem, row.line))
    return places
