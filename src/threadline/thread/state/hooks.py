"""Hooks that ran, as the transcript tells of them: progress rows in older versions, attachments in newer ones."""

from __future__ import annotations

from msgspec import Struct

from threadline.model.attachments.hooks import HookAttachment
from threadline.model.entries import AttachmentEntry, Entry, ProgressEntry
from threadline.model.entries.progress import HookProgress

# A function inside the program that watches its own tools, and no hook of anybody's.
_OWN = "callback"


class Hook(Struct, frozen=True):
    """One hook that ran: at which event, after which call."""

    event: str
    call: str | None


def hook_of(entry: Entry) -> Hook | None:
    """The hook that an entry tells of, if it is somebody's."""
    if isinstance(entry, ProgressEntry) and isinstance(entry.progress, HookProgress):
        event, command, call = entry.progress.hook_event, entry.progress.command, entry.tool_use_id
    elif isinstance(entry, AttachmentEntry) and isinstance(entry.attachment, HookAttachment):
        event, command, call = entry.attachment.hook_event, entry.attachment.command, entry.attachment.tool_use_id
    else:
        return None
    return Hook(event, call) if event and command != _OWN else None
