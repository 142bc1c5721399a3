"""The archive: the entry point of every interface.

`open` opens the archive of all homes, or of some. `Archive` answers every question about them: sessions, ledger,
search, calls, files, reports, SQL. Every answer is the one that reading all transcripts gives. If the index is up to
date, or can be updated cheaply, it answers instead.

`InsightPreparation` attributes costs in the background. `Archive.open_index` gives the `Index` itself, for questions
that only an index can answer. `ProgressDisplay` is how an interface shows the progress of long work.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from threadline.lazy import export_lazily

if TYPE_CHECKING:
    from threadline.archive.archive import (
        AUTO_REFRESH_BYTES,
        Archive,
        HomePresence,
        ProgressBar,
        ProgressDisplay,
        is_keep_ignored,
        open,  # noqa: A004 - as `threadline.open`
        purge_caches,
    )
    from threadline.archive.entries import EntryStream
    from threadline.archive.insight_preparation import InsightPreparation
    from threadline.archive.session_sums import SharedSpending, SpendingBySession, UnlistedSpending

export_lazily(
    __name__,
    {
        "archive": [
            "AUTO_REFRESH_BYTES",
            "Archive",
            "HomePresence",
            "ProgressBar",
            "ProgressDisplay",
            "is_keep_ignored",
            "open",
            "purge_caches",
        ],
        "entries": ["EntryStream"],
        "insight_preparation": ["InsightPreparation"],
        "session_sums": ["SharedSpending", "SpendingBySession", "UnlistedSpending"],
    },
)
