"""Hits of a search."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import overload

from msgspec import Struct

from threadline.model.places import Place
from threadline.model.tables import Columns, Table, struct_columns
from threadline.model.text import count

SNIPPET_LENGTH = 200
"""The approximate length of a snippet."""


class Hit(Struct, frozen=True):
    """An entry that a query finds.

    - `field` is the field that matched best, `snippet` the text around the match. `highlights` are the matching ranges
      in the snippet (start and end, in characters).
    - `more` is how many other entries of the session match, or (`at_least`) at least that many.
    - `lacks` are the words that the entry does not contain, if it is a partial match.
    - `gone` hits are prompts that exist only in `history.jsonl`. They have no entry, and their `entry_id` is 0.
    - `kept` hits are in a transcript that exists only in the keep.
    """

    place: Place
    entry_id: int
    session: str | None
    agent: str | None
    project: str
    kind: str
    timestamp: datetime | None
    score: float
    field: str | None = None
    snippet: str = ""
    highlights: tuple[tuple[int, int], ...] = ()
    title: str | None = None
    more: int = 0
    lacks: tuple[str, ...] = ()
    gone: bool = False
    kept: bool = False
    at_least: bool = False

    def __repr__(self) -> str:
        return f"Hit({str(self.place)!r}, {self.field or self.kind}: {self.snippet!r})"


class Hits(Table[Hit], Struct, frozen=True):
    """The result of a query. There are `total` matching entries, or (`at_least`) at least that many.

    Iterating gives the hits, best first.

    - `listed` is how many hits there would be without a limit: one per session, or one per entry if all are requested.
    - `note` explains what the hits match if some do not match exactly. If none does, they are only `near`.
    - `has_most_words` says that some session contains most of the words, if its entries do not match exactly.
    - `cut_short` says that entries had to be read and the time limit was reached: others may match, and `note` says so.
    - `maybe_more` says that there may be more sessions: the search stopped when it had enough.
    """

    hits: tuple[Hit, ...]
    total: int
    at_least: bool = False
    note: str | None = None
    near: bool = False
    listed: int = 0
    cut_short: bool = False
    maybe_more: bool = False
    has_most_words: bool = False

    noun = "hit"
    html_columns = ("session", "title", "project", "timestamp", "field", "snippet", "place")

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)

    def __len__(self) -> int:
        return len(self.hits)

    @overload
    def __getitem__(self, at: int) -> Hit: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[Hit, ...]: ...
    def __getitem__(self, at: int | slice) -> Hit | tuple[Hit, ...]:
        """Return a hit, or several with a slice."""
        return self.hits[at]

    @property
    def columns(self) -> Columns:
        """The names and types of the columns of a hit."""
        return struct_columns(Hit, ("entry_id", "highlights"))

    def __repr__(self) -> str:
        return f"Hits({self._describe()})"

    def _describe(self) -> str:
        least = "at least " if self.at_least else ""
        return f"{count(len(self.hits), 'hit')}; {least}{count(self.total, 'matching entry', 'matching entries')}"
