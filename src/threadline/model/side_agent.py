"""Side agents: what the program runs for itself. Their ids say what for."""

from __future__ import annotations

from enum import StrEnum

WARM_UP = "Warmup"
"""What an agent is asked that only makes the program ready."""


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


_ANY = tuple(prefix for prefix, _kind in _PREFIXES)


def kind_by_id(id_: str) -> SideKind | None:
    """Which kind of side agent an id names; None where it names none."""
    if not id_.startswith(_ANY):
        return None
    return next((kind for prefix, kind in _PREFIXES if id_.startswith(prefix)), None)


def side_kind(id_: str, prompt: str | None) -> SideKind | None:
    """Which kind of side agent it is, by its id or its first words; None for one that does the model's work."""
    kind = kind_by_id(id_)
    return SideKind.WARM_UP if kind is None and prompt is not None and prompt.strip() == WARM_UP else kind
