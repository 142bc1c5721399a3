"""Entries: one struct per kind. `AnyEntry` is their union, and `KINDS` maps the type in the transcript to the class."""

from __future__ import annotations

from typing import get_args

from threadline.model.entries.bookkeeping import (
    AgentColorEntry,
    AgentMetadataEntry,
    AgentNameEntry,
    AgentSettingEntry,
    AiTitleEntry,
    ApiRequestBlobEntry,
    ApiRequestEntry,
    ApiRequestShapeEntry,
    ArtifactAutoreactLedgerEntry,
    ArtifactCommentMonitorEntry,
    AtisLatchEntry,
    AttributionSnapshotEntry,
    BridgeSessionEntry,
    ContentReplacementEntry,
    ContinuedInEntry,
    CostStateEntry,
    CustomTitleEntry,
    EndedByModelEntry,
    FailedEntry,
    FileHistoryDeltaEntry,
    FileHistorySnapshotEntry,
    ForkContextRefEntry,
    FrameLinkEntry,
    GoalEntry,
    HistorySuppressionEntry,
    InternalEntry,
    IsolationLatchEntry,
    LastPromptEntry,
    LaunchedEntry,
    MarbleOrigamiCommitEntry,
    MarbleOrigamiResetEntry,
    MarbleOrigamiSnapshotEntry,
    ModeEntry,
    ObserverRefEntry,
    PermissionModeEntry,
    PrLinkEntry,
    QueueOperationEntry,
    RelocatedEntry,
    ResultEntry,
    SavedHookContextEntry,
    SpeculationAcceptEntry,
    StartedEntry,
    SummaryEntry,
    TagEntry,
    TaskSummaryEntry,
    TeleportedFromEntry,
    ToolsUsedEntry,
    WorktreeStateEntry,
)
from threadline.model.entries.conversation import (
    SUBTYPES,
    AgentProgress,
    AssistantEntry,
    AttachmentEntry,
    BashProgress,
    ChainEntry,
    Entry,
    ForkedFrom,
    HookProgress,
    McpProgress,
    OtherEntry,
    OtherProgress,
    PowershellProgress,
    ProgressEntry,
    QueryUpdate,
    ReplToolCall,
    SearchResultsReceived,
    SkillProgress,
    SystemEntry,
    TaskProgress,
    UserEntry,
    WaitingForTask,
    entry_subtype,
    kind_label,
    may_have_problems,
)
from threadline.model.entries.foreign import (
    AiEntry,
    CheckpointEntry,
    HumanEntry,
    RateLimitEventEntry,
    StreamEventEntry,
    ToolProgressEntry,
    ToolResultEntry,
    ToolUseEntry,
    TurnEndEntry,
)
from threadline.model.entries.required import REQUIRED, RequiredField, missing_fields

AnyEntry = (
    UserEntry
    | AssistantEntry
    | ProgressEntry
    | SystemEntry
    | AttachmentEntry
    | FileHistorySnapshotEntry
    | FileHistoryDeltaEntry
    | ContentReplacementEntry
    | SummaryEntry
    | AiTitleEntry
    | CustomTitleEntry
    | TagEntry
    | AgentNameEntry
    | AgentColorEntry
    | AgentSettingEntry
    | TaskSummaryEntry
    | LastPromptEntry
    | ModeEntry
    | PermissionModeEntry
    | PrLinkEntry
    | BridgeSessionEntry
    | WorktreeStateEntry
    | RelocatedEntry
    | TeleportedFromEntry
    | ContinuedInEntry
    | ForkContextRefEntry
    | FrameLinkEntry
    | ToolsUsedEntry
    | SpeculationAcceptEntry
    | HistorySuppressionEntry
    | AtisLatchEntry
    | AgentMetadataEntry
    | QueueOperationEntry
    | CostStateEntry
    | ApiRequestShapeEntry
    | ApiRequestBlobEntry
    | ApiRequestEntry
    | StartedEntry
    | FailedEntry
    | LaunchedEntry
    | ResultEntry
    | ToolUseEntry
    | ToolResultEntry
    | TurnEndEntry
    | CheckpointEntry
    | HumanEntry
    | AiEntry
    | StreamEventEntry
    | RateLimitEventEntry
    | ToolProgressEntry
    | AttributionSnapshotEntry
    | SavedHookContextEntry
    | IsolationLatchEntry
    | ObserverRefEntry
    | EndedByModelEntry
    | ArtifactAutoreactLedgerEntry
    | ArtifactCommentMonitorEntry
    | GoalEntry
    | MarbleOrigamiCommitEntry
    | MarbleOrigamiSnapshotEntry
    | MarbleOrigamiResetEntry
    | OtherEntry
)
"""Every kind of entry. The last one represents unknown kinds."""

KINDS: dict[str, type[Entry]] = {
    str(kind.__struct_config__.tag): kind for kind in get_args(AnyEntry) if kind is not OtherEntry
}
"""The class of each known kind, by its type in the transcript."""

CHAIN_TYPES = frozenset(kind for kind in KINDS.values() if issubclass(kind, ChainEntry))
"""The kinds of the conversation graph. Looking up a type here takes a seventh of the time of `isinstance`."""

__all__ = [
    "CHAIN_TYPES",
    "KINDS",
    "REQUIRED",
    "SUBTYPES",
    "AgentColorEntry",
    "AgentMetadataEntry",
    "AgentNameEntry",
    "AgentProgress",
    "AgentSettingEntry",
    "AiEntry",
    "AiTitleEntry",
    "AnyEntry",
    "ApiRequestBlobEntry",
    "ApiRequestEntry",
    "ApiRequestShapeEntry",
    "ArtifactAutoreactLedgerEntry",
    "ArtifactCommentMonitorEntry",
    "AssistantEntry",
    "AtisLatchEntry",
    "AttachmentEntry",
    "AttributionSnapshotEntry",
    "BashProgress",
    "BridgeSessionEntry",
    "ChainEntry",
    "CheckpointEntry",
    "ContentReplacementEntry",
    "ContinuedInEntry",
    "CostStateEntry",
    "CustomTitleEntry",
    "EndedByModelEntry",
    "Entry",
    "FailedEntry",
    "FileHistoryDeltaEntry",
    "FileHistorySnapshotEntry",
    "ForkContextRefEntry",
    "ForkedFrom",
    "FrameLinkEntry",
    "GoalEntry",
    "HistorySuppressionEntry",
    "HookProgress",
    "HumanEntry",
    "InternalEntry",
    "IsolationLatchEntry",
    "LastPromptEntry",
    "LaunchedEntry",
    "MarbleOrigamiCommitEntry",
    "MarbleOrigamiResetEntry",
    "MarbleOrigamiSnapshotEntry",
    "McpProgress",
    "ModeEntry",
    "ObserverRefEntry",
    "OtherEntry",
    "OtherProgress",
    "PermissionModeEntry",
    "PowershellProgress",
    "PrLinkEntry",
    "ProgressEntry",
    "QueryUpdate",
    "QueueOperationEntry",
    "RateLimitEventEntry",
    "RelocatedEntry",
    "ReplToolCall",
    "RequiredField",
    "ResultEntry",
    "SavedHookContextEntry",
    "SearchResultsReceived",
    "SkillProgress",
    "SpeculationAcceptEntry",
    "StartedEntry",
    "StreamEventEntry",
    "SummaryEntry",
    "SystemEntry",
    "TagEntry",
    "TaskProgress",
    "TaskSummaryEntry",
    "TeleportedFromEntry",
    "ToolProgressEntry",
    "ToolResultEntry",
    "ToolUseEntry",
    "ToolsUsedEntry",
    "TurnEndEntry",
    "UserEntry",
    "WaitingForTask",
    "WorktreeStateEntry",
    "entry_subtype",
    "kind_label",
    "may_have_problems",
    "missing_fields",
]
