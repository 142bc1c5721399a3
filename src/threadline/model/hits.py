"""Search hits: the entries that a query finds, with their places and snippets."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct

from threadline.model.places import Place

SNIPPET_LENGTH = 200
"""How many characters a snippet has, more or less."""


class Hit(Struct, frozen=True):
    """An entry that a query finds.

    `field` is the one that matched best, and `snippet` the words around, of which `highlights` were asked for (from
    where to where, in characters). `more` is how many other entries of the session match, as far as they were counted.
    `lacks` are the words that the entry has not, where others of its session have them or nothing has them all.
    What is `gone` is a prompt that only `history.jsonl` still has: it has no entry, and its `entry_id` is 0. What is
    `kept` is in a transcript that only the keep still has.
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
    """What a query finds. There are `total` matching entries, or `at_least` so many.

    `listed` is how many hits there would be if no limit were set: one a session, or one an entry if all are asked for.
    `note` says what the hits match instead, where some do not match exactly; where none does, they are only `near`.
    Where entries had to be read and that took long, it is `cut_short`: others may match as well, and `note` says so.
    `maybe_more`: there may be sessions beyond those that were looked at, since enough were found.
    """

    hits: tuple[Hit, ...]
    total: int
    at_least: bool = False
    note: str | None = None
    near: bool = False
    listed: int = 0
    cut_short: bool = False
    maybe_more: bool = False
