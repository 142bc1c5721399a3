"""Days of which nothing but Claude Code's own statistics is left, for a usage report."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, tzinfo

from threadline.model.reported import ReportedDay
from threadline.model.zone import in_zone
from threadline.render.figures import count


def is_within(day: ReportedDay, since: datetime | None, until: datetime | None, zone: tzinfo) -> bool:
    """Whether any of a day is in the time that is wanted."""
    first = in_zone(since, zone).date().isoformat() if since is not None else ""
    last = in_zone(until, zone).date().isoformat() if until is not None else "9999-12-31"
    return first <= day.date <= last


def gone(days: Sequence[ReportedDay]) -> str:
    """One sentence about the days of which nothing but statistics is left; empty where there are none."""
    whole = [one for one in days if not one.is_partly]
    if not whole:
        return ""
    dates = sorted(one.date for one in whole)
    tokens = sum(one.total_tokens for one in whole)
    messages = sum(one.messages for one in whole)
    return (
        f"Of {count(len(whole), 'day')} ({dates[0]} to {dates[-1]}) every transcript is gone; "
        f"Claude Code's own statistics, in no total here, report {messages:,} messages and {tokens:,} tokens: "
        "see --mode both."
    )
