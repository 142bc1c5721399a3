"""What of a session is shown: agents, thinking, calls, branches, turns, filters."""

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
    """How a session is shown as text.

    `everything` unfolds outputs and thinking and shows side agents and the program's own entries; `branch` and `turn`
    are numbers from 1; `thread` is what Claude Code would resume, instead of the whole conversation. `thinking` and
    `calls` are `full`, `fold` or `none`; `from_turn` and `to_turn` the first and the last turn; `uncut` shows prompts
    of any length.
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
    """How much of something is shown: all of it, folded so that it opens where it stands, or nothing."""

    FULL = "full"
    FOLD = "fold"
    NONE = "none"


class View(Struct, frozen=True):
    """What is shown: the same words in the page's addresses and in the options of `threadline export`.

    `branch` is a number from 1, `thread` what Claude Code would resume, `from_turn` and `to_turn` the first and the
    last turn. `kinds` are kinds of items (prompt, reply, thinking, call, notice …), `tools` names of tools,
    `errors` only what failed; where several are given, an item fits all. `everything` adds the program's own entries.
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
        """The same for an agent inside the one that is shown, which has turns and branches of its own."""
        return replace(self, branch=None, thread=False, from_turn=None, to_turn=None)
