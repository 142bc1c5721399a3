"""The entries of many transcripts: read one after the other, filtered, and available as a table with their text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from itertools import islice
from typing import Any

from msgspec import Struct

from threadline.errors import Error
from threadline.index import extract_fields
from threadline.model.entries import Entry, entry_subtype
from threadline.model.entry_filter import AttributedEntry, EntryFilter
from threadline.model.homes import Transcript
from threadline.model.places import Place, Problem, ProblemKind
from threadline.model.tables import Columns, Record, Table
from threadline.model.text import count, extract_text
from threadline.parse import entries

_ENTRY_COLUMNS: Columns = {
    "timestamp": datetime,
    "session": str,
    "agent": str,
    "project": str,
    "kind": str,
    "subtype": str,
    "uuid": str,
    "parent_uuid": str,
    "model": str,
    "message": str,
    "text": str,
    "thinking": str,
    "result": str,
    "place": str,
}


class EntrySource(Struct, frozen=True):
    """A transcript that may contain what a filter selects, with its session and project."""

    transcript: Transcript
    session: str | None
    project: str


class EntryStream(Table[Entry]):
    """The entries of many transcripts. Iterating reads them, each time again, and keeps none in memory.

    As a table, an entry has its text: `text` is what a prompt or reply says, `thinking` the model's thinking, and
    `result` the output of tools. After iterating, `problems` are the transcripts that could not be read.
    """

    noun = "entry"
    plural = "entries"
    html_columns = ("timestamp", "session", "agent", "kind", "model", "text", "result", "place")

    def __init__(self, sources: Sequence[EntrySource], selection: EntryFilter | None = None) -> None:
        self._sources = {str(source.transcript.path): source for source in sources}
        self._filter = selection or EntryFilter()
        self.problems: list[Problem] = []

    @property
    def columns(self) -> Columns:
        """The names and types of the columns."""
        return _ENTRY_COLUMNS

    def __iter__(self) -> Iterator[Entry]:
        return islice(self._matching(), self._filter.limit)

    def _matching(self) -> Iterator[Entry]:
        self.problems = []
        for path, source in self._sources.items():
            try:
                for entry in entries(source.transcript.path):
                    if self._filter.matches(_attribute(entry, source)):
                        yield entry
            except Error as error:
                self.problems.append(Problem(ProblemKind.UNREADABLE, Place(path), str(error), recovered=False))

    def to_record(self, row: Entry) -> Record:
        """Return an entry as a dictionary with a value for each column."""
        source = self._sources[row.line.transcript]
        attributed = _attribute(row, source)
        message: Any = getattr(row, "message", None)
        fields: dict[str, str] = {}
        with suppress(RecursionError):
            fields = extract_fields(row)
        return {
            "timestamp": row.timestamp,
            "session": attributed.session,
            "agent": attributed.agent,
            "project": source.project,
            "kind": row.kind,
            "subtype": entry_subtype(row),
            "uuid": row.uuid,
            "parent_uuid": getattr(row, "parent_uuid", None),
            "model": getattr(message, "model", None),
            "message": getattr(message, "id", None),
            "text": extract_text(message) if message is not None else _first_text(fields),
            "thinking": fields.get("thinking"),
            "result": fields.get("result"),
            "place": str(row.place),
        }

    def __repr__(self) -> str:
        return f"EntryStream({self._describe()})"

    def _describe(self) -> str:
        return f"entries of {count(len(self._sources), 'transcript')}"


def _attribute(entry: Entry, source: EntrySource) -> AttributedEntry:
    return AttributedEntry(entry, source.transcript.agent, source.session)


def _first_text(fields: dict[str, str]) -> str:
    """Return the text of an entry without a message: a title, a prompt, or what Claude Code inserted."""
    return next((fields[name] for name in ("title", "prompt", "injected", "command") if name in fields), "")
