"""Rows that name a session. The last one of a kind counts: they are written again and again."""

from __future__ import annotations

from threadline.model.entries.entry import Entry
from threadline.model.ids import EntryId


class SummaryEntry(Entry, frozen=True, tag="summary"):
    """The title a model gave a conversation, named by its leaf, which may be in another transcript."""

    summary: str | None = None
    leaf_uuid: EntryId | None = None
    cwd: str | None = None
    is_compact_summary: bool | None = None


class AiTitleEntry(Entry, frozen=True, tag="ai-title"):
    """The title a model gave the session."""

    ai_title: str | None = None


class CustomTitleEntry(Entry, frozen=True, tag="custom-title"):
    """The title a person gave the session."""

    custom_title: str | None = None


class TagEntry(Entry, frozen=True, tag="tag"):
    """A tag on the session; an empty one takes it away."""

    tag: str | None = None


class AgentNameEntry(Entry, frozen=True, tag="agent-name"):
    """The name the session goes by."""

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
