"""What each request of a session cost, by kind of token."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal

from msgspec import Struct

from threadline.model.context import CacheBreak
from threadline.model.ledger import sum_amounts
from threadline.model.places import AgentId, Place


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
