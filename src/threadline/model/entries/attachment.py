"""`attachment`: context the program adds for the model, and prompts typed while it was working."""

from __future__ import annotations

from typing import Any

from threadline.model.attachments import Attachment
from threadline.model.entries.entry import ChainEntry


class AttachmentEntry(ChainEntry, frozen=True, tag="attachment"):
    """Context the program adds for the model; `queued_command` holds what a person typed meanwhile."""

    attachment: Attachment | None = None
    rendered: list[Any] | None = None
    rendered_role: str | None = None
    rendered_beside_tool_result: Any = None
    rendered_in_human_turn: list[Any] | None = None
    prompt_id: str | None = None
