"""Cache breaks: a request had to send again what the previous one left in the cache.

Counts the difference between writing the tokens and reading them, at the prices of the request. A break without a
known cause counts as well, since the tokens were paid for. Breaks by a compaction are left out if the window became
smaller by more than what was sent again: then the compaction saved more than the break cost with the next request.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from threadline.insight.request_costs import price_of_rewrite
from threadline.insight.waste.detector import Detector, Finding, WasteContext
from threadline.model.context import BreakCause, CacheBreak
from threadline.model.insight.waste import WasteLimits
from threadline.model.ledger import EXACT, Charge
from threadline.model.text import format_tokens
from threadline.thread import find_cache_breaks

_MILLION = Decimal(1_000_000)
_ADVICE = {
    BreakCause.IDLE: "Compact or finish before a break that is longer than the cache's lifetime.",
    BreakCause.MODEL: "Change the model at the start of a session, or hand the task to an agent with the other model.",
    BreakCause.TOOLS: "Connect MCP servers and change tools before the first prompt.",
    BreakCause.SETTINGS: "Set thinking, effort and speed before the first prompt.",
    BreakCause.COMPACTION: "Compact between tasks, while the window is small.",
    BreakCause.BRANCH: "Rewind soon: the cache keeps only what was sent within its lifetime.",
    BreakCause.RESTART: "Resume within the cache's lifetime, or start a new session with a short summary.",
    BreakCause.UNKNOWN: "The transcript does not show the cause. Compare the requests before and after it.",
}


def _detect(context: WasteContext, _limits: WasteLimits) -> Iterator[Finding]:
    """Yield each cache break that made a request more expensive."""
    for agent in context.agents:
        charges = context.requests.charges(agent.id)
        for cache_break in find_cache_breaks(agent, context.requests.of_agent(agent.id)):
            if _is_worthwhile_compaction(cache_break):
                continue
            for charge in charges.get(cache_break.request, ())[:1]:
                yield Finding(
                    f"{cache_break.cause.label.capitalize()}: {format_tokens(cache_break.rewritten)} tokens sent again",
                    cache_break.evidence,
                    (cache_break.place,),
                    cache_break.rewritten,
                    _price_of_break(charge, cache_break.rewritten),
                    agent=agent.id,
                    turn=cache_break.turn if agent.id is None else None,
                    advice=_ADVICE[cache_break.cause],
                    cause=cache_break.cause,
                )


CACHE_BREAKS = Detector("cache-break", _ADVICE[BreakCause.UNKNOWN], _detect)


def _is_worthwhile_compaction(cache_break: CacheBreak) -> bool:
    removed = cache_break.shortfall - cache_break.rewritten
    return cache_break.cause is BreakCause.COMPACTION and removed > cache_break.rewritten


def _price_of_break(charge: Charge, tokens: int) -> Decimal:
    """How much more the tokens cost than reading them from the cache."""
    if charge.rate is None:
        return Decimal(0)
    written = min(tokens, charge.cache_write_1h + charge.cache_write_5m + charge.input)
    read = EXACT.divide(EXACT.multiply(charge.rate.cache_read, written), _MILLION)
    return EXACT.subtract(price_of_rewrite(charge, tokens), read)
