"""Attachments that bring files, memory and reminders to the model."""

from __future__ import annotations

from typing import Any

from msgspec import field

from threadline.model.attachments.attached import Attached


class FileAttachment(Attached, frozen=True, tag="file"):
    """A file the prompt named."""

    filename: str | None = None
    content: Any = None
    display_path: str | None = None
    truncated: bool | None = None
    saved_copy_framing: Any = None


class CompactFileReference(Attached, frozen=True, tag="compact_file_reference"):
    """A file that was read before a compaction."""

    filename: str | None = None
    display_path: str | None = None


class DirectoryAttachment(Attached, frozen=True, tag="directory"):
    """A directory the prompt named."""

    path: str | None = None
    content: Any = None
    display_path: str | None = None


class EditedTextFile(Attached, frozen=True, tag="edited_text_file"):
    """A file that changed outside the session."""

    filename: str | None = None
    snippet: str | None = None
    display_path: str | None = None


class NestedMemory(Attached, frozen=True, tag="nested_memory"):
    """A memory file that belongs to a directory the model came to."""

    path: str | None = None
    content: Any = None
    display_path: str | None = None


class Instructions(Attached, frozen=True, tag="instructions"):
    """The memory files the session starts with."""

    files: list[Any] | None = None


class RelevantMemories(Attached, frozen=True, tag="relevant_memories"):
    """Memories that fit the prompt."""

    memories: list[Any] | None = None


class ReadTruncationNotice(Attached, frozen=True, tag="read_truncation_notice"):
    """A file was not read to its end."""

    banner: str | None = None
    path: str | None = None
    filename: str | None = None
    tool_use_id: str | None = field(default=None, name="toolUseID")


class Diagnostics(Attached, frozen=True, tag="diagnostics"):
    """What the editor's checkers say."""


class TotalTokensReminder(Attached, frozen=True, tag="total_tokens_reminder"):
    """How full the context is."""

    text: str | None = None


class TaskReminder(Attached, frozen=True, tag="task_reminder"):
    """The task list, once more."""

    content: list[Any] | None = None
    item_count: int | None = None


class TodoReminder(Attached, frozen=True, tag="todo_reminder"):
    """The todo list, once more."""

    content: list[Any] | None = None
    item_count: int | None = None


class BatchingReminderSent(Attached, frozen=True, tag="batching_reminder_sent"):
    """The model was reminded to make calls together."""


class SilentTurnReminder(Attached, frozen=True, tag="silent_turn_reminder"):
    """The model was reminded to say something."""

    text: str | None = None


class DateChange(Attached, frozen=True, tag="date_change"):
    """A new day began."""

    new_date: str | None = None


class DateAttachment(Attached, frozen=True, tag="date"):
    """Today's date."""

    date: str | None = None


class EnvironmentSnapshot(Attached, frozen=True, tag="environment"):
    """The machine and directory the session runs in."""

    snapshot: Any = None
    text: str | None = None
    changes: list[Any] | None = None


class ModelIdentity(Attached, frozen=True, tag="model"):
    """The model that is spoken to."""

    identity: Any = None
    text: str | None = None


class SessionContext(Attached, frozen=True, tag="session_context"):
    """Context of the whole session: memory files, git state."""

    context: Any = None


class RemoteSessionChange(Attached, frozen=True, tag="remote_session_change"):
    """How commits and pull requests are to be attributed, and where the session can be seen."""

    url: str | None = None
    commit: Any = None
    pr: Any = None
    managed_commit: bool | None = None
    managed_pr: bool | None = None
    send_user_file_hint: bool | None = None


class PromptSnapshot(Attached, frozen=True, tag="prompt_snapshot"):
    """The system prompt as it was sent."""

    system_prompt: Any = None
    reminder_fold: Any = None
    echo_wire_tool_inputs: Any = None
    context_rendering: Any = None
    cli_prefix: str | None = None
    inline_tools: bool | None = None
    kept_reminders: bool | None = None
    system_turns: bool | None = None
    tool_change_header: bool | None = None
    tools: list[Any] | None = None


class CredentialOrg(Attached, frozen=True, tag="credential_org"):
    """The organisation that is billed."""
