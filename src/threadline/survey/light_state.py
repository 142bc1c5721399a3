"""What a light pass over a main transcript has come to, and what that tells: nothing here reads."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct

from threadline.model.time import parse_timestamp
from threadline.model.title import named


class Light(Struct, frozen=True):
    """What one pass tells. `spoken` is how many entries of the main conversation there are: none is no session.

    `inline` are the agents whose entries stand in the main transcript itself; `started` are the agents that its calls
    started, and `unnamed` is how many more of those calls do not name theirs.
    """

    title: str = ""
    title_source: str = ""
    cwd: str | None = None
    first: datetime | None = None
    last: datetime | None = None
    turns: int = 0
    inline: tuple[str, ...] = ()
    started: tuple[str, ...] = ()
    unnamed: int = 0
    agent_types: dict[str, int] = {}
    model: str | None = None
    entries: int = 0
    spoken: int = 0
    problem: str | None = None


class LightState(Struct, array_like=True):
    """What a pass has come to: all that is needed to go on with it. Times are text; acts are known by their words."""

    titles: dict[str, str] = {}
    words: dict[str, str] = {}
    inline: list[str] = []
    types: dict[str, int] = {}
    asked: dict[str, str | None] = {}
    named: list[str] = []
    first: str | None = None
    last: str | None = None
    cwd: str | None = None
    model: str | None = None
    count: int = 0
    spoken: int = 0
    turns: int = 0
    act_kind: str = ""
    act_text: bytes = b""
    newest: tuple[int, ...] = ()
    unqueued: bool = False


def light_of(state: LightState) -> Light:
    """What a pass tells that has come to this."""
    title = named(state.titles, state.words)
    return Light(
        title=title.text,
        title_source=str(title.source),
        cwd=state.cwd,
        first=parse_timestamp(state.first),
        last=parse_timestamp(state.last),
        turns=state.turns,
        inline=tuple(state.inline),
        started=tuple(state.named),
        unnamed=len(state.asked),
        agent_types={kind: count for kind, count in state.types.items() if count > 0},
        model=state.model,
        entries=state.count,
        spoken=state.spoken,
    )
