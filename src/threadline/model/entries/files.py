"""Rows about file backups and about tool output that was swapped out."""

from __future__ import annotations

from typing import Any

from threadline.model.entries.entry import Entry
from threadline.model.ids import AgentId, EntryId
from threadline.shape import Shape


class FileBackup(Shape, frozen=True):
    """A copy of a file as it was before an edit. No name: the file did not exist yet."""

    backup_file_name: str | None = None
    version: int | None = None
    backup_time: str | None = None
    real_parent_dir: str | None = None


class FileSnapshot(Shape, frozen=True):
    """All files being tracked at one moment."""

    message_id: EntryId | None = None
    tracked_file_backups: dict[str, FileBackup] | None = None
    timestamp: str | None = None


class FileHistorySnapshotEntry(Entry, frozen=True, tag="file-history-snapshot"):
    """The files as they were when a prompt was sent."""

    message_id: EntryId | None = None
    snapshot: FileSnapshot | None = None
    is_snapshot_update: bool | None = None


class FileHistoryDeltaEntry(Entry, frozen=True, tag="file-history-delta"):
    """One file more in a snapshot."""

    message_id: EntryId | None = None
    snapshot_message_id: EntryId | None = None
    tracking_path: str | None = None
    backup: FileBackup | None = None


class ContentReplacementEntry(Entry, frozen=True, tag="content-replacement"):
    """Old tool output that the model no longer sees."""

    agent_id: AgentId | None = None
    replacements: list[Any] | None = None
