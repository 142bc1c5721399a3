"""The context window at each request, cache breaks, what fills the window, and requests rebuilt as they were sent."""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from msgspec import Struct

from threadline.model.places import AgentId, MessageId, Place


class ContextWindow(Struct, frozen=True):
    """The context window of one request, from the usage that its message reports.

    `number` counts the agent's requests from 1. `place` and `time` are those of the message's first row. `counted` is
    the row whose counts are used. `has_usage` is False if no row reports the tokens of the prompt: some gateways omit
    them.
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
        """Tokens written to the cache, for any lifetime."""
        return self.cache_write_5m + self.cache_write_1h

    @property
    def cached(self) -> int:
        """The part of the prompt that was in the cache afterwards: what the next request could have read."""
        return self.cache_read + self.cache_write

    @property
    def prompt(self) -> int:
        """How many tokens were sent: the size of the window."""
        return self.uncached + self.cached

    @property
    def has_usage(self) -> bool:
        """Whether any row reports how large the prompt was."""
        return self.prompt > 0

    @property
    def hit_share(self) -> float | None:
        """The share of the prompt that came from the cache; None if the prompt's size is unknown."""
        return self.cache_read / self.prompt if self.prompt else None

    def __repr__(self) -> str:
        return f"ContextWindow({self.number}, {self.prompt} tokens, read={self.cache_read}, line {self.place.line})"


class BreakCause(StrEnum):
    """Why a request probably read less from the cache than the previous one left there, in the order of checking."""

    MODEL = "model"
    COMPACTION = "compaction"
    BRANCH = "branch"
    IDLE = "idle"
    TOOLS = "tools"
    SETTINGS = "settings"
    RESTART = "restart"
    UNKNOWN = "unknown"

    @property
    def label(self) -> str:
        """The cause in words."""
        return _CAUSE_LABELS.get(self, str(self))


_CAUSE_LABELS = {
    BreakCause.MODEL: "model changed",
    BreakCause.TOOLS: "tools changed",
    BreakCause.SETTINGS: "settings changed",
    BreakCause.BRANCH: "rewind",
    BreakCause.RESTART: "session resumed",
    BreakCause.UNKNOWN: "unknown cause",
}


class CacheBreak(Struct, frozen=True):
    """A request that read much less from the cache than the previous one left there.

    `shortfall` is the difference. `rewritten` is how much of it was sent again, which is less after a compaction,
    because the window is smaller. `gap` is the time since the previous request. `evidence` supports the cause.
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
    """How large the window may grow, and the evidence for it."""

    tokens: int
    why: str


class TurnContext(Struct, frozen=True):
    """The window over one turn. `window` is None if no request of the turn reports its size.

    `growth` is how much larger the window is than at the end of the previous turn; negative after a compaction.
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
        """The share of the tokens that its requests sent that came from the cache."""
        return self.cache_read / self.sent if self.sent else None

    @property
    def share(self) -> float | None:
        """How full the window was when it ended."""
        return self.window / self.limit.tokens if self.window is not None and self.limit is not None else None

    @property
    def rewritten(self) -> int:
        """How many tokens were sent again because they were no longer in the cache."""
        return sum(break_.rewritten for break_ in self.breaks)

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

    `name` is the tool of a result, or the kind of injected text. `measured` is how many of the tokens are the exact
    difference of two prompts; the rest is an estimate.
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
        return f"ContextPart('{self.category}{name}', {self.tokens} tokens, {self.measured} measured)"


class Context(Struct, frozen=True):
    """The context of one agent: every request, every cache break, every turn, and what filled the window at a place.

    `place` is the request whose window `filling` describes: the last one at or before the requested place. The sum of
    `filling` is `window`. If no usage reports the size (`measured` is False), the window is the sum of estimates.
    `dropped` is how many tokens of the transcript had left the window by then without a compaction.
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
        """The share of all sent tokens that came from the cache."""
        sent = sum(window.prompt for window in self.windows)
        return sum(window.cache_read for window in self.windows) / sent if sent else None

    def __repr__(self) -> str:
        counts = f"{len(self.windows)} requests, {len(self.breaks)} breaks, window={self.window}"
        return f"Context({self.agent or 'main'!r}, {counts})"


class MessageSource(StrEnum):
    """Where a message of a request was found."""

    BLOB = "blob"
    REPLY = "reply"
    RESULT = "result"
    PROMPT = "prompt"
    UNKNOWN = "unknown"


class RequestMessage(Struct, frozen=True):
    """One message of a request as it was sent, without its cache marks.

    `verified` says that its content has the hash that the request names. `place` is the row that contains it, or the
    first of several.
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
    """One request: system prompt, tools, parameters and messages, as far as the transcript contains them.

    `missing` are the hashes of messages that are not in the transcript. `unknown_before` counts the messages of an
    earlier request that is missing. `shape_verified` covers system prompt and tools, `digest_verified` the whole
    request; it is None if there is no hash to compare with.
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
        summary = f"{len(self.messages)} messages, model={self.model!r}, verified={self.verified}"
        return f"Request({self.number}, {self.id!r}, {summary})"
