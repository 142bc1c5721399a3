"""What the program puts into the window by itself, by kind: files, memory, reminders, notices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from threadline.model.attachments import OtherAttachment
from threadline.model.attachments.attached import Attached
from threadline.model.attachments.hooks import HookAdditionalContext, HookAttachment, HookBlockingError, HookSuccess
from threadline.model.attachments.listings import Delta
from threadline.model.entries import AttachmentEntry, UserEntry
from threadline.thread.context.estimate import estimate

# Notes of the program to itself or to the person: the model is not given them. The system prompt is counted as such.
_NOT_SENT = frozenset(
    {
        "prompt_snapshot",
        "command_permissions",
        "structured_output",
        "max_turns_reached",
        "credential_org",
        "hook_system_message",
        "hook_cancelled",
        "hook_non_blocking_error",
        "hook_error_during_execution",
        "hook_permission_decision",
        "hook_deferred_tool",
        "hook_stopped_continuation",
        "deferred_tools_record",
        "batching_reminder_sent",
    }
)
# The hooks whose output is given to the model although they only succeeded.
_HEARD = frozenset({"SessionStart", "UserPromptSubmit"})
_ABOUT = frozenset(
    {"timestamp", "display_path", "tool_use_id", "digests", "names", "source_uuid", "delivery_id", "usage"}
)

OTHER = "other"
# What a row in the person's place is that no person wrote, by how it begins.
_BEGINNINGS = {
    "<system-reminder>": "system-reminder",
    "<task-notification>": "task-notification",
    "<local-command-caveat>": "local-command",
    "Caveat: The messages below": "local-command",
    "<local-command-stdout>": "local-command",
    "<local-command-stderr>": "local-command",
    "<bash-stdout>": "local-command",
    "<bash-stderr>": "local-command",
    "<command-name>": "command",
    "<command-message>": "command",
    "<user-prompt-submit-hook>": "hook",
    "<session-start-hook>": "hook",
    "<post-tool-use-hook>": "hook",
    "Stop hook feedback:": "hook",
    "<teammate-message": "agent-message",
    "<agent-message": "agent-message",
    "<cross-session-message": "agent-message",
    "Another Claude session sent a message:": "agent-message",
    "The coordinator sent a message": "agent-message",
    "<ide_": "ide",
    "Base directory for this skill:": "skill",
    "[Request interrupted by user": "interrupt",
    "[Image": "image-note",
}


def text_kind(entry: UserEntry, text: str) -> str:
    """What a text in the person's place is that no person wrote."""
    start = text.lstrip()[:80]
    found = next((kind for beginning, kind in _BEGINNINGS.items() if start.startswith(beginning)), None)
    return found or ("skill" if entry.source_tool_use_id else "meta" if entry.is_meta else OTHER)


def attached(entry: AttachmentEntry) -> tuple[str, int]:
    """The kind of an attachment, and the tokens that the model got of it by estimate; 0 where it got none."""
    told = entry.attachment
    if told is None:
        return "unknown", 0
    if entry.rendered is not None:  # newer versions write what they made of it
        return told.type, estimate([_content(one) for one in entry.rendered])
    if told.type in _NOT_SENT:
        return told.type, 0
    return told.type, estimate(_sent(told))


def _content(rendered: Any) -> Any:
    return rendered.get("content") if isinstance(rendered, dict) else rendered


def _sent(told: Attached) -> Any:
    """The part of an attachment that the model is given."""
    for kind, part in _PARTS:
        if isinstance(told, kind):
            return part(told)
    return [getattr(told, name) for name in told.__struct_fields__ if name not in _ABOUT]


def _listing(told: Any) -> Any:
    names = (told.added_names or told.added_types) if not told.added_lines and not told.added_blocks else None
    return [names, told.added_lines, told.added_blocks, told.removed_names, told.removed_types]


def _hook(told: Any) -> Any:
    if isinstance(told, HookSuccess):
        return (told.content or told.stdout) if told.hook_event in _HEARD else None
    if isinstance(told, HookBlockingError):
        return told.blocking_error
    if isinstance(told, HookAdditionalContext):
        return told.content
    return [told.content, getattr(told, "response", None)]


_PARTS: tuple[tuple[type[Attached], Callable[[Any], Any]], ...] = (
    (Delta, _listing),
    (HookAttachment, _hook),
    (OtherAttachment, lambda told: told.data),
)
