"""The attachments of `attachment` entries, one struct per type."""

from __future__ import annotations

from typing import Any

from msgspec import field

from threadline.shape import OTHER_TAG, Shape


class Attached(Shape, frozen=True):
    """Base class of attachments. `type` is the name in the transcript."""

    timestamp: str | None = None

    @property
    def type(self) -> str:
        """The attachment's type in the transcript."""
        return str(type(self).__struct_config__.tag)


class OtherAttachment(Attached, frozen=True, tag=OTHER_TAG):
    """An attachment of an unknown type: its tag, and the complete object in `data`."""

    tag: str = ""
    data: Any = None

    @property
    def type(self) -> str:
        """The attachment's type in the transcript."""
        return self.tag


class FileAttachment(Attached, frozen=True, tag="file"):
    """A file that the prompt mentions."""

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
    """A directory that the prompt mentions."""

    path: str | None = None
    content: Any = None
    display_path: str | None = None


class EditedTextFile(Attached, frozen=True, tag="edited_text_file"):
    """A file that changed outside the session."""

    filename: str | None = None
    snippet: str | None = None
    display_path: str | None = None


class NestedMemory(Attached, frozen=True, tag="nested_memory"):
    """A memory file of a directory that the model accessed."""

    path: str | None = None
    content: Any = None
    display_path: str | None = None


class Instructions(Attached, frozen=True, tag="instructions"):
    """The memory files the session starts with."""

    files: list[Any] | None = None


class RelevantMemories(Attached, frozen=True, tag="relevant_memories"):
    """Memories that match the prompt."""

    memories: list[Any] | None = None


class ReadTruncationNotice(Attached, frozen=True, tag="read_truncation_notice"):
    """A file was read only in part."""

    banner: str | None = None
    path: str | None = None
    filename: str | None = None
    tool_use_id: str | None = field(default=None, name="toolUseID")


class Diagnostics(Attached, frozen=True, tag="diagnostics"):
    """Diagnostics from the editor."""


class TotalTokensReminder(Attached, frozen=True, tag="total_tokens_reminder"):
    """How full the context is."""

    text: str | None = None


class TaskReminder(Attached, frozen=True, tag="task_reminder"):
    """A reminder of the task list."""

    content: list[Any] | None = None
    item_count: int | None = None


class TodoReminder(Attached, frozen=True, tag="todo_reminder"):
    """A reminder of the todo list."""

    content: list[Any] | None = None
    item_count: int | None = None


class BatchingReminderSent(Attached, frozen=True, tag="batching_reminder_sent"):
    """A reminder to the model to make calls in parallel."""


class SilentTurnReminder(Attached, frozen=True, tag="silent_turn_reminder"):
    """A reminder to the model to write something."""

    text: str | None = None


class DateChange(Attached, frozen=True, tag="date_change"):
    """A new day began."""

    new_date: str | None = None


class DateAttachment(Attached, frozen=True, tag="date"):
    """Today's date."""

    date: str | None = None


class Environment(Shape, frozen=True):
    """The machine and directory the session runs in, as Claude Code describes them to the model."""

    working_directory: str | None = None
    is_worktree: bool | None = None
    is_git_repo: bool | None = None
    additional_working_directories: list[str] | None = None
    platform: str | None = None
    shell: str | None = None
    os_version: str | None = None


class EnvironmentSnapshot(Attached, frozen=True, tag="environment"):
    """The machine and directory the session runs in."""

    snapshot: Environment | None = None
    text: str | None = None
    changes: list[Any] | None = None


class ModelIdentity(Attached, frozen=True, tag="model"):
    """The current model."""

    identity: Any = None
    text: str | None = None


class SessionContext(Attached, frozen=True, tag="session_context"):
    """Context of the whole session: memory files, git state."""

    context: Any = None


class RemoteSessionChange(Attached, frozen=True, tag="remote_session_change"):
    """How to attribute commits and pull requests, and where to view the session."""

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


class QueuedCommand(Attached, frozen=True, tag="queued_command"):
    """Text a person typed while the model was working, or a note that a background task ended."""

    prompt: Any = None
    command_mode: str | None = None
    source_uuid: str | None = field(default=None, name="source_uuid")
    origin: Any = None
    image_paste_ids: list[Any] | None = None
    file_attachments: list[Any] | None = None
    is_meta: bool | None = None
    delivery_id: str | None = field(default=None, name="delivery_id")
    human_turn: bool | None = None
    run_id: str | None = None
    tools_used_delta: list[str] | None = None
    usage: Any = None


class PlanAttachment(Attached, frozen=True):
    """Base class of attachments about plan mode."""

    plan_file_path: str | None = None
    plan_exists: bool | None = None
    plan_content: str | None = None
    reminder_type: str | None = None
    is_sub_agent: bool | None = None


class PlanMode(PlanAttachment, frozen=True, tag="plan_mode"):
    """Plan mode is on."""


class PlanModeExit(PlanAttachment, frozen=True, tag="plan_mode_exit"):
    """Plan mode ended."""


class PlanModeReentry(PlanAttachment, frozen=True, tag="plan_mode_reentry"):
    """Plan mode is on again."""


class PlanFileReference(PlanAttachment, frozen=True, tag="plan_file_reference"):
    """The plan, after a compaction."""


class AutoModeAttachment(Attached, frozen=True):
    """Base class of attachments about auto mode."""

    reminder_type: str | None = None
    auto_mode_consent_flow: bool | None = None
    bypass: Any = None
    bash_first: bool | None = None
    bash_first_steer: str | None = None
    steer_only: bool | None = None
    finish_exposed_work: bool | None = None


class AutoMode(AutoModeAttachment, frozen=True, tag="auto_mode"):
    """Auto mode is on."""


class AutoModeExit(AutoModeAttachment, frozen=True, tag="auto_mode_exit"):
    """Auto mode ended."""


class OutputStyle(Attached, frozen=True, tag="output_style"):
    """The requested style of replies."""

    style: str | None = None


class CompanionIntro(Attached, frozen=True, tag="companion_intro"):
    """The pet introduces itself."""

    name: str | None = None
    species: str | None = None


class GoalStatus(Attached, frozen=True, tag="goal_status"):
    """Whether the goal is met."""

    met: bool | None = None
    condition: str | None = None


class BudgetUsd(Attached, frozen=True, tag="budget_usd"):
    """How much of the budget is left."""

    used: float | None = None
    total: float | None = None
    remaining: float | None = None


class MaxTurnsReached(Attached, frozen=True, tag="max_turns_reached"):
    """The session may not continue."""

    max_turns: int | None = None
    turn_count: int | None = None
    exit_committed: bool | None = None


class TaskStatus(Attached, frozen=True, tag="task_status"):
    """The state of a background task."""

    task_id: str | None = None
    task_type: str | None = None
    status: str | None = None
    description: str | None = None
    delta_summary: str | None = None
    output_file_path: str | None = None


class UltraEffortEnter(Attached, frozen=True, tag="ultra_effort_enter"):
    """The highest effort is on."""


class UltraEffortExit(Attached, frozen=True, tag="ultra_effort_exit"):
    """The highest effort ended."""


class UltrathinkEffort(Attached, frozen=True, tag="ultrathink_effort"):
    """The prompt asked for the most thinking."""


class WorkflowKeywordRequest(Attached, frozen=True, tag="workflow_keyword_request"):
    """The prompt asked for a workflow."""


class SkillListing(Attached, frozen=True, tag="skill_listing"):
    """The available skills."""

    content: str | None = None
    skill_count: int | None = None
    is_initial: bool | None = None
    names: list[str] | None = None
    digests: Any = None


class Delta(Attached, frozen=True):
    """Base class of changes to a list: tools, servers, agent types."""

    added_names: list[str] | None = None
    added_types: list[str] | None = None
    added_lines: list[str] | None = None
    added_blocks: list[Any] | None = None
    removed_names: list[str] | None = None
    removed_types: list[str] | None = None
    readded_names: list[str] | None = None
    pending_mcp_servers: list[Any] | None = None
    needs_auth_mcp_servers: list[Any] | None = None
    failed_mcp_servers: list[Any] | None = None
    wire_hidden_names: list[Any] | None = None
    digests: Any = None
    built_in_types: list[str] | None = None
    built_in_plugin_types: list[str] | None = None
    is_initial: bool | None = None
    show_concurrency_note: bool | None = None


class DeferredToolsDelta(Delta, frozen=True, tag="deferred_tools_delta"):
    """Searchable tools were added or removed."""


class McpInstructionsDelta(Delta, frozen=True, tag="mcp_instructions_delta"):
    """Instructions of MCP servers were added or removed."""


class AgentListingDelta(Delta, frozen=True, tag="agent_listing_delta"):
    """Agent types were added or removed."""


class InvokedSkills(Attached, frozen=True, tag="invoked_skills"):
    """The skills that were used before a compaction."""

    skills: list[Any] | None = None


class DynamicSkill(Attached, frozen=True, tag="dynamic_skill"):
    """Skills in a directory that the model accessed."""

    skill_dir: str | None = None
    skill_names: list[str] | None = None


class AgentMention(Attached, frozen=True, tag="agent_mention"):
    """The prompt mentions an agent type."""

    agent_type: str | None = None


class CommandPermissions(Attached, frozen=True, tag="command_permissions"):
    """What a command may do."""

    allowed_tools: list[str] | None = None
    model: str | None = None


class DeferredToolsRecord(Attached, frozen=True, tag="deferred_tools_record"):
    """The complete list of searchable tools."""

    entries: list[Any] | None = None


class UnknownCommandFallback(Attached, frozen=True, tag="unknown_command_fallback"):
    """The prompt contains a command that does not exist."""

    command_name: str | None = None
    available_command_names: list[str] | None = None
    available_command_count: int | None = None


class StructuredOutput(Attached, frozen=True, tag="structured_output"):
    """An answer in the requested format."""

    data: Any = None
    tool_use_id: str | None = field(default=None, name="toolUseID")


class HookAttachment(Attached, frozen=True):
    """Base class of attachments of hooks."""

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
    """A hook failed without blocking anything."""


class HookBlockingError(HookAttachment, frozen=True, tag="hook_blocking_error"):
    """A hook blocked an action."""

    blocking_error: Any = None


class HookCancelled(HookAttachment, frozen=True, tag="hook_cancelled"):
    """A hook was cancelled."""


class HookErrorDuringExecution(HookAttachment, frozen=True, tag="hook_error_during_execution"):
    """A hook could not be run."""


class HookAdditionalContext(HookAttachment, frozen=True, tag="hook_additional_context"):
    """Text from a hook to the model."""


class HookSystemMessage(HookAttachment, frozen=True, tag="hook_system_message"):
    """Text from a hook to the person."""


class HookStoppedContinuation(HookAttachment, frozen=True, tag="hook_stopped_continuation"):
    """A hook ended the turn."""

    message: str | None = None


class HookPermissionDecision(HookAttachment, frozen=True, tag="hook_permission_decision"):
    """A hook allowed or denied a call."""

    decision: str | None = None


class HookDeferredTool(HookAttachment, frozen=True, tag="hook_deferred_tool"):
    """A hook deferred a call."""

    tool_name: str | None = None
    tool_input: Any = None
    permission_mode: str | None = None


class AsyncHookResponse(HookAttachment, frozen=True, tag="async_hook_response"):
    """A hook that ran in the background answered."""

    process_id: str | None = None
    response: Any = None


Attachment = (
    FileAttachment
    | CompactFileReference
    | DirectoryAttachment
    | EditedTextFile
    | NestedMemory
    | Instructions
    | RelevantMemories
    | ReadTruncationNotice
    | Diagnostics
    | TotalTokensReminder
    | TaskReminder
    | TodoReminder
    | BatchingReminderSent
    | SilentTurnReminder
    | DateChange
    | DateAttachment
    | EnvironmentSnapshot
    | ModelIdentity
    | SessionContext
    | RemoteSessionChange
    | PromptSnapshot
    | CredentialOrg
    | HookSuccess
    | HookNonBlockingError
    | HookBlockingError
    | HookCancelled
    | HookErrorDuringExecution
    | HookAdditionalContext
    | HookSystemMessage
    | HookStoppedContinuation
    | HookPermissionDecision
    | HookDeferredTool
    | AsyncHookResponse
    | SkillListing
    | DeferredToolsDelta
    | McpInstructionsDelta
    | AgentListingDelta
    | InvokedSkills
    | DynamicSkill
    | AgentMention
    | CommandPermissions
    | DeferredToolsRecord
    | UnknownCommandFallback
    | StructuredOutput
    | QueuedCommand
    | PlanMode
    | PlanModeExit
    | PlanModeReentry
    | PlanFileReference
    | AutoMode
    | AutoModeExit
    | OutputStyle
    | CompanionIntro
    | GoalStatus
    | BudgetUsd
    | MaxTurnsReached
    | TaskStatus
    | UltraEffortEnter
    | UltraEffortExit
    | UltrathinkEffort
    | WorkflowKeywordRequest
    | OtherAttachment
)
"""Every known attachment type, and `OtherAttachment` for unknown ones."""

__all__ = [
    "AgentListingDelta",
    "AgentMention",
    "AsyncHookResponse",
    "Attached",
    "Attachment",
    "AutoMode",
    "AutoModeExit",
    "BatchingReminderSent",
    "BudgetUsd",
    "CommandPermissions",
    "CompactFileReference",
    "CompanionIntro",
    "CredentialOrg",
    "DateAttachment",
    "DateChange",
    "DeferredToolsDelta",
    "DeferredToolsRecord",
    "Diagnostics",
    "DirectoryAttachment",
    "DynamicSkill",
    "EditedTextFile",
    "EnvironmentSnapshot",
    "FileAttachment",
    "GoalStatus",
    "HookAdditionalContext",
    "HookBlockingError",
    "HookCancelled",
    "HookDeferredTool",
    "HookErrorDuringExecution",
    "HookNonBlockingError",
    "HookPermissionDecision",
    "HookStoppedContinuation",
    "HookSuccess",
    "HookSystemMessage",
    "Instructions",
    "InvokedSkills",
    "MaxTurnsReached",
    "McpInstructionsDelta",
    "ModelIdentity",
    "NestedMemory",
    "OtherAttachment",
    "OutputStyle",
    "PlanFileReference",
    "PlanMode",
    "PlanModeExit",
    "PlanModeReentry",
    "PromptSnapshot",
    "QueuedCommand",
    "ReadTruncationNotice",
    "RelevantMemories",
    "RemoteSessionChange",
    "SessionContext",
    "SilentTurnReminder",
    "SkillListing",
    "StructuredOutput",
    "TaskReminder",
    "TaskStatus",
    "TodoReminder",
    "TotalTokensReminder",
    "UltraEffortEnter",
    "UltraEffortExit",
    "UltrathinkEffort",
    "UnknownCommandFallback",
    "WorkflowKeywordRequest",
]
