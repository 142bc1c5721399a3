"""Side agents: what the program runs for itself. They are not work that the model gave away."""

from __future__ import annotations

from collections.abc import Sequence

from threadline.model.entries import AssistantEntry, ChainEntry, Entry, UserEntry
from threadline.thread.parallel import calls_of


def is_bare(entries: Sequence[Entry]) -> bool:
    """Whether an agent has a single reply and nothing else: so the warm-ups of 2.0.60, which writes no prompts."""
    rows = [entry for entry in entries if isinstance(entry, ChainEntry)]
    replies = {entry.message.id for entry in rows if isinstance(entry, AssistantEntry) and entry.message is not None}
    calls = any(isinstance(entry, AssistantEntry) and next(calls_of(entry), None) is not None for entry in rows)
    return len(replies) == 1 and not calls and not any(isinstance(entry, UserEntry) for entry in rows)
