"""Options for which parts of a session are shown: agents, thinking, calls, branches, turns, filters."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace


class AgentDetail(StrEnum):
    """How much of the agents is shown."""

    FULL = "full"
    FOLD = "fold"
    NONE = "none"


class TextOptions(Struct, frozen=True):
    """Options for a session as text.

    `everything` shows outputs and thinking in full, side agents, and Claude Code's own entries. `branch` and `turn` are
    numbers from 1. `thread` shows what Claude Code would resume instead of the whole conversation. `thinking` and
    `calls` are `full`, `fold` or `none`. `from_turn` and `to_turn` are the first and the last turn. `uncut` does not
    cut long prompts.
    """

    width: int = 100
    colour: bool = False
    agents: AgentDetail = AgentDetail.FOLD
    everything: bool = False
    branch: int | None = None
    turn: int | None = None
    thread: bool = False
    thinking: str = "fold"
    calls: str = "fold"
    from_turn: int | None = None
    to_turn: int | None = None
    uncut: bool = False


class Detail(StrEnum):
    """How much of something is shown: everything, a folded version, or nothing."""

    FULL = "full"
    FOLD = "fold"
    NONE = "none"


class View(Struct, frozen=True):
    """What is shown. The names are the same in the page's URLs and in the options of `threadline export`.

    `branch` is a number from 1. `thread` shows what Claude Code would resume. `from_turn` and `to_turn` are the first
    and the last turn. `kinds` are kinds of items (prompt, reply, thinking, call, notice …), `tools` names of tools, and
    `errors` selects failures; an item must match all of these. `everything` adds Claude Code's own entries.
    """

    thinking: Detail = Detail.FOLD
    calls: Detail = Detail.FOLD
    agents: AgentDetail = AgentDetail.FOLD
    images: bool = True
    everything: bool = False
    branch: int | None = None
    thread: bool = False
    from_turn: int | None = None
    to_turn: int | None = None
    kinds: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    errors: bool = False

    @property
    def inside(self) -> View:
        """The view for an agent inside the shown one, which has its own turns and branches."""
        return replace(self, branch=None, thread=False, from_turn=None, to_turn=None)
