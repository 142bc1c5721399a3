"""Attachments: what an `attachment` entry carries, one struct a type."""

from __future__ import annotations

from threadline.model.attachments.attached import Attached, OtherAttachment
from threadline.model.attachments.context import (
    BatchingReminderSent,
    CompactFileReference,
    CredentialOrg,
    DateAttachment,
    DateChange,
    Diagnostics,
    DirectoryAttachment,
    EditedTextFile,
    EnvironmentSnapshot,
    FileAttachment,
    Instructions,
    ModelIdentity,
    NestedMemory,
    PromptSnapshot,
    ReadTruncationNotice,
    RelevantMemories,
    RemoteSessionChange,
    SessionContext,
    SilentTurnReminder,
    TaskReminder,
    TodoReminder,
    TotalTokensReminder,
)
from threadline.model.attachments.hooks import (
    AsyncHookResponse,
    HookAdditionalContext,
    HookBlockingError,
    HookCancelled,
    HookDeferredTool,
    HookErrorDuringExecution,
    HookNonBlockingError,
    HookPermissionDecision,
    HookStoppedContinuation,
    HookSuccess,
    HookSystemMessage,
)
from threadline.model.attachments.listings import (
    AgentListingDelta,
    AgentMention,
    CommandPermissions,
    DeferredToolsDelta,
    DeferredToolsRecord,
    DynamicSkill,
    InvokedSkills,
    McpInstructionsDelta,
    SkillListing,
    StructuredOutput,
    UnknownCommandFallback,
)
from threadline.model.attachments.modes import (
    AutoMode,
    AutoModeExit,
    BudgetUsd,
    CompanionIntro,
    GoalStatus,
    MaxTurnsReached,
    OutputStyle,
    PlanFileReference,
    PlanMode,
    PlanModeExit,
    PlanModeReentry,
    QueuedCommand,
    TaskStatus,
    UltraEffortEnter,
    UltraEffortExit,
    UltrathinkEffort,
    WorkflowKeywordRequest,
)

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
"""Every attachment type that is known, and the stand-in for those that are not."""

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
