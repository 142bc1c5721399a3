"""Find the request that each charge of a session is for."""

from __future__ import annotations

from collections.abc import Sequence

from threadline.account import Ledger
from threadline.model.ledger import Charge
from threadline.model.places import AgentId
from threadline.model.session import Session
from threadline.thread import SentRequest, find_requests

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
