"""Asking the index in SQL from the command line: bounded memory, and answers that go into files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from threadline.archive import Archive
    from threadline.index import asking

# Of all that SQLite itself holds. It cannot be taken back, so it leaves room for whatever else asks in this process.
HEAP = 768 * 1024 * 1024
"""How many bytes SQLite may hold while it answers."""


class Answer:
    """An answer that can be written to a Parquet file."""

    def __init__(self, told: asking.Answer) -> None:
        self._told = told
        self.columns = told.columns

    def __iter__(self) -> Iterator[Sequence[Any]]:
        return iter(self._told)

    def write_parquet(self, path: Path) -> int:
        """All rows into a Parquet file; how many there were.

        Raises:
            Missing: pyarrow is not installed.
        """
        from threadline.cli.sql_kinds import Kind
        from threadline.cli.sql_parquet import CHUNK, write_parquet

        return write_parquet(path, self.columns, [Kind.NOTHING] * len(self.columns), self._told.chunks(CHUNK))


@contextmanager
def asked(archive: Archive, question: str, seconds: float) -> Iterator[Answer]:
    """Ask the index.

    Raises:
        BadQuery: it cannot be understood, wants more than to read, or takes too long.
        Unreadable: the index is damaged or not there.
    """
    with archive.asking(heap=HEAP) as ask:
        yield Answer(ask(question, seconds))
