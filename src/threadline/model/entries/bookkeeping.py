"""Entries outside the conversation: state, titles, file backups, queue, costs, requests and workflow journals.

Of the rows that name a session, the last of each kind counts: they are written again and again. The internal and
experimental kinds at the end are known by name only; their fields are in `extra`.
"""

from __future__ import annotations

from typing import Any

from msgspec import field

from threadline.model.entries.conversation import Entry
from threadline.model.places import AgentId, EntryId, SessionId
from threadline.model.text import extract_text
from threadline.model.usage import ModelUsage, Usage
from threadline.shape import Shape


class LastPromptEntry(Entry, frozen=True, tag="last-prompt"):
    """The newest prompt and the active leaf. `explicit` without a leaf: rewound to the start."""

    last_prompt: str | None = None
    leaf_uuid: EntryId | None = None
    explicit: bool | None = None


class ModeEntry(Entry, frozen=True, tag="mode"):
    """The mode the session is in."""

    mode: str | None = None


class PermissionModeEntry(Entry, frozen=True, tag="permission-mode"):
    """What the session may do without asking."""

    permission_mode: str | None = None


class PrLinkEntry(Entry, frozen=True, tag="pr-link"):
    """A pull request that the session made or works on."""

    pr_number: int | None = None
    pr_url: str | None = None
    pr_repository: str | None = None


class BridgeSessionEntry(Entry, frozen=True, tag="bridge-session"):
    """The session is controlled remotely."""

    bridge_session_id: str | None = None
    last_sequence_num: int | None = None
    owner_account_uuid: str | None = None
    owner_organization_uuid: str | None = None


class WorktreeSession(Shape, frozen=True):
    """The worktree a session works in."""

    original_cwd: str | None = None
    worktree_path: str | None = None
    worktree_name: str | None = None
    worktree_branch: str | None = None
    original_branch: str | None = None
    original_head_commit: str | None = None
    pre_enter_original_cwd: str | None = None
    extension_root: str | None = None
    session_id: SessionId | None = None


class WorktreeStateEntry(Entry, frozen=True, tag="worktree-state"):
    """The session went into a worktree, or left it (null)."""

    worktree_session: WorktreeSession | None = None


class RelocatedEntry(Entry, frozen=True, tag="relocated"):
    """The session moved to another directory."""

    relocated_cwd: str | None = None


class TeleportedFromEntry(Entry, frozen=True, tag="teleported-from"):
    """The session was moved here from the cloud."""

    remote_session_id: str | None = None
    branch: str | None = None
    message_count: int | None = None


class ContinuedInEntry(Entry, frozen=True, tag="continued-in"):
    """The session continues under another id."""

    continued_in_session_id: SessionId | None = None


class ForkContextRefEntry(Entry, frozen=True, tag="fork-context-ref"):
    """First line of a forked agent: the history it inherits, which is not copied."""

    agent_id: str | None = None
    parent_session_id: SessionId | None = None
    parent_last_uuid: EntryId | None = None
    context_length: int | None = None


class FrameLinkEntry(Entry, frozen=True, tag="frame-link"):
    """Something the session published."""

    path: str | None = None
    frame_url: str | None = None
    title: str | None = None


class ToolsUsedEntry(Entry, frozen=True, tag="tools-used"):
    """The tools that have run so far, including those of agents."""

    tools: list[Any] | None = None


class SpeculationAcceptEntry(Entry, frozen=True, tag="speculation-accept"):
    """A suggested next step was accepted."""

    time_saved_ms: float | None = None


class HistorySuppressionEntry(Entry, frozen=True, tag="history-suppression"):
    """Prompts are not being written to the history file."""

    cause: Any = None


class AtisLatchEntry(Entry, frozen=True, tag="atis-latch"):
    """Internal; its meaning is not known."""

    atis: Any = None


class AgentMetadataEntry(Entry, frozen=True, tag="agent_metadata"):
    """An agent's `.meta.json` as an entry: only in streams of the SDK's session store."""

    agent_id: str | None = None
    agent_type: str | None = None
    description: str | None = None
    tool_use_id: str | None = None


class SummaryEntry(Entry, frozen=True, tag="summary"):
    """A title from a model for the conversation with this leaf, which may be in another transcript."""

    summary: str | None = None
    leaf_uuid: EntryId | None = None
    cwd: str | None = None
    is_compact_summary: bool | None = None


class AiTitleEntry(Entry, frozen=True, tag="ai-title"):
    """A title from a model for the session."""

    ai_title: str | None = None


class CustomTitleEntry(Entry, frozen=True, tag="custom-title"):
    """A title from a person for the session."""

    custom_title: str | None = None


class TagEntry(Entry, frozen=True, tag="tag"):
    """A tag on the session; an empty one removes it."""

    tag: str | None = None


class AgentNameEntry(Entry, frozen=True, tag="agent-name"):
    """The name of the session."""

    agent_name: str | None = None


class AgentColorEntry(Entry, frozen=True, tag="agent-color"):
    """The colour the session is shown in."""

    agent_color: str | None = None


class AgentSettingEntry(Entry, frozen=True, tag="agent-setting"):
    """The agent type the session was started as."""

    agent_setting: str | None = None


class TaskSummaryEntry(Entry, frozen=True, tag="task-summary"):
    """What the session is doing, in a few words."""

    summary: str | None = None


class FileBackup(Shape, frozen=True):
    """A copy of a file from before an edit. Without a name, the file did not exist yet."""

    backup_file_name: str | None = None
    version: int | None = None
    backup_time: str | None = None
    real_parent_dir: str | None = None


class FileSnapshot(Shape, frozen=True):
    """All tracked files at one time."""

    message_id: EntryId | None = None
    tracked_file_backups: dict[str, FileBackup] | None = None
    timestamp: str | None = None


class FileHistorySnapshotEntry(Entry, frozen=True, tag="file-history-snapshot"):
    """The files when a prompt was sent."""

    message_id: EntryId | None = None
    snapshot: FileSnapshot | None = None
    is_snapshot_update: bool | None = None


class FileHistoryDeltaEntry(Entry, frozen=True, tag="file-history-delta"):
    """Another file of a snapshot."""

    message_id: EntryId | None = None
    snapshot_message_id: EntryId | None = None
    tracking_path: str | None = None
    backup: FileBackup | None = None


class ContentReplacementEntry(Entry, frozen=True, tag="content-replacement"):
    """Old tool output that the model no longer sees."""

    agent_id: AgentId | None = None
    replacements: list[Any] | None = None


class QueueOperationEntry(Entry, frozen=True, tag="queue-operation"):
    """A prompt entered the queue or left it."""

    operation: str | None = None
    content: Any = None
    reason: str | None = None
    command_uuid: str | None = None
    delivery_id: str | None = None

    @property
    def text(self) -> str:
        """The queued text, if the row has it."""
        return extract_text(self.content)


class CostStateEntry(Entry, frozen=True, tag="cost-state"):
    """The session's total so far, written when it closes. It includes calls that are not in the transcript."""

    total_cost_usd: float | None = field(default=None, name="totalCostUSD")
    total_api_duration: float | None = field(default=None, name="totalAPIDuration")
    total_api_duration_without_retries: float | None = field(default=None, name="totalAPIDurationWithoutRetries")
    total_tool_duration: float | None = None
    total_duration: float | None = None
    total_lines_added: int | None = None
    total_lines_removed: int | None = None
    has_unknown_model_cost: bool | None = None
    start_time: float | str | None = None
    model_usage: dict[str, ModelUsage] | None = None


class ApiRequestShapeEntry(Entry, frozen=True, tag="api-request-shape"):
    """System prompt and tool list as sent, once for each version."""

    shape_hash: str | None = None
    version: str | None = None
    shape: Any = None
    agent_id: AgentId | None = None


class ApiRequestBlobEntry(Entry, frozen=True, tag="api-request-blob"):
    """One message of a request that no other row contains."""

    hash: str | None = None
    message: Any = None
    agent_id: AgentId | None = None


class ApiRequestEntry(Entry, frozen=True, tag="api-request"):
    """One request: the earlier one that it extends, how much of that it keeps, and what follows."""

    id: str | None = None
    version: str | None = None
    query_source: str | None = None
    shape_hash: str | None = None
    params: Any = None
    base: str | None = None
    keep: int | None = None
    tail: list[str] | None = None
    cache_control: list[Any] | None = None
    request_digest: str | None = None
    agent_id: AgentId | None = None


class StartedEntry(Entry, frozen=True, tag="started"):
    """An agent of the workflow began."""

    key: str | None = None
    agent_id: AgentId | None = None
    label: str | None = None
    phase: str | None = None


class FailedEntry(Entry, frozen=True, tag="failed"):
    """An agent of the workflow failed."""

    key: str | None = None
    agent_id: AgentId | None = None
    error: Any = None


class LaunchedEntry(Entry, frozen=True, tag="launched"):
    """The workflow was launched."""

    key: str | None = None
    agent_id: AgentId | None = None


class ResultEntry(Entry, frozen=True, tag="result"):
    """In a journal, the result of a workflow's agent. In a stream-json dump, how the session ended."""

    key: str | None = None
    agent_id: AgentId | None = None
    result: Any = None
    tools_used: list[str] | None = None
    remote_control_device_report: bool | None = None
    subtype: str | None = None
    session_id_again: str | None = field(default=None, name="session_id")
    is_error: bool | None = field(default=None, name="is_error")
    duration_ms: float | None = field(default=None, name="duration_ms")
    duration_api_ms: float | None = field(default=None, name="duration_api_ms")
    num_turns: int | None = field(default=None, name="num_turns")
    total_cost_usd: float | None = field(default=None, name="total_cost_usd")
    cost_usd: float | None = field(default=None, name="cost_usd")
    stop_reason: str | None = field(default=None, name="stop_reason")
    usage: Usage | None = None
    model_usage: Any = None
    permission_denials: list[Any] | None = field(default=None, name="permission_denials")
    structured_output: Any = field(default=None, name="structured_output")
    terminal_reason: str | None = field(default=None, name="terminal_reason")
    fast_mode_state: str | None = field(default=None, name="fast_mode_state")
    errors: list[Any] | None = None


class InternalEntry(Entry, frozen=True):
    """A kind whose fields are unknown: they are all in `data`."""


class AttributionSnapshotEntry(InternalEntry, frozen=True, tag="attribution-snapshot"):
    """Which lines of the project the model wrote."""


class SavedHookContextEntry(InternalEntry, frozen=True, tag="saved_hook_context"):
    """Text from hooks, saved for a resume."""


class IsolationLatchEntry(InternalEntry, frozen=True, tag="isolation-latch"):
    """Internal; its meaning is not known."""


class ObserverRefEntry(InternalEntry, frozen=True, tag="observer-ref"):
    """Another session watches this one."""


class EndedByModelEntry(InternalEntry, frozen=True, tag="ended-by-model"):
    """The model ended the conversation."""


class ArtifactAutoreactLedgerEntry(InternalEntry, frozen=True, tag="artifact-autoreact-ledger"):
    """Reactions to a published artifact."""


class ArtifactCommentMonitorEntry(InternalEntry, frozen=True, tag="artifact-comment-monitor"):
    """Comments on a published artifact are being watched."""


class GoalEntry(InternalEntry, frozen=True, tag="goal"):
    """The goal of a session."""


class MarbleOrigamiCommitEntry(InternalEntry, frozen=True, tag="marble-origami-commit"):
    """Experimental context folding."""


class MarbleOrigamiSnapshotEntry(InternalEntry, frozen=True, tag="marble-origami-snapshot"):
    """Experimental context folding."""


class MarbleOrigamiResetEntry(InternalEntry, frozen=True, tag="marble-origami-reset"):
    """Experimental context folding."""
