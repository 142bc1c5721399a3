"""The requests of a session with their charges, and what each part of a request cost.

`SessionRequests` finds the request that each charge is for. `split_request_costs` divides the cost of each request: new
input, what was written to the cache again, cache reads, output.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal

from threadline.account import Ledger
from threadline.model.context import CacheBreak
from threadline.model.insight.attribution import RequestCost
from threadline.model.ledger import EXACT, Charge, sum_amounts
from threadline.model.places import AgentId
from threadline.model.session import Session
from threadline.thread import SentRequest, find_cache_breaks, find_requests

_Where = tuple[AgentId | None, int]


class SessionRequests:
    """The requests of every agent of a session, with their charges.

    `unlocated` are charges that no request of the transcripts explains: those of agents without a transcript, and
    passes of another model that are charged separately. `unpriced` counts charges without a price; they are not
    included.
    """

    def __init__(self, session: Session, ledger: Ledger) -> None:
        self._requests: dict[AgentId | None, list[SentRequest]] = {}
        self._by_row: dict[str | tuple[str, int], _Where] = {}
        self._charges: dict[AgentId | None, dict[int, list[Charge]]] = {}
        self.unlocated: list[Charge] = []
        self.unpriced = 0
        for agent in (session.main, *session.agents):
            sent = find_requests(agent.entries, agent.turns)
            self._requests[agent.id] = sent
            for request in sent:
                where = agent.id, request.window.number
                for row in request.rows:
                    self._by_row.setdefault(row.uuid or (row.line.transcript, row.line.offset), where)
        for charge in ledger:
            self._add(charge)

    def of_agent(self, agent: AgentId | None) -> Sequence[SentRequest]:
        """The requests of an agent, in order."""
        return self._requests.get(agent, ())

    def charges(self, agent: AgentId | None) -> dict[int, list[Charge]]:
        """The charges of an agent, by the number of their request."""
        return self._charges.get(agent, {})

    def _add(self, charge: Charge) -> None:
        if charge.rate is None:
            self.unpriced += 1
            return
        where = self._locate(charge)
        if where is None or charge.part:
            self.unlocated.append(charge)
        else:
            agent, number = where
            self._charges.setdefault(agent, {}).setdefault(number, []).append(charge)

    def _locate(self, charge: Charge) -> _Where | None:
        for sighting in (charge.owner, *charge.sightings):
            for uuid, offset in zip(sighting.uuids, sighting.offsets, strict=True):
                where = self._by_row.get(uuid or (sighting.origin.transcript, offset))
                if where is not None:
                    return where
        return None


_MILLION = Decimal(1_000_000)


def split_request_costs(session: Session, requests: SessionRequests) -> Iterator[RequestCost]:
    """Yield what each request with a price cost: the main agent's requests in order, then each other agent's."""
    turns = starting_turns(session)
    for agent in (session.main, *session.agents):
        sent, charges = requests.of_agent(agent.id), requests.charges(agent.id)
        breaks = {broken.request: broken for broken in find_cache_breaks(agent, sent)} if charges else {}
        for request in sent:
            if paid := charges.get(request.window.number):
                turn = request.window.turn if agent.id is None else turns.get(agent.id)
                yield _split_cost(agent.id, turn, request, paid, breaks.get(request.window.number))


def _split_cost(
    agent: AgentId | None,
    turn: int | None,
    request: SentRequest,
    charges: Sequence[Charge],
    cache_break: CacheBreak | None,
) -> RequestCost:
    rewrite = price_of_rewrite(charges[0], cache_break.rewritten) if cache_break is not None else Decimal(0)
    read = sum_amounts(charge.rate.amount(cache_read=charge.cache_read) for charge in charges if charge.rate)
    output = sum_amounts(charge.rate.amount(output=charge.output) for charge in charges if charge.rate)
    total = sum_amounts(charge.amount for charge in charges if charge.amount is not None)
    window = request.window
    return RequestCost(
        agent=agent,
        turn=turn,
        place=window.place,
        time=window.time,
        model=window.model,
        tokens=window.prompt,
        new=EXACT.subtract(total, sum_amounts((rewrite, read, output))),
        rewrite=rewrite,
        read=read,
        output=output,
        cache_break=cache_break,
    )


def price_of_rewrite(charge: Charge, tokens: int) -> Decimal:
    """What writing some tokens of a request cost. Writes come before uncached input in the window."""
    rate = charge.rate
    if rate is None:
        return Decimal(0)
    total = Decimal(0)
    for size, price in (
        (charge.cache_write_1h, rate.cache_write_1h),
        (charge.cache_write_5m, rate.cache_write_5m),
        (charge.input, rate.input),
    ):
        taken = min(tokens, size)
        tokens -= taken
        total = EXACT.fma(price, taken, total)
    return EXACT.divide(total, _MILLION)


def starting_turns(session: Session) -> dict[AgentId | None, int | None]:
    """The session's turn in which each agent was started, directly or by another agent; None if it is not known."""
    # The turn of an agent's own call is the one in which that agent was started.
    calls = session.calls_by_id
    starts = {agent.id: calls.get(agent.link.call) for agent in session.agents if agent.link.call is not None}
    turns = {agent: call.turn for agent, call in starts.items() if call is not None}
    return {agent.id: turns.get(agent.id) for agent in session.agents}
