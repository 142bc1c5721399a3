"""All that people may query, as Parquet files: one for each table and view, all of one moment."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from threadline.cli.sql_asking import HEAP
from threadline.cli.sql_kinds import Kind, declared
from threadline.cli.sql_out import beside, move
from threadline.cli.sql_parquet import CHUNK, library, write_parquet
from threadline.cli.sql_schema import columns
from threadline.errors import BadQuery
from threadline.index.schema import PRIVATE

if TYPE_CHECKING:
    from threadline.archive import Archive

_FULL_TEXT = "text"


def public() -> dict[str, dict[str, Kind]]:
    """The tables and views that hold something for people, and what kinds their columns have, as far as is known.

    Full text is none of them: it finds, and holds nothing.
    """
    tables = groupby(columns(), key=lambda row: row["table"])
    return {
        name: {row["column"]: declared(row["column"], row["type"]) for row in rows}
        for name, rows in tables
        if name not in PRIVATE and name != _FULL_TEXT
    }


def targets(folder: Path) -> list[Path]:
    """The files that an export to this folder would write."""
    return [folder / f"{name}.parquet" for name in public()]


def export_to(archive: Archive, folder: Path, seconds: float, *, force: bool) -> list[dict[str, Any]]:
    """Write all tables and views to the folder, which is made if it is not there; a row for each of them.

    Raises:
        BadQuery: one of the files is there already, and there is no force; or the folder cannot be written to.
        Missing: pyarrow is not installed.
        Unreadable: the index is damaged or not there.
    """
    library("pyarrow", "frames")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadQuery(f"The folder {str(folder)!r} cannot be made: {error.strerror or error}.") from None
    with beside(folder, "threadline") as drafts:
        rows = list(export(archive, drafts, public(), seconds))
        for row in rows:
            target = folder / f"{row['table']}.parquet"
            move(drafts / target.name, target, force=force)
            row["path"] = str(target)
    return rows


def export(archive: Archive, folder: Path, names: Iterable[str], seconds: float) -> Iterator[dict[str, Any]]:
    """Write the tables of these names into the folder; each as it is done, and how many rows it has."""
    kinds = public()
    with archive.asking(heap=HEAP) as ask:
        for name in names:
            path = folder / f"{name}.parquet"
            wanted = ", ".join(f'"{column}"' for column in kinds[name])
            answer = ask(f'SELECT {wanted} FROM "{name}"', seconds)  # noqa: S608 - the schema's own names
            rows = write_parquet(path, answer.columns, list(kinds[name].values()), answer.chunks(CHUNK))
            yield {"table": name, "rows": rows, "bytes": path.stat().st_size}
