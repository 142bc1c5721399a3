"""Side agents: those the program starts for itself, recognised by their ids."""

from __future__ import annotations

from enum import StrEnum

WARM_UP_PROMPT = "Warmup"
"""What an agent is asked that only makes the program ready."""


class SideAgentKind(StrEnum):
    """Agents that are not work the model gave away: they are not counted as such."""

    COMPACT = "compact"
    SUGGESTION = "prompt-suggestion"
    QUESTION = "side-question"
    MEMORY = "memory"
    WARM_UP = "warm-up"


_KIND_BY_PREFIX = (
    ("acompact-", SideAgentKind.COMPACT),
    ("aprompt_suggestion-", SideAgentKind.SUGGESTION),
    ("aside_question-", SideAgentKind.QUESTION),
    ("asession_memory-", SideAgentKind.MEMORY),
    ("aextract_memories-", SideAgentKind.MEMORY),
)


_ALL_PREFIXES = tuple(prefix for prefix, _kind in _KIND_BY_PREFIX)


def side_agent_kind_by_id(id_: str) -> SideAgentKind | None:
    """Which kind of side agent an id names; None where it names none."""
    if not id_.startswith(_ALL_PREFIXES):
        return None
    return next((kind for prefix, kind in _KIND_BY_PREFIX if id_.startswith(prefix)), None)


def side_agent_kind(id_: str, prompt: str | None) -> SideAgentKind | None:
    """Which kind of side agent it is, by its id or its first words; None for one that does the model's work."""
    kind = side_agent_kind_by_id(id_)
    return SideAgentKind.WARM_UP if kind is None and prompt is not None and prompt.strip() == WARM_UP_PROMPT else kind
