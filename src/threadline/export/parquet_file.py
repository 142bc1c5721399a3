"""Write rows to a Parquet file in groups of bounded size."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from threadline.model.tables import import_library
from threadline.model.text import replace_surrogates

_GROUP_SIZE = 8 * 1024 * 1024
_GROUP_ROWS = 1000


class ParquetFile:
    """A Parquet file that rows are added to. `columns` are types of pyarrow, or their names.

    Raises:
        Missing: pyarrow is not installed.
    """

    def __init__(self, path: Path, columns: Mapping[str, Any]) -> None:
        self._arrow = import_library("pyarrow", "frames")
        types = {
            name: getattr(self._arrow, type_)() if isinstance(type_, str) else type_ for name, type_ in columns.items()
        }
        self.path = path
        self.rows = 0
        self._schema = self._arrow.schema(types)
        self._writer = import_library("pyarrow.parquet", "frames").ParquetWriter(path, self._schema, compression="zstd")
        self._pending: list[dict[str, Any]] = []
        self._size = 0

    def add(self, row: dict[str, Any], size: int) -> None:
        """Add a row of about this size. Columns that it does not have are null."""
        self._pending.append(row)
        self._size += size
        self.rows += 1
        if self._size > _GROUP_SIZE or len(self._pending) >= _GROUP_ROWS:
            self._flush()

    def close(self) -> None:
        """Write the remaining rows and complete the file."""
        self._flush()
        self._writer.close()

    def _flush(self) -> None:
        if self._pending:
            rows = replace_surrogates(self._pending)
            self._writer.write_table(self._arrow.Table.from_pylist(rows, schema=self._schema))
        self._pending, self._size = [], 0
