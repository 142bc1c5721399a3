"""Side agents: what the program runs for itself. They are not work that the model gave away."""

from __future__ import annotations

from threadline.model.agent import SideKind
from threadline.model.ids import AgentId

_PREFIXES = (
    ("acompact-", SideKind.COMPACT),
    ("aprompt_suggestion-", SideKind.SUGGESTION),
    ("aside_question-", SideKind.QUESTION),
    ("asession_memory-", SideKind.MEMORY),
    ("aextract_memories-", SideKind.MEMORY),
)
_WARM_UP = "Warmup"


def side_kind(id_: AgentId, prompt: str | None) -> SideKind | None:
    """Which kind of side agent it is, by its id or its first words; None for one that does the model's work."""
    kind = next((kind for prefix, kind in _PREFIXES if id_.startswith(prefix)), None)
    return SideKind.WARM_UP if kind is None and prompt is not None and prompt.strip() == _WARM_UP else kind
