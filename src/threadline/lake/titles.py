"""Title sessions by summaries in other transcripts, of any machine, with the rule of one machine.

Before version 2.0, Claude Code wrote the summary of a conversation to another session's transcript, and named one of
the conversation's entries. A task knows the files of one session. So after the rows of a change are in the tables, the
driver searches the entries for those that summaries name: all entries if summaries changed, otherwise the new ones.
Without summaries, nothing is searched.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import date
from typing import Any

import msgspec
from msgspec import Struct

from threadline import __version__
from threadline.lake.bronze import make_id
from threadline.lake.iceberg import Catalogue
from threadline.lake.tables import SESSIONS, SIGHTINGS, Removal, arrow_schema, column_names, write_rows
from threadline.model.tables import import_library
from threadline.model.titles import SummaryRef, TitleSource, choose_summary, shorten_title
from threadline.thread import can_summary_replace

_COLUMNS = ("transcript_id", "source", "transcript", "machine", "title", "summaries", "days")


class OwnTitle(Struct, array_like=True, frozen=True):
    """The title that a session has by its own files. `agent_lines` are lines of agents inside its main transcript."""

    title: str
    source: str
    agent_lines: list[int]


class Summary(Struct, array_like=True, frozen=True):
    """A summary: the entry that it names, its line and its text."""

    leaf: str
    line: int
    text: str


_decode_title = msgspec.msgpack.Decoder(OwnTitle).decode
_decode_summaries = msgspec.msgpack.Decoder(list[Summary]).decode


def encode_title(title: OwnTitle) -> bytes:
    """Encode a title for `sightings`."""
    return msgspec.msgpack.encode(title)


def encode_summaries(summaries: Iterable[tuple[str, int, str]]) -> bytes | None:
    """Encode the summaries of a transcript for `sightings`; None if it has none."""
    values = [Summary(*summary) for summary in summaries]
    return msgspec.msgpack.encode(values) if values else None


def decode_summaries(packed: bytes) -> list[Summary]:
    """Decode the summaries of a transcript in `sightings`."""
    return _decode_summaries(packed)


def has_summaries(rows: Any) -> bool:
    """Whether a transcript has summaries, by an Arrow table of `sightings`."""
    column = rows.column("summaries")
    return bool(column.null_count < len(column))


def summarized_entries(rows: Any, sources: Collection[str]) -> set[str]:
    """The entries that the summaries of some sources name, by an Arrow table of `sightings`."""
    rows = rows.filter(import_library("pyarrow.compute", "lake").is_valid(rows.column("summaries")))
    return {
        summary.leaf
        for source, packed in zip(rows.column("source").to_pylist(), rows.column("summaries").to_pylist(), strict=True)
        if source in sources
        for summary in decode_summaries(packed)
    }


def update_titles(
    catalogue: Catalogue, changed: Collection[str], before: Collection[str], properties: Mapping[str, str]
) -> None:
    """Title the sessions again that a change of sources affects. Their rows have to be up to date otherwise.

    `before` are the entries that summaries of these sources named before the change.
    """
    rows = catalogue.scan(SIGHTINGS, _COLUMNS)
    refs = _read_summaries(rows.to_pylist())
    leaves = {ref.leaf for ref in refs}
    new_leaves = summarized_entries(rows, changed) | set(before)
    if not leaves and not new_leaves:
        return
    rows_by_id = {row["transcript_id"]: row for row in rows.to_pylist()}
    affected = {row["transcript_id"] for row in catalogue.find_rows("entries", _NAMED, "uuid", new_leaves)}
    days_of_changed = _days(row for row in rows_by_id.values() if row["source"] in changed)
    for row in catalogue.find_rows("entries", _NAMED, "uuid", leaves, days_of_changed):
        if rows_by_id[row["transcript_id"]]["source"] in changed:
            affected.add(row["transcript_id"])
    days = _days(rows_by_id[number] for number in affected)
    lines: dict[int, dict[str, list[int]]] = {number: {} for number in affected}
    for row in catalogue.find_rows("entries", _NAMED, "uuid", leaves, days):
        if row["transcript_id"] in affected:
            lines[row["transcript_id"]].setdefault(row["uuid"], []).append(row["line"])
    titles = {
        number: _choose_title(rows_by_id[number], lines[number], refs)
        for number in affected
        if rows_by_id[number]["title"] is not None
    }
    _replace_titles(catalogue, titles, days, properties)


_NAMED = ("uuid", "transcript_id", "line")


def _read_summaries(rows: Iterable[Mapping[str, Any]]) -> list[SummaryRef]:
    return [
        SummaryRef(summary.leaf, summary.text, _name(row), summary.line)
        for row in rows
        if row["summaries"] is not None
        for summary in decode_summaries(row["summaries"])
    ]


def _name(row: Mapping[str, Any]) -> str:
    """A transcript's name in the whole lake, in the order of paths."""
    return f"{row['transcript']}\0{row['machine']}"


def _days(rows: Iterable[Mapping[str, Any]]) -> set[date]:
    return {day for row in rows for day in row["days"]}


def _choose_title(
    row: Mapping[str, Any], lines: Mapping[str, Iterable[int]], summaries: Iterable[SummaryRef]
) -> tuple[str, str]:
    """The title of a session, and its source. `lines` are the lines of its transcript that summaries name."""
    own = _decode_title(row["title"])
    if not can_summary_replace(own.source):
        return own.title, own.source
    agent_lines = set(own.agent_lines)
    positions = {
        leaf: max(spoken) for leaf, numbers in lines.items() if (spoken := [n for n in numbers if n not in agent_lines])
    }
    text = choose_summary(summaries, positions, _name(row))
    return (shorten_title(text), str(TitleSource.SUMMARY)) if text is not None else (own.title, own.source)


def _replace_titles(
    catalogue: Catalogue, titles: Mapping[int, tuple[str, str]], days: Collection[date], properties: Mapping[str, str]
) -> None:
    """Write the rows of sessions again that have another title now."""
    pa = import_library("pyarrow", "lake")
    rows = [
        {**row, "title": title, "title_source": source}
        for row in catalogue.find_rows(SESSIONS, column_names(SESSIONS), "transcript_id", titles, days)
        if (row["title"], row["title_source"]) != (titles[row["transcript_id"]])
        for title, source in [titles[row["transcript_id"]]]
    ]
    if not rows:
        return
    numbers = sorted(row["transcript_id"] for row in rows)
    name = make_id(__version__, "titles", *properties.values(), *map(str, numbers))
    table = pa.Table.from_pylist(rows, schema=arrow_schema(SESSIONS))
    files = [file.path for file in write_rows(catalogue.bucket, SESSIONS, name, table)]
    removal = Removal("transcript_id", numbers, sorted({row["day"] for row in rows}))
    catalogue.replace_rows(SESSIONS, files, properties, removal)
