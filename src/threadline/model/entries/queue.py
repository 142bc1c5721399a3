"""`queue-operation`: prompts typed while the model was working."""

from __future__ import annotations

from typing import Any

from threadline.model.entries.entry import Entry
from threadline.model.text import extract_text


class QueueOperationEntry(Entry, frozen=True, tag="queue-operation"):
    """A prompt entered the queue or left it."""

    operation: str | None = None
    content: Any = None
    reason: str | None = None
    command_uuid: str | None = None
    delivery_id: str | None = None

    @property
    def text(self) -> str:
        """What was queued, where the row says it."""
        return extract_text(self.content)
