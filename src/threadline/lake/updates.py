"""Replace the rows of sources in all tables, and then what depends on them: charges, copies of calls, and titles.

A message is charged once, a call counts once, and a summary may title a session of another machine. So a change of one
source may change rows of others. Only rows that share keys with the changed ones are computed again.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import date
from typing import Any

from msgspec import Struct

from threadline import __version__
from threadline.account import shipped_rates
from threadline.lake.accounting import (
    COPY_COLUMNS,
    KEY_COLUMNS,
    SIGHTING_COLUMNS,
    affected_transcripts,
    charge_rows,
    filter_rows,
    find_copies,
)
from threadline.lake.bronze import make_id
from threadline.lake.iceberg import Catalogue
from threadline.lake.tables import (
    CALL_COPIES,
    CALLS,
    CHARGES,
    SIGHTINGS,
    TABLES,
    NewFile,
    Removal,
    arrow_schema,
    column_names,
    write_rows,
)
from threadline.lake.titles import has_summaries, summarized_entries, update_titles
from threadline.model.tables import import_library


def replace_sources(
    catalogue: Catalogue, sources: Collection[str], files: Sequence[NewFile], properties: Mapping[str, str]
) -> list[NewFile]:
    """Replace the rows of sources by those in new files, or remove them; return the new files of charges."""
    pa = import_library("pyarrow", "lake")
    before = catalogue.scan(SIGHTINGS, KEY_COLUMNS)
    replaced = filter_rows(before, "source", sources)
    removal = Removal("source", sorted(set(replaced.column("source").to_pylist())), _days(replaced))
    for table in TABLES:
        if table != CHARGES:
            paths = [file.path for file in files if file.table == table]
            catalogue.replace_rows(table, paths, properties, removal)
    new = [catalogue.bucket.location(file.path) for file in files if file.table == SIGHTINGS]
    kept = filter_rows(before, "source", sources, invert=True)
    after = pa.concat_tables([kept, catalogue.read_files(SIGHTINGS, new, KEY_COLUMNS)])
    affected = _find_affected(before, after, sources)
    charges = _update_charges(catalogue, affected, properties)
    _update_copies(catalogue, affected, properties)
    if has_summaries(before) or has_summaries(after):
        update_titles(catalogue, sources, summarized_entries(before, sources), properties)
    return charges


class _AffectedTranscripts(Struct, frozen=True):
    """Transcripts whose charges and calls may differ after a change.

    `old` are those that the tables had before, and `old_days` the days of their rows. `new_days` are the days of their
    rows now, and `sighting_days` those of their rows in `sightings`.
    """

    transcripts: frozenset[int]
    old: list[int]
    old_days: list[date]
    new_days: list[date]
    sighting_days: list[date]


def _find_affected(before: Any, after: Any, sources: Collection[str]) -> _AffectedTranscripts:
    """What a change of sources affects. `before` and `after` are the keys of `sightings` before and after it."""
    pa = import_library("pyarrow", "lake")
    compute = import_library("pyarrow.compute", "lake")
    affected = affected_transcripts(pa.concat_tables([before, after]), sources)
    old, new = (filter_rows(rows, "transcript_id", affected) for rows in (before, after))
    sighting_days = compute.unique(new.column("day")).to_pylist()
    return _AffectedTranscripts(
        frozenset(affected), old.column("transcript_id").to_pylist(), _days(old), _days(new), sighting_days
    )


def _days(rows: Any) -> list[date]:
    """The days on which the sources of rows of `sightings` have rows in any table."""
    return sorted({day for days in rows.column("days").to_pylist() for day in days})


def _update_charges(
    catalogue: Catalogue, affected: _AffectedTranscripts, properties: Mapping[str, str]
) -> list[NewFile]:
    """Compute the charges of affected transcripts again; return the new files."""
    rows = catalogue.scan(SIGHTINGS, SIGHTING_COLUMNS, affected.sighting_days)
    rows = filter_rows(rows, "transcript_id", affected.transcripts)
    charges = charge_rows(rows.to_pylist(), shipped_rates())
    name = make_id(__version__, *map(str, sorted(affected.transcripts)), *properties.values())
    files = write_rows(catalogue.bucket, CHARGES, name, charges)
    removal = Removal("transcript_id", affected.old, affected.old_days)
    catalogue.replace_rows(CHARGES, [file.path for file in files], properties, removal)
    return files


def _update_copies(catalogue: Catalogue, affected: _AffectedTranscripts, properties: Mapping[str, str]) -> None:
    """Move calls between `calls` and `call_copies`, so that `calls` has each call once.

    The charges have to be up to date: a call belongs to the transcript that its message is charged to. Transcripts that
    share calls are affected together.
    """
    pa = import_library("pyarrow", "lake")

    def scan(name: str, columns: Sequence[str]) -> Any:
        return filter_rows(catalogue.scan(name, columns, affected.new_days), "transcript_id", affected.transcripts)

    calls, call_copies = scan(CALLS, COPY_COLUMNS), scan(CALL_COPIES, COPY_COLUMNS)
    copies = find_copies(pa.concat_tables([calls, call_copies]), scan(CHARGES, ("message", "transcript_id")))
    entries_of_copies = {entry for entry, _ in copies}
    misplaced = [
        row
        for name, rows in ((CALLS, filter_rows(calls, "entry_id", entries_of_copies)), (CALL_COPIES, call_copies))
        for row in rows.select(["call", "entry_id", "day"]).to_pylist()
        if ((row["entry_id"], row["call"]) in copies) != (name == CALL_COPIES)
    ]
    if not misplaced:
        return
    days, entries = ({row[name] for row in misplaced} for name in ("day", "entry_id"))
    rows = [
        row
        for name in (CALLS, CALL_COPIES)
        for row in filter_rows(catalogue.scan(name, column_names(name), days), "entry_id", entries).to_pylist()
    ]
    id_ = make_id(__version__, *properties.values(), *sorted(map(str, entries)))
    removal = Removal("entry_id", sorted(entries), sorted(days))
    for name in (CALLS, CALL_COPIES):
        kept = [row for row in rows if ((row["entry_id"], row["call"]) in copies) == (name == CALL_COPIES)]
        table = pa.Table.from_pylist(kept, schema=arrow_schema(name))
        files = [file.path for file in write_rows(catalogue.bucket, name, id_, table)]
        catalogue.replace_rows(name, files, properties, removal)
