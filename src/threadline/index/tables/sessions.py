"""Tables of sessions: what each is called and how long it is, and what people typed in it."""

from __future__ import annotations

from threadline.index.tables.table import Topic

SESSIONS = Topic()
