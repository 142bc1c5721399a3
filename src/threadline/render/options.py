"""How a session is to be shown."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct


class Agents(StrEnum):
    """How much of the agents is shown."""

    FULL = "full"
    FOLD = "fold"
    NONE = "none"


class Options(Struct, frozen=True):
    """How a session is shown as text.

    `everything` unfolds outputs and thinking and shows side agents and the program's own entries; `branch` and `turn`
    are numbers from 1; `thread` is what Claude Code would resume, instead of the whole conversation. `thinking` and
    `calls` are `full`, `fold` or `none`; `from_turn` and `to_turn` the first and the last turn; `uncut` shows prompts
    of any length.
    """

    width: int = 100
    colour: bool = False
    agents: Agents = Agents.FOLD
    everything: bool = False
    branch: int | None = None
    turn: int | None = None
    thread: bool = False
    thinking: str = "fold"
    calls: str = "fold"
    from_turn: int | None = None
    to_turn: int | None = None
    uncut: bool = False
