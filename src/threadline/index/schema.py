"""The schema of the index: what people may query, and what only the refresh needs.

Everything here is derived from transcripts, so there are no migrations: another version is another file.
"""

from __future__ import annotations

from threadline.index.tables.calls import CALLS
from threadline.index.tables.entries import ENTRIES, FIELDS
from threadline.index.tables.places import PLACES
from threadline.index.tables.sessions import SESSIONS
from threadline.index.tables.spending import SPENDING
from threadline.index.version import VERSION
from threadline.index.vocabulary import VOCABULARY

__all__ = ["FIELDS", "INDEXES", "OF_ENTRIES", "OF_TRANSCRIPT", "PRIVATE", "TABLES", "VERSION", "VIEWS"]

_TOPICS = (PLACES, ENTRIES, SPENDING, SESSIONS, CALLS, VOCABULARY)

TABLES = {name: made for topic in _TOPICS for name, made in topic.tables.items()}
"""Each table, and how it is made. The rowid of `text` is the entry's."""

VIEWS = {name: made for topic in _TOPICS for name, made in topic.views.items()}
"""Each view, and how it is made: what people ask for by the glossary's names."""

INDEXES = tuple(made for topic in _TOPICS for made in topic.indexes)

OF_TRANSCRIPT = tuple(name for topic in _TOPICS for name in topic.of_transcript)
"""The tables whose rows are a transcript's, by `transcript_id`."""

OF_ENTRIES = tuple(name for topic in _TOPICS for name in topic.of_entries)
"""The tables whose rows are an entry's, by `entry_id`."""

PRIVATE = frozenset(name for topic in _TOPICS for name in topic.private)
"""Those that only the refresh needs."""
