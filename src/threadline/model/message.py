"""Message: what was sent to the API or came back from it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from threadline.model.block import Content, ContentBlock, TextBlock
from threadline.model.ids import MessageId
from threadline.model.text import extract_text
from threadline.model.usage import Usage
from threadline.shape import Shape


class Message(Shape, frozen=True, rename=None):
    """One API message, or the part of it that one entry holds: as a rule a single block."""

    model: str | None = None
    id: MessageId | None = None
    type: str | None = None
    role: str | None = None
    content: Content = None
    stop_reason: str | None = None
    stop_sequence: str | None = None
    stop_details: Any = None
    usage: Usage | None = None
    container: Any = None
    context_management: Any = None
    diagnostics: Any = None

    @property
    def blocks(self) -> Iterator[ContentBlock]:
        """The blocks of the content; a bare string counts as a text block."""
        if isinstance(self.content, str):
            yield TextBlock(self.content)
        else:
            for item in self.content or ():
                yield TextBlock(item) if isinstance(item, str) else item

    @property
    def text(self) -> str:
        """The text blocks, joined with newlines."""
        return extract_text(self.content)
