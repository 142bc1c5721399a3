"""Attachments that bring files, memory and reminders to the model."""

from __future__ import annotations

from typing import Any

from threadline.model.attachments.attached import Attached


class FileAttachment(Attached, tag="file"):
    """A file the prompt named."""

    filename: str | None = None
    content: Any = None
    display_path: str | None = None
    truncated: bool | None = None


class CompactFileReference(Attached, tag="compact_file_reference"):
    """A file that was read before a compaction."""

    filename: str | None = None
    display_path: str | None = None




class DirectoryAttachment(Attached, tag="directory"):
    """A directory the prompt named."""

    path: str | None = None
    content: Any = None
    display_path: str | None = None


class EditedTextFile(Attached, tag="edited_text_file"):
    """A file that changed outside the session."""

    filename: str | None = None
    snippet: str | None = None
    display_path: str | None = None





class NestedMemory(Attached, tag="nested_memory"):
    """A memory file that belongs to a directory the model came to."""

    path: str | None = None
    content: Any = None
    display_path: str | None = None


class RelevantMemories(Attached, tag="relevant_memories"):
    """Memories that fit the prompt."""

    memories: list[Any] | None = None


class ReadTruncationNotice(Attached, tag="read_truncation_notice"):
    """A file was not read to its end."""

    banner: str | None = None
    path: str | None = None
    filename: str | None = None



class Diagnostics(Attached, tag="diagnostics"):
    """What the editor's checkers say."""


class TotalTokensReminder(Attached, tag="total_tokens_reminder"):
    """How full the context is."""

    text: str | None = None



class TaskReminder(Attached, tag="task_reminder"):
    """The task list, once more."""

    content: list[Any] | None = None
    item_count: int | None = None


class TodoReminder(Attached, tag="todo_reminder"):
    """The todo list, once more."""

    content: list[Any] | None = None
    item_count: int | None = None



class BatchingReminderSent(Attached, tag="batching_reminder_sent"):
    """The model was reminded to make calls together."""


class SilentTurnReminder(Attached, tag="silent_turn_reminder"):
    """The model was reminded to say something."""



class DateChange(Attached, tag="date_change"):
    """A new day began."""

    new_date: str | None = None


class DateAttachment(Attached, tag="date"):
    """Today's date."""

    date: str | None = None


class EnvironmentSnapshot(Attached, tag="environment"):
    """The machine and directory the session runs in."""

    snapshot: Any = None
    text: str | None = None


class ModelIdentity(Attached, tag="model"):
    """The model that is spoken to."""

    identity: Any = None
    text: str | None = None


class SessionContext(Attached, tag="session_context"):
    """Context of the whole session: memory files, git state."""

    context: Any = None


class RemoteSessionChange(Attached, tag="remote_session_change"):
    """What a remote session did."""

    url: str | None = None
    commit: Any = None
    pr: Any = None


class PromptSnapshot(Attached, tag="prompt_snapshot"):
    """The system prompt as it was sent."""

    system_prompt: Any = None
    reminder_fold: Any = None
    echo_wire_tool_inputs: Any = None
    context_rendering: Any = None



class CredentialOrg(Attached, tag="credential_org"):
    """The organisation that is billed."""
