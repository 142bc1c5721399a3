"""The context window at each request, cache breaks, what fills the window, and requests rebuilt as they were sent."""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from msgspec import Struct

from threadline.model.places import AgentId, MessageId, Place


class ContextWindow(Struct, frozen=True):
    """The window as one request found it, by the usage that its message reports.

    `number` counts the agent's requests from 1. `place` and `time` are those of the message's first row; `counted` is
    the row whose counts are used. `told` is False where no row reports any tokens of a prompt: gateways do that.
    """

    number: int
    message: MessageId | None
    place: Place
    counted: Place
    turn: int
    time: datetime | None = None
    model: str | None = None
    version: str | None = None
    uncached: int = 0
    cache_read: int = 0
    cache_write_5m: int = 0
    cache_write_1h: int = 0
    output: int = 0

    @property
    def cache_write(self) -> int:
        """What was written into the cache, for whatever lifetime."""
        return self.cache_write_5m + self.cache_write_1h

    @property
    def cached(self) -> int:
        """The part of the prompt that the cache held afterwards: what the next request could have read."""
        return self.cache_read + self.cache_write

    @property
    def prompt(self) -> int:
        """How many tokens were sent: the size of the window."""
        return self.uncached + self.cached

    @property
    def told(self) -> bool:
        """Whether any row reports how large the prompt was."""
        return self.prompt > 0

    @property
    def hit_share(self) -> float | None:
        """The share of the prompt that came from the cache; None where the prompt's size is not told."""
        return self.cache_read / self.prompt if self.prompt else None

    def __repr__(self) -> str:
        return f"Window({self.number}, {self.prompt} tokens, read={self.cache_read}, line {self.place.line})"


class BreakCause(StrEnum):
    """Why a request probably found less in the cache than the one before had left there, in the order of asking."""

    MODEL = "model"
    COMPACTION = "compaction"
    BRANCH = "branch"
    IDLE = "idle"
    TOOLS = "tools"
    SETTINGS = "settings"
    RESTART = "restart"
    UNKNOWN = "unknown"


class CacheBreak(Struct, frozen=True):
    """A request that read much less from the cache than the one before had left there.

    `shortfall` is what it did not find, `rewritten` how much of that it sent anew (after a compaction the window is
    smaller, so less). `gap` is the time since the request before, `evidence` what the cause rests on.
    """

    request: int
    turn: int
    place: Place
    time: datetime | None
    cause: BreakCause
    evidence: str
    expected: int
    cache_read: int
    shortfall: int
    rewritten: int
    gap: timedelta | None = None

    def __repr__(self) -> str:
        return f"CacheBreak({str(self.cause)!r}, {self.rewritten} tokens again, line {self.place.line})"


class ContextLimit(Struct, frozen=True):
    """How large the window may grow, and why that is believed."""

    tokens: int
    why: str


class TurnContext(Struct, frozen=True):
    """The window over one turn. `window` is None where no request of the turn tells its size.

    `growth` is how much larger the window is than when the turn before it ended; less than nothing after a compaction.
    """

    number: int
    place: Place
    started: datetime | None
    prompt: str = ""
    requests: int = 0
    window: int | None = None
    largest: int | None = None
    growth: int | None = None
    sent: int = 0
    cache_read: int = 0
    limit: ContextLimit | None = None
    breaks: tuple[CacheBreak, ...] = ()
    compactions: int = 0

    @property
    def hit_share(self) -> float | None:
        """The share of all that its requests sent that came from the cache."""
        return self.cache_read / self.sent if self.sent else None

    @property
    def share(self) -> float | None:
        """How full the window was when it ended."""
        return self.window / self.limit.tokens if self.window is not None and self.limit is not None else None

    @property
    def rewritten(self) -> int:
        """How many tokens were sent anew because the cache did not have them any more."""
        return sum(one.rewritten for one in self.breaks)

    def __repr__(self) -> str:
        return f"TurnContext({self.number}, {self.requests} requests, window={self.window}, breaks={len(self.breaks)})"


class ContextCategory(StrEnum):
    """What a window is filled with."""

    SYSTEM = "system"
    SUMMARY = "summary"
    PROMPT = "prompt"
    REPLY = "reply"
    THINKING = "thinking"
    CALL = "call"
    RESULT = "result"
    INJECTED = "injected"
    IMAGE = "image"
    UNSEEN = "unseen"


class ContextPart(Struct, frozen=True):
    """How many tokens of the window one category takes.

    `name` is the tool of a result and the kind of what was injected. `measured` is how many of the tokens are a
    difference of two prompts that nothing else shares; the rest is an estimate.
    """

    category: ContextCategory
    name: str | None
    tokens: int
    measured: int = 0

    @property
    def is_measured(self) -> bool:
        """Whether all of it is measured."""
        return self.measured == self.tokens

    def __repr__(self) -> str:
        name = f" {self.name}" if self.name else ""
        return f"Filling('{self.category}{name}', {self.tokens} tokens, {self.measured} measured)"


class Context(Struct, frozen=True):
    """The context of one agent: every request, every cache break, every turn, and what filled the window at a place.

    `place` is the request whose window `filling` tells of, the last one at or before the place that was asked for; its
    sum is `window`. Where no usage tells the size (`measured` False), the window is the sum of estimates. `dropped` is
    how many tokens of what the transcript shows had left the window by then without a compaction.
    """

    agent: AgentId | None
    windows: tuple[ContextWindow, ...] = ()
    breaks: tuple[CacheBreak, ...] = ()
    turns: tuple[TurnContext, ...] = ()
    place: Place | None = None
    model: str | None = None
    window: int = 0
    measured: bool = False
    limit: ContextLimit | None = None
    filling: tuple[ContextPart, ...] = ()
    dropped: int = 0

    @property
    def share(self) -> float | None:
        """How full the window is."""
        return self.window / self.limit.tokens if self.limit is not None else None

    @property
    def hit_share(self) -> float | None:
        """The share of all that was sent that came from the cache."""
        sent = sum(window.prompt for window in self.windows)
        return sum(window.cache_read for window in self.windows) / sent if sent else None

    def __repr__(self) -> str:
        said = f"{len(self.windows)} requests, {len(self.breaks)} breaks, window={self.window}"
        return f"Context({self.agent or 'main'!r}, {said})"


class MessageSource(StrEnum):
    """Where a message of a request was found."""

    BLOB = "blob"
    REPLY = "reply"
    RESULT = "result"
    PROMPT = "prompt"
    UNKNOWN = "unknown"


class RequestMessage(Struct, frozen=True):
    """One message of a request as it was sent, without its cache marks.

    `verified`: its content has the hash that the request names. `place` is the row it was found in, the first of them
    where it is made of several.
    """

    hash: str
    role: str = ""
    content: Any = None
    verified: bool = False
    source: MessageSource = MessageSource.UNKNOWN
    place: Place | None = None
    fields: dict[str, Any] = {}


class RequestOutline(Struct, frozen=True):
    """One request in a list: how many messages it has, how many of them are new, and how many of those are missing."""

    number: int
    id: str
    place: Place
    timestamp: datetime | None
    agent: AgentId | None
    query_source: str | None
    model: str | None
    messages: int
    new: int
    missing: int


class Request(Struct, frozen=True):
    """One request: system prompt, tools, parameters and messages, as far as the transcript gives them back.

    `missing` are the hashes that nothing in the transcript has; `unknown_before` counts messages of an earlier request
    that is not here. `shape_verified` speaks for system prompt and tools, `digest_verified` for all of it together;
    None where there is nothing to hold it against.
    """

    id: str
    number: int
    place: Place
    timestamp: datetime | None
    agent: AgentId | None
    query_source: str | None
    model: str | None
    params: dict[str, Any]
    system: Any
    tools: Any
    messages: tuple[RequestMessage, ...]
    missing: tuple[str, ...] = ()
    unknown_before: int = 0
    shape_verified: bool = False
    digest: str | None = None
    digest_verified: bool | None = None

    @property
    def verified(self) -> bool:
        """Whether every part of it has the hash that the client wrote."""
        parts = self.shape_verified and not self.unknown_before and all(message.verified for message in self.messages)
        return parts and self.digest_verified is not False

    def __repr__(self) -> str:
        said = f"{len(self.messages)} messages, model={self.model!r}, verified={self.verified}"
        return f"Request({self.number}, {self.id!r}, {said})"
