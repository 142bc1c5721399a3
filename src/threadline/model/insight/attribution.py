"""What a session's cost is attributed to."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from enum import StrEnum

from msgspec import Struct

from threadline.model.context import CacheBreak, ContextCategory
from threadline.model.ledger import EXACT, sum_amounts
from threadline.model.places import AgentId, Place, SessionId


class CauseKind(StrEnum):
    """What a cost was caused by: a part of the context window, or a request by itself.

    `agent` is a subagent without a transcript, `other` a request whose prompt is not in the transcript, and `unseen`
    what is in the window and not in the transcript.
    """

    SYSTEM = ContextCategory.SYSTEM.value
    SUMMARY = ContextCategory.SUMMARY.value
    PROMPT = ContextCategory.PROMPT.value
    REPLY = ContextCategory.REPLY.value
    THINKING = ContextCategory.THINKING.value
    CALL = ContextCategory.CALL.value
    RESULT = ContextCategory.RESULT.value
    INJECTED = ContextCategory.INJECTED.value
    IMAGE = ContextCategory.IMAGE.value
    UNSEEN = ContextCategory.UNSEEN.value
    SEARCH = "web-search"
    AGENT = "agent"
    OTHER = "other"


class CostCause(Struct, frozen=True):
    """A piece of the context and what it cost.

    `tokens` is its size when it was added. `requests` is how many requests carried it. `amount` is the sum of `write`
    (sent for the first time, or again after a cache break), `read` (carried from the cache) and `output` (the model
    wrote it). `estimated` says that its size is an estimate, scaled to the measured window. `name` is the tool of a
    result or the kind of an injected text; `file`, `server` and `call` (its id) are those of a tool call. `session` is
    the session that paid for it, and `project` the path of its project, if that is known.
    """

    kind: CauseKind
    label: str
    place: Place | None
    tokens: int
    requests: int
    write: Decimal
    read: Decimal
    output: Decimal
    estimated: bool
    agent: AgentId | None = None
    turn: int | None = None
    name: str | None = None
    file: str | None = None
    server: str | None = None
    call: str | None = None
    session: SessionId | None = None
    project: str | None = None

    @property
    def amount(self) -> Decimal:
        """What it cost in USD, exact."""
        return EXACT.add(EXACT.add(self.write, self.read), self.output)


def sort_key(cause: CostCause) -> tuple[Decimal, str, str, str, str]:
    """Sort key of causes: the largest amount first."""
    return -cause.amount, str(cause.place), cause.kind, cause.label, cause.session or ""


class Attribution(Struct, frozen=True):
    """The cost of a session by cause, largest first. The rows sum to `amount` exactly.

    `error` is the share by which the estimates miss the measured growth of the window, on average; None if nothing was
    measured. `measured` is that growth in tokens. `unpriced` counts the requests whose model has no price: they are not
    part of the amount.
    """

    session: SessionId | None
    amount: Decimal
    rows: tuple[CostCause, ...]
    error: float | None = None
    unpriced: int = 0
    measured: int = 0

    def __repr__(self) -> str:
        return f"Attribution({self.session!r}, {len(self.rows)} causes, {self.amount} USD)"


class RequestCost(Struct, frozen=True):
    """What a request cost in USD: `new` input, input written to the cache again (`rewrite`), `read` and `output`.

    `turn` is the turn of the session: for an agent, the turn of the call that started it. `tokens` is the size of the
    prompt. `cache_break` is set if the request had to write again what was in the cache. `new` includes fees for web
    searches.
    """

    agent: AgentId | None
    turn: int | None
    place: Place
    time: datetime | None
    model: str | None
    tokens: int
    new: Decimal
    rewrite: Decimal
    read: Decimal
    output: Decimal
    cache_break: CacheBreak | None = None

    @property
    def amount(self) -> Decimal:
        """What it cost in USD, exact."""
        return sum_amounts((self.new, self.rewrite, self.read, self.output))
