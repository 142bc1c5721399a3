"""Rows that keep a session's state: where it is, in which mode, what it links to."""

from __future__ import annotations

from typing import Any

from threadline.model.entries.entry import Entry
from threadline.model.ids import EntryId, SessionId
from threadline.shape import Shape


class LastPromptEntry(Entry, frozen=True, tag="last-prompt"):
    """The newest prompt and the leaf that is active. `explicit` with no leaf: rewound to the very start."""

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
    """The session is controlled from elsewhere."""

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
    """The session was brought here from the cloud."""

    remote_session_id: str | None = None
    branch: str | None = None
    message_count: int | None = None


class ContinuedInEntry(Entry, frozen=True, tag="continued-in"):
    """The session goes on under another id."""

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
    """The tools that have run so far, agents' among them."""

    tools: list[Any] | None = None


class SpeculationAcceptEntry(Entry, frozen=True, tag="speculation-accept"):
    """A guess at the next step was taken."""

    time_saved_ms: float | None = None


class HistorySuppressionEntry(Entry, frozen=True, tag="history-suppression"):
    """Prompts are not being written to the history file."""

    cause: Any = None


class AtisLatchEntry(Entry, frozen=True, tag="atis-latch"):
    """Internal; its meaning is not known."""

    atis: Any = None


class AgentMetadataEntry(Entry, frozen=True, tag="agent_metadata"):
    """An agent's `.meta.json`, in line: only in streams of the SDK's session store."""

    agent_id: str | None = None
    agent_type: str | None = None
    description: str | None = None
    tool_use_id: str | None = None
