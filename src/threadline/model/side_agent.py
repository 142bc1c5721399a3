"""Side agents: what the program runs for itself. Their ids say what for."""

from __future__ import annotations

from enum import StrEnum


class SideKind(StrEnum):
    """Agents that are not work the model gave away: they are not counted as such."""

    COMPACT = "compact"
    SUGGESTION = "prompt-suggestion"
    QUESTION = "side-question"
    MEMORY = "memory"
    WARM_UP = "warm-up"


_PREFIXES = (
    ("acompact-", SideKind.COMPACT),
    ("aprompt_suggestion-", SideKind.SUGGESTION),
    ("aside_question-", SideKind.QUESTION),
    ("asession_memory-", SideKind.MEMORY),
    ("aextract_memories-", SideKind.MEMORY),
)


def kind_by_id(id_: str) -> SideKind | None:
    """Which kind of side agent an id names; None where it names none."""
    return next((kind for prefix, kind in _PREFIXES if id_.startswith(prefix)), None)
