"""Internal and experimental rows that peers have seen by name only: kept whole, fields in `extra`."""

from __future__ import annotations

from threadline.model.entries.entry import Entry


class InternalEntry(Entry, frozen=True):
    """A kind whose name is known and whose fields are not: they are all in `data`."""


class AttributionSnapshotEntry(InternalEntry, frozen=True, tag="attribution-snapshot"):
    """Which lines of the project the model wrote."""


class SavedHookContextEntry(InternalEntry, frozen=True, tag="saved_hook_context"):
    """Text that hooks gave, kept for a resume."""


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
    """The goal a session was given."""


class MarbleOrigamiCommitEntry(InternalEntry, frozen=True, tag="marble-origami-commit"):
    """Experimental context folding."""


class MarbleOrigamiSnapshotEntry(InternalEntry, frozen=True, tag="marble-origami-snapshot"):
    """Experimental context folding."""


class MarbleOrigamiResetEntry(InternalEntry, frozen=True, tag="marble-origami-reset"):
    """Experimental context folding."""
