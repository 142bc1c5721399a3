"""Attachments that hooks leave."""

from __future__ import annotations

from typing import Any

from msgspec import field

from threadline.model.attachments.attached import Attached


class HookAttachment(Attached, frozen=True):
    """What every hook's attachment can have."""

    hook_name: str | None = None
    tool_use_id: str | None = field(default=None, name="toolUseID")
    hook_event: str | None = None
    content: Any = None
    stdout: str | None = None
    stderr: str | None = None
    exit_code: int | None = None
    command: str | None = None
    duration_ms: float | None = None


class HookSuccess(HookAttachment, frozen=True, tag="hook_success"):
    """A hook ran."""


class HookNonBlockingError(HookAttachment, frozen=True, tag="hook_non_blocking_error"):
    """A hook failed and nothing was held up."""


class HookBlockingError(HookAttachment, frozen=True, tag="hook_blocking_error"):
    """A hook stopped what was about to happen."""

    blocking_error: Any = None


class HookCancelled(HookAttachment, frozen=True, tag="hook_cancelled"):
    """A hook was cancelled."""


class HookErrorDuringExecution(HookAttachment, frozen=True, tag="hook_error_during_execution"):
    """A hook could not be run."""


class HookAdditionalContext(HookAttachment, frozen=True, tag="hook_additional_context"):
    """Text a hook gave the model."""


class HookSystemMessage(HookAttachment, frozen=True, tag="hook_system_message"):
    """Text a hook gave the person."""


class HookStoppedContinuation(HookAttachment, frozen=True, tag="hook_stopped_continuation"):
    """A hook ended the turn."""

    message: str | None = None


class HookPermissionDecision(HookAttachment, frozen=True, tag="hook_permission_decision"):
    """A hook allowed or denied a call."""

    decision: str | None = None


class HookDeferredTool(HookAttachment, frozen=True, tag="hook_deferred_tool"):
    """A hook put a call off."""

    tool_name: str | None = None
    tool_input: Any = None
    permission_mode: str | None = None


class AsyncHookResponse(HookAttachment, frozen=True, tag="async_hook_response"):
    """A hook that ran in the background answered."""

    process_id: str | None = None
    response: Any = None
