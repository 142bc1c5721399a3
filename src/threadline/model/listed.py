"""Calls and files as lists of them show them: what the index tells without their content."""

from __future__ import annotations

from datetime import datetime, timedelta

from msgspec import Struct

from threadline.model.call import Outcome
from threadline.model.ids import AgentId, CallId, SessionId
from threadline.model.place import Place


class ListedCall(Struct, frozen=True):
    """A call: what tool, how it ended, by whom, and where it and its result stand.

    `agent` made it (None: the main one), and `started_agent` is the one that it started.
    """

    id: CallId
    tool: str
    outcome: Outcome
    timestamp: datetime | None
    ended: datetime | None
    exit_code: int | None
    session: SessionId | None
    agent: AgentId | None
    started_agent: AgentId | None
    project: str
    place: Place
    result_place: Place | None = None

    @property
    def duration(self) -> timedelta | None:
        """The time from the call to its result, as the two entries tell it."""
        start, end = self.timestamp, self.ended
        return end - start if start is not None and end is not None and end >= start else None


class ListedFile(Struct, frozen=True):
    """A file that a session touched: how often it was read and written, and when first and last."""

    path: str
    session: SessionId | None
    project: str
    reads: int
    writes: int
    first: datetime | None
    last: datetime | None
