"""Head: what most questions need of an entry, for a third of the time that the whole of it takes."""

from __future__ import annotations

from datetime import datetime

from msgspec import field

from threadline.model.ids import AgentId, EntryId, MessageId, SessionId
from threadline.model.time import parse_timestamp
from threadline.model.usage import Usage
from threadline.shape import Shape


class MessageHead(Shape, frozen=True, rename=None):
    """A message without its content."""

    model: str | None = None
    id: MessageId | None = None
    stop_reason: str | None = None
    usage: Usage | None = None


class Head(Shape, frozen=True):
    """An entry without its content: kind, ids, time, parents, usage, and the number of its line.

    Of a line that is no entry there is a head, too: its kind is `blank`, `damaged`, `pending` or `untyped`.
    """

    kind: str = field(default="", name="type")
    parent_uuid: EntryId | None = None
    logical_parent_uuid: EntryId | None = None
    is_agent: bool | None = field(default=None, name="isSidechain")
    session_id: SessionId | None = None
    version: str | None = None
    agent_id: AgentId | None = None
    subtype: str | None = None
    message: MessageHead | None = None
    uuid: EntryId | None = None
    timestamp_text: str | int | float | None = field(default=None, name="timestamp")
    is_compact_summary: bool | None = None
    leaf_uuid: EntryId | None = None
    line: int = field(default=0, name="threadline:line")

    @property
    def timestamp(self) -> datetime | None:
        """When the entry was written, in UTC; None when the line does not say."""
        return parse_timestamp(self.timestamp_text)

    @property
    def usage(self) -> Usage | None:
        """The token counts, where the entry is a reply's."""
        return self.message.usage if self.kind == "assistant" and self.message is not None else None
