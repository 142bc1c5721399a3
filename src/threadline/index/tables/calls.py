"""Tables of what agents did: calls, files touched, todos, compactions, and the agents themselves."""

from __future__ import annotations

from threadline.index.tables.table import Topic

CALLS = Topic()
