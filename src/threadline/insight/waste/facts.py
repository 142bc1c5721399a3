"""What the detectors of waste know about a session."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from decimal import Decimal
from functools import cached_property

from threadline.account import Ledger
from threadline.insight.attribution import attribute_costs
from threadline.insight.requests import SessionRequests
from threadline.model.attribution import Attribution, CauseKind, CostCause
from threadline.model.calls import Call
from threadline.model.ledger import Charge, sum_amounts
from threadline.model.places import AgentId
from threadline.model.session import Agent, Session
from threadline.model.waste import Waste


class SessionFacts:
    """A session with its charges, what they were caused by, and its calls with what each of them cost."""

    def __init__(self, session: Session, ledger: Ledger, project: str | None = None) -> None:
        self.session = session
        self.ledger = ledger
        self.project = project

    @cached_property
    def attribution(self) -> Attribution:
        """What the session's cost was caused by."""
        return attribute_costs(self.session, self.ledger, self.project)

    @cached_property
    def requests(self) -> SessionRequests:
        """The requests with their charges."""
        return SessionRequests(self.session, self.ledger)

    @property
    def agents(self) -> Iterator[Agent]:
        """The main agent, then the others."""
        yield self.session.main
        yield from self.session.agents

    @cached_property
    def _by_call(self) -> dict[str, list[CostCause]]:
        causes: dict[str, list[CostCause]] = {}
        for row in self.attribution.rows:
            if row.call is not None:
                causes.setdefault(row.call, []).append(row)
        return causes

    def causes_of(self, call: Call, *, results_only: bool = False) -> list[CostCause]:
        """What a call and its result cost; or only its result."""
        causes = self._by_call.get(str(call.id), [])
        return [cause for cause in causes if not results_only or cause.kind is not CauseKind.CALL]

    def charges_of_agent(self, agent: AgentId) -> list[Charge]:
        """The charges of an agent."""
        return [charge for group in self.requests.charges(agent).values() for charge in group]


def waste_of_calls(
    detector: str,
    facts: SessionFacts,
    calls: Iterable[Call],
    *,
    label: str,
    evidence: str,
    advice: str,
    results_only: bool = False,
) -> Waste | None:
    """Return the waste that some calls of one agent are; None if they cost nothing."""
    listed = list(calls)
    causes = [cause for call in listed for cause in facts.causes_of(call, results_only=results_only)]
    amount = add_amounts(cause.amount for cause in causes)
    if not amount:
        return None
    first = listed[0]
    return Waste(
        detector=detector,
        session=facts.session.id,
        label=label,
        evidence=evidence,
        places=tuple(call.place for call in listed),
        tokens=sum(cause.tokens for cause in causes),
        amount=amount,
        estimated=any(cause.estimated for cause in causes),
        advice=advice,
        agent=first.agent,
        turn=first.turn,
    )


def add_amounts(amounts: Iterable[Decimal | None]) -> Decimal:
    """Add up amounts exactly. None counts as nothing."""
    return sum_amounts(amount for amount in amounts if amount is not None)
