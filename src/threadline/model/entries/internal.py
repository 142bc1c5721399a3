"""Internal and experimental rows that peers have seen by name only: kept whole, fields in `extra`."""

from __future__ import annotations

from threadline.model.entries.entry import Entry


class InternalEntry(Entry):
    """A kind whose name is known and whose fields are not: they are all in `data`."""


class AttributionSnapshotEntry(InternalEntry, tag="attribution-snapshot"):
    """Which lines of the project the model wrote."""


class SavedHookContextEntry(InternalEntry, tag="saved_hook_context"):
    """Text that hooks gave, kept for a resume."""


class IsolationLatchEntry(InternalEntry, tag="isolation-latch"):
    """Internal; its meaning is not known."""


class ObserverRefEntry(InternalEntry, tag="observer-ref"):
    """Another session watches this one."""


class EndedByModelEntry(InternalEntry, tag="ended-by-model"):
    """The model ended the conversation."""


class ArtifactAutoreactLedgerEntry(InternalEntry, tag="artifact-autoreact-ledger"):
    """Reactions to a published artifact."""


class ArtifactCommentMonitorEntry(InternalEntry, tag="artifact-comment-monitor"):
    """Comments on a published artifact are being watched."""


class GoalEntry(InternalEntry, tag="goal"):
    """The goal a session was given."""


class MarbleOrigamiCommitEntry(InternalEntry, tag="marble-origami-commit"):
    """Experimental context folding."""


class MarbleOrigamiSnapshotEntry(InternalEntry, tag="marble-origami-snapshot"):
    """Experimental context folding."""


class MarbleOrigamiResetEntry(InternalEntry, tag="marble-origami-reset"):
    """Experimental context folding."""
