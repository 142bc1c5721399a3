"""Asking the index in SQL from the command line: bounded memory, and answers that go into files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from threadline.index import asking
from threadline.index.asking import reading

# Of all that SQLite itself holds. It cannot be taken back, so it leaves room for whatever else asks in this process.
HEAP = 768 * 1024 * 1024
"""How many bytes SQLite may hold while it answers."""


class Answer(asking.Answer):
    """An answer that can be written to a Parquet file."""

    def write_parquet(self, path: Path) -> int:
        """All rows into a Parquet file; how many there were.

        Raises:
            Missing: pyarrow is not installed.
        """
        from threadline.cli.sql_kinds import Kind
        from threadline.cli.sql_parquet import CHUNK, write_parquet

        return write_parquet(path, self.columns, [Kind.NOTHING] * len(self.columns), self.chunks(CHUNK))


@contextmanager
def asked(index: Path, question: str, seconds: float) -> Iterator[Answer]:
    """Ask the index.

    Raises:
        BadQuery: it cannot be understood, wants more than to read, or takes too long.
        Unreadable: the index is damaged or not there.
    """
    with reading(index, HEAP) as connection:
        yield Answer(connection, question, seconds)
