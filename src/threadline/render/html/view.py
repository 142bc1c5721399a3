"""View: what of a session a page or a file shows."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from threadline.render.options import Agents


class Amount(StrEnum):
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

    thinking: Amount = Amount.FOLD
    calls: Amount = Amount.FOLD
    agents: Agents = Agents.FOLD
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
