"""A small indexed home to search, and a scan of all its entries to compare with."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.transcripts import Part, Pen, transcript, write

from threadline.find import homes
from threadline.index import Index, refresh_index
from threadline.search import search
from threadline.search.documents import DocumentReader
from threadline.search.match import matches
from threadline.search.query import parse_query

FIRST, SECOND = "5e551011-0000-4000-8000-000000000001", "5e551022-0000-4000-8000-000000000002"


class Archive:
    """A home in a folder, and its index."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.index = folder / "index.sqlite"
        (self.home / "projects").mkdir(parents=True, exist_ok=True)

    def write(self, *parts: Part, session: str = FIRST, project: str = "-work-app", pen: Pen | None = None) -> Path:
        """Write a session's transcript."""
        path = self.home / "projects" / project / f"{session}.jsonl"
        return write(path, *transcript(*parts, pen=pen or Pen(session)))

    def refresh(self) -> None:
        """Bring the index up to date."""
        refresh_index(self.index, homes(os.fspath(self.home)), jobs=1)

    @contextmanager
    def opened(self) -> Iterator[Index]:
        """Open the refreshed index."""
        self.refresh()
        with Index.open(self.index) as index:
            yield index

    def places(self, text: str) -> set[tuple[str, int]]:
        """The session and line of every search result."""
        with self.opened() as index:
            return search_places(index, text)


def search_places(index: Index, text: str) -> set[tuple[str, int]]:
    """The session and line of every search result."""
    hits = search(index, text, limit=None, every=True).hits
    return {(Path(hit.place.transcript).stem, hit.place.line) for hit in hits}


def scan_places(index: Index, text: str) -> set[tuple[str, int]]:
    """The same, found by reading and matching every entry. Copies are included."""
    query = parse_query(text)
    places = set()
    with DocumentReader(index, query) as documents:
        for row in index.entries.all_rows():
            entry = documents.entry(row)
            assert entry is not None
            if matches(query, documents.full_document(row, entry)):
                places.add((Path(row.transcript).stem, row.line))
    return places
