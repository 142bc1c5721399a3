"""Search hits: the entries that a query finds, with their places and snippets."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct

from threadline.model.places import Place

SNIPPET_LENGTH = 200
"""The approximate length of a snippet."""


class Hit(Struct, frozen=True):
    """An entry that a query finds.

    - `field` is the field that matched best, `snippet` the text around the match. `highlights` are the matching ranges
      in the snippet (start and end, in characters).
    - `more` is how many other entries of the session match, as far as they were counted.
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


class Hits(Struct, frozen=True):
    """The result of a query. There are `total` matching entries, or (`at_least`) at least that many.

    - `listed` is how many hits there would be without a limit: one per session, or one per entry if all are requested.
    - `note` explains what the hits match if some do not match exactly. If none does, they are only `near`.
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
